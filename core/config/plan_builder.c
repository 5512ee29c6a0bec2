// SPDX-License-Identifier: Apache-2.0
#include "config/plan_builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/credentials.h"
#include "base/guess.h"
#include "base/utf8.h"
#include "config/settings.h"
#include "plugin/option_list.h"
#include "fetcher/fetcher.h"

/* ---- errors ---- */

void plan_builder_error(struct plan_builder *b, const char *where, const char *format, ...)
{
	struct plan_errors *e = b->errors;
	char *sentence = NULL, **all;
	struct buf text = {0};
	va_list ap;

	if (e->n >= PLAN_MAX_ERRORS) {
		b->more++;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&sentence, format, ap) < 0)
		sentence = NULL;
	va_end(ap);
	if (sentence) {
		credentials_hide_quoted(sentence);
		buf_printf(&text, "%s%s", where, *where ? ": " : "");
		utf8_clean_printable(&text, sentence, strlen(sentence));
		buf_add(&text, "", 1);
	}
	free(sentence);
	all = text.len && !text.error ? realloc(e->texts, (e->n + 1) * sizeof(char *)) : NULL;
	if (!all) {
		buf_fini(&text);
		b->no_memory = true;
		return;
	}
	e->texts = all;
	e->texts[e->n++] = text.p;
}

/* ---- plugins ---- */

const struct plugin *plan_builder_plugin(struct plan_builder *b, uint32_t kind, const char *name,
					 const char *where)
{
	const struct plugin *p = plugin_folder_find(b->folder, kind, name);
	const char *space = plugin_kind_name(kind), *why, *other = NULL;
	struct guess g = {.word = name};

	if (p)
		return p;
	why = plugin_folder_refusal(b->folder, kind, name);
	if (kind == FUSEE_SAMPLER)
		guess_offer(&g, "cpu"); /* sample.cpu is the core's */
	for (uint32_t i = 0; i < b->folder->n; i++) {
		const struct plugin *is = b->folder->plugins[i];

		if (plugin_kind(is) == kind)
			guess_offer(&g, plugin_name(is));
		else if (!strcmp(plugin_name(is), name))
			other = plugin_kind_name(plugin_kind(is));
	}
	if (why)
		plan_builder_error(b, where, "no '%s.%s': %s", space, name, why);
	else if (g.best)
		plan_builder_error(b, where, "no '%s.%s' (did you mean '%s.%s'?)", space, name,
				   space, g.best);
	else if (other)
		plan_builder_error(b, where, "no '%s.%s' (did you mean '%s.%s'?)", space, name,
				   other, name);
	else
		plan_builder_error(b, where, "no '%s.%s': fusee plugins lists the plugins", space,
				   name);
	return NULL;
}

/* Whether the sentence says that an option must be given although it was given, with a wrong value.
 * wrong: the names of such options, NUL-terminated each. */
static bool blames_wrong_option(const char *line, const struct buf *wrong)
{
	size_t len = strlen(line);

	for (size_t at = 0; at < wrong->len; at += strlen(wrong->p + at) + 1) {
		char text[256];
		int n = snprintf(text, sizeof(text), "option '%s' must be given", wrong->p + at);

		if (n > 0 && (size_t)n <= len && !strcmp(line + len - n, text))
			return true;
	}
	return false;
}

/* Records each line as an error of its own. */
static void record_lines(struct plan_builder *b, char *lines, const struct buf *wrong)
{
	char *rest = lines, *line;

	while ((line = strsep(&rest, "\n")))
		if (!blames_wrong_option(line, wrong))
			plan_builder_error(b, "", "%s", line);
}

static void unknown_option(struct plan_builder *b, const struct plan_instance *p, const char *name,
			   struct buf *wrong)
{
	struct guess g = {.word = name};

	options_offer(&p->descriptor->options, &g);
	options_offer(plan_core_options(p->kind), &g);
	if (g.best)
		buf_add(wrong, g.best, strlen(g.best) + 1);
	plan_builder_error(b, p->where, "%s.%s: unknown option '%s'" GUESS_HINT,
			   plugin_kind_name(p->kind), p->plugin, name, GUESS_WORDS(g, ""));
}

/* A setting that instances of a kind have. */
static int set_core(struct core_settings *c, const struct fusee_option *o,
		    const struct option_value *v, char **text)
{
	*text = NULL;
	if (o->type != PLAN_NUMBER)
		return options_set(c, o, v, text);
	return settings_number(c, o, v->kind == OPTION_TEXT ? v->text : "{..}", text);
}

static int core_defaults(struct core_settings *c, const struct fusee_table *common)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < common->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *common, i);
		char *text = NULL;

		if (o->type == PLAN_NUMBER)
			r = settings_number(c, o, o->def, &text);
		else if (o->type != PLAN_RULES)
			r = options_set_text(c, o, o->def, &text);
		free(text);
	}
	return r;
}

/* Records an error if a flag has rules. A script's rules are not in its text:
 * lua/internal/relabel.h. */
static bool is_of_script(struct plan_builder *b, const struct plan_instance *p,
			 const struct instance_option *o)
{
	if (o->value.kind == OPTION_TEXT && !*o->value.text)
		return true;
	plan_builder_error(b, p->where, "%s.%s: option '%s' is a list of rules: write a script",
			   plugin_kind_name(p->kind), p->plugin, o->name);
	return false;
}

/* Moves the options that all of its kind have from p->options to *c, and removes options that are
 * unknown or have a wrong type. False: there was such an option; it is recorded. */
static bool move_core_settings(struct plan_builder *b, struct plan_instance *p,
			       struct core_settings *c, struct buf *wrong)
{
	const struct fusee_table *common = plan_core_options(p->kind);
	bool good = true;
	uint32_t kept = 0;
	char *text;

	if (core_defaults(c, common)) {
		b->no_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < p->noptions; i++) {
		struct instance_option *o = &p->options[i];
		const struct fusee_option *known = options_find(common, o->name);

		if (o->value.kind && !known && options_find(&p->descriptor->options, o->name)) {
			p->options[kept++] = *o;
			continue;
		}
		if (!o->value.kind) {
			buf_add(wrong, o->name, strlen(o->name) + 1);
			good = false;
		} else if (!known) {
			unknown_option(b, p, o->name, wrong);
			good = false;
		} else if (known->type == PLAN_RULES) {
			good = is_of_script(b, p, o) && good;
		} else if (set_core(c, known, &o->value, &text)) {
			plan_builder_error(b, p->where, "%s.%s: %s", plugin_kind_name(p->kind),
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

static bool set_sink_settings(struct plan_builder *b, struct plan_instance *p,
			      const struct core_settings *c)
{
	p->every_ns = c->every;
	p->queue_bytes = c->queue;
	p->spool = strdup(c->spool ? c->spool : "");
	p->spool_bytes = c->spool_size;
	p->spool_age_ns = c->spool_age;
	p->spool_sync_ns = c->spool_sync;
	p->per_target = c->per == PER_TARGET;
	p->server_names = c->names == NAMES_SERVER;
	p->by_default = c->by_default;
	p->omit = calloc(c->omit.n + 1, sizeof(char *));
	for (uint32_t i = 0; p->omit && !b->no_memory && i < c->omit.n; i++) {
		p->omit[i] = strdup(FUSEE_AT(struct fusee_str, c->omit, i)->p);
		if (!p->omit[i])
			b->no_memory = true;
	}
	if (!p->omit || !p->spool)
		b->no_memory = true;
	return !b->no_memory;
}

static bool check_plugin_options(struct plan_builder *b, struct plan_instance *p,
				 const struct buf *wrong)
{
	char name[128];
	struct instance_options o = {
		.name = name, .where = p->where, .options = p->options, .n = p->noptions};
	char *text;
	int r;

	/* without "#2": the place identifies the instance */
	snprintf(name, sizeof(name), "%s.%s", plugin_kind_name(p->kind), p->plugin);
	r = instance_check(p->descriptor, &o, &text);
	if (r && text)
		record_lines(b, text, wrong);
	else if (r)
		b->no_memory = true;
	free(text);
	return !r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct instance_option *)a)->name,
		      ((const struct instance_option *)b)->name);
}

/* number: distinguishes instances of one plan whose options are equal. */
static char *identity_of(const struct plan_instance *p, uint32_t number)
{
	char *options = option_text(p->options, p->noptions), *identity = NULL;

	if (options && asprintf(&identity, "%s.%s#%u %s", plugin_kind_name(p->kind), p->plugin,
				number, options) < 0)
		identity = NULL;
	if (options)
		explicit_bzero(options, strlen(options));
	free(options);
	return identity;
}

static void set_identity(struct plan_builder *b, struct plan_instance *p,
			 struct plan_instance *const *before, uint32_t n)
{
	bool taken = true;

	if (p->noptions)
		qsort(p->options, p->noptions, sizeof(*p->options), by_name);
	for (uint32_t number = 0; taken; number++) {
		taken = false;
		free(p->identity);
		p->identity = identity_of(p, number);
		if (!p->identity)
			b->no_memory = true;
		for (uint32_t i = 0; p->identity && i < n; i++)
			taken |= before[i]->identity && !strcmp(before[i]->identity, p->identity);
	}
}

/* The plan's instances of a kind. */
struct kind_list {
	struct plan_instance ***all;
	uint32_t *n, max;
	const char *name;
};

static struct kind_list list_of(struct plan *p, uint32_t kind)
{
	if (kind == FUSEE_SINK)
		return (struct kind_list){&p->sinks, &p->nsinks, PLAN_MAX_SINKS, "sinks"};
	if (kind == FUSEE_UNWINDER)
		return (struct kind_list){&p->unwinders, &p->nunwinders, PLAN_MAX_UNWINDERS,
					  "unwinders"};
	if (kind == FUSEE_SAMPLER)
		return (struct kind_list){&p->samplers.list, &p->samplers.n, PLAN_MAX_SAMPLERS,
					  "samplers beside sample.cpu"};
	return (struct kind_list){&p->discoveries, &p->ndiscoveries, PLAN_MAX_DISCOVERIES,
				  "discoveries"};
}

/* Whether another instance of this plugin may be added. first: the plan's first instance of it;
 * NULL: none. */
static bool may_add(struct plan_builder *b, const struct kind_list *l, const struct fusee_plugin *d,
		    const char *where, const struct plan_instance *first)
{
	if (*l->n >= l->max)
		plan_builder_error(b, where, "more than %u %s in one plan", l->max, l->name);
	else if (first && (d->kind == FUSEE_UNWINDER || d->kind == FUSEE_SAMPLER))
		plan_builder_error(b, where, "%s.%s: given twice, first at %s",
				   plugin_kind_name(d->kind), d->name, first->where);
	else
		return true;
	return false;
}

/* Appends an instance without options to the plan. NULL: failed, recorded. */
static struct plan_instance *append(struct plan_builder *b, const struct fusee_plugin *d,
				    const char *where)
{
	struct kind_list l = list_of(b->plan, d->kind);
	struct plan_instance *p, **more, *first = NULL;
	uint32_t same = 0;

	for (uint32_t i = *l.n; i-- > 0;)
		if ((*l.all)[i]->descriptor == d) {
			first = (*l.all)[i];
			same++;
		}
	if (!may_add(b, &l, d, where, first))
		return NULL;
	more = realloc(*l.all, (*l.n + 1) * sizeof(*more));
	if (more)
		*l.all = more;
	p = more ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		b->no_memory = true;
		return NULL;
	}
	p->kind = d->kind;
	p->descriptor = d;
	p->plugin = strdup(d->name);
	p->where = strdup(where);
	if (asprintf(&p->name, same ? "%s.%s#%u" : "%s.%s", plugin_kind_name(d->kind), d->name,
		     same + 1) < 0)
		p->name = NULL;
	more[(*l.n)++] = p;
	if (p->plugin && p->where && p->name)
		return p;
	b->no_memory = true;
	return NULL;
}

static void disable(struct plan_builder *b, const char *unwinder)
{
	struct plan *p = b->plan;
	size_t n = 0;
	char **all;

	while (p->without[n])
		n++;
	all = realloc(p->without, (n + 2) * sizeof(char *));
	if (!all) {
		b->no_memory = true;
		return;
	}
	p->without = all;
	all[n] = strdup(unwinder);
	all[n + 1] = NULL;
	if (!all[n])
		b->no_memory = true;
}

static void set_period(struct plan_instance *p, const struct core_settings *c)
{
	const struct fusee_sampler_ops *ops = p->descriptor->ops;

	if (p->kind != FUSEE_SAMPLER)
		return;
	if (ops->flags & FUSEE_SAMPLER_TIME)
		p->period = (uint64_t)(1e9 / c->hz + 0.5);
	else
		p->period = c->count ? (uint64_t)c->count : ops->period;
}

struct plan_instance *plan_builder_add(struct plan_builder *b, const struct fusee_plugin *d,
				       const char *where, struct instance_option *options,
				       uint32_t n)
{
	struct plan_instance *p = append(b, d, where);
	struct kind_list l = list_of(b->plan, d->kind);
	struct core_settings c = {0};
	struct buf wrong = {0};
	bool good;

	if (!p) {
		instance_option_list_free(options, n);
		return NULL;
	}
	p->options = options;
	p->noptions = n;
	good = move_core_settings(b, p, &c, &wrong);
	good = set_sink_settings(b, p, &c) && good;
	set_period(p, &c);
	if (good && d->kind == FUSEE_UNWINDER && !c.enabled)
		disable(b, d->name);
	options_clear(&c, plan_core_options(d->kind));
	good = check_plugin_options(b, p, &wrong) && good;
	if (wrong.error)
		b->no_memory = true;
	buf_fini(&wrong);
	set_identity(b, p, *l.all, *l.n - 1);
	return good ? p : NULL;
}

/* ---- the core's own settings ---- */

/* "127.0.0.1:9190", "[::1]:9190", "unix:/run/x" */
static bool is_address(const char *address)
{
	const char *colon = strrchr(address, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (!*address || !strncmp(address, "unix:/", 6))
		return true;
	return colon && colon > address && digits && digits < 6 && !colon[1 + digits] &&
	       strtoul(colon + 1, NULL, 10) < 65536;
}

/* -EINVAL: an entry is not a server's address, with a sentence in *text. */
static int check_servers(const struct option_value *v, char **text)
{
	const char *wrong = v->kind == OPTION_TEXT ? fetcher_wrong_servers(v->text) : NULL;
	const char *server = v->text;

	for (uint32_t i = 0; v->kind == OPTION_LIST && !wrong && i < v->n; i++) {
		server = v->pairs[i].value;
		wrong = fetcher_wrong_servers(server);
	}
	if (wrong && asprintf(text, "option 'debuginfod': '%s' %s", server, wrong) < 0)
		*text = NULL;
	return wrong ? -EINVAL : 0;
}

int plan_builder_set(struct plan_builder *b, const struct fusee_option *o,
		     const struct option_value *v, char **text)
{
	*text = NULL;
	if (!strcmp(o->name, "listen") && v->kind == OPTION_TEXT && !is_address(v->text)) {
		if (asprintf(text,
			     "option 'listen' must be an address with a port, such as "
			     "127.0.0.1:9190, or unix:/path, got '%s'",
			     v->text) < 0)
			*text = NULL;
		return -EINVAL;
	}
	if (!strcmp(o->name, "debuginfod") && check_servers(v, text))
		return -EINVAL;
	if (o->type != PLAN_NUMBER)
		return options_set(b->plan, o, v, text);
	return settings_number(b->plan, o, v->kind == OPTION_TEXT ? v->text : "{..}", text);
}

/* ---- beginning and end ---- */

/* Sets the defaults of a group that applies without a line in the script. */
static bool set_defaults(struct plan_builder *b, enum plan_settings_group group)
{
	char *text = NULL;
	int r = options_defaults(b->plan, &plan_settings[group].options, &text);

	free(text);
	return !r;
}

int plan_builder_init(struct plan_builder *b, const struct plugin_folder *folder,
		      struct plan_errors *errors)
{
	const struct fusee_table *cpu = &plan_settings[SETTINGS_SAMPLE_CPU].options;
	struct plan *p = calloc(1, sizeof(*p));
	bool good = p != NULL;

	*errors = (struct plan_errors){0};
	*b = (struct plan_builder){.plan = p, .folder = folder, .errors = errors};
	for (uint32_t i = 0; good && i < cpu->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *cpu, i);
		struct option_value v = {.kind = OPTION_TEXT, .text = (char *)o->def};
		char *text;

		good = !plan_builder_set(b, o, &v, &text);
		free(text);
	}
	good = good && set_defaults(b, SETTINGS_LABELS);
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

/* Whether a discovery of the plan finds targets. */
static bool finds_targets(const struct plan *p)
{
	for (uint32_t i = 0; i < p->ndiscoveries; i++) {
		const struct fusee_discovery_ops *ops = p->discoveries[i]->descriptor->ops;

		if (!(ops->flags & FUSEE_DISCOVERY_PROFILES))
			return true;
	}
	return false;
}

/* Every discovery without required options. */
static void add_default_discoveries(struct plan_builder *b)
{
	for (uint32_t i = 0; i < b->folder->n; i++) {
		const struct plugin *p = b->folder->plugins[i];
		bool required = false;

		if (plugin_kind(p) != FUSEE_DISCOVERY)
			continue;
		p = plugin_folder_find(b->folder, FUSEE_DISCOVERY, plugin_name(p));
		for (uint32_t k = 0; p && k < p->descriptor->options.n; k++)
			required |= !FUSEE_AT(struct fusee_option, p->descriptor->options, k)->def;
		if (p && !required)
			plan_builder_add(b, p->descriptor, "", NULL, 0);
	}
}

static void assert_complete(struct plan_instance *const *all, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		fusee_assert(all[i]->plugin && all[i]->name && all[i]->where && all[i]->omit);
		fusee_assert(all[i]->identity);
		for (uint32_t k = 0; k < i && all[i]->identity && all[k]->identity; k++)
			fusee_assert(strcmp(all[i]->identity, all[k]->identity));
	}
}

int plan_builder_finish(struct plan_builder *b, struct plan **ret)
{
	struct plan_errors *e = b->errors;
	char *last;

	b->plan->limits.stack_bytes &= ~UINT64_C(7);
	for (uint32_t i = 0; i < b->plan->nsinks; i++)
		b->plan->sinks[i]->relabel_all = b->plan->relabel;
	if (!e->n && !finds_targets(b->plan))
		add_default_discoveries(b);
	if (b->more && asprintf(&last, "and %u more errors", b->more) > 0) {
		char **all = realloc(e->texts, (e->n + 1) * sizeof(char *));

		if (all) {
			e->texts = all;
			e->texts[e->n++] = last;
		} else {
			free(last);
		}
	}
	if (!e->n && !b->no_memory) {
		assert_complete(b->plan->sinks, b->plan->nsinks);
		assert_complete(b->plan->discoveries, b->plan->ndiscoveries);
		assert_complete(b->plan->unwinders, b->plan->nunwinders);
		assert_complete(b->plan->samplers.list, b->plan->samplers.n);
		*ret = b->plan;
		return 0;
	}
	plan_free(b->plan);
	b->plan = NULL;
	return b->no_memory ? -ENOMEM : -EINVAL;
}
