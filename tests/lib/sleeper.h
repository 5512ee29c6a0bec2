/* SPDX-License-Identifier: Apache-2.0 */
/* A process that waits, for tests that need a second process. */
#ifndef LIB_SLEEPER_H
#define LIB_SLEEPER_H

#include "test.h"

static inline pid_t sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
#endif
