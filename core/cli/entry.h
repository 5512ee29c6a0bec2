/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halts a command twice before its own code runs: when it has become its program, and where its
 * loader has mapped all libraries and is about to enter it. There all unwind tables can be made, so
 * that no sample comes too early for them. By ptrace(2) and a hardware breakpoint: nothing in the
 * command's memory is changed, and its children know nothing of it.
 */
#ifndef CLI_ENTRY_H
#define CLI_ENTRY_H

#include <stdbool.h>
#include <sys/types.h>

/* Of a child that waits to exec. false: not allowed, or it would take rights from a setuid program;
 * then it runs as if nothing had been asked. */
bool entry_seize(pid_t child);
/*
 * After the exec has been let go: calls ready() at both places, while the child stands still, and
 * lets it run. Returns once it runs freely, or has ended (which wait(2) will tell), two seconds
 * later at most where it does not come to its entry.
 */
void entry_pass(pid_t child, void (*ready)(void *arg), void *arg);
#endif
