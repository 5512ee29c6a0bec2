/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax of regular expressions as RE2 and Go's package regexp have it
 * (https://github.com/google/re2/wiki/Syntax), which Prometheus uses: it is checked here, and
 * written as PCRE2 (pcre2pattern(3)) understands it. Where both accept a text and mean different
 * things by it, the meaning is RE2's.
 */
#ifndef RELABEL_REGEX_SYNTAX_H
#define RELABEL_REGEX_SYNTAX_H

#include "base/buf.h"

#define REGEX_MAX 4096u      /* bytes of a pattern */
#define REGEX_MAX_GROUPS 99u /* groups whose text a template can use */
#define REGEX_MAX_DEPTH 100u /* groups in groups */

/* A group of the pattern, of which a name is borrowed from the pattern; without a name len is 0. */
struct regex_group {
	const char *name;
	size_t len;
};

struct regex_syntax {
	struct buf out; /* for PCRE2, without its NUL; owned by the caller */
	struct regex_group groups[REGEX_MAX_GROUPS + 1]; /* from 1 on */
	uint32_t ngroups;
	size_t wrong_at;   /* byte of the pattern that is wrong */
	const char *wrong; /* why, in words: "missing ')'" */
};

/* Reads a pattern. stop_at: ends when so many bytes were written, with wrong_at the place in the
 * pattern that they are from; SIZE_MAX: at the pattern's end. 0; -EINVAL: it is no such expression;
 * -ENOMEM. */
int regex_translate(struct regex_syntax *, const char *pattern, size_t stop_at);
#endif
