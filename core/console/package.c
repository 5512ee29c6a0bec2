/* SPDX-License-Identifier: Apache-2.0 */
#include "console/package.h"

#include <dirent.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "console/tool.h"

#define INFO "/var/lib/dpkg/info" /* NAME.list or NAME:ARCH.list, a path a line */
#define SEARCH_NS 2000000000u     /* at most, for the lists of all packages */
#define APT_SECONDS "5"           /* at most, for a question to apt */
#define DEBUG_ARCHIVE "deb http://deb.debian.org/debian-debug %s-debug main"

static const char *const endings[] = {"-dbgsym", "-dbg"}; /* of packages with debug symbols */

/* ---- the package that owns a file ---- */

/* The names under which dpkg may know a file. Where /lib is a link to /usr/lib, a package may still
 * list its files below either. */
struct names {
	char *texts[4];
	uint32_t n;
};

static void add_names(struct names *names, const char *path)
{
	static const char *const merged[] = {"/lib", "/bin", "/sbin"};
	bool usr = !strncmp(path, "/usr/", 5);
	const char *bare = usr ? path + 4 : path;
	char *other = NULL;

	for (size_t i = 0; i < sizeof(merged) / sizeof(merged[0]); i++)
		if (!other && !strncmp(bare, merged[i], strlen(merged[i])) &&
		    asprintf(&other, "%s%s", usr ? "" : "/usr", bare) < 0)
			other = NULL;
	names->texts[names->n++] = strdup(path);
	names->texts[names->n++] = other;
}

static bool lists(const char *list, const struct names *names)
{
	char file[512], *line = NULL;
	size_t cap = 0;
	bool found = false;
	FILE *f;

	snprintf(file, sizeof(file), INFO "/%s", list);
	f = fopen(file, "re");
	while (f && !found && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		for (uint32_t i = 0; i < names->n && !found; i++)
			found = names->texts[i] && !strcmp(line, names->texts[i]);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* The name of the package, without its architecture. false: none is known. */
static bool find_owner(const char *path, char name[256])
{
	uint64_t until = clock_now() + SEARCH_NS;
	struct names names = {0};
	struct dirent *e;
	DIR *d = opendir(INFO);
	char *real = realpath(path, NULL);

	add_names(&names, path);
	if (real)
		add_names(&names, real);
	free(real);
	*name = '\0';
	while (d && !*name && (e = readdir(d)) && clock_now() < until) {
		size_t len = strlen(e->d_name);

		if (len < 6 || len >= 256 || strcmp(e->d_name + len - 5, ".list"))
			continue;
		if (lists(e->d_name, &names))
			snprintf(name, 256, "%.*s",
				 (int)strcspn(e->d_name, ":") < (int)len - 5
					 ? (int)strcspn(e->d_name, ":")
					 : (int)len - 5,
				 e->d_name);
	}
	if (d)
		closedir(d);
	for (uint32_t i = 0; i < names.n; i++)
		free(names.texts[i]);
	return *name;
}

/* ---- what apt knows ---- */

/* What `apt-cache policy` prints of the packages and of those that could have their symbols. A
 * package that apt does not know is not printed. NULL: apt does not answer. */
static char *ask_apt(char names[][256], uint32_t n)
{
	char debug[PACKAGE_MAX][2][272];
	char *argv[4 + 3 * PACKAGE_MAX + 1] = {"sh", "-c",
					       "exec timeout " APT_SECONDS
					       " env LC_ALL=C apt-cache policy \"$@\" 2> /dev/null",
					       "sh"};
	struct buf b = {0};
	uint32_t k = 4;

	for (uint32_t i = 0; i < n; i++) {
		if (!*names[i])
			continue;
		argv[k++] = names[i];
		for (int e = 0; e < 2; e++) {
			snprintf(debug[i][e], sizeof(debug[i][e]), "%.255s%s", names[i],
				 endings[e]);
			argv[k++] = debug[i][e];
		}
	}
	if (k == 4 || tool_run(argv, NULL, &b) || buf_add(&b, "", 1)) {
		buf_fini(&b);
		return NULL;
	}
	return b.p;
}

/* The part of one package in apt's answer, which the caller frees. NULL: apt does not know it. */
static char *part_of(const char *answer, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = answer; line && *line;) {
		const char *next = strchr(line, '\n');

		next = next ? next + 1 : line + strlen(line);
		if (!strncmp(line, name, len) && !strncmp(line + len, ":\n", 2)) {
			const char *end = next;

			while (*end == ' ')
				end += strcspn(end, "\n") + 1;
			return strndup(next, (size_t)(end - next));
		}
		line = next;
	}
	return NULL;
}

bool package_release(const char *key, char value[64])
{
	FILE *f = fopen("/etc/os-release", "re");
	size_t n = strlen(key);
	char line[256];

	*value = '\0';
	while (f && !*value && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n) && line[n] == '=')
			sscanf(line + n + 1 + (line[n + 1] == '"'), "%63[^\"\n]", value);
	if (f)
		fclose(f);
	return *value;
}

/* "Installed: 1.2-3": the text behind `key`. false: there is none. */
static bool read_field(const char *part, const char *key, char value[128])
{
	const char *at = strstr(part, key);

	return at && sscanf(at + strlen(key), " %127s", value) == 1;
}

/* Whether the version that apt would install is of the archive whose debug symbols the debug
 * archive has: not of another vendor, and no security update before the next point release. */
static bool is_from_debian(const char *part, const char *codename)
{
	char version[128], line[192], archive[96], *copy = strdup(part), *save = NULL;
	bool here = false, is = false;

	if (!copy || !read_field(part, "Candidate:", version)) {
		free(copy);
		return false;
	}
	snprintf(archive, sizeof(archive), " %s/main ", codename);
	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		bool of_version = !strncmp(l, "        ", 8); /* archives are indented deeper */

		if (of_version) {
			is |= here && strstr(l, archive);
			continue;
		}
		here = sscanf(l, " *** %191s", line) == 1 || sscanf(l, " %191s", line) == 1;
		here = here && !strcmp(line, version);
	}
	free(copy);
	return is;
}

/* Does apt read the archive of debug symbols? */
static bool has_debug_archive(const char *codename)
{
	DIR *d = opendir("/var/lib/apt/lists");
	struct dirent *e;
	char suite[80];
	bool has = false;

	snprintf(suite, sizeof(suite), "_%s-debug_", codename);
	while (d && (e = readdir(d)))
		has |= strstr(e->d_name, suite) != NULL;
	if (d)
		closedir(d);
	return has;
}

/* A package of apt's answer that can be installed and is not. NULL: none. */
static char *install_known(const char *answer, const char *name, bool *installed)
{
	char debug[272], *part, *text = NULL;

	for (int i = 0; i < 2 && !text && !*installed; i++) {
		snprintf(debug, sizeof(debug), "%.255s%s", name, endings[i]);
		part = part_of(answer, debug);
		if (!part)
			continue;
		*installed = !strstr(part, "Installed: (none)");
		if (!*installed && !strstr(part, "Candidate: (none)") &&
		    asprintf(&text, "sudo apt install %s", debug) < 0)
			text = NULL;
		free(part);
	}
	return text;
}

/* Appends commands that add the debug archive and, if the installed version is not in it, install a
 * newer version of the package. */
static char *add_archive(const char *part, const char *name)
{
	char id[64], codename[64], installed[128], candidate[128], *text;
	bool same = read_field(part, "Installed:", installed) &&
		    read_field(part, "Candidate:", candidate) && !strcmp(installed, candidate);

	if (!package_release("ID", id) || strcmp(id, "debian") ||
	    !package_release("VERSION_CODENAME", codename) || has_debug_archive(codename) ||
	    !is_from_debian(part, codename))
		return NULL;
	if (asprintf(&text,
		     "echo '" DEBUG_ARCHIVE "' | sudo tee /etc/apt/sources.list.d/debug.list\n"
		     "sudo apt update && sudo apt install %s%s%s-dbgsym",
		     codename, same ? "" : name, same ? "" : " ", name) < 0)
		return NULL;
	return text;
}

/* Does dpkg list the package? */
static bool is_installed(const char *name, const char *ending)
{
	char pattern[600];
	glob_t found = {0};
	bool is;

	snprintf(pattern, sizeof(pattern), INFO "/%s%s.list", name, ending);
	is = !access(pattern, F_OK);
	snprintf(pattern, sizeof(pattern), INFO "/%s%s:*.list", name, ending);
	is = is || !glob(pattern, GLOB_NOSORT, NULL, &found);
	globfree(&found);
	return is;
}

static char *commands_for(const char *answer, const char *name)
{
	bool installed = false;
	char *text = install_known(answer, name, &installed), *part = part_of(answer, name);

	if (!text && !installed && part)
		text = add_archive(part, name);
	free(part);
	return text;
}

void package_debug_symbols(const char *const *paths, uint32_t n, char **texts)
{
	char names[PACKAGE_MAX][256] = {""}, *answer;

	for (uint32_t i = 0; i < n && i < PACKAGE_MAX; i++)
		if (!find_owner(paths[i], names[i]) || is_installed(names[i], endings[0]) ||
		    is_installed(names[i], endings[1]))
			*names[i] = '\0';
	answer = ask_apt(names, n < PACKAGE_MAX ? n : PACKAGE_MAX);
	for (uint32_t i = 0; i < n; i++)
		texts[i] = answer && i < PACKAGE_MAX && *names[i] ? commands_for(answer, names[i])
								  : NULL;
	free(answer);
}
