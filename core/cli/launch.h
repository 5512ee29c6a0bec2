/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the command that is to be profiled, held until everything else is ready. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <sys/types.h>

struct launch {
	pid_t pid;
	int go, failed; /* pipes: we write to let it exec; it writes errno if that fails */
};

/* Forks; the child waits. Under sudo it becomes the user who asked, with that user's groups. 0 or
 * -errno. */
int launch_hold(struct launch *, char *const argv[]);
int launch_go(struct launch *);    /* 0, or -errno of the exec */
void launch_drop(struct launch *); /* the held child ends without having run */

/* The user who asked by sudo; false: nobody did. */
int launch_sudo_user(uid_t *uid, gid_t *gid);
#endif
