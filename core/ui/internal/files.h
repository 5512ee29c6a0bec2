/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles that the page lists. A file's number never changes. */
#ifndef UI_FILES_H
#define UI_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "import/read.h"

#define UI_MAX_FILES 10000u
#define UI_MAX_LOADED 4u /* profiles in memory */

struct ui_file {
	char *path;
	const char *name;       /* in path */
	int64_t time_ns, bytes; /* of its last change; bytes -1: it is not there any more */
	int64_t loaded_time, loaded_bytes; /* of the content in memory */
	struct profile_file *profile;      /* NULL: not in memory */
	uint64_t used;                     /* when, as a count of uses */
	bool kept;                         /* of standard input: it cannot be read again */
};

/* The only file of the command line is read while the browser loads the page. The thread has this
 * until it ends, or longer than the files if they are closed before. */
struct ui_ahead {
	pthread_t thread;
	struct ui_file file;      /* a path of its own, and what is read */
	_Atomic bool is_released; /* by the thread or by the files: the other frees it */
};

struct ui_files {
	struct ui_file *files;
	struct ui_ahead *ahead; /* NULL: nothing is read ahead; otherwise file 0 */
	uint32_t n;
	char *folder;           /* NULL: the files were named */
	uint64_t uses, changes; /* changes: profiles that were loaded or freed */
};

/* paths: files, "-" for standard input, or one folder. 0, or an exit code after one error was
 * logged. */
int ui_files_open(struct ui_files *, char *const *paths, uint32_t n);
/* Begins to read the profile in a thread, if there is one file. */
void ui_files_ahead(struct ui_files *);
/* {0} is fine. It does not wait for the thread. */
void ui_files_close(struct ui_files *);
/* Looks again for files of the folder, and at the times of all. 0 or -ENOMEM. */
int ui_files_look(struct ui_files *);
/* The profile of a file, which is valid until UI_MAX_LOADED - 1 others were loaded. 0; -ENOENT: no
 * such number; or -errno with a sentence in error->p. */
int ui_files_profile(struct ui_files *, uint32_t file, const struct fusee_profile **ret,
		     struct buf *error);
#endif
