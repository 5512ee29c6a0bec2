/* SPDX-License-Identifier: Apache-2.0 */
/* What time it is, in ns. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t);
uint64_t clock_now(void); /* CLOCK_MONOTONIC */
#endif
