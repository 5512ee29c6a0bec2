// SPDX-License-Identifier: Apache-2.0
#include "relabel/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/utf8.h"
#include "relabel/internal/regex_syntax.h"

#define MAX_STEPS 100000u  /* of a match: a few milliseconds */
#define MAX_HEAP_KIB 4096u /* of a match */

struct regex {
	pcre2_code *code;
	pcre2_match_context *limits;
	char *pattern; /* contains the names of groups */
	struct regex_group groups[REGEX_MAX_GROUPS + 1];
	uint32_t ngroups;
};

/* ---- compiling ---- */

/* The number of the character at a byte, from 1 on. */
static size_t character_at(const char *text, size_t at)
{
	size_t n = 1;

	for (size_t i = 0; i < at; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static int wrong(char **text, const char *pattern, size_t at, const char *why)
{
	if (asprintf(text, "regex '%.200s' is wrong at character %zu: %s", pattern,
		     character_at(pattern, at), why) < 0)
		*text = NULL;
	return *text ? -EINVAL : -ENOMEM;
}

/* PCRE2 refuses the translated pattern: it has a class of characters that PCRE2 lacks, or is too
 * large. */
static int refused(char **text, const char *pattern, int err, size_t at)
{
	struct regex_syntax s;
	char why[256] = "";

	if (err == PCRE2_ERROR_HEAP_FAILED) /* PCRE2's "no memory" */
		return -ENOMEM;
	pcre2_get_error_message(err, (PCRE2_UCHAR *)why, sizeof(why));
	regex_translate(&s, pattern, at ? at - 1 : 0);
	buf_fini(&s.out);
	return wrong(text, pattern, s.wrong_at, why);
}

/* Without PCRE2_NO_AUTO_POSSESS, 10.42 treats the two classes of \P{N}+\P{L} as disjoint.
 */
static int compile(struct regex *re, const struct buf *translated, char **text)
{
	uint32_t options = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL |
			   PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C |
			   PCRE2_NO_AUTO_POSSESS;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_SIZE at = 0;
	int err = 0;

	re->limits = pcre2_match_context_create(NULL);
	if (!context || !re->limits) {
		pcre2_compile_context_free(context);
		return -ENOMEM;
	}
	pcre2_set_match_limit(re->limits, MAX_STEPS);
	pcre2_set_heap_limit(re->limits, MAX_HEAP_KIB);
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	re->code = pcre2_compile((PCRE2_SPTR)(translated->p ? translated->p : ""), translated->len,
				 options, &err, &at, context);
	pcre2_compile_context_free(context);
	return re->code ? 0 : refused(text, re->pattern, err, at);
}

int regex_new(struct regex **ret, const char *pattern, char **text)
{
	struct regex *re = calloc(1, sizeof(*re));
	struct regex_syntax s = {0};
	int r;

	*text = NULL;
	if (re)
		re->pattern = strdup(pattern);
	if (!re || !re->pattern) {
		free(re);
		return -ENOMEM;
	}
	r = regex_translate(&s, re->pattern, SIZE_MAX);
	if (r == -EINVAL)
		r = wrong(text, pattern, s.wrong_at, s.wrong);
	if (!r) {
		memcpy(re->groups, s.groups, sizeof(re->groups));
		re->ngroups = s.ngroups;
		r = compile(re, &s.out, text);
	}
	buf_fini(&s.out);
	if (r)
		regex_free(re);
	else
		*ret = re;
	return r;
}

void regex_free(struct regex *re)
{
	if (!re)
		return;
	pcre2_code_free(re->code);
	pcre2_match_context_free(re->limits);
	free(re->pattern);
	free(re);
}

/* ---- matching ---- */

static void copy_match(pcre2_match_data *data, struct regex_match *ret)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(data);
	uint32_t n = pcre2_get_ovector_count(data);

	for (uint32_t i = 0; i < sizeof(ret->start) / sizeof(*ret->start); i++) {
		ret->start[i] = i < n ? at[i * 2] : PCRE2_UNSET;
		ret->end[i] = i < n ? at[i * 2 + 1] : PCRE2_UNSET;
	}
}

int regex_match(const struct regex *re, struct fusee_str subject, struct regex_match *ret)
{
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(re->code, NULL);
	int n;

	if (!data)
		return -ENOMEM;
	n = pcre2_match(re->code, (PCRE2_SPTR)(subject.len ? subject.p : ""), subject.len, 0, 0,
			data, re->limits);
	if (n >= 0 && ret)
		copy_match(data, ret);
	pcre2_match_data_free(data);
	if (n >= 0 || n == PCRE2_ERROR_NOMATCH)
		return n >= 0;
	return n == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -EAGAIN;
}

/* ---- templates ---- */

/* Is the character of several bytes at p a letter or a digit? */
static bool is_letter(const char *p, size_t len)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before;
	mbstate_t state = {0};
	wchar_t c = 0;
	bool is;

	if (!utf8)
		return false;
	before = uselocale(utf8);
	is = mbrtowc(&c, p, len, &state) == len && iswalnum((wint_t)c);
	uselocale(before);
	freelocale(utf8);
	return is;
}

/* The length of the name at p: letters, digits and '_'. Letters beyond ASCII belong to the name,
 * although no group has such a name: "$1" before such a letter is not group 1. */
static size_t name_length(const char *p)
{
	size_t n = 0, len;

	while (p[n]) {
		len = utf8_char(p + n, strlen(p + n));
		if (len == 1 ? !isalnum((unsigned char)p[n]) && p[n] != '_'
			     : !len || !is_letter(p + n, len))
			break;
		n += len;
	}
	return n;
}

/* "1" is a number, "01" a name. UINT32_MAX: not a number. */
static uint32_t group_number(const char *name, size_t len)
{
	uint32_t n = 0;

	if (len > 1 && *name == '0')
		return UINT32_MAX;
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '0' || name[i] > '9')
			return UINT32_MAX;
		if (n < 1000)
			n = n * 10 + (uint32_t)(name[i] - '0');
	}
	return n;
}

static void put_group(const struct regex *re, uint32_t i, struct fusee_str subject,
		      const struct regex_match *m, struct buf *out)
{
	if (i <= re->ngroups && m->start[i] <= m->end[i] && m->end[i] <= subject.len)
		buf_add(out, subject.p + m->start[i], m->end[i] - m->start[i]);
}

static void put_named(const struct regex *re, const char *name, size_t len,
		      struct fusee_str subject, const struct regex_match *m, struct buf *out)
{
	uint32_t number = group_number(name, len);

	if (number != UINT32_MAX) {
		put_group(re, number, subject, m, out);
		return;
	}
	for (uint32_t i = 1; i <= re->ngroups; i++)
		if (re->groups[i].len == len && !memcmp(re->groups[i].name, name, len) &&
		    m->start[i] != PCRE2_UNSET) { /* several groups may have the name */
			put_group(re, i, subject, m, out);
			return;
		}
}

int regex_expand(const struct regex *re, const char *template, struct fusee_str subject,
		 const struct regex_match *m, struct buf *out)
{
	const char *p = template, *dollar;

	for (; (dollar = strchr(p, '$')); p = dollar) {
		bool braces = dollar[1] == '{';
		const char *name = dollar + 1 + braces;
		size_t len = name_length(name);

		buf_add(out, p, (size_t)(dollar - p));
		if (dollar[1] == '$') {
			buf_str(out, "$");
			dollar += 2;
		} else if (!len || (braces && name[len] != '}')) {
			buf_str(out, "$"); /* without a name, a literal dollar */
			dollar++;
		} else {
			put_named(re, name, len, subject, m, out);
			dollar = name + len + braces;
		}
	}
	return buf_str(out, p);
}
