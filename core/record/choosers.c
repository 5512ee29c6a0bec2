/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/choosers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"

#define LEAST_HZ 0.25   /* a period has 32 bits of ns */
#define MOST_HZ 10000.0 /* as of -F */
#define BESIDE "offcpu" /* the sampler of --wall */

const struct fusee_sampler_ops *session_chooser_ops(const struct session_choosers *c, uint32_t i)
{
	return plugin_sampler_ops(c->at[i].descriptor);
}

static bool is_of_time(const struct session_choosers *c, uint32_t i)
{
	return session_chooser_ops(c, i)->flags & FUSEE_SAMPLER_TIME;
}

/* ---- by name ---- */

__attribute__((format(printf, 2, 3))) static int fail(char **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(error, format, args) < 0)
		*error = NULL;
	va_end(args);
	return -EINVAL;
}

/* "hz=50", "count=7" behind the name of sampler i. */
static int set_rate(struct session_choosers *c, uint32_t i, const char *text, char **error)
{
	const char *name = c->at[i].descriptor->name, *value = strchr(text, '='), *key;
	bool time = is_of_time(c, i);
	char *end;

	key = time ? "hz=" : "count=";
	if (!value || strncmp(text, key, strlen(key)) != 0)
		return fail(error, "-e %s:%s: %s, as in -e %s:%s", name, text,
			    time ? "it has a rate" : "it has a count", name,
			    time ? "hz=50" : "count=100");
	errno = 0;
	if (time)
		c->hz[i] = strtod(value + 1, &end);
	else
		c->at[i].period = strtoull(value + 1, &end, 10);
	if (errno || !value[1] || value[1] == '-' || *end ||
	    (time ? !(c->hz[i] >= LEAST_HZ && c->hz[i] <= MOST_HZ)
		  : !c->at[i].period || c->at[i].period > UINT32_MAX))
		return fail(error, "-e %s:%s: %s", name, text,
			    time ? "a rate is from 0.25 to 10000 Hz"
				 : "a count is from 1 to 4294967295");
	return 0;
}

int session_choosers_add(struct session_choosers *c, const char *dir, const char *text,
			 char **error)
{
	struct chooser_options o = {.where = ""};
	const char *colon = strchr(text, ':');
	char *name = colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
	int r = name ? plugin_sampler_find(dir, name, &o.descriptor, error) : -ENOMEM;

	free(name);
	if (r)
		return r == -EPROTO ? -EINVAL : r;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->at[i].descriptor == o.descriptor)
			return fail(error, "-e %s is given twice", o.descriptor->name);
	if (c->n == PLUGIN_MAX_SAMPLERS)
		return fail(error, "-e %s: at most %u samplers are used at once",
			    o.descriptor->name, PLUGIN_MAX_SAMPLERS);
	c->at[c->n] = o;
	c->hz[c->n] = 0;
	r = colon ? set_rate(c, c->n, colon + 1, error) : 0;
	c->n += !r;
	return r;
}

/* Its rate may be given: --wall -e offcpu:hz=20. */
static bool has_wall(const struct session_choosers *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!strcmp(c->at[i].descriptor->name, BESIDE))
			return true;
	return false;
}

int session_choosers_add_wall(struct session_choosers *c)
{
	char *error = NULL, *dir = plugin_default_dir();
	int r = 0;

	if (!has_wall(c)) {
		r = dir ? session_choosers_add(c, dir, BESIDE, &error) : -ENOMEM;
		if (r)
			log_error("--wall needs the sampler '" BESIDE "': %s",
				  error ? error : strerror(-r));
	}
	for (uint32_t i = c->n - 1; !r && i; i--) {
		struct chooser_options last = c->at[i];
		double hz = c->hz[i];

		if (strcmp(last.descriptor->name, BESIDE) != 0)
			continue;
		c->at[i] = c->at[i - 1];
		c->hz[i] = c->hz[i - 1];
		c->at[i - 1] = last;
		c->hz[i - 1] = hz;
	}
	free(error);
	free(dir);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_UNAVAILABLE;
}

/* ---- rates ---- */

/* "-e offcpu -e forks", "--wall" */
static void put_names(const struct session_options *o, char *to, size_t cap)
{
	size_t len = 0;

	if (o->wall && o->choosers.n == 1) {
		snprintf(to, cap, "--wall");
		return;
	}
	*to = 0;
	for (uint32_t i = 0; i < o->choosers.n && len < cap; i++)
		len += (size_t)snprintf(to + len, cap - len, "%s-e %s", i ? " " : "",
					o->choosers.at[i].descriptor->name);
}

/* How many of them have values that are times? */
static uint32_t of_time(const struct session_choosers *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += is_of_time(c, i);
	return n;
}

static int check_rates(const struct cli_command *command, const struct session_options *o,
		       const char *what)
{
	bool rate = o->hz > DEFAULT_HZ || o->hz < DEFAULT_HZ;
	uint32_t times = of_time(&o->choosers);

	if (o->event_period && times == o->choosers.n)
		return cli_bad_usage(command, "%s has a rate: -F HZ", what);
	if (times && o->hz < LEAST_HZ)
		return cli_bad_usage(command, "%s has a rate of at least %g Hz", what, LEAST_HZ);
	if (rate && !times && !session_is_beside(o))
		return cli_bad_usage(command,
				     "-F is a rate of time: with %s, -c N takes a sample for "
				     "each N",
				     what);
	if (o->profiler.sampler != SAMPLER_AUTO && o->profiler.sampler != SAMPLER_BPF)
		return cli_bad_usage(command, "%s is sampled by BPF: leave --sampler out", what);
	return 0;
}

static void set_periods(struct session_options *o)
{
	struct session_choosers *c = &o->choosers;

	for (uint32_t i = 0; i < c->n; i++) {
		if (is_of_time(c, i))
			c->at[i].period = profiler_period_ns(c->hz[i] > 0 ? c->hz[i] : o->hz);
		else if (!c->at[i].period)
			c->at[i].period = o->event_period ? o->event_period
							  : session_chooser_ops(c, i)->period;
	}
}

int session_choosers_check(const struct cli_command *command, struct session_options *o)
{
	struct session_choosers *c = &o->choosers;
	char what[EVENT_NAME_MAX * 2];
	size_t len = 0;
	int r;

	put_names(o, what, sizeof(what));
	r = check_rates(command, o, what);
	if (r)
		return r;
	set_periods(o);
	if (session_is_beside(o))
		return 0;
	o->event.chosen = session_chooser_ops(c, 0);
	o->event.period = c->at[0].period;
	for (uint32_t i = 0; i < c->n && len < sizeof(o->event.name); i++)
		len += (size_t)snprintf(o->event.name + len, sizeof(o->event.name) - len, "%s%s",
					i ? "," : "", c->at[i].descriptor->name);
	return 0;
}

void session_choosers_log(const struct session_choosers *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const char *name = c->at[i].descriptor->name;

		if (is_of_time(c, i))
			log_info("%s, %g Hz, unwinding in the kernel", name,
				 1e9 / (double)c->at[i].period);
		else
			log_info("%s, a sample for each %" PRIu64 ", unwinding in the kernel", name,
				 c->at[i].period);
	}
}
