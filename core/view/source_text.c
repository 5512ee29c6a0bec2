/* SPDX-License-Identifier: Apache-2.0 */
#include "view/source_text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of /proc has no size; to read one can take forever, as of /proc/kmsg. */
static bool has_lines(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size;
}

/* A profile may name a device or a pipe, which are not opened. */
static FILE *open_regular(const char *path)
{
	struct stat st;
	FILE *f;
	int fd;

	if (stat(path, &st) || !has_lines(&st))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	f = fd >= 0 && !fstat(fd, &st) && has_lines(&st) ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	return f;
}

FILE *source_text_open(struct fusee_str path)
{
	char text[4096];
	FILE *f;

	if (!path.len || path.len >= sizeof(text))
		return NULL;
	memcpy(text, path.p, path.len);
	text[path.len] = '\0';
	f = open_regular(text);
	for (const char *end = text; !f && (end = strchr(end, '/')); end++)
		if (end[1] && end[1] != '/')
			f = open_regular(end + 1);
	return f;
}

bool source_text_line(FILE *f, char **text, size_t *cap, struct fusee_str *line)
{
	ssize_t n = getline(text, cap, f);

	if (n < 0)
		return false;
	while (n > 0 && ((*text)[n - 1] == '\n' || (*text)[n - 1] == '\r'))
		n--;
	*line = (struct fusee_str){*text, (uint64_t)n};
	return true;
}
