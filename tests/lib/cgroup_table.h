/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tests/data/cgroups.txt, whose first lines say its form. */
#ifndef LIB_CGROUP_TABLE_H
#define LIB_CGROUP_TABLE_H

#include "test.h"

/* A process. Texts that the path does not say are "". */
struct cgroup_row {
	char from[512], text[4096]; /* where it is published; /proc/PID/cgroup */
	char container[128], runtime[32], pod[64], unit[256], user_unit[256];
	int line; /* of "from" in the file */
};

static inline FILE *cgroup_table_open(void)
{
	char path[4096]; /* the folder is two above build/tests/test_X */
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	FILE *f;

	CHECK(len > 0);
	path[len] = '\0';
	strcpy(strrchr(path, '/'), "/../../tests/data/cgroups.txt");
	f = fopen(path, "r");
	if (!f)
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return f;
}

/* Copies a word of the line; "-" and "?" become "". */
static inline char *cgroup_table_word(char *at, char *to, size_t size)
{
	size_t len;

	at += strspn(at, " ");
	len = strcspn(at, " ");
	CHECK(len < size);
	memcpy(to, at, len);
	to[len] = '\0';
	if (!strcmp(to, "-") || !strcmp(to, "?"))
		*to = '\0';
	return at + len;
}

static inline void cgroup_table_line(struct cgroup_row *r, char *line)
{
	if (!strncmp(line, "from ", 5)) {
		CHECK(strlen(line) < sizeof(r->from));
		strcpy(r->from, line + 5);
	} else if (!strncmp(line, "cgroup ", 7)) {
		CHECK(strlen(r->text) + strlen(line) < sizeof(r->text));
		strcat(strcat(r->text, line + 7), "\n");
	} else if (!strncmp(line, "container ", 10)) {
		line = cgroup_table_word(line + 10, r->container, sizeof(r->container));
		cgroup_table_word(line, r->runtime, sizeof(r->runtime));
	} else if (!strncmp(line, "pod ", 4)) {
		cgroup_table_word(line + 4, r->pod, sizeof(r->pod));
	} else if (!strncmp(line, "unit ", 5)) {
		line = cgroup_table_word(line + 5, r->unit, sizeof(r->unit));
		cgroup_table_word(line, r->user_unit, sizeof(r->user_unit));
	} else {
		CHECK(*line == '#');
	}
}

/* The next row; false: there are no more. *lines: 0 at the start. */
static inline bool cgroup_table_next(FILE *f, int *lines, struct cgroup_row *r)
{
	char *line = NULL;
	size_t cap = 0;

	memset(r, 0, sizeof(*r));
	while (getline(&line, &cap, f) > 0) {
		++*lines;
		line[strcspn(line, "\n")] = '\0';
		if (!*line && *r->text)
			break;
		if (!strncmp(line, "from ", 5))
			r->line = *lines;
		if (*line)
			cgroup_table_line(r, line);
	}
	free(line);
	CHECK(!*r->text == !*r->from);
	return *r->text;
}
#endif
