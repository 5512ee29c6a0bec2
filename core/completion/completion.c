/* SPDX-License-Identifier: Apache-2.0 */
/* fusee completion: completion in bash, zsh and fish, from the tables of options. The files *.in of
 * core/completion have what does not depend on the tables. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/embed.h"
#include "base/log.h"
#include "completion/completion.h"
#include "events/kind.h"
#include "selection/found.h"
#include "console/plugin_list.h"

#define WAIT_NS 2000000000u /* a user waits for names from discovery plugins */

#define FOLDER "core/completion/"

EMBED(completion_bash, FOLDER "bash.in");
EMBED(completion_zsh, FOLDER "zsh.in");
EMBED(completion_fish, FOLDER "fish.in");

/* How a value is completed: a word of bash.in, an action of zsh's _arguments, arguments of fish's
 * `complete`. */
static const struct value {
	const char *name, *bash, *zsh, *fish;
} values[] = {
	{"FILE", "files", "_files", "-r -F"},
	{"PATH", "files", "_files", "-r -F"},
	{"BASE", "files", "_files", "-r -F"},
	{"PID[,PID]", "pids", "_fusee_pids", "-x -a '(__fusee_pids)'"},
	{"CGROUP", "cgroups", "_files -W /sys/fs/cgroup -/",
	 "-x -a '(__fish_complete_directories)'"},
	{"UNIT", "list units", " _fusee_list units", "-x -a '(__fusee_list units)'"},
	{"POD", "list pods", " _fusee_list pods", "-x -a '(__fusee_list pods)'"},
	{"CONTAINER", "list containers", " _fusee_list containers",
	 "-x -a '(__fusee_list containers)'"},
	{"SINK", "list sinks", " _fusee_list sinks", "-x -a '(__fusee_list sinks)'"},
	{"DISCOVERY", "list discoveries", " _fusee_list discoveries",
	 "-x -a '(__fusee_list discoveries)'"},
	{"UNWINDER", "list unwinders", " _fusee_list unwinders",
	 "-x -a '(__fusee_list unwinders)'"},
	{"EVENT", "list events", " _fusee_list events", "-x -a '(__fusee_list events)'"},
	{"PLUGIN", "list plugins", " _fusee_list plugins", "-x -a '(__fusee_list plugins)'"},
	{"COMMAND", "command", "_normal", NULL},
	{NULL, "any", " ", "-x"},
};

static const struct value *value_of(const char *name)
{
	const struct value *v = values;

	while (v->name && (!name || strcmp(v->name, name) != 0))
		v++;
	return v;
}

struct generator {
	const struct cli_command *const *all;
	uint32_t n;
	struct buf *b;
};

/* ---- bash ---- */

static void bash_options(const struct generator *g, const struct cli_command *c)
{
	buf_printf(g->b, "\t%s) echo \"", c->name);
	for (size_t i = 0; i < c->n; i++) {
		if (!c->options[i].name)
			continue;
		buf_printf(g->b, "--%s ", c->options[i].name);
		if (c->options[i].letter)
			buf_printf(g->b, "-%c ", c->options[i].letter);
	}
	buf_str(g->b, "--help -h\" ;;\n");
}

static void bash_value(const struct generator *g, const char *value, const char *words)
{
	if (words)
		buf_printf(g->b, ") echo \"words %s\" ;;\n", words);
	else
		buf_printf(g->b, ") echo \"%s\" ;;\n", value_of(value)->bash);
}

static void bash_values(const struct generator *g, const struct cli_command *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct cli_option *o = &c->options[i];

		if (!o->name || !o->value)
			continue;
		buf_printf(g->b, "\t%s/--%s", c->name, o->name);
		if (o->letter)
			buf_printf(g->b, "|%s/-%c", c->name, o->letter);
		bash_value(g, o->value, o->words);
	}
	if (c->operand || c->words) {
		buf_printf(g->b, "\t%s/", c->name);
		bash_value(g, c->operand, c->words);
	}
}

static void bash_command(const struct generator *g, const struct cli_command *c)
{
	buf_printf(g->b, "%s%s", c == g->all[0] ? "" : " ", c->name);
}

/* ---- zsh ---- */

/* Appends the first line of a help text, without characters that end a '..' or have a meaning in a
 * specification of _arguments. */
static void put_help(const char *help, bool zsh, struct buf *b)
{
	for (; *help && *help != '\n'; help++) {
		if (*help == '\'')
			buf_str(b, zsh ? "'\\''" : "\\'");
		else if (zsh && strchr("[]:", *help))
			buf_printf(b, "\\%c", *help);
		else if (!zsh && *help == '\\')
			buf_str(b, "\\\\");
		else
			buf_add(b, help, 1);
	}
}

static void zsh_value(const struct generator *g, const char *value, const char *words)
{
	buf_str(g->b, ":");
	put_help(value ? value : "word", true, g->b);
	if (words)
		buf_printf(g->b, ":(%s)", words);
	else
		buf_printf(g->b, ":%s", value_of(value)->zsh);
}

static void zsh_options(const struct generator *g, const struct cli_command *c)
{
	buf_printf(g->b, "\t%s)\n\t\t_arguments -S : \\\n", c->name);
	for (size_t i = 0; i < c->n; i++) {
		const struct cli_option *o = &c->options[i];

		if (!o->name)
			continue;
		if (o->letter)
			buf_printf(g->b, "\t\t\t\\*{-%c,--%s}'[", o->letter, o->name);
		else
			buf_printf(g->b, "\t\t\t'*--%s[", o->name);
		put_help(o->help, true, g->b);
		buf_str(g->b, "]");
		if (o->value)
			zsh_value(g, o->value, o->words);
		buf_str(g->b, "' \\\n");
	}
	buf_str(g->b, "\t\t\t'(-h --help)'{-h,--help}'[print the options]'");
	if (c->operand || c->words) {
		bool command = c->operand && !strcmp(c->operand, "COMMAND");

		buf_printf(g->b, " \\\n\t\t\t'%s", command ? "*::" : c->words ? "1" : "*");
		zsh_value(g, c->operand, c->words);
		buf_str(g->b, "'");
	}
	buf_str(g->b, "\n\t\t;;\n");
}

static void zsh_command(const struct generator *g, const struct cli_command *c)
{
	buf_printf(g->b, "\t\t'%s:", c->name);
	put_help(c->does, true, g->b);
	buf_str(g->b, "'\n");
}

/* ---- fish ---- */

static void fish_value(const struct generator *g, const char *value, const char *words)
{
	const char *takes = value_of(value)->fish;

	if (words)
		buf_printf(g->b, " -x -a '%s'", words);
	else if (takes)
		buf_printf(g->b, " %s", takes);
}

static void fish_options(const struct generator *g, const struct cli_command *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct cli_option *o = &c->options[i];

		if (!o->name)
			continue;
		buf_printf(g->b, "complete -c fusee -n '__fusee_command %s'", c->name);
		if (o->letter)
			buf_printf(g->b, " -s %c", o->letter);
		buf_printf(g->b, " -l %s", o->name);
		if (o->value)
			fish_value(g, o->value, o->words);
		buf_str(g->b, " -d '");
		put_help(o->help, false, g->b);
		buf_str(g->b, "'\n");
	}
	buf_printf(g->b,
		   "complete -c fusee -n '__fusee_command %s' -s h -l help -d 'print the "
		   "options'\n",
		   c->name);
	if (!c->words && !(c->operand && value_of(c->operand)->fish))
		return;
	buf_printf(g->b, "complete -c fusee -n '__fusee_command %s'", c->name);
	fish_value(g, c->operand, c->words);
	buf_str(g->b, "\n");
}

static void fish_command(const struct generator *g, const struct cli_command *c)
{
	buf_printf(g->b, "complete -c fusee -n __fusee_has_no_command -a %s -d '", c->name);
	put_help(c->does, false, g->b);
	buf_str(g->b, "'\n");
}

/* ---- all of them ---- */

static const struct shell {
	const char *name, *text, *end;
	/* What replaces @COMMANDS@, @OPTIONS@ and @VALUES@, for each command. */
	void (*command)(const struct generator *, const struct cli_command *);
	void (*options)(const struct generator *, const struct cli_command *);
	void (*values)(const struct generator *, const struct cli_command *);
} shells[] = {
	{"bash", completion_bash, completion_bash_end, bash_command, bash_options, bash_values},
	{"zsh", completion_zsh, completion_zsh_end, zsh_command, zsh_options, NULL},
	{"fish", completion_fish, completion_fish_end, fish_command, fish_options, NULL},
};

static void generate(const struct shell *shell, const struct generator *g)
{
	const struct {
		const char *mark;
		void (*put)(const struct generator *, const struct cli_command *);
	} parts[] = {{"@COMMANDS@", shell->command},
		     {"@OPTIONS@", shell->options},
		     {"@VALUES@", shell->values}};

	for (const char *c = shell->text; c < shell->end;) {
		size_t i = 0;

		while (i < 3 && (shell->end - c < 10 ||
				 strncmp(c, parts[i].mark, strlen(parts[i].mark)) != 0))
			i++;
		if (i == 3) {
			buf_add(g->b, c++, 1);
			continue;
		}
		for (uint32_t k = 0; k < g->n; k++)
			parts[i].put(g, g->all[k]);
		c += strlen(parts[i].mark);
		c += *c == '\n' && g->b->len && g->b->p[g->b->len - 1] == '\n';
	}
}

static void add_line(void *arg, const char *name)
{
	buf_printf(arg, "%s\n", name);
}

/* Names of units, pods or containers, one a line. An exit code. */
static int list_found(enum name_kind kind, const struct plugin_folder *folder, struct buf *b)
{
	struct found_options o = {.wait_ns = WAIT_NS};
	struct found *f;
	int r;

	o.kinds[kind] = true;
	r = found_new(&f, &o, folder);
	if (r)
		return r;
	if (found_names(f, kind, add_line, b))
		b->error = -ENOMEM;
	found_free(f);
	return 0;
}

/* Names of plugins, one a line. */
static void list_plugins(const char *what, const struct plugin_folder *f, struct buf *b)
{
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t kind = plugin_kind(f->plugins[i]);

		if (!strcmp(what, "plugins") || (!strcmp(what, "sinks") && kind == FUSEE_SINK) ||
		    (!strcmp(what, "discoveries") && kind == FUSEE_DISCOVERY) ||
		    (!strcmp(what, "samplers") && kind == FUSEE_SAMPLER) ||
		    (!strcmp(what, "unwinders") && kind == FUSEE_UNWINDER))
			buf_printf(b, "%s\n", plugin_name(f->plugins[i]));
	}
}

/* Names that -e has, one a line; tracepoints are too many. */
static void list_events(const struct plugin_folder *f, struct buf *b)
{
	list_plugins("samplers", f, b);
	for (const char *name = event_kind_names; *name; name++)
		buf_add(b, *name == ' ' ? "\n" : name, 1);
	buf_str(b, "\n");
}

static int list(const char *what, struct buf *b)
{
	static const char *const kinds[NAME_KINDS] = {"units", "pods", "containers"};
	struct plugin_folder f;
	uint32_t kind = 0;
	int r = plugin_list_open(&f);

	if (r)
		return r;
	while (kind < NAME_KINDS && strcmp(what, kinds[kind]) != 0)
		kind++;
	if (kind < NAME_KINDS)
		r = list_found(kind, &f, b);
	else if (!strcmp(what, "events"))
		list_events(&f, b);
	else
		list_plugins(what, &f, b);
	plugin_folder_close(&f);
	return r;
}

static const struct cli_option options[] = {
	{"list", 0, "KIND",
	 "names that can be completed: of units, pods and containers\n"
	 "that run here; of events, sinks, discoveries, samplers, unwinders\n"
	 "or plugins",
	 CLI_TEXT, .offset = 0,
	 .words = "units pods containers events sinks discoveries samplers unwinders plugins"},
};

const struct cli_command completion_command = {
	.name = "completion",
	.does = "print the completion of commands and options for a shell",
	.usage = "fusee completion bash|zsh|fish\n"
		 "Prints a script with which the shell completes commands, options and their "
		 "values:\n"
		 "  source <(fusee completion bash)\n"
		 "make install and the packages put it where each shell looks for it.\n",
	CLI_OPTIONS(options),
	.words = "bash zsh fish",
};

int completion(const struct cli_command *const *all, uint32_t n, int argc, char **argv)
{
	struct buf b = {0};
	const struct generator g = {all, n, &b};
	const char *kind = NULL;
	const struct shell *shell = shells, *end = shells + 3;
	int first, r = cli_parse(&completion_command, &kind, argc, argv, &first);

	if (r)
		return r < 0 ? 0 : r;
	if (argc - first != !kind)
		return cli_bad_usage(&completion_command, "name a shell: bash, zsh or fish");
	while (!kind && shell < end && strcmp(shell->name, argv[first]) != 0)
		shell++;
	if (shell == end)
		return cli_bad_usage(&completion_command, "'%s' is not a shell: bash, zsh or fish",
				     argv[first]);
	if (kind)
		r = list(kind, &b);
	else
		generate(shell, &g);
	if (!r && (b.error || buf_write(&b, STDOUT_FILENO))) {
		log_error("cannot write the completion: %s", strerror(b.error ? -b.error : errno));
		r = EX_IOERR;
	}
	buf_fini(&b);
	return r;
}
