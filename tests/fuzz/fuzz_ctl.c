// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/ctl/ctl.c core/console/grid.c core/ctl/target_table.c core/ctl/explain_table.c core/ctl/answer.c core/base/buf.c core/base/guess.c
// sources: core/base/text.c core/base/utf8.c
// flags: -Wl,--wrap=buf_write -Wl,--wrap=log_at
// libs: -ljson-c
// clang-format on
// What may answer at the agent's socket, as each command prints it: text without control
// characters, whatever the names of targets are.
#include "fuzz.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "console/options.h"
#include "config/plan.h"
#include "net/control_client.h"

int __wrap_buf_write(const struct buf *b, int fd);
void __wrap_log_at(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *const words[] = {"status", "targets", "reload", "pause", "resume", "flush"};
static const uint8_t *answer;
static size_t length;
static bool as_json;

static void shown(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] == '\n')
			continue;
		else if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			abort();
}

int __wrap_buf_write(const struct buf *b, int fd)
{
	(void)fd;
	if (!as_json)
		shown(b->p, b->len);
	return 0;
}

/* The log itself replaces control characters. */
void __wrap_log_at(int level, const char *format, ...)
{
	char text[256];
	va_list ap;

	(void)level;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
}

int control_request(const char *path, const char *command, uint64_t timeout_ns, char **line)
{
	(void)path;
	(void)command;
	(void)timeout_ns;
	*line = strndup((const char *)answer, length);
	return *line ? 0 : -1;
}

char *plan_default_control(void)
{
	return strdup("/run/x");
}

/* ---- what the command line says ---- */

int cli_parse(const struct cli_command *command, void *into, int argc, char **argv, int *first)
{
	const struct cli_option *options = command->options;

	(void)argv;
	for (uint32_t i = 0; i < command->n; i++)
		if (!strcmp(options[i].name, "json"))
			*((bool *)into + options[i].offset) = as_json;
	*first = argc - 1;
	return 0;
}

int cli_bad_usage(const struct cli_command *command, const char *format, ...)
{
	(void)command;
	(void)format;
	abort();
}

void cli_print_help(const struct cli_command *command)
{
	(void)command;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char ctl[] = "ctl", word[16], *argv[] = {ctl, word, NULL};
	static const char *const widths[] = {"20", "80", "0"};

	if (!size)
		return 0;
	strcpy(word, words[(data[0] & 15) % 6]);
	setenv("COLUMNS", widths[(data[0] >> 4) % 3], 1);
	as_json = data[0] >> 7;
	answer = data + 1;
	length = size - 1;
	cmd_ctl(2, argv);
	return 0;
}
