/* SPDX-License-Identifier: Apache-2.0 */
/* fusee plugins: lists the plugins that were found, their paths and options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/guess.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "console/options.h"
#include "console/plugin_list.h"
#include "config/help.h"
#include "config/settings.h"
#include "relabel/rules.h"

enum form { FORM_TEXT, FORM_JSON, FORM_MARKDOWN };

/* ---- for people ---- */

static void put_list(struct buf *b, const struct plugin_folder *f, unsigned int columns)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fusee_plugin *d = f->plugins[i]->descriptor;

		buf_printf(b, "%s.%s %s\n", plugin_kind_name(d->kind), d->name,
			   d->version ? d->version : "");
		help_wrap(b, d->doc ? d->doc : "", 4, columns);
		help_wrap(b, f->plugins[i]->path, 4, columns);
	}
	if (f->nrefused)
		buf_printf(b, "%srefused:\n", f->n ? "\n" : "");
	for (uint32_t i = 0; i < f->nrefused; i++)
		help_wrap(b, f->refused[i], 4, columns);
	if (!f->n && !f->nrefused)
		buf_str(b, "no plugins: is the installation of fusee complete?\n");
}

static void put_one(struct buf *b, const struct plugin *p, unsigned int columns)
{
	help_plugin(b, p->descriptor, columns);
	buf_str(b, "\n");
	help_wrap(b, p->path, 0, columns);
}

/* ---- JSON ---- */

/* Writes a text of help.c; null if it is empty. */
static void put_words(struct json *j, const char *name, struct buf *words)
{
	if (words->len)
		json_buf(j, name, words);
	else
		json_text(j, name, NULL);
	buf_reset(words);
}

static void put_options(struct json *j, const char *name, const struct fusee_table *options)
{
	struct buf words = {0};

	json_list(j, name);
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);

		json_open(json_line(j, 0), NULL);
		json_text(j, "name", o->name);
		help_type(&words, o);
		put_words(j, "type", &words);
		help_range(&words, o);
		put_words(j, "range", &words);
		json_text(j, "default", o->def);
		json_text(j, "doc", o->doc);
		json_flag(j, "required", !o->def);
		json_end(j);
	}
	json_end(j);
	buf_fini(&words);
}

static void put_plugin(struct json *j, const struct plugin *p)
{
	const struct fusee_plugin *d = p->descriptor;

	json_open(json_line(j, 0), NULL);
	json_text(j, "kind", plugin_kind_name(d->kind));
	json_text(j, "name", d->name);
	json_text(j, "version", d->version);
	json_text(j, "doc", d->doc);
	json_text(j, "path", p->path);
	put_options(j, "options", &d->options);
	json_end(j);
}

static void put_json(struct buf *b, const struct plugin_folder *f, const struct plugin *only)
{
	struct json j = {.out = b};

	json_open(&j, NULL);
	json_printf(&j, "abi", "\"%d.%d\"", FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR);
	json_list(json_line(&j, 0), "plugins");
	for (uint32_t i = 0; i < f->n; i++)
		if (!only || f->plugins[i] == only)
			put_plugin(&j, f->plugins[i]);
	json_end(&j);
	put_options(json_line(&j, 0), "every_sink", &plan_sink_options);
	put_options(json_line(&j, 0), "every_unwinder", &plan_unwinder_options);
	put_options(json_line(&j, 0), "every_sampler", &plan_sampler_options);
	json_list(json_line(&j, 0), "refused");
	for (uint32_t i = 0; i < f->nrefused; i++)
		json_text(&j, NULL, f->refused[i]);
	json_end(&j);
	json_end(&j);
	buf_str(b, "\n");
}

/* ---- markdown ---- */

static void markdown_cell(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_str(b, "\\");
		buf_add(b, *text == '\n' ? " " : text, 1);
	}
}

static void markdown_options(struct buf *b, const struct fusee_table *options)
{
	buf_str(b, "| option | type | default | |\n|---|---|---|---|\n");
	for (uint32_t i = 0; i < options->n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, *options, i);

		buf_printf(b, "| `%s` | ", o->name);
		help_type(b, o);
		if (o->min || o->max) {
			buf_str(b, ", ");
			help_range(b, o);
		}
		if (o->def && *o->def)
			buf_printf(b, " | `%s` | ", o->def);
		else
			buf_str(b, o->def ? " | | " : " | must be given | ");
		markdown_cell(b, o->doc ? o->doc : "");
		buf_str(b, " |\n");
	}
}

static void put_markdown(struct buf *b, const struct plugin_folder *f, const struct plugin *only)
{
	for (uint32_t i = 0; !only && i < SETTINGS_N; i++) {
		buf_printf(b, "### %s\n\n%s\n\n", plan_settings[i].name, plan_settings[i].doc);
		markdown_options(b, &plan_settings[i].options);
		buf_str(b, "\n");
	}
	if (!only) {
		buf_str(b, "### relabel\n\nThe fields of a rule.\n\n");
		markdown_options(b, &relabel_rule_options);
		buf_str(b, "\n");
	}
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fusee_plugin *d = f->plugins[i]->descriptor;

		if (only ? f->plugins[i] != only : d->kind == FUSEE_UNWINDER)
			continue;
		buf_printf(b, "### %s.%s\n\n%s\n\n", plugin_kind_name(d->kind), d->name,
			   d->doc ? d->doc : "");
		if (!d->options.n)
			continue;
		markdown_options(b, &d->options);
		buf_str(b, "\n");
	}
	if (!only) {
		buf_str(b,
			"### every sink\n\nWhat the core does for each sink, whatever it is.\n\n");
		markdown_options(b, &plan_sink_options);
		buf_str(b, "\n### every unwinder\n\n");
		markdown_options(b, &plan_unwinder_options);
		buf_str(b, "\n### every sampler\n\n");
		markdown_options(b, &plan_sampler_options);
	}
}

/* ---- the command ---- */

/* Finds "pprof" or "sink.pprof"; *several: more than one plugin has the short name. */
static const struct plugin *find(const struct plugin_folder *f, const char *name, bool *several)
{
	const struct plugin *found = NULL;

	*several = false;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fusee_plugin *d = f->plugins[i]->descriptor;
		size_t len = strlen(plugin_kind_name(d->kind));

		if (!strncmp(name, plugin_kind_name(d->kind), len) && name[len] == '.' &&
		    !strcmp(name + len + 1, d->name))
			return f->plugins[i];
		if (!strcmp(name, d->name)) {
			*several = found != NULL;
			found = f->plugins[i];
		}
	}
	return found;
}

static int not_found(const struct plugin_folder *f, const char *name, bool several)
{
	struct guess g = {.word = name};
	char file[256];

	if (several) {
		log_error("several plugins are named '%s': say sink.%s, discover.%s, unwind.%s "
			  "or sample.%s",
			  name, name, name, name, name);
		return EX_USAGE;
	}
	snprintf(file, sizeof(file), "/%s.so'", strchr(name, '.') ? strchr(name, '.') + 1 : name);
	for (uint32_t i = 0; i < f->nrefused; i++)
		if (strstr(f->refused[i], file)) {
			log_error("%s", f->refused[i]);
			return EX_CONFIG;
		}
	for (uint32_t i = 0; i < f->n; i++)
		guess_offer(&g, f->plugins[i]->descriptor->name);
	log_error("there is no plugin '%s'" GUESS_HINT, name,
		  GUESS_WORDS(g, ": fusee plugins lists them"));
	return EX_USAGE;
}

static int show(const char *name, enum form form)
{
	const struct plugin *only = NULL;
	struct plugin_folder f;
	struct buf b = {0};
	bool several;
	int r = plugin_list_open(&f);

	if (r)
		return r;
	if (plugin_folder_load(&f)) {
		log_error("cannot load the plugins: %s", strerror(ENOMEM));
		r = EX_OSERR;
		goto out;
	}
	if (name) {
		only = find(&f, name, &several);
		if (!only || several) {
			r = not_found(&f, name, several);
			goto out;
		}
	}
	if (form == FORM_JSON)
		put_json(&b, &f, only);
	else if (form == FORM_MARKDOWN)
		put_markdown(&b, &f, only);
	else if (only)
		put_one(&b, only, plugin_list_columns());
	else
		put_list(&b, &f, plugin_list_columns());
	r = b.error ? b.error : buf_write(&b, 1);
	if (r && r != -EPIPE)
		log_error("cannot write: %s", strerror(-r));
	r = r ? EXIT_FAILURE : 0;
out:
	buf_fini(&b);
	plugin_folder_close(&f);
	return r;
}

struct plugins {
	enum form form;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "everything as JSON", CLI_NUMBER,
	 .offset = offsetof(struct plugins, form), FORM_JSON},
	{"markdown", 0, NULL, "tables of options, as in docs/lua.md", CLI_NUMBER,
	 .offset = offsetof(struct plugins, form), FORM_MARKDOWN},
};

const struct cli_command plugins_command = {
	.name = "plugins",
	.does = "list plugins and their options",
	.usage = "fusee plugins [--json | --markdown] [NAME]\n"
		 "Lists the plugins that are found, their paths, and what was refused; with a NAME "
		 "(pprof\n"
		 "or sink.pprof) that plugin with its options.\n",
	CLI_OPTIONS(options),
	.operand = "PLUGIN",
};

int cmd_plugins(int argc, char **argv)
{
	struct plugins o = {0};
	int first, r = cli_parse(&plugins_command, &o, argc, argv, &first);

	if (r)
		return r < 0 ? 0 : r;
	if (argc - first > 1)
		return cli_bad_usage(&plugins_command, "one name at a time");
	return show(argv[first], o.form);
}
