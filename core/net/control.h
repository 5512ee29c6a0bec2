/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: `fusee ctl` sends one line, the agent answers with one line of JSON and keeps
 * the connection. A request is {"cmd": "status"} or the bare word; what follows the name after a
 * space is the command's word. The answer is {"ok": true, ..} or {"ok": false, "error":
 * "sentence"}; what the members are stands in docs/internals/daemon.md. Answers come in the order
 * of the requests. Partial lines, several commands in one read, clients that do not read or never
 * finish a line are normal: 16 clients, 4 KiB a line, 5 s to finish one, 10 s to take an answer,
 * 60 s without a word, then dropped. Only root and the agent's own user may connect (mode 0600, and
 * SO_PEERCRED).
 */
#ifndef NET_CONTROL_H
#define NET_CONTROL_H

#include "base/buf.h"
#include "net/loop.h"

struct control;
struct control_reply; /* one request's answer, which may come later */

struct control_command {
	const char *name;
	/* Answers now or later by control_answer(); word: what followed the name, "" nothing. */
	void (*run)(void *arg, const char *word, struct control_reply *);
	void *arg;
};

/* The folder is made (0755) if it is not there; -EPERM: it is somebody else's, or others can write
 * to it. A stale socket file is replaced; one that somebody
 * answers at is -EADDRINUSE, what is no socket -EEXIST. Commands end with {0} and live as long as
 * it. */
int control_new(struct control **ret, struct loop *, const char *path,
		const struct control_command *);
/* Unlinks the socket. Replies that were not answered can still be, to nobody. NULL is fine. */
void control_free(struct control *);
/* json: an object's members, without braces ('"pid": 1'), "" none. error: NULL, or a sentence. The
 * reply is freed. Also when the client is long gone. */
void control_answer(struct control_reply *, const char *json, const char *error);

/* The client's side: connects, sends, waits for the one line. *line is malloc'ed, without newline.
 * 0 or -errno: -ECONNREFUSED and -ENOENT when no agent is there, -EACCES when it is somebody
 * else's, -ETIMEDOUT, -ECONNRESET when it went away without an answer, -EINVAL for a command of
 * more than one line. */
int control_ask(const char *path, const char *command, uint64_t timeout_ns, char **line);
#endif
