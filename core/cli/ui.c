/* SPDX-License-Identifier: Apache-2.0 */
/* fusee ui: profiles in the browser. */
#include "ui/ui.h"

#include <stddef.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"

static const struct cli_option options[] = {
	{"listen", 0, "ADDRESS",
	 "where the page is served, as 127.0.0.1:8080; default: a free\n"
	 "port of this machine alone",
	 CLI_TEXT, .offset = offsetof(struct ui_options, listen)},
	{"no-browser", 0, NULL, "only print the address", CLI_FALSE,
	 .offset = offsetof(struct ui_options, browser)},
};

const struct cli_command ui_command = {
	.name = "ui",
	.does = "look at profiles in the browser",
	.usage =
		"fusee ui [OPTION]... [FILE]...\n"
		"       fusee ui [OPTION]... FOLDER\n"
		"Serves a page that shows profiles: flame graph, functions, callers, source lines, "
		"labels, differences. Without FILE: " CLI_DEFAULT_PROFILE
		", or the profiles of this folder. Ends with Ctrl-C, or when the page was "
		"closed.\n",
	CLI_OPTIONS(options),
	.operand = "FILE",
};

int cmd_ui(int argc, char **argv)
{
	static char latest[] = CLI_DEFAULT_PROFILE, here[] = ".";
	char *none[] = {access(latest, F_OK) ? here : latest};
	struct ui_options o = {.browser = true};
	int first, result = cli_parse(&ui_command, &o, argc, argv, &first);

	if (result)
		return result < 0 ? 0 : result;
	if (o.listen && !strncmp(o.listen, "unix:", 5))
		return cli_bad_usage(&ui_command, "--listen: no browser connects to '%s'",
				     o.listen);
	o.paths = first < argc ? argv + first : none;
	o.npaths = first < argc ? (uint32_t)(argc - first) : 1;
	for (uint32_t i = 0; i < o.npaths; i++)
		if (!strcmp(o.paths[i], "-"))
			return cli_bad_usage(&ui_command,
					     "'-': standard input cannot be read again, which the "
					     "page needs: name a file");
	return ui_serve(&o);
}
