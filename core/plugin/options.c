/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/guess.h"
#include "base/text.h"

static int wrong(char **text, const struct fusee_option *o, const char *value, const char *allowed)
{
	if (asprintf(text, "option '%s': '%s' is not %s", o->name, value, allowed) < 0)
		*text = NULL;
	return -EINVAL;
}

struct unit {
	int64_t factor;
	const char *name;
};

static const struct unit sizes[] = {
	{INT64_C(1) << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, ""}};
static const struct unit times[] = {
	{86400000000000, "d"}, {3600000000000, "h"}, {60000000000, "m"}, {1000000000, "s"},
	{1000000, "ms"},       {1000, "us"},         {1, "ns"}};

/* Appends a number in the largest unit that divides it. */
static void put_number(struct buf *b, const struct fusee_option *o, int64_t n)
{
	const struct unit *u = o->type == FUSEE_DURATION ? times : sizes;

	if (o->type == FUSEE_PERCENT) {
		buf_printf(b, "%g%%", (double)n / 1e4);
		return;
	}
	while (u->factor > 1 && (o->type == FUSEE_INT || n % u->factor || !n))
		u++;
	buf_printf(b, "%lld%s", (long long)(n / u->factor), n ? u->name : "");
}

int options_range(struct buf *b, const struct fusee_option *o)
{
	if (!o->min && !o->max)
		return b->error;
	buf_str(b, o->max == INT64_MAX ? "at least " : "");
	put_number(b, o, o->min);
	if (o->max != INT64_MAX) {
		buf_str(b, " to ");
		put_number(b, o, o->max);
	}
	return b->error;
}

static int outside(char **text, const struct fusee_option *o, const char *value)
{
	struct buf range = {0};

	options_range(&range, o);
	buf_add(&range, "", 1);
	if (range.error || asprintf(text, "option '%s': %s is outside %s", o->name, value,
				    o->min || o->max ? range.p : "64 bits") < 0)
		*text = NULL;
	buf_fini(&range);
	return -EINVAL;
}

/* Sets the 64 bits of an option whose value is a number. */
static int set_number(char *at, const struct fusee_option *o, const char *value, int64_t n,
		      char **text)
{
	if ((o->min || o->max) && (n < o->min || n > o->max))
		return outside(text, o, value);
	memcpy(at, &n, sizeof(n));
	return 0;
}

static int set_int(char *at, const struct fusee_option *o, const char *value, char **text)
{
	char *end;
	int64_t n;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (end == value || *end || isspace((unsigned char)*value))
		return wrong(text, o, value, "an integer");
	if (errno)
		return outside(text, o, value);
	return set_number(at, o, value, n, text);
}

static int set_string(char *at, const char *value)
{
	char *copy = strdup(value), *old;

	if (!copy)
		return -ENOMEM;
	memcpy(&old, at, sizeof(old));
	free(old);
	memcpy(at, &copy, sizeof(copy));
	return 0;
}

static int set_enum(char *at, const struct fusee_option *o, const char *value, char **text)
{
	struct guess g = {.word = value};
	struct buf b = {0};
	int64_t n = 0;

	for (; o->choices[n] && strcmp(o->choices[n], value); n++)
		guess_offer(&g, o->choices[n]);
	if (o->choices[n]) {
		memcpy(at, &n, sizeof(n));
		return 0;
	}
	for (n = 0; o->choices[n]; n++)
		buf_printf(&b, "%s%s", n ? ", " : "", o->choices[n]);
	buf_add(&b, "", 1);
	if (b.error || asprintf(text, "option '%s': '%s' is none of %s" GUESS_HINT, o->name, value,
				b.p, GUESS_WORDS(g, "")) < 0)
		*text = NULL;
	buf_fini(&b);
	return -EINVAL;
}

/* "1.5%": 15,000 */
static int set_percent(char *at, const struct fusee_option *o, const char *value, char **text)
{
	char *end;
	double d = strtod(value, &end);

	if (end == value || strcmp(end, "%") || isspace((unsigned char)*value) || !isfinite(d) ||
	    fabs(d) > 1e9)
		return wrong(text, o, value, "a share: 1%, 0.5%");
	return set_number(at, o, value, (int64_t)llround(d * 1e4), text);
}

/* A list or a map is one allocation: the items, then their texts. */
static int set_pairs(char *at, const struct option_pair *pairs, uint32_t n, bool map)
{
	size_t width = map ? sizeof(struct fusee_label) : sizeof(struct fusee_str);
	struct fusee_table table = {.n = n, .stride = (uint32_t)width}, old;
	size_t size = n * width;
	char *block, *p;

	for (uint32_t i = 0; i < n; i++)
		size += strlen(pairs[i].value) + 1 + (map ? strlen(pairs[i].key) + 1 : 0);
	block = calloc(1, size ? size : 1);
	if (!block)
		return -ENOMEM;
	p = block + n * width;
	for (uint32_t i = 0; i < n; i++) {
		struct fusee_str value = {p, strlen(pairs[i].value)};

		p = stpcpy(p, pairs[i].value) + 1;
		if (map) {
			struct fusee_label *l = (struct fusee_label *)block + i;

			l->str = value;
			l->key = (struct fusee_str){p, strlen(pairs[i].key)};
			p = stpcpy(p, pairs[i].key) + 1;
		} else {
			((struct fusee_str *)block)[i] = value;
		}
	}
	memcpy(&old, at, sizeof(old));
	free((void *)old.at);
	table.at = block;
	memcpy(at, &table, sizeof(table));
	return 0;
}

int options_set(void *ctx, const struct fusee_option *o, const struct option_value *value,
		char **text)
{
	char *at = (char *)ctx + o->offset;
	bool map = o->type == FUSEE_MAP, list = o->type == FUSEE_LIST;

	*text = NULL;
	if (value->kind == OPTION_TEXT)
		return options_set_text(ctx, o, value->text, text);
	if (!map && !list)
		return wrong(text, o, "{..}", "a single value");
	/* {} is the empty list and the empty map */
	if (value->n && map != (value->kind == OPTION_MAP))
		return wrong(text, o, "{..}",
			     map ? "a map: { name = \"value\" }" : "a list: { \"one\", \"two\" }");
	return set_pairs(at, value->pairs, value->n, map);
}

/* "a,b" or "k=v,k=v". */
static int set_listed(char *at, const struct fusee_option *o, const char *value, char **text)
{
	struct option_pair *pairs = NULL, *more;
	char *copy = strdup(value), *rest = copy, *word;
	bool map = o->type == FUSEE_MAP;
	uint32_t n = 0;
	int r = copy ? 0 : -ENOMEM;

	while (!r && *value && (word = strsep(&rest, ","))) {
		char *equals = map ? strchr(word, '=') : NULL;

		if (map && (!equals || equals == word)) {
			r = wrong(text, o, word, "name=value");
			break;
		}
		more = realloc(pairs, (n + 1) * sizeof(*pairs));
		if (!more) {
			r = -ENOMEM;
			break;
		}
		pairs = more;
		if (map)
			*equals = '\0';
		pairs[n++] = (struct option_pair){map ? word : NULL, map ? equals + 1 : word};
	}
	if (!r)
		r = set_pairs(at, pairs, n, map);
	free(pairs);
	free(copy);
	return r;
}

int options_set_text(void *ctx, const struct fusee_option *o, const char *value, char **text)
{
	char *at = (char *)ctx + o->offset;
	uint64_t n;

	*text = NULL;
	switch (o->type) {
	case FUSEE_BOOL:
		if (strcmp(value, "true") && strcmp(value, "false"))
			return wrong(text, o, value, "true or false");
		*(uint8_t *)at = *value == 't';
		return 0;
	case FUSEE_INT:
		return set_int(at, o, value, text);
	case FUSEE_SIZE:
		if (text_size(value, &n))
			return wrong(text, o, value, "a size: 64KiB, 2GiB");
		return set_number(at, o, value, (int64_t)n, text);
	case FUSEE_DURATION:
		if (text_duration(value, &n))
			return wrong(text, o, value, "a duration: 10s, 2m");
		return set_number(at, o, value, (int64_t)n, text);
	case FUSEE_STRING:
	case FUSEE_SECRET:
		return set_string(at, value);
	case FUSEE_ENUM:
		return set_enum(at, o, value, text);
	case FUSEE_PERCENT:
		return set_percent(at, o, value, text);
	case FUSEE_LIST:
	case FUSEE_MAP:
		return set_listed(at, o, value, text);
	default:
		return wrong(text, o, value, "of a type that this fusee knows");
	}
}

void option_value_fini(struct option_value *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		free(v->pairs[i].key);
		free(v->pairs[i].value);
	}
	free(v->pairs);
	free(v->text);
	*v = (struct option_value){0};
}

const struct fusee_option *options_find(const struct fusee_table *options, const char *name)
{
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);

		if (!strcmp(o->name, name))
			return o;
	}
	return NULL;
}

void options_offer(const struct fusee_table *options, struct guess *g)
{
	for (uint32_t i = 0; i < options->n; i++)
		guess_offer(g, FUSEE_AT(struct fusee_option, *options, i)->name);
}

static bool is_list_or_map(const struct fusee_option *o)
{
	return o->type == FUSEE_LIST || o->type == FUSEE_MAP;
}

static uint32_t width_of(const struct fusee_option *o)
{
	if (is_list_or_map(o))
		return sizeof(struct fusee_table);
	return o->type == FUSEE_BOOL ? 1 : 8;
}

/* The size up to the last field of the oldest version of the ABI that loads. */
#define OPTION_LEAST \
	(offsetof(struct fusee_option, choices) + sizeof(((struct fusee_option *)0)->choices))

int options_check(const struct fusee_table *options, uint32_t ctx_size, char **text)
{
	int r = 0;

	*text = NULL;
	if (options->n && (!options->at || options->stride < OPTION_LEAST))
		r = asprintf(text, "has an option table of another size: rebuild it");
	for (uint32_t i = 0; !r && i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);
		uint32_t width = width_of(o);

		if (!o->name)
			r = asprintf(text, "has an option without a name");
		else if (o->type < FUSEE_BOOL || o->type > FUSEE_SECRET)
			r = asprintf(text, "has option '%s' of an unknown type", o->name);
		else if (o->offset > ctx_size || width > ctx_size - o->offset)
			r = asprintf(text, "has option '%s' outside of its ctx", o->name);
		else if (o->type == FUSEE_ENUM && (!o->choices || !o->choices[0]))
			r = asprintf(text, "has option '%s' without choices", o->name);
	}
	if (r < 0)
		*text = NULL;
	return r ? -EPROTO : 0;
}

int options_defaults(void *ctx, const struct fusee_table *options, char **text)
{
	int r = 0;

	*text = NULL;
	for (uint32_t i = 0; !r && i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);

		if (o->def)
			r = options_set_text(ctx, o, o->def, text);
	}
	return r;
}

void options_clear(void *ctx, const struct fusee_table *options)
{
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);
		char *at = (char *)ctx + o->offset;
		struct fusee_table table = {0};
		char *old, *none = NULL;

		if (is_list_or_map(o)) {
			memcpy(&table, at, sizeof(table));
			free((void *)table.at);
			memset(at, 0, sizeof(table));
		} else if (o->type == FUSEE_STRING || o->type == FUSEE_SECRET) {
			memcpy(&old, at, sizeof(old));
			if (old && o->type == FUSEE_SECRET)
				explicit_bzero(old, strlen(old));
			free(old);
			memcpy(at, &none, sizeof(none));
		}
	}
}
