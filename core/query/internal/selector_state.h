/* SPDX-License-Identifier: Apache-2.0 */
/* A selector, for selector.c (what it matches) and selector_parse.c (its text). Only they include
 * this. */
#ifndef QUERY_SELECTOR_STATE_H
#define QUERY_SELECTOR_STATE_H

#include "base/buf.h"
#include "query/selector.h"
#include "relabel/regex.h"

#define SELECTOR_MAX_CONDITIONS 32

struct condition {
	char *key, *value;
	size_t value_len;
	bool negated;
	struct regex *regex; /* NULL: the texts are equal */
	/* Samples beside each other mostly have the same value: the last value and its result. */
	struct buf last;
	int result;
	bool has_last;
};

struct selector {
	char *type; /* NULL: none */
	struct condition conditions[SELECTOR_MAX_CONDITIONS];
	uint32_t n;
	struct buf value; /* of the label that is matched */
};
#endif
