/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a tree that a test makes. */
#ifndef LIB_PUT_FILE_H
#define LIB_PUT_FILE_H

#include "test.h"

/* A file of the test's folder, with the folders above it. */
static inline void put_file(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", test_dir(), path);
	for (char *p = full + strlen(test_dir()) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}
#endif
