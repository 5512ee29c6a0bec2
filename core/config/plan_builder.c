// SPDX-License-Identifier: Apache-2.0
#include "config/plan_builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/guess.h"
#include "base/utf8.h"

/* ---- what the core does for every sink ---- */

struct common {
	uint64_t every, queue;
	int64_t per;
	struct fusee_table omit;
};

static const char *const pers[] = {"window", "target", NULL};

static const struct fusee_option common_options[] = {
	{.name = "every",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct common, every),
	 .def = "60s",
	 .min = 1000000000,
	 .max = 86400000000000,
	 .doc = "Window: how often the sink is handed a profile."},
	{.name = "queue",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct common, queue),
	 .def = "64MiB",
	 .min = 65536,
	 .max = INT64_C(1) << 40,
	 .doc = "Most bytes of profiles that wait for the sink; the oldest make room and are "
		"counted."},
	{.name = "per",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct common, per),
	 .def = "window",
	 .choices = pers,
	 .doc = "One profile for each window, or in each window one for each target."},
	{.name = "omit",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct common, omit),
	 .def = "",
	 .doc = "Labels that this sink is not told."},
};

const struct fusee_table plan_sink_options = {
	common_options, sizeof(common_options) / sizeof(*common_options), sizeof(*common_options)};

/* ---- errors ---- */

void plan_builder_error(struct plan_builder *m, const char *where, const char *format, ...)
{
	struct plan_errors *e = m->errors;
	char *sentence = NULL, **all;
	struct buf text = {0};
	va_list ap;

	if (e->n >= MAKER_MAX_ERRORS) {
		m->more++;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&sentence, format, ap) < 0)
		sentence = NULL;
	va_end(ap);
	if (sentence) {
		buf_printf(&text, "%s%s", where, *where ? ": " : "");
		utf8_clean_printable(&text, sentence, strlen(sentence));
		buf_add(&text, "", 1);
	}
	free(sentence);
	all = text.len && !text.error ? realloc(e->texts, (e->n + 1) * sizeof(char *)) : NULL;
	if (!all) {
		buf_fini(&text);
		m->no_memory = true;
		return;
	}
	e->texts = all;
	e->texts[e->n++] = text.p;
}

/* ---- plugins ---- */

/* "plugin '/x/http.so' was built for ..": the file of this name, that was refused. */
static const char *refusal(const struct plugin_folder *f, const char *name)
{
	char file[256];

	snprintf(file, sizeof(file), "/%s.so'", name);
	for (uint32_t i = 0; i < f->nrefused; i++)
		if (strstr(f->refused[i], file))
			return f->refused[i];
	return NULL;
}

const struct plugin *plan_builder_plugin(struct plan_builder *m, uint32_t kind, const char *name,
					 const char *where)
{
	const struct plugin *p = plugin_folder_find(m->folder, kind, name);
	const char *of = plugin_kind_name(kind), *why, *other = NULL;
	struct guess g = {.word = name};

	if (p)
		return p;
	why = refusal(m->folder, name);
	for (uint32_t i = 0; i < m->folder->n; i++) {
		const struct fusee_plugin *d = m->folder->plugins[i]->descriptor;

		if (d->kind == kind)
			guess_offer(&g, d->name);
		else if (!strcmp(d->name, name))
			other = plugin_kind_name(d->kind);
	}
	if (why)
		plan_builder_error(m, where, "no '%s.%s': %s", of, name, why);
	else if (g.best)
		plan_builder_error(m, where, "no '%s.%s' (did you mean '%s.%s'?)", of, name, of,
				   g.best);
	else if (other)
		plan_builder_error(m, where, "no '%s.%s' (did you mean '%s.%s'?)", of, name, other,
				   name);
	else
		plan_builder_error(m, where, "no '%s.%s': fusee plugins lists what there is", of,
				   name);
	return NULL;
}

void plan_builder_options_free(struct instance_option *o, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(o[i].name);
		option_value_fini(&o[i].value);
	}
	free(o);
}

/* The line says that an option is missing that was given, though wrongly: names, each with its NUL.
 */
static bool is_missing_one(const char *line, const struct buf *names)
{
	size_t len = strlen(line);

	for (size_t at = 0; at < names->len; at += strlen(names->p + at) + 1) {
		char text[256];
		int n = snprintf(text, sizeof(text), "option '%s' must be given", names->p + at);

		if (n > 0 && (size_t)n <= len && !strcmp(line + len - n, text))
			return true;
	}
	return false;
}

/* Each of the sentences, a line each, is an error. */
static void each_line(struct plan_builder *m, char *lines, const struct buf *wrong)
{
	char *rest = lines, *line;

	while ((line = strsep(&rest, "\n")))
		if (!is_missing_one(line, wrong))
			plan_builder_error(m, "", "%s", line);
}

static void unknown_option(struct plan_builder *m, const struct plan_instance *p, const char *name,
			   struct buf *meant)
{
	const struct fusee_table *own = &p->descriptor->options;
	struct guess g = {.word = name};

	for (uint32_t i = 0; i < own->n; i++)
		guess_offer(&g, FUSEE_AT(struct fusee_option, *own, i)->name);
	for (uint32_t i = 0; p->kind == FUSEE_SINK && i < plan_sink_options.n; i++)
		guess_offer(&g, common_options[i].name);
	if (g.best)
		buf_add(meant, g.best, strlen(g.best) + 1);
	if (g.best)
		plan_builder_error(m, p->where, "%s.%s: unknown option '%s' (did you mean '%s'?)",
				   plugin_kind_name(p->kind), p->plugin, name, g.best);
	else
		plan_builder_error(m, p->where, "%s.%s: unknown option '%s'",
				   plugin_kind_name(p->kind), p->plugin, name);
}

/* Takes from p->options what the core does itself, and what is wrong already. */
static bool take_common(struct plan_builder *m, struct plan_instance *p, struct common *c,
			struct buf *wrong)
{
	bool good = true;
	uint32_t kept = 0;
	char *text;

	if (options_defaults(c, &plan_sink_options, &text)) {
		free(text);
		m->no_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < p->noptions; i++) {
		struct instance_option *o = &p->options[i];
		const struct fusee_option *known = NULL;

		if (p->kind == FUSEE_SINK)
			known = options_find(&plan_sink_options, o->name);
		if (o->value.kind && !known && options_find(&p->descriptor->options, o->name)) {
			p->options[kept++] = *o;
			continue;
		}
		if (!o->value.kind) {
			buf_add(wrong, o->name, strlen(o->name) + 1);
			good = false;
		} else if (!known) {
			unknown_option(m, p, o->name, wrong);
			good = false;
		} else if (options_set(c, known, &o->value, &text)) {
			plan_builder_error(m, p->where, "%s.%s: %s", plugin_kind_name(p->kind),
					   p->plugin, text ? text : "no memory");
			free(text);
			good = false;
		}
		free(o->name);
		option_value_fini(&o->value);
	}
	p->noptions = kept;
	return good;
}

static bool keep_common(struct plan_builder *m, struct plan_instance *p, const struct common *c)
{
	p->every_ns = c->every;
	p->queue_bytes = c->queue;
	p->per_target = c->per == 1;
	p->omit = calloc(c->omit.n + 1, sizeof(char *));
	for (uint32_t i = 0; p->omit && !m->no_memory && i < c->omit.n; i++) {
		p->omit[i] = strdup(FUSEE_AT(struct fusee_str, c->omit, i)->p);
		if (!p->omit[i])
			m->no_memory = true;
	}
	if (!p->omit)
		m->no_memory = true;
	return !m->no_memory;
}

static bool check_own(struct plan_builder *m, struct plan_instance *p, const struct buf *wrong)
{
	char name[128];
	struct instance_options o = {
		.name = name, .where = p->where, .options = p->options, .n = p->noptions};
	char *text;
	int r;

	/* without its number: the line says which one */
	snprintf(name, sizeof(name), "%s.%s", plugin_kind_name(p->kind), p->plugin);
	r = instance_check(p->descriptor, &o, &text);

	if (r && text)
		each_line(m, text, wrong);
	else if (r)
		m->no_memory = true;
	free(text);
	return !r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct instance_option *)a)->name,
		      ((const struct instance_option *)b)->name);
}

static void add_text(struct buf *b, const char *text)
{
	buf_printf(b, "%zu:", strlen(text));
	buf_str(b, text);
}

/* Lengths go before texts, so that no two different lists of options are the same text. same: how
 * many such instances there are before it. */
static char *identify(const struct plan_instance *p, uint32_t same)
{
	struct buf b = {0};

	buf_printf(&b, "%s.%s#%u", plugin_kind_name(p->kind), p->plugin, same);
	for (uint32_t i = 0; i < p->noptions; i++) {
		const struct option_value *v = &p->options[i].value;

		buf_printf(&b, " %s=%d:", p->options[i].name, (int)v->kind);
		if (v->kind == OPTION_TEXT)
			add_text(&b, v->text);
		for (uint32_t k = 0; k < v->n; k++) {
			add_text(&b, v->pairs[k].key ? v->pairs[k].key : "");
			add_text(&b, v->pairs[k].value);
		}
	}
	buf_add(&b, "", 1);
	if (b.error)
		buf_fini(&b);
	return b.p;
}

static void make_identity(struct plan_builder *m, struct plan_instance *p,
			  struct plan_instance *const *before, uint32_t n)
{
	bool again = true;

	if (p->noptions)
		qsort(p->options, p->noptions, sizeof(*p->options), by_name);
	for (uint32_t same = 0; again; same++) {
		again = false;
		free(p->identity);
		p->identity = identify(p, same);
		if (!p->identity)
			m->no_memory = true;
		for (uint32_t i = 0; p->identity && i < n; i++)
			again |= before[i]->identity && !strcmp(before[i]->identity, p->identity);
	}
}

/* Its place in the plan; NULL: it has none. */
static struct plan_instance *append(struct plan_builder *m, const struct fusee_plugin *d,
				    const char *where)
{
	bool sink = d->kind == FUSEE_SINK;
	struct plan_instance ***all = sink ? &m->plan->sinks : &m->plan->discoveries, **more;
	uint32_t *n = sink ? &m->plan->nsinks : &m->plan->ndiscoveries, same = 1;
	uint32_t most = sink ? PLAN_MAX_SINKS : MAKER_MAX_DISCOVERIES;
	struct plan_instance *p;

	if (*n >= most) {
		plan_builder_error(m, where, "more than %u %s in one plan", most,
				   sink ? "sinks" : "discoveries");
		return NULL;
	}
	more = realloc(*all, (*n + 1) * sizeof(*more));
	if (more)
		*all = more;
	p = more ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		m->no_memory = true;
		return NULL;
	}
	for (uint32_t i = 0; i < *n; i++)
		same += more[i]->descriptor == d;
	p->kind = d->kind;
	p->descriptor = d;
	p->plugin = strdup(d->name);
	p->where = strdup(where);
	if (asprintf(&p->name, same > 1 ? "%s.%s#%u" : "%s.%s", plugin_kind_name(d->kind), d->name,
		     same) < 0)
		p->name = NULL;
	more[(*n)++] = p;
	if (p->plugin && p->where && p->name)
		return p;
	m->no_memory = true;
	return NULL;
}

struct plan_instance *plan_builder_add(struct plan_builder *m, const struct fusee_plugin *d,
				       const char *where, struct instance_option *options,
				       uint32_t n)
{
	struct plan_instance *p = append(m, d, where), **before;
	struct common c = {0};
	struct buf wrong = {0};
	bool good;

	if (!p) {
		plan_builder_options_free(options, n);
		return NULL;
	}
	p->options = options;
	p->noptions = n;
	good = take_common(m, p, &c, &wrong);
	good = keep_common(m, p, &c) && good;
	options_clear(&c, &plan_sink_options);
	good = check_own(m, p, &wrong) && good;
	if (wrong.error)
		m->no_memory = true;
	buf_fini(&wrong);
	before = p->kind == FUSEE_SINK ? m->plan->sinks : m->plan->discoveries;
	make_identity(m, p, before,
		      (p->kind == FUSEE_SINK ? m->plan->nsinks : m->plan->ndiscoveries) - 1);
	return good ? p : NULL;
}

/* ---- the core's own settings ---- */

static int set_number(void *at, const struct fusee_option *o, const char *value, char **text)
{
	double d, min = (double)o->min / 1000, max = (double)o->max / 1000;
	char *end;

	d = strtod(value, &end);
	if (end == value || *end || !(d >= min && d <= max)) {
		if (asprintf(text, "option '%s' must be a number from %g to %g, got '%s'", o->name,
			     min, max, value) < 0)
			*text = NULL;
		return -EINVAL;
	}
	memcpy((char *)at + o->offset, &d, sizeof(d));
	return 0;
}

/* "127.0.0.1:9190", "[::1]:9190", "unix:/run/x" */
static bool can_listen(const char *at)
{
	const char *colon = strrchr(at, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (!*at || !strncmp(at, "unix:/", 6))
		return true;
	return colon && colon > at && digits && digits < 6 && !colon[1 + digits] &&
	       strtoul(colon + 1, NULL, 10) < 65536;
}

int plan_builder_set(struct plan_builder *m, const struct fusee_option *o,
		     const struct option_value *v, char **text)
{
	*text = NULL;
	if (!strcmp(o->name, "listen") && v->kind == OPTION_TEXT && !can_listen(v->text)) {
		if (asprintf(text,
			     "option 'listen' must be an address with a port, such as "
			     "127.0.0.1:9190, or unix:/path, got '%s'",
			     v->text) < 0)
			*text = NULL;
		return -EINVAL;
	}
	if (o->type != PLAN_NUMBER)
		return options_set(m->plan, o, v, text);
	return set_number(m->plan, o, v->kind == OPTION_TEXT ? v->text : "{..}", text);
}

/* ---- beginning and end ---- */

int plan_builder_init(struct plan_builder *m, const struct plugin_folder *folder,
		      struct plan_errors *errors)
{
	const struct fusee_table *cpu = &plan_settings[0].options;
	struct plan *p = calloc(1, sizeof(*p));
	bool good = p != NULL;

	*errors = (struct plan_errors){0};
	*m = (struct plan_builder){.plan = p, .folder = folder, .errors = errors};
	for (uint32_t i = 0; good && i < cpu->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *cpu, i);
		struct option_value v = {.kind = OPTION_TEXT, .text = (char *)o->def};
		char *text;

		good = !plan_builder_set(m, o, &v, &text);
		free(text);
	}
	if (good) {
		p->unknown_keep = true;
		p->listen = strdup("");
		p->control = plan_default_control();
		p->without = calloc(1, sizeof(char *));
		good = p->listen && p->control && p->without;
	}
	if (good)
		return 0;
	plan_free(p);
	return -ENOMEM;
}

/* Those that need nothing. */
static void add_discoveries(struct plan_builder *m)
{
	for (uint32_t i = 0; i < m->folder->n; i++) {
		const struct fusee_plugin *d = m->folder->plugins[i]->descriptor;
		bool needs = false;

		for (uint32_t k = 0; k < d->options.n; k++)
			needs |= !FUSEE_AT(struct fusee_option, d->options, k)->def;
		if (d->kind == FUSEE_DISCOVERY && !needs)
			plan_builder_add(m, d, "", NULL, 0);
	}
}

int plan_builder_finish(struct plan_builder *m, struct plan **ret)
{
	struct plan_errors *e = m->errors;
	char *last;

	m->plan->stack_bytes &= ~UINT64_C(7);
	if (!e->n && !m->plan->ndiscoveries)
		add_discoveries(m);
	if (m->more && asprintf(&last, "and %u more errors like these", m->more) > 0) {
		char **all = realloc(e->texts, (e->n + 1) * sizeof(char *));

		if (all) {
			e->texts = all;
			e->texts[e->n++] = last;
		} else {
			free(last);
		}
	}
	if (!e->n && !m->no_memory) {
		*ret = m->plan;
		return 0;
	}
	plan_free(m->plan);
	m->plan = NULL;
	return m->no_memory ? -ENOMEM : -EINVAL;
}
