/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a command twice before its own code runs: after the exec, and when its loader has mapped
 * all libraries and is about to enter it. All unwind tables can be made then, before the first
 * sample. ptrace(2) and a hardware breakpoint stop the command: its memory is not changed, and its
 * children are not traced.
 */
#ifndef RECORD_ENTRY_H
#define RECORD_ENTRY_H

#include <stdbool.h>
#include <sys/types.h>

/* Traces a child that waits for its exec. false: not allowed, or tracing would take the rights from
 * a setuid program; the child runs untraced then. */
bool entry_seize(pid_t child);
struct entry_calls {
	void (*ready)(void *arg); /* at both stops */
	void (*go_on)(void *arg); /* once, the last before the child runs its own code */
};

/*
 * After the exec of a traced child: stops it twice and lets it go on. Returns when the child runs
 * untraced or has ended (wait(2) still reports that), at the latest some seconds after a stop if it
 * does not reach its entry point. *traced: it has not stopped in time, and stays traced. true: it
 * was ready at its entry point.
 */
bool entry_pass(pid_t child, const struct entry_calls *, void *arg, bool *traced);
/* Lets a child go on that stayed traced, if it has stopped meanwhile: at SIGCHLD. true: it is not
 * traced any more, or has ended. */
bool entry_release(pid_t child);
#endif
