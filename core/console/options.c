/* SPDX-License-Identifier: Apache-2.0 */
#include "console/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/assert.h"
#include "base/credentials.h"
#include "base/guess.h"
#include "base/log.h"
#include "base/text.h"

#define FIRST_LONG 256 /* what getopt_long() returns for the first option of the table */

/* ---- --help ---- */

/* Writes " -o, --output FILE". */
static int put_names(const struct cli_option *o, char *text, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	return snprintf(text, size, "  %s--%s%s%s", letter, o->name, o->value ? " " : "",
			o->value ? o->value : "");
}

void cli_print_help(const struct cli_command *c)
{
	char names[80];
	int width = 0;

	for (size_t i = 0; i < c->n; i++) {
		int len = c->options[i].name ? put_names(&c->options[i], names, sizeof(names)) : 0;

		width = len > width ? len : width;
	}
	printf("usage: %s\n", c->usage);
	for (size_t i = 0; i < c->n; i++) {
		const char *help = c->options[i].help;
		const char *before = names;

		if (!c->options[i].name) {
			putchar('\n');
			continue;
		}
		put_names(&c->options[i], names, sizeof(names));
		for (; *help; before = "") {
			int len = (int)strcspn(help, "\n");

			printf("%-*s  %.*s\n", width, before, len, help);
			help += len + (help[len] == '\n');
		}
	}
	printf("  -h, --help\n%s", c->footer ? c->footer : "");
}

/* ---- errors ---- */

int cli_bad_usage(const struct cli_command *c, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	log_error("%s: %s", c->name, text);
	fprintf(stderr, "fusee %s --help lists the options\n", c->name);
	return EX_USAGE;
}

int cli_bad_address(const struct cli_command *c, const char *option, const char *value,
		    const char *why)
{
	char *shown = strdup(value);
	int r;

	if (shown)
		credentials_hide_value(shown);
	r = cli_bad_usage(c, "--%s: '%s' %s", option, shown ? shown : "", why);
	free(shown);
	return r;
}

static bool is_old(const struct cli_command *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->options[i].old_name && !strcmp(c->options[i].old_name, name))
			return true;
	return false;
}

static int unknown_name(const struct cli_command *c, const char *typed, const struct option *longs)
{
	int len = (int)strcspn(typed, "=");
	char name[64];
	struct guess guess = {.word = name};

	snprintf(name, sizeof(name), "%.*s", len, typed);
	for (int i = 0; longs[i].name; i++) {
		if (!strncmp(longs[i].name, typed, (size_t)len))
			return cli_bad_usage(c,
					     longs[i].name[len]
						     ? "'--%s' could mean several options"
						     : "'--%s' takes no value",
					     name);
		if (!is_old(c, longs[i].name))
			guess_offer(&guess, longs[i].name);
	}
	if (guess.best)
		return cli_bad_usage(c, "no option '--%s' (did you mean '--%s'?)", name,
				     guess.best);
	return cli_bad_usage(c, "no option '--%s'", name);
}

static int explain(const struct cli_command *c, int found, const char *typed,
		   const struct option *longs)
{
	/* optopt is 0 for an unknown name. In "--top -z" getopt_long() is still at --top when it
	 * finds the z. */
	bool is_long = !optopt || optopt > 255 || (!strncmp(typed, "--", 2) && strchr(typed, '='));

	if (found == ':')
		return cli_bad_usage(c, "'%s' requires a value", typed);
	if (is_long)
		return unknown_name(c, typed + 2, longs);
	return cli_bad_usage(c, "no option '-%c'", optopt);
}

/* ---- values ---- */

static int set_count(const struct cli_command *c, const struct cli_option *o, const char *value,
		     uint32_t *member)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (end == value || *end || *value == '-' || n > UINT32_MAX)
		return cli_bad_usage(c, "--%s: '%s' is no number", o->name, value);
	*member = (uint32_t)n;
	return 0;
}

static int set(const struct cli_command *c, const struct cli_option *o, void *arg,
	       const char *value)
{
	char *member = (char *)arg + o->offset;

	switch (o->kind) {
	case CLI_CALL:
		return o->set(arg, value);
	case CLI_MEMBER:
		return o->set(member, value);
	case CLI_TRUE:
	case CLI_FALSE:
		*(bool *)member = o->kind == CLI_TRUE;
		return 0;
	case CLI_NUMBER:
		memcpy(member, &o->number, sizeof(o->number));
		return 0;
	case CLI_TEXT:
		memcpy(member, &value, sizeof(value));
		return 0;
	case CLI_RATE:
		if (!text_rate(value, (double *)(void *)member))
			return 0;
		return cli_bad_usage(c, "--%s: '%s' is not a rate: samples a second, 0.1 to 20000",
				     o->name, value);
	case CLI_DURATION:
		if (!text_duration(value, (uint64_t *)(void *)member) &&
		    *(uint64_t *)(void *)member)
			return 0;
		return cli_bad_usage(c, "--%s: '%s' is not a duration: 10s, 2m, 1h", o->name,
				     value);
	case CLI_COUNT:
		return set_count(c, o, value, (uint32_t *)(void *)member);
	}
	return 0;
}

/* ---- parsing ---- */

/* Converts the table for getopt_long(). */
static void fill(const struct cli_command *c, struct option *longs, char *shorts)
{
	size_t n = 0;

	if (c->operands_end)
		*shorts++ = '+';
	*shorts++ = ':';
	*shorts++ = 'h';
	for (size_t i = 0; i < c->n; i++) {
		const struct cli_option *o = &c->options[i];

		if (!o->name)
			continue;
		longs[n++] = (struct option){o->name, o->value ? required_argument : no_argument,
					     NULL, FIRST_LONG + (int)i};
		if (o->old_name) {
			longs[n] = longs[n - 1];
			longs[n++].name = o->old_name;
		}
		if (o->letter)
			*shorts++ = o->letter;
		if (o->letter && o->value)
			*shorts++ = ':';
	}
	longs[n++] = (struct option){"help", no_argument, NULL, 'h'};
	longs[n] = (struct option){0};
	*shorts = '\0';
}

/* found: what getopt_long() returned. */
static const struct cli_option *option_of(const struct cli_command *c, int found)
{
	size_t i = 0;

	if (found >= FIRST_LONG)
		return &c->options[found - FIRST_LONG];
	while (c->options[i].letter != found)
		i++;
	return &c->options[i];
}

int cli_parse(const struct cli_command *c, void *arg, int argc, char **argv, int *first)
{
	struct option longs[2 * CLI_MAX_OPTIONS + 2];
	char shorts[2 * CLI_MAX_OPTIONS + 4];
	int found, r = 0;

	fusee_assert(c->n <= CLI_MAX_OPTIONS);
	fill(c, longs, shorts);
	opterr = 0;
	while (!r && (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (found == 'h') {
			cli_print_help(c);
			return -1;
		}
		if (found == ':' || found == '?')
			r = explain(c, found, argv[optind - 1], longs);
		else
			r = set(c, option_of(c, found), arg, optarg);
	}
	*first = optind;
	return r;
}
