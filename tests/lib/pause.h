/* SPDX-License-Identifier: Apache-2.0 */
/* A pause whose length decides no verdict: a later end makes no test fail. All else waits for an
 * event (WAIT_FOR, test.h). */
#ifndef LIB_PAUSE_H
#define LIB_PAUSE_H

#include <time.h>

static inline void pause_us(long microseconds, const char *why)
{
	struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};

	(void)why; /* for who reads the call */
	nanosleep(&t, NULL);
}
#endif
