/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C while a call waits. `record` and `ui` block SIGINT, SIGTERM and SIGHUP, which their loops
 * read; a call that may wait long outside of a loop begins one of these. */
#ifndef CONSOLE_INTERRUPT_H
#define CONSOLE_INTERRUPT_H

struct interrupt;

/* From now on a thread waits for those of the three signals that the caller blocks, takes the first
 * that comes, and calls back. In a command that blocks none, nothing happens: the signal ends it.
 * Without memory, descriptors or a thread there is no interrupt. *ret is for interrupt_end(), and
 * may be NULL. */
void interrupt_begin(struct interrupt **ret, void (*call)(void *arg), void *arg);
/* Waits for a callback that runs, and ends the thread. The signal that came, or 0. */
int interrupt_end(struct interrupt *);
/* Blocks the three signals in this thread, and in those that it creates later. */
void interrupt_block(void);
#endif
