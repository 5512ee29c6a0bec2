/* SPDX-License-Identifier: Apache-2.0 */
#include "linker/libbpf_log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define LOGGED 4000u /* bytes of a message in the log, from its end */

static const char log_begin[] = "-- BEGIN PROG LOAD LOG --\n";
static char refusal[200];

/* The verifier's complaint is the last line before its statistics. The lines of source that it
 * quotes begin with a semicolon. */
static void keep_refusal(const char *log)
{
	const char *end = strstr(log, "\nprocessed "), *line;

	if (!end)
		end = strstr(log, "\n-- END PROG LOAD LOG");
	*refusal = '\0';
	while (end && !*refusal) {
		for (line = end; line > log && line[-1] != '\n';)
			line--;
		if (*line != ';')
			snprintf(refusal, sizeof(refusal), "%.*s", (int)(end - line), line);
		end = line > log ? line - 1 : NULL;
	}
}

static int print(enum libbpf_print_level level, const char *format, va_list ap)
{
	const char *log;
	char *text;
	int len;

	if (level == LIBBPF_DEBUG)
		return 0;
	len = vasprintf(&text, format, ap);
	if (len < 0)
		return 0;
	log = strstr(text, log_begin);
	if (log)
		keep_refusal(log + sizeof(log_begin) - 1);
	log_debug("libbpf: %s", text + (len > (int)LOGGED ? len - (int)LOGGED : 0));
	free(text);
	return 0;
}

void libbpf_log_start(void)
{
	*refusal = '\0';
	libbpf_set_print(print);
}

const char *libbpf_log_refusal(void)
{
	return *refusal ? refusal : NULL;
}
