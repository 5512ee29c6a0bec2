/* SPDX-License-Identifier: Apache-2.0 */
/* Probes by the text that users write. For one thread. */
#ifndef PROBES_PARSE_H
#define PROBES_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/usdt.h"
#include "symbols/probe_points.h"

/* A kind of probe. */
struct probe_kind {
	const char *name;   /* of the event, and with a colon what the text begins with */
	const char *amount; /* what its values are a number of, for sentences */
	bool timed;         /* the values are ns */
	uint32_t arguments; /* that a filter may name; 0: none */
	enum probe_program program;
	const char *form; /* of the text */
};

/* The kind of a text such as "uprobe:PATH:FUNCTION"; NULL: it is of none. */
const struct probe_kind *probe_kind_of(const char *text);
/* The kind of this name; NULL: there is none. */
const struct probe_kind *probe_kind_named(const char *name);
/* What a text says. */
struct probe_text {
	const struct probe_kind *kind;
	const char *path;       /* of the file; of a tracepoint, its name */
	const char *name;       /* of the function, or the probe */
	uint64_t plus;          /* bytes behind the function's begin */
	struct usdt_probe usdt; /* its name is NULL: of another kind */
	struct probe_filter filter;
	char *copy;
};

/* Reads a text of this kind, which may end with a filter: "/arg0 > 4096/". 0; -EINVAL: it has
 * another form; -ENOMEM; *why: a sentence, malloc'ed or NULL. */
int probe_text_parse(struct probe_text *, const struct probe_kind *, const char *text, char **why);
void probe_text_fini(struct probe_text *);
/* Adds the places that it names. 0; -ENOENT: there is no such function; or -errno; *why likewise.
 */
int probe_text_find(struct probe_points *, const struct probe_text *, char **why);
/* The same of a file that is open, whatever the path; points have no path, in the background. The
 * text is borrowed until it is freed. 0 or -errno. */
struct text_search;
int text_search_start(struct text_search **ret, int fd, const struct probe_text *);
/* -EINPROGRESS: it goes on. Else it has ended: 0 or -errno, as of probe_text_find(); -ETIMEDOUT:
 * the file did not answer. Does not wait. */
int text_search_poll(struct text_search *, struct probe_points *, char **why);
void text_search_free(struct text_search *); /* ends it, which may wait a moment; NULL is fine */
/* Both: adds the places that a text of this kind names. 0;
 * -EINVAL: it has another form; -ENOENT: there is no such function; or -errno; each with a sentence
 * in *why, malloc'ed or NULL. */
int probes_parse(struct probe_points *, const struct probe_kind *, const char *text, char **why);
#endif
