/* SPDX-License-Identifier: Apache-2.0 */
#include "net/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guess.h"
#include "base/json.h"
#include "base/utf8.h"
#include "net/internal/listener.h"
#include "net/internal/server.h"

#define SECOND 1000000000ull

enum { CLIENTS = 16, LINE_BYTES = 4096, ANSWER_BYTES = 32 << 20 };

enum state {
	LAST = 1,    /* the client is dropped after its next answer */
	PARTIAL = 2, /* a part of a line was received; a deadline is set for the rest */
};

struct control {
	struct server *server;
	const struct control_command *commands;
	void *arg; /* of the commands */
	char *path;
	bool made_folder; /* make_folder() created the socket's folder */
};

/* client->user while a request runs; a client has one request at a time. */
struct control_reply {
	struct client *client; /* NULL: disconnected */
};

/* ---- the request ---- */

static const char *skip(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* {"cmd": "status"} */
static bool object(const char *p, size_t len, char ret[LINE_BYTES])
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o = NULL, *cmd = NULL;
	bool is = false;

	if (tok) {
		json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
		o = json_tokener_parse_ex(tok, p, (int)len);
		is = o && json_tokener_get_parse_end(tok) == len &&
		     json_object_is_type(o, json_type_object) && json_object_object_length(o) == 1;
	}
	cmd = is ? json_object_object_get(o, "cmd") : NULL;
	is = json_object_is_type(cmd, json_type_string) && json_object_get_string_len(cmd) &&
	     strlen(json_object_get_string(cmd)) == (size_t)json_object_get_string_len(cmd);
	if (is) /* an escape is never shorter than its text */
		strcpy(ret, json_object_get_string(cmd));
	json_object_put(o);
	json_tokener_free(tok);
	return is;
}

/* Copies the command to ret, without spaces around it; "" for an empty line. NULL, or a sentence.
 */
static const char *request(const char *p, size_t len, char ret[LINE_BYTES])
{
	const char *end = p + len;

	p = skip(p, end);
	while (end > p && skip(end - 1, end) == end)
		end--;
	if (memchr(p, '\0', (size_t)(end - p)) || !utf8_valid(p, (size_t)(end - p)))
		return "a request is text";
	if (p < end && *p == '{')
		return object(p, (size_t)(end - p), ret)
			       ? NULL
			       : "a request is one line: NAME, or {\"cmd\": \"NAME\"}";
	memcpy(ret, p, (size_t)(end - p));
	ret[end - p] = '\0';
	return NULL;
}

/* ---- answers ---- */

static void add_answer(struct buf *b, const char *json, const char *error)
{
	struct json j = {.out = b, .spaced = true};
	size_t from = b->len;

	json_open(&j, NULL);
	json_flag(&j, "ok", !error);
	if (error)
		json_text(&j, "error", error);
	else
		buf_printf(b, "%s%s", *json ? ", " : "", json);
	json_end(&j);
	for (size_t i = from; i < b->len; i++)
		if (b->p[i] == '\n') /* between members: strings have it escaped */
			b->p[i] = ' ';
	buf_str(b, "\n");
}

static void send_answer(struct client *c, const char *json, const char *error)
{
	if (!error && strlen(json) > ANSWER_BYTES)
		error = "the answer is too long";
	add_answer(&c->out, json, error);
	if (c->out.error) {
		client_drop(c);
		return;
	}
	client_set_deadline(c, clock_now() + 10 * SECOND);
	client_send(c);
}

void control_answer(struct control_reply *reply, const char *json, const char *error)
{
	struct client *c = reply->client;

	free(reply);
	if (!c)
		return;
	c->user = NULL;
	send_answer(c, json, error);
}

/* ---- clients ---- */

static void answer_unknown(struct client *c, const struct control_command *commands,
			   const char *name)
{
	struct guess g = {.word = name};
	struct buf b = {0};

	for (const struct control_command *k = commands; k->name; k++)
		guess_offer(&g, k->name);
	guess_offer(&g, "help");
	buf_printf(&b, "there is no command '%.64s'" GUESS_HINT, name, GUESS_WORDS(g, ""));
	buf_add(&b, "", 1);
	send_answer(c, "", b.error ? "out of memory" : b.p);
	buf_fini(&b);
}

static void answer_help(struct client *c, const struct control_command *commands)
{
	struct buf b = {0};
	struct json j = {.out = &b, .spaced = true};

	json_list(&j, "commands");
	for (const struct control_command *k = commands; k->name; k++)
		json_text(&j, NULL, k->name);
	json_text(&j, NULL, "help");
	json_end(&j);
	buf_add(&b, "", 1);
	send_answer(c, b.error ? "" : b.p, b.error ? "out of memory" : NULL);
	buf_fini(&b);
}

static void run(struct control *k, struct client *c, char *text)
{
	char *word = text + strcspn(text, " \t");
	const struct control_command *command = k->commands;
	struct control_reply *reply;

	if (*word)
		*word++ = '\0';
	word += strspn(word, " \t");
	while (command->name && strcmp(command->name, text))
		command++;
	if (!command->name) {
		if (!strcmp(text, "help"))
			answer_help(c, k->commands);
		else
			answer_unknown(c, k->commands, text);
		return;
	}
	reply = malloc(sizeof(*reply));
	if (!reply) {
		send_answer(c, "", "out of memory");
		return;
	}
	reply->client = c;
	c->user = reply;
	client_set_deadline(c, UINT64_MAX); /* while the agent works */
	command->run(k->arg, word, reply);
}

/* Removes the first line from the input and parses it; false: no line is complete. */
static bool take_line(struct client *c, char text[LINE_BYTES], const char **wrong)
{
	const char *eol = c->in.len ? memchr(c->in.p, '\n', c->in.len) : NULL;
	size_t len = eol ? (size_t)(eol - c->in.p) : 0;

	if (!eol)
		return false;
	*wrong = request(c->in.p, len, text);
	memmove(c->in.p, eol + 1, c->in.len - len - 1);
	c->in.len -= len + 1;
	return true;
}

/* Waits for the rest of a line, or drops the client. */
static void wait_for_more(struct client *c)
{
	bool partial = c->in.len;

	if (c->in.len >= LINE_BYTES) {
		c->state = LAST;
		send_answer(c, "", "the line is too long");
	} else if (c->eof) {
		client_drop(c);
	} else {
		client_set_reading(c, true);
		if (!partial)
			client_set_deadline(c, clock_now() + 60 * SECOND);
		else if (c->state != PARTIAL) /* the line has 5 s from its first byte on */
			client_set_deadline(c, clock_now() + 5 * SECOND);
		c->state = partial ? PARTIAL : 0;
	}
}

/* Runs the next request; no other is running. */
static void next(struct control *k, struct client *c)
{
	char text[LINE_BYTES];
	const char *wrong = NULL;

	do {
		if (!take_line(c, text, &wrong)) {
			wait_for_more(c);
			return;
		}
		c->state = 0;
	} while (!wrong && !*text);
	client_set_reading(c, !c->eof);
	if (wrong)
		send_answer(c, "", wrong);
	else
		run(k, c, text);
}

static bool on_accepted(void *arg, struct client *c)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	(void)arg;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
	    (peer.uid && peer.uid != geteuid()))
		return false;
	client_set_deadline(c, clock_now() + 60 * SECOND);
	return true;
}

static void on_readable(void *arg, struct client *c)
{
	bool busy = c->user || c->out.len;

	if (!busy)
		next(arg, c);
}

static void on_written(void *arg, struct client *c)
{
	if (c->state == LAST)
		client_drop(c);
	else
		next(arg, c);
}

static void on_late(void *arg, struct client *c)
{
	(void)arg;
	client_drop(c);
}

static void on_dropped(void *arg, struct client *c)
{
	struct control_reply *reply = c->user;

	(void)arg;
	if (reply)
		reply->client = NULL;
}

static const struct server_callbacks callbacks = {
	.accepted = on_accepted,
	.readable = on_readable,
	.written = on_written,
	.late = on_late,
	.dropped = on_dropped,
};

/* The socket's directory, malloc'ed; "" where it is the root or the current directory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash ? (size_t)(slash - path) : 0);
}

/* Creates the socket's directory if only its last component is missing. Refuses a directory that
 * belongs to another user or is writable by others: they could replace the socket. */
static int make_folder(const char *path, bool *made)
{
	char *folder = folder_of(path);
	struct stat st;
	int err = 0;

	*made = false;
	if (!folder)
		return -ENOMEM;
	if (!*folder)
		goto out;
	*made = !mkdir(folder, 0755);
	if (!*made && errno != EEXIST)
		err = -errno;
	else if (stat(folder, &st))
		err = -errno;
	else if ((st.st_uid && st.st_uid != geteuid()) ||
		 (st.st_mode & 0022 && !(st.st_mode & S_ISVTX)))
		err = -EPERM;
out:
	free(folder);
	return err;
}

/* Removes the folder that make_folder() created, unless it contains something else. */
static void remove_folder(const char *path)
{
	char *folder = folder_of(path);

	if (folder)
		rmdir(folder);
	free(folder);
}

int control_new(struct control **ret, struct loop *loop, const char *path,
		const struct control_command *commands, void *arg)
{
	struct control *k = calloc(1, sizeof(*k));
	char *copy = strdup(path);
	bool made = false;
	int fd, err = k && copy ? make_folder(path, &made) : -ENOMEM;

	if (!err)
		err = listener_unix(path, 0600, &fd);
	if (err == -ENOENT && !made) { /* an agent that ended has removed its folder meanwhile */
		err = make_folder(path, &made);
		err = err ? err : listener_unix(path, 0600, &fd);
	}
	if (err) {
		if (made)
			remove_folder(path);
		free(copy);
		free(k);
		return err;
	}
	*k = (struct control){.commands = commands, .arg = arg, .path = copy, .made_folder = made};
	err = server_new(&k->server, loop, fd, CLIENTS, LINE_BYTES, &callbacks, k);
	if (err) {
		control_free(k);
		return err;
	}
	*ret = k;
	return 0;
}

void control_free(struct control *k)
{
	if (!k)
		return;
	server_free(k->server);
	unlink(k->path);
	if (k->made_folder)
		remove_folder(k->path);
	free(k->path);
	free(k);
}
