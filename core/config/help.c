// SPDX-License-Identifier: Apache-2.0
#include "config/help.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "relabel/rules.h"

static const char *type_name(uint32_t type)
{
	static const char *const names[] = {
		[FUSEE_BOOL] = "bool",         [FUSEE_INT] = "int",       [FUSEE_SIZE] = "size",
		[FUSEE_DURATION] = "duration", [FUSEE_STRING] = "string", [FUSEE_ENUM] = "one of",
		[FUSEE_PERCENT] = "percent",   [FUSEE_LIST] = "list",     [FUSEE_MAP] = "map",
		[FUSEE_SECRET] = "secret",
	};

	if (type == PLAN_RULES)
		return "list of rules";
	return type < sizeof(names) / sizeof(*names) ? names[type] : "number";
}

int help_type(struct buf *b, const struct fusee_option *o)
{
	buf_str(b, type_name(o->type));
	for (uint32_t i = 0; o->type == FUSEE_ENUM && o->choices[i]; i++)
		buf_printf(b, "%s%s", i ? ", " : " ", o->choices[i]);
	return b->error;
}

int help_size(struct buf *b, uint64_t n)
{
	static const struct {
		uint64_t factor;
		const char *name;
	} units[] = {{UINT64_C(1) << 40, "TiB"},
		     {1 << 30, "GiB"},
		     {1 << 20, "MiB"},
		     {1 << 10, "KiB"},
		     {1, " bytes"}};
	int i = 0;

	while (units[i].factor > 1 && (!n || n % units[i].factor))
		i++;
	return buf_printf(b, "%" PRIu64 "%s", n / units[i].factor, units[i].name);
}

int help_range(struct buf *b, const struct fusee_option *o)
{
	if (o->type != PLAN_NUMBER)
		return options_range(b, o);
	return buf_printf(b, "%g to %g", (double)o->min / 1e3, (double)o->max / 1e3);
}

static void blanks(struct buf *b, size_t n)
{
	while (n--)
		buf_str(b, " ");
}

int help_wrap(struct buf *b, const char *text, unsigned int indent, unsigned int columns)
{
	size_t width = columns > indent + 20 ? columns - indent : 20;

	while (*text) {
		size_t len = strcspn(text, "\n"), end;

		if (len > width) {
			for (end = width; end && text[end] != ' '; end--)
				;
			len = end ? end : strcspn(text, " \n");
		}
		blanks(b, indent);
		buf_add(b, text, len);
		buf_str(b, "\n");
		text += len;
		text += strspn(text, " \n");
	}
	return b->error;
}

static void put_facts(struct buf *b, const struct fusee_option *o)
{
	help_type(b, o);
	if (o->min || o->max) {
		buf_str(b, ", ");
		help_range(b, o);
	}
	if (!o->def)
		buf_str(b, ", must be given");
	else if (*o->def)
		buf_printf(b, ", default %s", o->def);
}

/* An option's name, type and limits. indent 0: the name has a line of its own. */
static void put_head(struct buf *b, const struct fusee_option *o, unsigned int indent,
		     unsigned int columns)
{
	struct buf facts = {0};
	size_t at = b->len;

	put_facts(&facts, o);
	buf_add(&facts, "", 1);
	if (facts.error) {
		b->error = facts.error;
	} else if (indent) {
		help_wrap(b, facts.p, indent, columns);
		if (!b->error)
			memcpy(b->p + at + 2, o->name, strlen(o->name));
	} else {
		buf_printf(b, "  %s\n", o->name);
		help_wrap(b, facts.p, 4, columns);
	}
	buf_fini(&facts);
}

int help_options(struct buf *b, const struct fusee_table *options, unsigned int columns)
{
	size_t widest = 0;
	unsigned int indent;

	for (uint32_t i = 0; i < options->n; i++) {
		size_t len = strlen(FUSEE_AT(struct fusee_option, *options, i)->name);

		widest = len > widest ? len : widest;
	}
	indent = columns >= 60 && widest < 24 ? (unsigned int)widest + 4 : 0;
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);

		put_head(b, o, indent, columns);
		help_wrap(b, o->doc ? o->doc : "", indent ? indent : 4, columns);
	}
	return b->error;
}

int help_plugin(struct buf *b, const struct fusee_plugin *d, unsigned int columns)
{
	buf_printf(b, "%s.%s%s%s\n", plugin_kind_name(d->kind), d->name, d->version ? " " : "",
		   d->version ? d->version : "");
	help_wrap(b, d->doc ? d->doc : "", 2, columns);
	if (d->options.n) {
		buf_str(b, "\n");
		help_options(b, &d->options, columns);
	}
	if (plan_core_options(d->kind)->n) {
		buf_printf(b, "\n%s, as for every %s:\n\n", d->options.n ? "and" : "options",
			   d->kind == FUSEE_SINK      ? "sink"
			   : d->kind == FUSEE_SAMPLER ? "sampler"
						      : "unwinder");
		help_options(b, plan_core_options(d->kind), columns);
	}
	return b->error;
}

static const struct {
	const char *name, *doc;
} functions[] = {
	{"policy", "policy(function(t) ... end): called once for each label set, with t.labels. "
		   "It returns nil or true (the defaults), false (not profiled), or a table of hz, "
		   "labels = { name = \"value\" } to be added, and to = { handles of sinks }."},
	{"unknown", "unknown \"keep\" profiles processes that no discovery knows (yet), unknown "
		    "\"drop\" does not. Default \"keep\"."},
	{"unwind",
	 "unwind.NAME { enabled = false } disables an unwinder; unwind.NAME { option = value } "
	 "sets its options."},
	{"relabel", "relabel { {..}, {..} }: rules that change the labels of profiles, or drop "
		    "targets, with the fields and the meaning of Prometheus' relabel_configs; "
		    "relabel = { {..} } in a sink is for that sink. help \"relabel\" lists the "
		    "fields."},
	{"every",
	 "every(\"1m\", function() ... end): called each minute, with 20 ms of CPU time. "
	 "targets() lists targets: labels, pids, hz, cpu; count(\"event\", n, { label = "
	 "\"value\" }) adds to a metric; t:rate(hz, \"30s\"), t:drop(\"30s\") and t:label(name, "
	 "value) act on a target; warn(...) writes a warning to the log."},
	{"on", "on(\"profile\", function(p) ... end): called with each profile before its sink "
	       "receives it. p has sink, labels, duration, samples, cpu, and p:top(n, filters ..), "
	       "the hottest functions: name, file, self, total."},
	{"read_file", "read_file(path): a file's text, at most 1 MiB; relative to the script's "
		      "directory."},
	{"require", "require(name): runs name.lua of the script's directory once."},
	{"help", "help() or help \"sink.NAME\" prints this."},
};

static int overview(struct buf *b, const struct plugin_folder *f, unsigned int columns)
{
	for (uint32_t i = 0; i < SETTINGS_N; i++) {
		buf_printf(b, "%s { ... }\n", plan_settings[i].name);
		help_wrap(b, plan_settings[i].doc, 4, columns);
	}
	for (uint32_t i = 0; i < f->n; i++) {
		const struct plugin *p = plugin_folder_find(f, plugin_kind(f->plugins[i]),
							    plugin_name(f->plugins[i]));

		if (!p)
			continue;
		buf_printf(b, "%s.%s { ... }\n", plugin_kind_name(plugin_kind(p)), plugin_name(p));
		help_wrap(b, p->descriptor->doc ? p->descriptor->doc : "", 4, columns);
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		buf_printf(b, "%s\n", functions[i].name);
		help_wrap(b, functions[i].doc, 4, columns);
	}
	return b->error;
}

int help_topic(struct buf *b, const struct plugin_folder *f, const char *topic,
	       unsigned int columns)
{
	if (!*topic)
		return overview(b, f, columns);
	for (uint32_t i = 0; i < SETTINGS_N; i++)
		if (!strcmp(plan_settings[i].name, topic)) {
			buf_printf(b, "%s\n", topic);
			help_wrap(b, plan_settings[i].doc, 2, columns);
			buf_str(b, "\n");
			return help_options(b, &plan_settings[i].options, columns);
		}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(functions[i].name, topic)) {
			help_wrap(b, functions[i].doc, 0, columns);
			return strcmp(topic, "relabel")
				       ? b->error
				       : help_options(b, &relabel_rule_options, columns);
		}
	for (uint32_t i = 0; i < f->n; i++) {
		const struct plugin *p = f->plugins[i];
		const char *kind = plugin_kind_name(plugin_kind(p));
		size_t len = strlen(kind);

		if (strncmp(topic, kind, len) != 0 || topic[len] != '.' ||
		    strcmp(topic + len + 1, plugin_name(p)) != 0)
			continue;
		p = plugin_folder_find(f, plugin_kind(p), plugin_name(p));
		return p ? help_plugin(b, p->descriptor, columns) : -ENOENT;
	}
	return -ENOENT;
}
