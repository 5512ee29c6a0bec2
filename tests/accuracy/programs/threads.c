/* SPDX-License-Identifier: Apache-2.0 */
/* Four threads, each with a chain of its own, that stand before the profiler comes. */
#include <pthread.h>

#include "burn.h"

static pthread_barrier_t gate;

#define THREAD(n, deep)                                         \
	static NOIPA void burn_##n(void)                        \
	{                                                       \
		BURN_LOOP(300 + deep);                          \
	}                                                       \
	static NOIPA long work_##n(long depth)                  \
	{                                                       \
		long r = 0;                                     \
                                                                \
		if (depth < deep)                               \
			r = work_##n(depth + 1);                \
		else                                            \
			burn_##n();                             \
		NO_TAIL();                                      \
		return r + depth;                               \
	}                                                       \
	static void *thread_##n(void *arg)                      \
	{                                                       \
		pthread_setname_np(pthread_self(), "burn-" #n); \
		pthread_barrier_wait(&gate);                    \
		while (go_on())                                 \
			for (int i = 0; i < 3000; i++)          \
				work_##n(1);                    \
		return arg;                                     \
	}

THREAD(a, 3)
THREAD(b, 5)
THREAD(c, 7)
THREAD(d, 9)

int main(int argc, char **argv)
{
	void *(*f[])(void *) = {thread_a, thread_b, thread_c, thread_d};
	pthread_t t[4];

	pthread_barrier_init(&gate, NULL, 5);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, f[i], NULL))
			return 1;
	burn_ready(argc, argv);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
