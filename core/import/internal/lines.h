/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a text that is read as a profile, and how large such a profile may become. */
#ifndef IMPORT_LINES_H
#define IMPORT_LINES_H

#include <ctype.h>
#include <errno.h>

#include "base/str.h"
#include "profile/builder.h"

/* A few bytes of text can name a stack that takes a hundred times as many. */
#define IMPORT_MAX_MEMORY (2ull << 30)

/* What is not read yet. */
struct lines {
	const char *at, *end;
};

/* The next line without its end. false: there is none. */
static inline bool line_next(struct lines *l, struct fusee_str *line)
{
	const char *end;

	if (l->at >= l->end)
		return false;
	end = memchr(l->at, '\n', (size_t)(l->end - l->at));
	*line = (struct fusee_str){l->at, (size_t)((end ? end : l->end) - l->at)};
	l->at = end ? end + 1 : l->end;
	if (line->len && line->p[line->len - 1] == '\r')
		line->len--;
	return true;
}

/* Without white space around it. */
static inline struct fusee_str line_trim(struct fusee_str t)
{
	while (t.len && isspace((unsigned char)*t.p)) {
		t.p++;
		t.len--;
	}
	while (t.len && isspace((unsigned char)t.p[t.len - 1]))
		t.len--;
	return t;
}

/* 0; -EFBIG with a sentence: the profile takes more than IMPORT_MAX_MEMORY. */
static inline int import_is_too_large(const struct builder *b, const char **error)
{
	if (builder_bytes(b) <= IMPORT_MAX_MEMORY)
		return 0;
	*error = "this profile would take more than 2 GiB of memory";
	return -EFBIG;
}
#endif
