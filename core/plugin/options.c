/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int wrong(char **text, const struct fusee_option *o, const char *value, const char *want)
{
	if (asprintf(text, "option '%s': '%s' is not %s", o->name, value, want) < 0)
		*text = NULL;
	return -EINVAL;
}

static int outside(char **text, const struct fusee_option *o, const char *value, int64_t min,
		   int64_t max)
{
	int r;

	if (o->type == FUSEE_DURATION)
		r = asprintf(text, "option '%s': %s is outside %gs to %gs", o->name, value,
			     (double)min / 1e9, (double)max / 1e9);
	else
		r = asprintf(text, "option '%s': %s is outside %lld to %lld%s", o->name, value,
			     (long long)min, (long long)max, o->type == FUSEE_SIZE ? " bytes" : "");
	if (r < 0)
		*text = NULL;
	return -EINVAL;
}

/* n is an option's number, of any type: 64 bits in ctx. */
static int set_number(char *at, const struct fusee_option *o, const char *value, int64_t n,
		      char **text)
{
	if ((o->min || o->max) && (n < o->min || n > o->max))
		return outside(text, o, value, o->min, o->max);
	memcpy(at, &n, sizeof(n));
	return 0;
}

static int set_int(char *at, const struct fusee_option *o, const char *value, char **text)
{
	bool limits = o->min || o->max;
	char *end;
	int64_t n;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (end == value || *end || isspace((unsigned char)*value))
		return wrong(text, o, value, "a whole number");
	if (errno)
		return outside(text, o, value, limits ? o->min : INT64_MIN,
			       limits ? o->max : INT64_MAX);
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

int options_set(void *ctx, const struct fusee_option *o, const char *value, char **text)
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
		return set_string(at, value);
	default:
		return wrong(text, o, value, "of a type that this fusee knows");
	}
}

int options_check(const struct fusee_table *options, uint32_t ctx_size, char **text)
{
	int r = 0;

	*text = NULL;
	if (options->n && (!options->at || options->stride < sizeof(struct fusee_option)))
		r = asprintf(text, "has an option table of another size: rebuild it");
	for (uint32_t i = 0; !r && i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);
		uint32_t width = o->type == FUSEE_BOOL ? 1 : 8;

		if (!o->name)
			r = asprintf(text, "has an option without a name");
		else if (o->type < FUSEE_BOOL || o->type > FUSEE_STRING)
			r = asprintf(text, "has option '%s' of an unknown type", o->name);
		else if (o->offset > ctx_size || width > ctx_size - o->offset)
			r = asprintf(text, "has option '%s' outside of its ctx", o->name);
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

		if (o->def) {
			r = options_set(ctx, o, o->def, text);
		} else {
			r = -EINVAL;
			if (asprintf(text, "option '%s' must be given", o->name) < 0)
				*text = NULL;
		}
	}
	return r;
}

void options_clear(void *ctx, const struct fusee_table *options)
{
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);
		char *old, *none = NULL;

		if (o->type != FUSEE_STRING)
			continue;
		memcpy(&old, (char *)ctx + o->offset, sizeof(old));
		free(old);
		memcpy((char *)ctx + o->offset, &none, sizeof(none));
	}
}
