/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/guess.h"
#include "cli/cli.h"
#include "completion/completion.h"
#include "ctl/ctl.h"
#include "doctor/doctor.h"
#include "dump/dump.h"

static int cmd_completion(int argc, char **argv);

static const struct command {
	const struct cli_command *command;
	int (*run)(int argc, char **argv);
} commands[] = {
	{&record_command, cmd_record},   {&top_command, cmd_top},
	{&dump_command, cmd_dump},       {&run_command, cmd_run},
	{&report_command, cmd_report},   {&ui_command, cmd_ui},
	{&query_command, cmd_query},     {&push_command, cmd_push},
	{&ctl_command, cmd_ctl},         {&check_command, cmd_check},
	{&plugins_command, cmd_plugins}, {&new_command, cmd_new},
	{&doctor_command, cmd_doctor},   {&completion_command, cmd_completion},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int cmd_completion(int argc, char **argv)
{
	const struct cli_command *all[COMMANDS];

	for (size_t i = 0; i < COMMANDS; i++)
		all[i] = commands[i].command;
	return completion(all, COMMANDS, argc, argv);
}

static int usage(FILE *to)
{
	fputs("usage: fusee COMMAND [ARGUMENT]...   (fusee COMMAND --help says more)\n\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].command->name, commands[i].command->does);
	return to == stdout ? 0 : EX_USAGE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	struct guess guess = {.word = name};

	clock_find_offset();
	if (!strcmp(name, "--version")) {
		puts("fusee " FUSEE_VERSION);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "help"))
		return usage(stdout);
	if (!strcmp(name, "worker")) /* started by fusee itself */
		return cmd_worker(argc - 1, argv + 1);
	if (!strcmp(name, "opener"))
		return cmd_opener(argc - 1, argv + 1);
	if (!strcmp(name, "fetcher"))
		return cmd_fetcher(argc - 1, argv + 1);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i].command->name, name))
			return commands[i].run(argc - 1, argv + 1);
		guess_offer(&guess, commands[i].command->name);
	}
	if (*name)
		fprintf(stderr, "fusee: there is no command '%s'" GUESS_HINT "\n\n", name,
			GUESS_WORDS(guess, ""));
	return usage(stderr);
}
