/* SPDX-License-Identifier: Apache-2.0 */
#include "view/source_text.h"

#include <string.h>
#include <sys/stat.h>

/* A profile may name a device or a pipe, which are not opened. */
static FILE *open_regular(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
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
