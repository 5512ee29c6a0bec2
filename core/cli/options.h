/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, as every command reads it. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <getopt.h>
#include <stdint.h>

/*
 * The next option, as getopt_long() returns it; -1: there is none left. '?': what is wrong with it
 * was said on stderr, with the nearest name there is, and what lists them all. Use:
 *
 *	while ((c = options_next("report", argc, argv, "n:o:h", longs)) != -1)
 */
int options_next(const char *command, int argc, char **argv, const char *shorts,
		 const struct option *longs);
/* Says what is wrong with this word of the command line: the format has one %s for it. EX_USAGE. */
int options_bad(const char *command, const char *format, const char *what);
/* Values that several commands take. 0, or EX_USAGE and it was said why. */
int options_rate(const char *command, const char *text, double *hz);
int options_duration(const char *command, const char *text, uint64_t *ns); /* not 0 */
#endif
