/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/internal/selector_state.h"
#include "query/internal/selector_text.h"

struct parser {
	const char *text, *p; /* p: what is read next */
	struct selector *s;
	char **error;
};

/* The number of the character at a byte, from 1 on. */
static size_t column(const struct parser *a, const char *at)
{
	size_t n = 1;

	for (const char *p = a->text; p < at; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	return n;
}

__attribute__((format(printf, 3, 4))) static int wrong(struct parser *a, const char *at,
						       const char *format, ...)
{
	char *why = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&why, format, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	n = asprintf(a->error, "character %zu: %s", column(a, at), why);
	free(why);
	if (n < 0)
		*a->error = NULL;
	return n < 0 ? -ENOMEM : -EINVAL;
}

static void skip_blanks(struct parser *a)
{
	a->p += strspn(a->p, " \t\r\n");
}

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* The text in quotes at a->p. */
static int quoted(struct parser *a, char **ret, size_t *len)
{
	struct buf b = {0};
	const char *why = selector_text(&a->p, &b);
	int r = why ? wrong(a, a->p, "%s", why) : buf_add(&b, "", 1);

	if (r) {
		buf_fini(&b);
		return r;
	}
	*ret = b.p;
	*len = b.len - 1;
	return 0;
}

/* ---- a condition ---- */

static int parse_key(struct parser *a, struct condition *c)
{
	const char *begin = a->p;
	size_t n;

	if (*a->p == '"' || *a->p == '\'' || *a->p == '`') {
		int r = quoted(a, &c->key, &n);

		if (!r && strlen(c->key) != n)
			r = wrong(a, begin, "a label's name has no NUL");
		return r;
	}
	n = *a->p && strchr(LETTERS, *a->p) ? strspn(a->p, LETTERS DIGITS) : 0;
	if (!n)
		return wrong(a, a->p,
			     *a->p ? "the name of a label is expected, as in service_name=\"web\""
				   : "the closing '}' is missing");
	if (n == 8 && !strncmp(a->p, "__name__", 8))
		return wrong(a, a->p, "the profile type goes before the brace, as in cpu{}");
	c->key = strndup(a->p, n);
	a->p += n;
	return c->key ? 0 : -ENOMEM;
}

static int parse_operator(struct parser *a, struct condition *c, bool *is_regex)
{
	char first = *a->p, second = first ? a->p[1] : '\0';

	if (first != '=' && !(first == '!' && (second == '=' || second == '~')))
		return wrong(a, a->p, "=, !=, =~ or !~ is expected after the name '%s'", c->key);
	c->negated = first == '!';
	*is_regex = second == '~';
	a->p += 1 + (c->negated || *is_regex);
	return 0;
}

static int parse_value(struct parser *a, struct condition *c, bool is_regex)
{
	const char *begin = a->p;
	char *why = NULL;
	int r;

	if (*a->p != '"' && *a->p != '\'' && *a->p != '`')
		return wrong(a, a->p, "a value in quotes is expected, as in %s=\"web\"", c->key);
	r = quoted(a, &c->value, &c->value_len);
	if (r || !is_regex)
		return r;
	if (strlen(c->value) != c->value_len)
		return wrong(a, begin, "an expression has no NUL");
	r = regex_new(&c->regex, c->value, &why);
	if (r == -EINVAL)
		r = wrong(a, begin, "%s", why);
	free(why);
	return r;
}

static int parse_condition(struct parser *a)
{
	struct condition *c = &a->s->conditions[a->s->n];
	bool is_regex = false;
	int r;

	if (a->s->n == SELECTOR_MAX_CONDITIONS)
		return wrong(a, a->p, "more than %d conditions", SELECTOR_MAX_CONDITIONS);
	a->s->n++;
	r = parse_key(a, c);
	skip_blanks(a);
	if (!r)
		r = parse_operator(a, c, &is_regex);
	skip_blanks(a);
	return r ? r : parse_value(a, c, is_regex);
}

/* ---- the selector ---- */

/* a->p is behind the brace. */
static int parse_conditions(struct parser *a)
{
	int r = 0;

	skip_blanks(a);
	while (!r && *a->p != '}') {
		r = parse_condition(a);
		skip_blanks(a);
		if (!r && *a->p != ',' && *a->p != '}')
			r = wrong(a, a->p,
				  *a->p ? "',' or '}' is expected after a value"
					: "the closing '}' is missing");
		if (!r && *a->p == ',')
			a->p++;
		skip_blanks(a);
	}
	a->p += !r;
	return r;
}

static int parse_type(struct parser *a)
{
	size_t n = strspn(a->p, LETTERS DIGITS ":.-");

	if (!n)
		return 0;
	a->s->type = strndup(a->p, n);
	a->p += n;
	return a->s->type ? 0 : -ENOMEM;
}

static int parse(struct parser *a)
{
	int r;

	skip_blanks(a);
	if (!*a->p)
		return wrong(a, a->p, "the selector is empty: {} selects all samples");
	r = parse_type(a);
	skip_blanks(a);
	if (!r && *a->p == '{') {
		a->p++;
		r = parse_conditions(a);
		skip_blanks(a);
	} else if (!r && *a->p) {
		r = wrong(a, a->p,
			  a->s->type ? "'{' or the end is expected after the profile type '%s'"
				     : "a selector begins with '{' or a profile type%s",
			  a->s->type ? a->s->type : "");
	}
	if (!r && *a->p)
		r = wrong(a, a->p, "nothing may follow the closing '}'");
	return r;
}

int selector_parse(struct selector **ret, const char *text, char **error)
{
	struct parser a = {.text = text, .p = text, .error = error};
	int r;

	*error = NULL;
	a.s = calloc(1, sizeof(*a.s));
	if (!a.s)
		return -ENOMEM;
	r = parse(&a);
	if (r)
		selector_free(a.s);
	else
		*ret = a.s;
	return r;
}
