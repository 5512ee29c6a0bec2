/* SPDX-License-Identifier: Apache-2.0 */
/* The command that `record` and `top` profile: a child process that waits until sampling is ready.
 */
#ifndef RECORD_COMMAND_H
#define RECORD_COMMAND_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"

struct command {
	char *const *argv; /* NULL: there is no command; else it ends with NULL */
	pid_t pid;         /* -1: none */
	int go, failed;    /* pipes: a byte written to `go` lets the child exec; it writes -errno of
			      a failed exec to `failed`. -1: closed */
	bool stdout_to_stderr; /* its standard output is fusee's standard error */
	bool running;          /* it has exec'ed and has not been waited for */
	int status;            /* of wait(2), once it has ended */
	struct rusage usage;   /* likewise */
};

#define COMMAND_NONE ((struct command){.pid = -1, .go = -1, .failed = -1})

/* Forks; the child waits before its exec. Under sudo it becomes the user who called sudo, with that
 * user's groups. 0 or -errno. */
int command_hold(struct command *);
/* Lets the child exec. 0, or -errno of the exec. */
int command_start(struct command *);
/* Waits without blocking. true: the command has just ended. */
bool command_reap(struct command *);
/* Waits until it has ended, or ends a child that still waits for its exec. */
void command_close(struct command *);
/* The exit status that a shell would show: 128 + N after signal N; 0 without a command. */
int command_exit_status(const struct command *);
/* Appends a command as a shell reads it. */
void command_put(char *const *argv, struct buf *);

/* The user who called sudo. false: this process does not run under sudo. */
bool command_sudo_user(uid_t *uid, gid_t *gid);
/* Under sudo, becomes that user for good. Sets HOME, USER and LOGNAME; the rest of the environment
 * stays as sudo made it. 0 or -errno. */
int command_become_user(void);
#endif
