/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/options.h"

static const struct command {
	const char *name, *does; /* does NULL: not for people */
	int (*run)(int argc, char **argv);
} commands[] = {
	{"record", "take a profile of where CPU time goes", cmd_record},
	{"top", "show live where CPU time goes", cmd_top},
	{"run", "the agent: profile always, as a script says", cmd_run},
	{"report", "show a profile: functions, calls, a flame graph", cmd_report},
	{"ctl", "ask a running agent, or tell it what to do", cmd_ctl},
	{"check", "check the script of an agent without starting anything", cmd_check},
	{"plugins", "list plugins and their options", cmd_plugins},
	{"new", "begin a plugin of one's own", cmd_new},
	{"doctor", "say what works on this machine, and how to get the rest", cmd_doctor},
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

static const char *command_name(const void *arg, int i)
{
	const struct command *c = (const struct command *)arg + i;

	return c->name && !c->does ? "" : c->name; /* not for people: nobody means it */
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "", *guess;

	if (!strcmp(name, "--version")) {
		puts("fusee " FUSEE_VERSION);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "help"))
		return usage(stdout);
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c->run(argc - 1, argv + 1);
	guess = options_guess(name, command_name, commands);
	if (*name && guess)
		fprintf(stderr, "fusee: there is no command '%s' (did you mean '%s'?)\n\n", name,
			guess);
	else if (*name)
		fprintf(stderr, "fusee: there is no command '%s'\n\n", name);
	return usage(stderr);
}
