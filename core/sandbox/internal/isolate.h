/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the worker: a user id of its own, empty namespaces, Landlock. They hold if the filter of
 * system calls has a hole. Each is done as far as the kernel and the rights of the agent allow.
 */
#ifndef SANDBOX_ISOLATE_H
#define SANDBOX_ISOLATE_H

#define ISOLATE_UID 0x7f000000u /* + pid; no range of system or container users is there */

/* To be called before capabilities are dropped and before other threads exist. 0; -errno: the user
 * id is changed in part only. */
int isolate_enter(void);
/* To be called with no_new_privs set. */
void isolate_landlock(void);
#endif
