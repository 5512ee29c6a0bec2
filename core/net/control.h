/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the control socket. A request is one line: {"cmd": "NAME"}, or NAME, and after a
 * space the command's argument. The answer is one line of JSON: {"ok": true, ..} or {"ok": false,
 * "error": "sentence"}. A connection carries any number of requests; they are answered in order.
 * docs/internals/agent.md lists the members of the answers.
 *
 * Limits: 16 clients; 4 KiB for a request, 5 s from its first byte to its end; 10 s to receive an
 * answer; 60 s without a request. Beyond them the client is disconnected. Only root and the agent's
 * own user may connect (mode 0600, and SO_PEERCRED).
 */
#ifndef NET_CONTROL_H
#define NET_CONTROL_H

#include "base/buf.h"
#include "net/loop.h"

struct control;
struct control_reply; /* the answer to one request, now or later */

struct control_command {
	const char *name;
	/* Answers by control_answer(), now or later. word: the argument, "" if there is none. */
	void (*run)(void *arg, const char *word, struct control_reply *);
};

/* commands: ends with {0}; borrowed until control_free(). `help` answers with their names. Creates
 * the socket's directory (0755) if only its last component is missing, and replaces a socket that
 * no process listens at. 0 or -errno: -EPERM: the directory belongs to another user or is writable
 * by others; -EADDRINUSE: an agent listens there; -EEXIST: the path is no socket. */
int control_new(struct control **ret, struct loop *, const char *path,
		const struct control_command *commands, void *arg);
/* Unlinks the socket. Replies that are not answered yet must still be answered, which frees them.
 * NULL is fine. */
void control_free(struct control *);
/* Answers, and frees the reply; also if the client has disconnected. json: members of an object
 * without braces ('"pid": 1'), or "". error: a sentence, or NULL for success. */
void control_answer(struct control_reply *, const char *json, const char *error);
#endif
