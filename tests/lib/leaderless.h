/* SPDX-License-Identifier: Apache-2.0 */
/* A child whose first thread has ended, while another goes on. */
#ifndef LIB_LEADERLESS_H
#define LIB_LEADERLESS_H

#include "test.h"

struct leaderless {
	pid_t pid;
	int go; /* once it is closed, the other thread ends too */
};

static inline void *leaderless_thread(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) ? arg : NULL;
}

static inline _Noreturn void leaderless_child(int go)
{
	static int from;
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	from = go;
	if (pthread_create(&t, NULL, leaderless_thread, &from))
		_exit(1);
	pthread_exit(NULL);
}

/* Has its first thread ended? */
static inline bool leaderless_is_zombie(pid_t pid)
{
	char path[64], line[256] = "";
	bool zombie = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && !zombie && fgets(line, sizeof(line), f))
		zombie = !strncmp(line, "State:\tZ", 8);
	if (f)
		fclose(f);
	return zombie;
}

static inline struct leaderless leaderless_start(void)
{
	struct leaderless l;
	int ends[2];

	CHECK(!pipe(ends));
	l.go = ends[1];
	l.pid = fork();
	if (!l.pid) {
		close(ends[1]);
		leaderless_child(ends[0]);
	}
	CHECK(l.pid > 0);
	close(ends[0]);
	WAIT_FOR(leaderless_is_zombie(l.pid));
	return l;
}
#endif
