/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does what another has it do, while that waits: the kernel lets all threads go on
 * that it traced when it ends. */
#ifndef STOP_TRACER_H
#define STOP_TRACER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

struct tracer {
	pthread_t thread;
	sem_t go, done;
	void (*work)(void *arg); /* NULL: it is to end */
	void *arg;
	bool runs;
};

int tracer_begin(struct tracer *); /* 0 or -EAGAIN. *tracer is zeros before */
/* Ends fusee with an error if a target keeps the thread waiting for a minute. */
void tracer_run(struct tracer *, void (*work)(void *arg), void *arg);
void tracer_end(struct tracer *); /* nothing, if it has not begun */
#endif
