/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static int say(char **why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(why, format, args) < 0)
		*why = NULL;
	va_end(args);
	return -EINVAL;
}

static const char *skip_blanks(const char *p)
{
	while (isblank((unsigned char)*p))
		p++;
	return p;
}

/* Reads "(int32)", if there is one. NULL: it is no type. */
static const char *take_type(const char *p, bool described, struct probe_filter *f)
{
	static const struct {
		const char *name;
		uint32_t bits, is_signed;
	} types[] = {
		{"int8", 8, 1},  {"int16", 16, 1},  {"int32", 32, 1},  {"int64", 64, 1},
		{"uint8", 8, 0}, {"uint16", 16, 0}, {"uint32", 32, 0}, {"uint64", 64, 0},
	};
	const char *end = strchr(p, ')');

	f->bits = described ? 0 : 64;
	f->is_signed = 0;
	if (*p != '(')
		return p;
	for (size_t i = 0; end && i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].name) == (size_t)(end - p - 1) &&
		    !strncmp(p + 1, types[i].name, strlen(types[i].name))) {
			f->bits = types[i].bits;
			f->is_signed = types[i].is_signed;
			return skip_blanks(end + 1);
		}
	return NULL;
}

/* Longer operators first. NULL: it is none. */
static const char *take_operator(const char *p, struct probe_filter *f)
{
	static const struct {
		const char *text;
		enum filter_operator operator;
	} operators[] = {
		{"==", FILTER_EQUAL},    {"!=", FILTER_NOT_EQUAL}, {"<=", FILTER_AT_MOST},
		{">=", FILTER_AT_LEAST}, {"<", FILTER_LESS},       {">", FILTER_MORE},
		{"&", FILTER_ANY_BIT},
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		size_t len = strlen(operators[i].text);

		if (!strncmp(p, operators[i].text, len)) {
			f->operator= operators[i].operator;
			return skip_blanks(p + len);
		}
	}
	return NULL;
}

/* Does the filter's type have this number? 0; -EINVAL, with a sentence. */
static int check_number(const struct probe_filter *f, bool negative, uint64_t n, char **why)
{
	uint64_t most = UINT64_MAX >> (64 - f->bits);

	if (negative && !f->is_signed)
		return say(why, "a number below 0 needs a signed type, as (int32)arg1");
	if (f->is_signed)
		most = (most >> 1) + negative;
	if (n <= most)
		return 0;
	return say(why, "an argument of %u bits has no value %s%llu", f->bits, negative ? "-" : "",
		   (unsigned long long)n);
}

/* The number; of a type that is not known yet, a sign says that it has one. NULL, with a sentence.
 */
static const char *take_number(const char *p, struct probe_filter *f, char **why)
{
	bool negative = *p == '-';
	uint64_t n;
	char *end;

	p += negative;
	if (!isdigit((unsigned char)*p)) {
		say(why, "a filter compares with a number: '%s' is none", p);
		return NULL;
	}
	errno = 0;
	n = strtoull(p, &end, 0);
	if (errno || (negative && n > 1ull << 63)) {
		say(why, "an argument of 64 bits has no value %s%.*s", negative ? "-" : "",
		    (int)(end - p), p);
		return NULL;
	}
	if (f->bits && check_number(f, negative, n, why))
		return NULL;
	f->is_signed |= negative;
	f->value = negative ? 0 - n : n;
	return skip_blanks(end);
}

/* Reads "arg2", "retval" or "ns". NULL: it is none of them. */
static const char *take_subject(const char *p, uint32_t arguments, struct probe_filter *f)
{
	static const struct {
		const char *name;
		uint32_t argument;
	} returned[] = {{"retval", FILTER_RETVAL}, {"ns", FILTER_NS}};
	size_t len = 0;

	while (isalnum((unsigned char)p[len]))
		len++;
	for (size_t i = 0; i < sizeof(returned) / sizeof(*returned); i++)
		if (len == strlen(returned[i].name) && !strncmp(p, returned[i].name, len)) {
			f->argument = returned[i].argument;
			return skip_blanks(p + len);
		}
	if (len < 4 || len > 5 || strncmp(p, "arg", 3) != 0 || (len == 5 && p[3] == '0'))
		return NULL;
	f->argument = 0;
	for (size_t i = 3; i < len; i++) {
		if (!isdigit((unsigned char)p[i]))
			return NULL;
		f->argument = f->argument * 10 + (uint32_t)(p[i] - '0');
	}
	return f->argument < arguments ? skip_blanks(p + len) : NULL;
}

static int no_filter(const char *text, bool timed, char **why)
{
	return say(why,
		   "'%s' is no filter: it is argN OPERATOR NUMBER, as arg0 > 4096 or "
		   "(int32)arg5 == -1%s",
		   text, timed ? ", or of retval or ns in place of argN" : "");
}

int filter_describe(struct probe_filter *f, const struct probe_operand *o, char **why)
{
	bool negative = f->is_signed;

	*why = NULL;
	f->operand = *o;
	if (f->bits)
		return 0;
	f->bits = o->bits;
	f->is_signed = o->is_signed;
	return check_number(f, negative, negative ? 0 - f->value : f->value, why);
}

int filter_parse(const char *text, const struct filter_terms *terms, struct probe_filter *f,
		 char **why)
{
	const char *p = take_type(skip_blanks(text), terms->described, f);
	bool typed = p && *skip_blanks(text) == '(';

	*why = NULL;
	f->operand = (struct probe_operand){0};
	p = p ? take_subject(p, terms->arguments, f) : NULL;
	p = p ? take_operator(p, f) : NULL;
	if (!p)
		return no_filter(text, terms->timed, why);
	if (f->argument >= FILTER_RETVAL && !terms->timed)
		return say(why, "what a call returns, and its time, are known with "
				"uretprobe:.. only");
	if (f->argument == FILTER_NS && typed)
		return say(why, "ns is a time and has no type");
	p = take_number(p, f, why);
	if (p && *p)
		return say(why, "'%s' behind the number of a filter", p);
	return p ? 0 : -EINVAL;
}
