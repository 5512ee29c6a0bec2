/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/filter.h"

static const struct probe_kind kinds[] = {
	{"uprobe", "calls", false, FILTER_ARGUMENTS, PROBE_CALL,
	 "uprobe:PATH:FUNCTION or uprobe:PATH:FUNCTION+OFFSET"},
	{"usdt", "hits", false, FILTER_DESCRIBED, PROBE_CALL,
	 "usdt:PATH:PROVIDER:NAME or usdt:PATH:NAME"},
	{"rawtp", "hits", false, FILTER_DESCRIBED, PROBE_TRACEPOINT, "rawtp:TRACEPOINT"},
	{"uretprobe", "in calls", true, FILTER_ARGUMENTS, PROBE_RETURN, "uretprobe:PATH:FUNCTION"},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

const struct probe_kind *probe_kind_of(const char *text)
{
	for (size_t i = 0; i < KINDS; i++) {
		size_t len = strlen(kinds[i].name);

		if (!strncmp(text, kinds[i].name, len) && text[len] == ':')
			return &kinds[i];
	}
	return NULL;
}

const struct probe_kind *probe_kind_named(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(name, kinds[i].name))
			return &kinds[i];
	return NULL;
}

static int bad_form(const struct probe_kind *k, char **why)
{
	if (asprintf(why, "a probe is %s", k->form) < 0)
		*why = NULL;
	return -EINVAL;
}

/* Takes the offset from the end. false: it is none. */
static bool parse_plus(char *function, uint64_t *plus)
{
	char *at = strrchr(function, '+'), *end = NULL;

	if (!at)
		return true;
	*at++ = '\0';
	errno = 0;
	*plus = strtoull(at, &end, 0);
	return !*end && end > at && *at != '-' && !errno;
}

static int parse_function(struct probe_text *t, char *path, char **why)
{
	const struct probe_kind *k = t->kind;
	char *function = strrchr(path, ':');

	if (!function)
		return bad_form(k, why);
	*function++ = '\0';
	if (!parse_plus(function, &t->plus) || (t->plus && k->program != PROBE_CALL) || !*path ||
	    !*function)
		return bad_form(k, why);
	t->path = path;
	t->name = function;
	if (!t->plus || !t->filter.operator)
		return 0;
	if (asprintf(why, "arguments are known at the begin of '%s' only", function) < 0)
		*why = NULL;
	return -EINVAL;
}

/* A provider has no slash, but a path may have a colon before one. */
static int parse_usdt(struct probe_text *t, char *path, char **why)
{
	char *name = strrchr(path, ':'), *provider;

	if (!name)
		return bad_form(t->kind, why);
	*name++ = '\0';
	provider = strrchr(path, ':');
	if (provider && strchr(provider, '/'))
		provider = NULL;
	if (provider)
		*provider++ = '\0';
	if (!*path || !*name || (provider && !*provider))
		return bad_form(t->kind, why);
	t->path = path;
	t->usdt = (struct usdt_probe){provider, name, t->filter};
	t->name = name;
	return 0;
}

static bool is_usdt(const struct probe_kind *k)
{
	return !strcmp(k->name, "usdt");
}

/* Takes "/EXPRESSION/" from the end, which no name has. 0; -EINVAL, with a sentence or NULL. */
static int take_filter(const struct probe_kind *k, char *text, struct probe_filter *f, char **why)
{
	size_t len = strlen(text);
	char *name = strrchr(text, ':'), *at;
	const struct filter_terms terms = {k->arguments, k->timed, is_usdt(k)};

	if (!len || text[len - 1] != '/')
		return 0;
	text[len - 1] = '\0';
	if (k->program == PROBE_TRACEPOINT)
		name = text;
	at = name ? strrchr(name, '/') : NULL;
	if (!at)
		return bad_form(k, why);
	*at++ = '\0';
	for (char *blank = at - 1; blank > name && isblank((unsigned char)blank[-1]);)
		*--blank = '\0';
	return filter_parse(at, &terms, f, why);
}

static int parse(struct probe_text *t, char **why)
{
	char *text = t->copy;
	int r = take_filter(t->kind, text, &t->filter, why);

	if (r)
		return r;
	if (is_usdt(t->kind))
		return parse_usdt(t, text, why);
	if (t->kind->program != PROBE_TRACEPOINT)
		return parse_function(t, text, why);
	t->path = t->name = text;
	return *text ? 0 : bad_form(t->kind, why);
}

int probe_text_parse(struct probe_text *t, const struct probe_kind *k, const char *text, char **why)
{
	int r;

	*why = NULL;
	*t = (struct probe_text){.kind = k,
				 .copy = strdup(text + strlen(k->name) + 1),
				 .filter.operator= FILTER_NONE };
	r = t->copy ? parse(t, why) : -ENOMEM;
	if (r)
		probe_text_fini(t);
	return r;
}

void probe_text_fini(struct probe_text *t)
{
	free(t->copy);
	*t = (struct probe_text){0};
}
