/* SPDX-License-Identifier: Apache-2.0 */
/* Probes by the text that users write. For one thread. */
#ifndef PROBES_PARSE_H
#define PROBES_PARSE_H

#include <stdbool.h>
#include <stdint.h>

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
/* Adds the places that a text of this kind names, which may end with a filter: "/arg0 > 4096/". 0;
 * -EINVAL: it has another form; -ENOENT: there is no such function; or -errno; each with a sentence
 * in *why, malloc'ed or NULL. */
int probes_parse(struct probe_points *, const struct probe_kind *, const char *text, char **why);
#endif
