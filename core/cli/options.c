/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/guess.h"
#include "base/log.h"
#include "base/text.h"

static void unknown_long(const char *command, const char *typed, const struct option *longs)
{
	size_t len = strcspn(typed, "=");
	char name[64];
	struct guess guess = {.word = name};

	snprintf(name, sizeof(name), "%.*s", (int)len, typed);
	for (int i = 0; longs[i].name; i++) {
		if (!strncmp(longs[i].name, typed, len) && longs[i].name[len]) {
			log_error("%s: '--%.*s' could mean several options", command, (int)len,
				  typed);
			return;
		}
		if (!strncmp(longs[i].name, typed, len)) {
			log_error("%s: '--%.*s' takes no value", command, (int)len, typed);
			return;
		}
		guess_offer(&guess, longs[i].name);
	}
	if (guess.best)
		log_error("%s: no option '--%.*s' (did you mean '--%s'?)", command, (int)len, typed,
			  guess.best);
	else
		log_error("%s: no option '--%.*s'", command, (int)len, typed);
}

static void explain(const char *command, int c, const char *typed, const struct option *longs)
{
	/* optopt is 0 for an unknown name; "--top -z" is still at --top when it stumbles over the z
	 */
	bool is_long = !optopt || optopt > 255 || (!strncmp(typed, "--", 2) && strchr(typed, '='));

	if (c == ':')
		log_error("%s: '%s' wants a value after it", command, typed);
	else if (is_long)
		unknown_long(command, typed + 2, longs);
	else
		log_error("%s: no option '-%c'", command, optopt);
	fprintf(stderr, "fusee %s --help lists the options\n", command);
}

int options_next(const char *command, int argc, char **argv, const char *shorts,
		 const struct option *longs)
{
	char quiet[64];
	int c;

	opterr = 0;
	snprintf(quiet, sizeof(quiet), "%s:%s", *shorts == '+' ? "+" : "",
		 *shorts == '+' ? shorts + 1 : shorts);
	c = getopt_long(argc, argv, quiet, longs, NULL);
	if (c != ':' && c != '?')
		return c;
	explain(command, c, argv[optind - 1], longs);
	return '?';
}

int options_bad(const char *command, const char *format, const char *what)
{
	log_error(format, what);
	fprintf(stderr, "fusee %s --help lists the options\n", command);
	return EX_USAGE;
}

int options_rate(const char *command, const char *text, double *hz)
{
	if (!text_rate(text, hz))
		return 0;
	return options_bad(command, "'%s' is not a rate: samples a second, 0.1 to 20000", text);
}

int options_duration(const char *command, const char *text, uint64_t *ns)
{
	if (!text_duration(text, ns) && *ns)
		return 0;
	return options_bad(command, "'%s' is not a duration: 10s, 2m, 1h", text);
}
