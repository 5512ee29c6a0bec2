/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/guess.h"
#include "cli/cli.h"

static const struct command {
	const char *name, *does; /* does NULL: not listed, fusee runs it itself */
	int (*run)(int argc, char **argv);
} commands[] = {
	{"record", "take a profile of where CPU time goes", cmd_record},
	{"top", "show live where CPU time goes", cmd_top},
	{"run", "the agent: profile continuously, as a script says", cmd_run},
	{"report", "show a profile: functions, calls, a flame graph", cmd_report},
	{"ctl", "query or control a running agent", cmd_ctl},
	{"check", "check the script of an agent without starting anything", cmd_check},
	{"plugins", "list plugins and their options", cmd_plugins},
	{"new", "write the skeleton of a plugin", cmd_new},
	{"doctor", "show what works on this machine, and how to get the rest", cmd_doctor},
	{"worker", NULL, cmd_worker},
	{NULL, NULL, NULL},
};

static int usage(FILE *to)
{
	fputs("usage: fusee COMMAND [ARGUMENT]...   (fusee COMMAND --help says more)\n\n", to);
	for (const struct command *c = commands; c->name; c++)
		if (c->does)
			fprintf(to, "  %-8s %s\n", c->name, c->does);
	return to == stdout ? 0 : EX_USAGE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	struct guess guess = {.word = name};

	if (!strcmp(name, "--version")) {
		puts("fusee " FUSEE_VERSION);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "help"))
		return usage(stdout);
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c->run(argc - 1, argv + 1);
	for (const struct command *c = commands; c->name; c++)
		if (c->does)
			guess_offer(&guess, c->name);
	if (*name && guess.best)
		fprintf(stderr, "fusee: there is no command '%s' (did you mean '%s'?)\n\n", name,
			guess.best);
	else if (*name)
		fprintf(stderr, "fusee: there is no command '%s'\n\n", name);
	return usage(stderr);
}
