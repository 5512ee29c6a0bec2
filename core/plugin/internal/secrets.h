/* SPDX-License-Identifier: Apache-2.0 */
/* The files with secrets that an instance has read, and whether they have changed since. Any
 * thread. */
#ifndef PLUGIN_SECRETS_H
#define PLUGIN_SECRETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SECRETS_MAX 8u /* files; more are not watched */

struct secret_file;

struct secrets {
	pthread_mutex_t lock;
	struct secret_file *files; /* owned */
	uint32_t n;
	bool changed; /* a later reading saw a change since the last secrets_changed() */
};

void secrets_init(struct secrets *);
void secrets_fini(struct secrets *);
/* Notes that a file was read. as: the file that was read; NULL: it could not be opened. */
void secrets_note(struct secrets *, const char *path, const struct stat *as);
/* Whether a path now leads to another file or content than was read. True once for each change. */
bool secrets_changed(struct secrets *);
#endif
