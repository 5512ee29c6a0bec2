/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define LONGEST 31

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* How many letters must be put in, left out, changed or swapped with the next one. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int before[LONGEST + 1] = {0}, row[LONGEST + 1], next[LONGEST + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > LONGEST || nb > LONGEST)
		return LONGEST;
	for (unsigned int j = 0; j <= nb; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= na; i++) {
		next[0] = i;
		for (unsigned int j = 1; j <= nb; j++) {
			next[j] = least(least(row[j], next[j - 1]) + 1,
					row[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				next[j] = least(next[j], before[j - 2] + 1);
		}
		memcpy(before, row, sizeof(row));
		memcpy(row, next, sizeof(row));
	}
	return row[nb];
}

const char *options_guess(const char *typed, const char *(*name)(const void *arg, int i),
			  const void *arg)
{
	unsigned int nearest = least(3, (unsigned int)strlen(typed) / 2 + 1);
	const char *guess = NULL, *n;

	for (int i = 0; (n = name(arg, i)); i++) {
		unsigned int d = distance(typed, n);

		if (d < nearest) {
			nearest = d;
			guess = n;
		}
	}
	return guess;
}

static const char *option_name(const void *arg, int i)
{
	return ((const struct option *)arg)[i].name;
}

static void unknown_long(const char *command, const char *typed, const struct option *longs)
{
	size_t len = strcspn(typed, "=");
	char name[LONGEST + 1];
	const char *guess;

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
	}
	guess = options_guess(name, option_name, longs);
	if (guess)
		log_error("%s: no option '--%.*s' (did you mean '--%s'?)", command, (int)len, typed,
			  guess);
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
