/* SPDX-License-Identifier: Apache-2.0 */
#include "selection/found.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "console/plugin_list.h"
#include "config/flags.h"
#include "policy/discover_once.h"
#include "target/labelset.h"

#define MAX_DEFAULTS 4
#define GROUPS "cgroup"
#define NAME_BYTES 600u /* of a name with its namespace */

struct found {
	struct targets *targets;
	uint32_t failed;
};

/* The plugins that set the labels of each kind of name. If several set a label, the first in this
 * order counts. */
static const char *const defaults[NAME_KINDS][MAX_DEFAULTS] = {
	[NAME_UNIT] = {"systemd"},
	[NAME_POD] = {GROUPS, "kubernetes", "container"},
	[NAME_CONTAINER] = {GROUPS, "kubernetes", "container"},
};

/* ---- the plugins that run ---- */

struct specs {
	const char *all[PLAN_MAX_DISCOVERIES];
	uint32_t n;
	char *kubernetes; /* owned */
	bool no_memory;
};

static bool is_of(const char *spec, const char *plugin)
{
	size_t len = strcspn(spec, ":");

	return len == strlen(plugin) && !memcmp(spec, plugin, len);
}

static bool has(const struct specs *s, const char *plugin)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (is_of(s->all[i], plugin))
			return true;
	return false;
}

/* "kubernetes:kubeconfig=FILE", as kubectl takes it from the environment. */
static const char *kubernetes_of(struct specs *s, const char *file)
{
	struct buf b = {0};

	buf_str(&b, "kubernetes:kubeconfig=");
	for (; *file; file++)
		buf_printf(&b, "%s%c", *file == ',' || *file == '\\' ? "\\" : "", *file);
	buf_add(&b, "", 1);
	s->no_memory |= b.error != 0;
	if (b.error)
		buf_fini(&b);
	s->kubernetes = b.p;
	return b.p ? b.p : "kubernetes";
}

static void add_defaults(struct specs *s, const struct found_options *o, enum name_kind kind,
			 const struct plugin_folder *folder)
{
	const char *file = secure_getenv("KUBECONFIG");

	for (uint32_t i = 0; i < MAX_DEFAULTS && defaults[kind][i]; i++) {
		const char *name = defaults[kind][i];

		if (has(s, name) || !plugin_folder_find(folder, FUSEE_DISCOVERY, name) ||
		    s->n == PLAN_MAX_DISCOVERIES)
			continue;
		if (!strcmp(name, "kubernetes") && o->kinds[NAME_POD] && file && *file)
			name = kubernetes_of(s, file);
		s->all[s->n++] = name;
	}
}

/* Whether a plugin is required. Without the plugin of control groups there are only fewer labels.
 */
static bool choose(struct specs *s, const struct found_options *o,
		   const struct plugin_folder *folder)
{
	bool required = false;

	for (uint32_t i = 0; i < o->ndiscover && s->n < PLAN_MAX_DISCOVERIES; i++)
		s->all[s->n++] = o->discover[i];
	for (uint32_t kind = 0; kind < NAME_KINDS; kind++) {
		required |= o->kinds[kind];
		if (o->kinds[kind])
			add_defaults(s, o, kind, folder);
	}
	if (o->groups && !has(s, GROUPS) && s->n < PLAN_MAX_DISCOVERIES &&
	    plugin_folder_find(folder, FUSEE_DISCOVERY, GROUPS))
		s->all[s->n++] = GROUPS;
	return required;
}

/* *ret stays as it is if there is no plugin, and none is required. */
static int make_plan(struct plan **ret, const struct found_options *o,
		     const struct plugin_folder *folder)
{
	struct plan_flags flags = {.no_sinks = true};
	struct plan_errors errors = {0};
	struct specs s = {0};
	int r = choose(&s, o, folder) ? -ENOENT : 0;

	flags.discoveries = s.all;
	flags.ndiscoveries = s.n;
	if (s.no_memory)
		r = -ENOMEM;
	else if (s.n)
		r = plan_from_flags(ret, &flags, folder, &errors);
	free(s.kubernetes);
	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r == -ENOENT)
		log_error("no discovery plugin that finds names is installed: select processes "
			  "with -p or -G");
	else if (r && !errors.n)
		log_error("cannot prepare the discovery plugins: %s", strerror(-r));
	plan_errors_fini(&errors);
	return !r ? 0 : r == -ENOENT ? EX_UNAVAILABLE : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}

/* ---- what they found ---- */

struct copying {
	struct targets *to;
	int error;
};

static void copy_target(void *arg, uint32_t source, const struct fusee_target *t)
{
	struct copying *c = arg;
	const char *why;
	int r = targets_put(c->to, source, t, &why);

	c->error = c->error ? c->error : r;
}

/* Copies the targets that were found, as they end with the plugins. */
static int discover(struct found *f, const struct plan *plan, uint64_t wait_ns)
{
	struct copying c = {.to = f->targets};
	struct discover_once *once = NULL;
	struct targets *live;
	int r = targets_new(&live);

	if (r)
		return r;
	r = discover_once_new(&once, plan, live, wait_ns);
	if (!r) {
		f->failed = discover_once_failed(once);
		targets_each(live, copy_target, &c);
		r = c.error;
	}
	discover_once_free(once);
	targets_free(live);
	return r;
}

static int found_run(struct found **ret, const struct found_options *o,
		     const struct plugin_folder *folder)
{
	struct found *f = calloc(1, sizeof(*f));
	struct plan *plan = NULL;
	int r = f ? targets_new(&f->targets) : -ENOMEM, code = 0;

	if (!r)
		code = make_plan(&plan, o, folder);
	if (!r && !code && plan)
		r = discover(f, plan, o->wait_ns);
	plan_free(plan);
	if (r) {
		log_error("the discovery plugins cannot run: %s", strerror(-r));
		code = EX_OSERR;
	}
	if (code)
		found_free(f);
	else
		*ret = f;
	return code;
}

int found_new(struct found **ret, const struct found_options *o, const struct plugin_folder *folder)
{
	struct plugin_folder own;
	int code;

	if (folder)
		return found_run(ret, o, folder);
	code = plugin_list_open(&own);
	if (code)
		return code;
	code = found_run(ret, o, &own);
	plugin_folder_close(&own);
	return code;
}

void found_free(struct found *f)
{
	if (!f)
		return;
	targets_free(f->targets);
	free(f);
}

uint32_t found_failed(const struct found *f)
{
	return f->failed;
}

struct targets *found_targets(struct found *f)
{
	return f->targets;
}

/* ---- names ---- */

struct names {
	enum name_kind kind;
	char **all;
	size_t n, cap;
	bool no_memory;
};

static struct fusee_str label(const struct fusee_target *t, const char *key)
{
	for (uint32_t i = 0; i < t->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, t->labels, i);

		if (str_equal(l->key, fusee_text(key)))
			return l->str;
	}
	return fusee_text("");
}

static void add_name(struct names *n, struct fusee_str space, struct fusee_str name)
{
	char text[NAME_BYTES];

	if (!name.len)
		return;
	snprintf(text, sizeof(text), "%.*s%s%.*s", (int)space.len, space.p, space.len ? "/" : "",
		 (int)name.len, name.p);
	if (ARRAY_ROOM(n->all, n->n, n->cap) && (n->all[n->n] = strdup(text)))
		n->n++;
	else
		n->no_memory = true;
}

/* The id of a container without a name is its name, if it is a machine of systemd-machined. */
static bool is_hex(struct fusee_str id)
{
	for (uint64_t i = 0; i < id.len; i++)
		if (!strchr("0123456789abcdef", id.p[i]))
			return false;
	return true;
}

static void add_names(void *arg, uint32_t source, const struct fusee_target *t)
{
	const struct fusee_str none = fusee_text("");
	struct fusee_str id = label(t, "container_id");
	struct names *n = arg;

	(void)source;
	switch (n->kind) {
	case NAME_UNIT:
		add_name(n, none, label(t, "unit"));
		add_name(n, none, label(t, "user_unit"));
		break;
	case NAME_POD:
		add_name(n, label(t, "namespace"), label(t, "pod"));
		break;
	default:
		add_name(n, none, label(t, "container"));
		if (!is_hex(id))
			add_name(n, none, id);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int found_names(const struct found *f, enum name_kind kind,
		void (*each)(void *arg, const char *name), void *arg)
{
	struct names n = {.kind = kind};

	targets_each(f->targets, add_names, &n);
	if (n.n)
		qsort(n.all, n.n, sizeof(*n.all), by_text);
	for (size_t i = 0; i < n.n; i++)
		if (!i || strcmp(n.all[i], n.all[i - 1]))
			each(arg, n.all[i]);
	for (size_t i = 0; i < n.n; i++)
		free(n.all[i]);
	free(n.all);
	return n.no_memory ? -ENOMEM : 0;
}
