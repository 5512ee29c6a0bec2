/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/command_text.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/safe_open.h"

#define MOST_WORDS 128u  /* of the command, and of its scripts together, are looked up */
#define MOST_TEXT 65536u /* bytes of a script */
#define MOST_LINE 256u   /* bytes of a #! line */

/* Opens a regular file. -1: it is another kind of file, or cannot be read. */
static int open_regular(const char *path)
{
	int held = open(path, O_PATH | O_CLOEXEC), fd;
	struct stat st;

	if (held < 0)
		return -1;
	fd = safe_reopen(held, &st);
	close(held);
	return fd < 0 ? -1 : fd;
}

/* Opens the program that a shell would run for this word, or a file of this name. */
static int open_named(const char *word)
{
	const char *dirs = getenv("PATH"), *end;
	char path[1024];
	int fd = open_regular(word);

	for (; fd < 0 && !strchr(word, '/') && dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(end - dirs), dirs, word) <
		    (int)sizeof(path))
			fd = open_regular(path);
	}
	return fd;
}

/* Notes the path of an open file that may be executed. */
static void add_program(int fd, struct buf *programs)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !(st.st_mode & 0111))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || *path != '/')
		return;
	path[n] = '\0';
	buf_add(programs, path, (size_t)n + 1);
}

/* Adds the text of the file; `line`: only its #! line. Programs have none. */
static void add_file(const char *word, bool line, struct command_text *t)
{
	size_t most = line ? MOST_LINE : MOST_TEXT;
	struct buf *b = &t->text;
	int fd = open_named(word);
	ssize_t n = -1;
	char *text;

	if (fd < 0)
		return;
	add_program(fd, &t->programs);
	text = malloc(most);
	if (text)
		n = read(fd, text, most);
	close(fd);
	if (n > 0 && line) {
		const char *end = memchr(text, '\n', (size_t)n);

		n = n < 2 || memcmp(text, "#!", 2) ? 0 : end ? end - text : n;
	}
	if (n > 0 && !memchr(text, 0, (size_t)n)) {
		buf_add(b, text, (size_t)n);
		buf_str(b, "\n");
	}
	free(text);
}

static size_t word_length(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || (at[n] && strchr("/._+-", at[n])))
		n++;
	return n;
}

/* Adds the #! lines of programs that are named in the text. */
static void add_named(struct command_text *t)
{
	char *text = strndup(t->text.p, t->text.len), *at = text;
	uint32_t words = 0;

	while (at && *at && words < MOST_WORDS) {
		size_t n = word_length(at);
		char end = at[n];

		at[n] = 0;
		if (n && n < 256 && ++words)
			add_file(at, true, t);
		if (!end)
			break;
		at += n + 1;
	}
	free(text);
}

/* Appends the names of the programs, which words may name by links. */
static void add_names(struct command_text *t)
{
	size_t at = 0;

	while (at < t->programs.len) {
		buf_str(&t->text, strrchr(t->programs.p + at, '/') + 1);
		buf_str(&t->text, "\n");
		at += strlen(t->programs.p + at) + 1;
	}
}

void command_text_read(struct command_text *t, char *const *argv)
{
	*t = (struct command_text){0};
	for (uint32_t i = 0; argv[i] && i < MOST_WORDS; i++) {
		buf_str(&t->text, argv[i]);
		buf_str(&t->text, "\n");
	}
	for (uint32_t i = 0; argv[i] && i < MOST_WORDS; i++)
		add_file(argv[i], false, t);
	if (!t->text.error)
		add_named(t);
	if (!t->programs.error)
		add_names(t);
	buf_add(&t->text, "", 1); /* it is searched as a string */
	buf_add(&t->programs, "", 1);
}

void command_text_fini(struct command_text *t)
{
	buf_fini(&t->text);
	buf_fini(&t->programs);
}
