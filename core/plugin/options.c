/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/options.h"

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

static int set_int(char *at, const struct fusee_option *o, const char *value, char **text)
{
	char *end;
	int64_t n;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (errno || end == value || *end)
		return wrong(text, o, value, "a whole number");
	if ((o->min || o->max) && (n < o->min || n > o->max)) {
		if (asprintf(text, "option '%s': %s is outside %lld to %lld", o->name, value,
			     (long long)o->min, (long long)o->max) < 0)
			*text = NULL;
		return -EINVAL;
	}
	memcpy(at, &n, sizeof(n));
	return 0;
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
		memcpy(at, &n, sizeof(n));
		return 0;
	case FUSEE_DURATION:
		if (text_duration(value, &n))
			return wrong(text, o, value, "a duration: 10s, 2m");
		memcpy(at, &n, sizeof(n));
		return 0;
	case FUSEE_STRING:
		return set_string(at, value);
	default:
		return wrong(text, o, value, "of a type that this fusee knows");
	}
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
