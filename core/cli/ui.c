/* SPDX-License-Identifier: Apache-2.0 */
/* fusee ui: profiles in the browser. */
#include "ui/ui.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/internal/query_place.h"

struct ui_command_options {
	struct ui_options ui;
	const char *store, *socket;
	bool agent;
};

#define MEMBER(member) .offset = offsetof(struct ui_command_options, member)

static const struct cli_option options[] = {
	{"agent", 0, NULL, "the profiles that the agent of this machine keeps", CLI_TRUE,
	 MEMBER(agent)},
	{"store", 0, "OPTION=..", "of a bucket, as sink.parquet has them: endpoint=URL,region=NAME",
	 CLI_TEXT, MEMBER(store)},
	{"socket", 0, "PATH", "of --agent: its control socket; default /run/fusee/control for root",
	 CLI_TEXT, MEMBER(socket)},
	{0},
	{"listen", 0, "ADDRESS",
	 "where the page is served, as 127.0.0.1:8080; default: a free\n"
	 "port of this machine alone",
	 CLI_TEXT, MEMBER(ui.listen)},
	{"no-browser", 0, NULL, "only print the address", CLI_FALSE, MEMBER(ui.browser)},
};

const struct cli_command ui_command = {
	.name = "ui",
	.does = "look at profiles in the browser",
	.usage = "fusee ui [OPTION]... [FILE]...\n"
		 "       fusee ui [OPTION]... FOLDER\n"
		 "       fusee ui [OPTION]... s3://NAME/PREFIX\n"
		 "       fusee ui [OPTION]... --agent\n"
		 "Serves a page that shows profiles: flame graph, functions, callers, source "
		 "lines,\n"
		 "instructions, labels, differences, sums over time. FOLDER: of profiles, or of\n"
		 "sink.parquet; FILE '-': standard input. Without FILE: " CLI_DEFAULT_PROFILE
		 ", or\n"
		 "the profiles of this folder. Ends with Ctrl-C, or when the page was closed.\n",
	CLI_OPTIONS(options),
	.operand = "FILE",
};

static bool is_folder(const char *path, const char *name)
{
	char *full = NULL;
	struct stat st;
	bool is = asprintf(&full, "%s/%s", path, name) > 0 && !stat(full, &st) &&
		  S_ISDIR(st.st_mode);

	free(full);
	return is;
}

/* Whether this is read as a store alone: a folder of sink.parquet has no profiles in files. */
static bool is_store(const char *place)
{
	return !strncmp(place, "s3://", 5) ||
	       (is_folder(place, "samples") && is_folder(place, "stacks"));
}

/* What is read as a store; NULL: files are named. */
static const char *find_place(const struct ui_command_options *o)
{
	const char *path = o->ui.paths[0];

	return o->agent ? "agent" : is_store(path) || is_folder(path, "") ? path : NULL;
}

/* An exit code. */
static int open_place(struct ui_command_options *o, const char *place)
{
	int result = query_place_open(&o->ui.store, place, o->store, o->socket, &ui_command);

	if (result || (!o->agent && !is_store(place)))
		return result;
	o->ui.live = o->agent;
	o->ui.place = o->agent ? "the agent's profiles" : place;
	o->ui.npaths = 0;
	return 0;
}

/* A sentence about what can not be shown together; NULL: it can. */
static const char *find_mistake(const struct ui_command_options *o, bool named)
{
	uint32_t inputs = 0;

	if (o->agent && named)
		return "--agent finds the place of the profiles: name no other";
	for (uint32_t i = 0; i < o->ui.npaths; i++) {
		if (o->ui.npaths > 1 && is_store(o->ui.paths[i]))
			return "name one store, or files";
		inputs += !strcmp(o->ui.paths[i], "-");
	}
	if (inputs > 1)
		return "'-' is standard input, which is read once";
	if (!o->agent && (o->socket || (o->store && strncmp(o->ui.paths[0], "s3://", 5))))
		return "--socket is for --agent, --store for s3://NAME/PREFIX";
	return NULL;
}

int cmd_ui(int argc, char **argv)
{
	static char latest[] = CLI_DEFAULT_PROFILE, here[] = ".";
	char *none[] = {access(latest, F_OK) ? here : latest};
	struct ui_command_options o = {.ui.browser = true};
	const char *place, *mistake;
	int first, result = cli_parse(&ui_command, &o, argc, argv, &first);

	if (result)
		return result < 0 ? 0 : result;
	if (o.ui.listen && !strncmp(o.ui.listen, "unix:", 5))
		return cli_bad_usage(&ui_command, "--listen: no browser connects to '%s'",
				     o.ui.listen);
	o.ui.paths = first < argc ? argv + first : none;
	o.ui.npaths = first < argc ? (uint32_t)(argc - first) : 1;
	mistake = find_mistake(&o, first < argc);
	if (mistake)
		return cli_bad_usage(&ui_command, "%s", mistake);
	place = o.ui.npaths == 1 ? find_place(&o) : NULL;
	if (place)
		result = open_place(&o, place);
	return result ? (result < 0 ? 0 : result) : ui_serve(&o.ui);
}
