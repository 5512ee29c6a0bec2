/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are not terminated by a zero byte. For those that are, <fusee/helpers.h> has
 * fusee_text() and fusee_text_is(). [any thread] */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>

#include <fusee/helpers.h>

static inline bool str_equal(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

/* < 0, 0, > 0: the order of their bytes; a prefix is before a longer text. */
static inline int str_order(struct fusee_str a, struct fusee_str b)
{
	uint64_t len = a.len < b.len ? a.len : b.len;
	int r = len ? memcmp(a.p, b.p, len) : 0;

	return r ? r : (a.len > b.len) - (a.len < b.len);
}

/* Does s begin with the terminated text? */
static inline bool str_begins(struct fusee_str s, const char *with)
{
	return s.len >= strlen(with) && !memcmp(s.p, with, strlen(with));
}

/* Behind the last '/'. */
static inline struct fusee_str str_base_name(struct fusee_str path)
{
	uint64_t at = path.len;

	while (at && path.p[at - 1] != '/')
		at--;
	/* an empty path may have p NULL, to which nothing may be added */
	return (struct fusee_str){at ? path.p + at : path.p, path.len - at};
}
#endif
