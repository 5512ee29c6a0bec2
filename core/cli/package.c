/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/package.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFO "/var/lib/dpkg/info" /* NAME.list or NAME:ARCH.list, a path a line */

static bool lists(const char *list, const char *path)
{
	char file[512], *line = NULL;
	size_t cap = 0;
	bool found = false;
	FILE *f;

	snprintf(file, sizeof(file), INFO "/%s", list);
	f = fopen(file, "re");
	while (f && !found && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, path);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool exists(const char *package)
{
	char file[512];
	FILE *f;

	snprintf(file, sizeof(file), INFO "/%s.list", package);
	f = fopen(file, "re");
	if (f)
		fclose(f);
	return f;
}

/* /lib and /usr/lib are one folder on merged systems, and dpkg knows a file by either name. */
static bool owns(const char *list, const char *path)
{
	return lists(list, path) || (!strncmp(path, "/usr/lib", 8) && lists(list, path + 4));
}

char *package_debug_symbols(const char *path)
{
	char name[256] = "", *text = NULL, real[4096];
	struct dirent *e;
	DIR *d = opendir(INFO);

	if (!realpath(path, real))
		snprintf(real, sizeof(real), "%s", path);
	while (d && !*name && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < 6 || len >= sizeof(name) || strcmp(e->d_name + len - 5, ".list"))
			continue;
		if (owns(e->d_name, path) || owns(e->d_name, real))
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(e->d_name, ":"),
				 e->d_name);
	}
	if (d)
		closedir(d);
	if (!*name)
		return NULL;
	if (strlen(name) > 5 && !strcmp(name + strlen(name) - 5, ".list"))
		name[strlen(name) - 5] = '\0';
	if (!strcmp(name, "libc6") && !exists("libc6-dbg"))
		return strdup("apt install libc6-dbg");
	if (asprintf(&text, "apt install %s-dbgsym (from Debian's debug archive)", name) < 0)
		return NULL;
	return text;
}
