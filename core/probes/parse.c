/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/filter.h"
#include "probes/tracepoint.h"
#include "probes/usdt.h"

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

static int find_parts(struct probe_points *p, const struct probe_kind *k, char *path, bool filtered,
		      char **why)
{
	char *function = strrchr(path, ':');
	struct probe_function f = {.program = k->program};

	if (!function)
		return bad_form(k, why);
	*function++ = '\0';
	if (!parse_plus(function, &f.plus) || (f.plus && k->program != PROBE_CALL) || !*path ||
	    !*function)
		return bad_form(k, why);
	if (f.plus && filtered) {
		if (asprintf(why, "arguments are known at the begin of '%s' only", function) < 0)
			*why = NULL;
		return -EINVAL;
	}
	f.name = function;
	return probe_points_find(p, path, &f, 1, why);
}

/* A provider has no slash, but a path may have a colon before one. */
static int find_usdt(struct probe_points *p, const struct probe_kind *k, char *path,
		     const struct probe_filter *f, char **why)
{
	char *name = strrchr(path, ':'), *provider;

	if (!name)
		return bad_form(k, why);
	*name++ = '\0';
	provider = strrchr(path, ':');
	if (provider && strchr(provider, '/'))
		provider = NULL;
	if (provider)
		*provider++ = '\0';
	if (!*path || !*name || (provider && !*provider))
		return bad_form(k, why);
	return usdt_find(p, path, &(struct usdt_probe){provider, name, *f}, why);
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

static int parse(struct probe_points *p, const struct probe_kind *k, char *text, char **why)
{
	struct probe_filter f = {.operator= FILTER_NONE };
	size_t before = p->n;
	int r = take_filter(k, text, &f, why);

	if (r)
		return r;
	if (is_usdt(k))
		return find_usdt(p, k, text, &f, why);
	if (k->program == PROBE_TRACEPOINT)
		return *text ? tracepoint_find(p, text, &f, why) : bad_form(k, why);
	r = find_parts(p, k, text, f.operator, why);
	for (size_t i = before; i < p->n; i++)
		p->at[i].filter = f;
	return r;
}

int probes_parse(struct probe_points *p, const struct probe_kind *k, const char *text, char **why)
{
	char *copy = strdup(text + strlen(k->name) + 1);
	int r;

	*why = NULL;
	if (!copy)
		return -ENOMEM;
	r = parse(p, k, copy, why);
	free(copy);
	return r;
}
