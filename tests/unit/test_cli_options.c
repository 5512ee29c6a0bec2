/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/console
/* The command line of a command, from its table. */
#include "console/options.h"

#include <getopt.h>
#include <sysexits.h>

#include "test.h"

struct values {
	bool on, off;
	int number;
	const char *text, *called;
	double hz;
	uint64_t ns;
	uint32_t count;
};

static int call_member(void *member, const char *value)
{
	*(const char **)member = value;
	return 0;
}

static int call(void *arg, const char *value)
{
	((struct values *)arg)->called = value;
	return value && !strcmp(value, "bad") ? EX_NOINPUT : 0;
}

#define MEMBER(member) .offset = offsetof(struct values, member)

static const struct cli_option options[] = {
	{"on", 'a', NULL, "a", CLI_TRUE, MEMBER(on)},
	{"no-off", 0, NULL, "b", CLI_FALSE, MEMBER(off)},
	{"seven", 0, NULL, "c", CLI_NUMBER, MEMBER(number), 7},
	{0},
	{"text", 't', "TEXT", "d", CLI_TEXT, MEMBER(text), .old_name = "words"},
	{"rate", 'F', "HZ", "e", CLI_RATE, MEMBER(hz)},
	{"time", 0, "TIME", "f", CLI_DURATION, MEMBER(ns)},
	{"count", 'n', "N", "g", CLI_COUNT, MEMBER(count)},
	{"call", 'c', "X", "h", CLI_CALL, .set = call},
	{"member", 'm', "X", "i", CLI_MEMBER, MEMBER(called), .set = call_member},
};

static const struct cli_command command = {.name = "x", .usage = "fusee x\n", CLI_OPTIONS(options)};
static const struct cli_command ending = {
	.name = "x", .usage = "fusee x\n", CLI_OPTIONS(options), .operands_end = true};

/* Words after the command's name. */
static int parse(const struct cli_command *c, struct values *v, int *first, char **words)
{
	char *argv[16] = {"x"};
	int argc = 1;

	*v = (struct values){.off = true};
	while (words[argc - 1]) {
		argv[argc] = words[argc - 1];
		argc++;
	}
	optind = 0;
	return cli_parse(c, v, argc, argv, first);
}

#define PARSE(c, ...) parse(c, &v, &first, (char *[]){__VA_ARGS__, NULL})

TEST(members_are_set)
{
	struct values v;
	int first;

	CHECK_INT(PARSE(&command, "-a", "--no-off", "--seven", "-t", "word", "-F", "19.5",
			"--time=2m", "-n", "12", "--call", "good", "rest"),
		  0);
	CHECK(v.on && !v.off && v.number == 7 && !strcmp(v.text, "word"));
	CHECK(v.hz > 19.4 && v.hz < 19.6 && v.ns == 120000000000 && v.count == 12);
	CHECK(!strcmp(v.called, "good"));
	CHECK_INT(first, 13);
	CHECK_INT(PARSE(&command, "-m", "its"), 0);
	CHECK_STR(v.called, "its");
}

TEST(an_old_name)
{
	struct values v;
	int first;

	CHECK_INT(PARSE(&command, "--words", "kept"), 0);
	CHECK_STR(v.text, "kept");
	CHECK_INT(PARSE(&command, "--words=kept too"), 0);
	CHECK_STR(v.text, "kept too");
	CHECK_INT(PARSE(&command, "--words"), EX_USAGE);
	CHECK_INT(PARSE(&command, "--wrds", "x"), EX_USAGE);
}

TEST(operands_end_the_options)
{
	struct values v;
	int first;

	CHECK_INT(PARSE(&ending, "-a", "prog", "-t"), 0);
	CHECK(v.on && !v.text);
	CHECK_INT(first, 2);
	CHECK_INT(PARSE(&ending, "--", "-a"), 0);
	CHECK(!v.on);
	CHECK_INT(first, 2);
}

TEST(what_is_wrong_is_64_or_the_setters_code)
{
	struct values v;
	int first;

	CHECK_INT(PARSE(&command, "--nonesuch"), EX_USAGE);
	CHECK_INT(PARSE(&command, "-z"), EX_USAGE);
	CHECK_INT(PARSE(&command, "--t"), EX_USAGE); /* --text or --time */
	CHECK_INT(PARSE(&command, "--text"), EX_USAGE);
	CHECK_INT(PARSE(&command, "--on=1"), EX_USAGE);
	CHECK_INT(PARSE(&command, "-F", "x"), EX_USAGE);
	CHECK_INT(PARSE(&command, "--time", "0s"), EX_USAGE);
	CHECK_INT(PARSE(&command, "-n", "-1"), EX_USAGE);
	CHECK_INT(PARSE(&command, "-n", "4294967296"), EX_USAGE);
	CHECK_INT(PARSE(&command, "-c", "bad"), EX_NOINPUT);
	CHECK_INT(PARSE(&command, "--help"), -1);
}
