/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions with the syntax and the results of RE2, anchored at both ends, "." matches
 * line feeds too: what Prometheus compiles as ^(?s:PATTERN)$. PCRE2 matches them, without its JIT,
 * as systemd may forbid memory that is writable and executable. PCRE2 backtracks, which can take
 * exponential time on some texts, so a match has limits.
 */
#ifndef RELABEL_REGEX_H
#define RELABEL_REGEX_H

#include <fusee/profile.h>

#include "base/buf.h"

struct regex;

/* Compiles a pattern. 0; -EINVAL with a malloc'ed sentence in *text: "regex 'a(b' is wrong at
 * character 4: missing ')'"; -ENOMEM. */
int regex_new(struct regex **ret, const char *pattern, char **text);
void regex_free(struct regex *); /* NULL is fine */

/* Where groups matched, in bytes of the subject; group 0 is the complete match. */
struct regex_match {
	size_t start[100], end[100]; /* start SIZE_MAX: the group took no part */
};
/* 1: the subject matches; 0: not; -EAGAIN: the limits of a match did not suffice, or the subject is
 * not UTF-8; -ENOMEM. ret: NULL is fine. */
int regex_match(const struct regex *, struct fusee_str subject, struct regex_match *ret);
/* Appends a template: $1, ${1}, $name, ${name} are groups of the match, $$ a dollar; a group that
 * does not exist is empty. 0 or -ENOMEM. */
int regex_expand(const struct regex *, const char *template, struct fusee_str subject,
		 const struct regex_match *, struct buf *out);
#endif
