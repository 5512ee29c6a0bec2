/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax of regular expressions as RE2 and Go's package regexp have it
 * (https://github.com/google/re2/wiki/Syntax), which Prometheus uses: checks a pattern, and
 * translates it to PCRE2's syntax (pcre2pattern(3)). A pattern that both accept with different
 * meanings keeps RE2's meaning.
 */
#ifndef RELABEL_REGEX_SYNTAX_H
#define RELABEL_REGEX_SYNTAX_H

#include "base/buf.h"

#define REGEX_MAX 4096u      /* bytes of a pattern */
#define REGEX_MAX_GROUPS 99u /* groups whose text a template can use */
#define REGEX_MAX_DEPTH 100u /* groups in groups */

/* A group of the pattern. Its name is borrowed from the pattern; without a name len is 0. */
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

/* Translates a pattern. stop_at: stops after so many bytes of output and sets wrong_at to the place
 * in the pattern that they come from; SIZE_MAX: translates all. 0; -EINVAL: a wrong pattern;
 * -ENOMEM. */
int regex_translate(struct regex_syntax *, const char *pattern, size_t stop_at);
#endif
