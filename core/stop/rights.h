/* SPDX-License-Identifier: Apache-2.0 */
/* Who may stop the threads of a process, and why not. [any thread] */
#ifndef STOP_RIGHTS_H
#define STOP_RIGHTS_H

#include <stddef.h>
#include <sys/types.h>

/* May this process stop its threads and read its memory? 0; -ESRCH: it has ended; -EPERM. That it
 * is traced already is not seen here. */
int stop_may(pid_t pid);
/* The same of a child that it starts, by trying it, and by a stop. 0; -EPERM, -ENOSYS and the like.
 */
int stop_try(void);
/* The process that traces the thread; 0: none, or not known. */
pid_t stop_tracer_of(pid_t pid, pid_t tid);
/* One sentence that says why the threads of the process can't be stopped, and what helps. tracer:
 * of a process that is traced, 0 where it is not. */
void stop_refusal(pid_t pid, pid_t tracer, char *to, size_t size);
#endif
