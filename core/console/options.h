/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of a command as one table: option names, their values, the text of --help and
 * the members of the command's struct that they set.
 */
#ifndef CONSOLE_OPTIONS_H
#define CONSOLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_option_kind {
	CLI_CALL,     /* set() is called */
	CLI_MEMBER,   /* set() is called with the member instead of the command's struct */
	CLI_TRUE,     /* bool member: true */
	CLI_FALSE,    /* bool member: false */
	CLI_NUMBER,   /* int or enum member: `number` */
	CLI_TEXT,     /* const char * member: the value as typed */
	CLI_RATE,     /* double member: Hz */
	CLI_DURATION, /* uint64_t member: ns, above 0 */
	CLI_COUNT,    /* uint32_t member */
};

struct cli_option {
	const char *name; /* without dashes; NULL: an empty line in the help */
	char letter;      /* '\0': none */
	/* What the help calls its value; NULL: the option takes no value. Shells complete FILE,
	 * PATH and BASE as files, and PID[,PID], CGROUP, UNIT, POD, CONTAINER, SINK, DISCOVERY,
	 * UNWINDER. */
	const char *value;
	const char *help; /* lines of at most 76 columns less those of the names */
	enum cli_option_kind kind;
	size_t offset; /* of the member in the command's struct */
	int number;
	/* value: NULL if the option takes none. 0, or an exit code after one error was logged. */
	int (*set)(void *arg, const char *value);
	const char *words;    /* all values, separated by blanks; NULL: there are too many */
	const char *old_name; /* an earlier name, which is accepted but not shown; NULL: none */
};

struct cli_command {
	const char *name;
	const char *does;                 /* a line of fusee --help */
	const char *usage;                /* of --help, before the options; ends with a newline */
	const struct cli_option *options; /* n of them; -h, --help is added */
	size_t n;
	const char *footer;  /* of --help, behind the options; NULL: none */
	const char *operand; /* as `value` of an option, or COMMAND, PLUGIN; NULL: see `words` */
	const char *words;   /* all values of the first operand; NULL: not a fixed list */
	bool operands_end;   /* the first operand ends the options, as for "-- COMMAND" */
};

#define CLI_OPTIONS(table) .options = (table), .n = sizeof(table) / sizeof((table)[0])

/* The maximum number of options in a table. */
#define CLI_MAX_OPTIONS 32

/* Sets the members of *arg. 0, and *first is the index of the first operand; -1: help was printed;
 * EX_USAGE or what set() returned: one error was logged. */
int cli_parse(const struct cli_command *, void *arg, int argc, char **argv, int *first);
void cli_print_help(const struct cli_command *);
/* Logs the error in the command line, and how to list the options. EX_USAGE. */
int cli_bad_usage(const struct cli_command *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of an option's value, which is shown without user and password. */
int cli_bad_address(const struct cli_command *, const char *option, const char *value,
		    const char *why);
#endif
