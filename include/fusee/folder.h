/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/folder.h - the folder of a sink that writes files: opened for each window, complete files
 * only, the oldest removed by age and by the sum of their sizes. Optional: a plugin links it
 * statically (libfusee-folder.a, `pkg-config --libs fusee-folder`; in fusee's own tree the plugin's
 * file `uses` has the line "folder").
 *
 * Other users may be able to write into the folder: no link in it is followed, and only what the
 * sink names is removed. Several processes may write into one folder. All functions are for the
 * instance's own thread.
 */
#ifndef FUSEE_FOLDER_H
#define FUSEE_FOLDER_H

#include <dirent.h>
#include <stdbool.h>

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_FOLDER_NAME 160 /* bytes of the longest name of a file with its NUL */

struct fusee_folder_scan;

/* How files of the sink are found and removed. `dir`: a descriptor of the folder. */
struct fusee_folder_ops {
	/* Calls fusee_folder_found() for each file. 0 or -errno. */
	int (*each)(int dir, struct fusee_folder_scan *);
	/* Removes a file that was found. 0 or -errno. */
	int (*remove)(int dir, const char *name, uint32_t table);
};

/* The options that all such sinks have, and what is known of the folder: a member of the plugin's
 * ctx. */
struct fusee_folder {
	const char *dir, *mode;
	uint64_t keep, max_size; /* ns, bytes; 0: no limit */
	/* ---- set by fusee_folder_init() ---- */
	const struct fusee_self *self;
	const struct fusee_folder_ops *ops;
	/* permissions of files, and of folders: whoever can read the files can enter these */
	uint32_t file_mode, dir_mode;
	uint64_t bytes;   /* of all files: at the last scan, and fusee_folder_wrote() since */
	uint64_t next_ns; /* CLOCK_REALTIME of the next scan, if no space is needed before */
};

/* Rows of an option table, which fill `member` of ctx, a struct fusee_folder. age and size: the
 * defaults of keep and max_size. */
#define FUSEE_FOLDER_OPTIONS(ctx, member, age, size)                                 \
	FUSEE_FOLDER_ROW(ctx, member, dir, FUSEE_STRING, NULL,                       \
			 "Directory of the files; it is created if it is missing."), \
		FUSEE_FOLDER_LIMITS(ctx, member, age, size)
/* The same without `dir`. */
#define FUSEE_FOLDER_LIMITS(ctx, member, age, size)                                              \
	FUSEE_FOLDER_ROW(ctx, member, keep, FUSEE_DURATION, age,                                 \
			 "Files whose window began longer ago are removed; 0 keeps them "        \
			 "for ever."),                                                           \
		FUSEE_FOLDER_ROW(ctx, member, max_size, FUSEE_SIZE, size,                        \
				 "Most bytes of all files together: the oldest are removed to "  \
				 "make room; 0 sets no limit."),                                 \
		FUSEE_FOLDER_ROW(ctx, member, mode, FUSEE_STRING, "0640",                        \
				 "Permissions of the files, octal; a directory that is created " \
				 "can be entered by everyone who can read the files.")
#define FUSEE_FOLDER_ROW(ctx, member, field, kind, text, sentence)                \
	{                                                                         \
		.name = #field, .def = (text), .doc = (sentence), .type = (kind), \
		.offset = (uint32_t)(offsetof(ctx, member) +                      \
				     offsetof(struct fusee_folder, field)),       \
	}

/* Opens the folder, or creates it, makes sure that files can be created, and removes old files. 0,
 * or -errno after host->fail(). For the sink's init(); self and ops are borrowed. */
int fusee_folder_init(struct fusee_folder *, const struct fusee_self *self,
		      const struct fusee_folder_ops *ops);
/* Opens the folder, or creates it. It is called for each window, since another file system may have
 * been mounted over it. A descriptor, or -errno after host->fail(), counted as a lost window. */
int fusee_folder_open(struct fusee_folder *);
/* Removes files that are older than `keep`, and the oldest until `need` more bytes fit, counted in
 * files_removed{reason}. Scans at most once an hour and when bytes don't fit. 0 or -errno. */
int fusee_folder_make_room(struct fusee_folder *, int dir, uint64_t need);
/* A file of so many bytes is complete. */
void fusee_folder_wrote(struct fusee_folder *, uint64_t bytes);
/* Counts windows_lost{reason}: err is a -errno. */
void fusee_folder_count_lost(struct fusee_folder *, int err);

/* Within each(): a file `name` in the open directory `at`, whose window began at `ns`
 * (CLOCK_REALTIME). Names are in order of time. `table` tells the sink which of its files of one
 * name it is; the lower is removed first. What is no regular file of ours stays. */
void fusee_folder_found(struct fusee_folder_scan *, int at, const char *name, uint64_t ns,
			uint32_t table);

/* Creates an unfinished file and locks it; removes a file of this name that has no lock or is
 * another user's. A descriptor to read and write; -errno, -EAGAIN: another process has been writing
 * it for five seconds. */
int fusee_folder_create(int at, const char *part, uint32_t file_mode);
/* Removes an unfinished file unless a process holds its lock. 1: removed, 0: not. */
int fusee_folder_remove_unlocked(int at, const char *part);
/* Writes all bytes. 0 or -errno. */
int fusee_folder_write(int fd, const void *bytes, uint64_t len);
/* The folder's entries, from the first on, for closedir(). NULL: errno says why. */
DIR *fusee_folder_list(int dir);

/* ---- names: TIME-..-ID and an end, of [a-zA-Z0-9._-] alone ---- */

#define FUSEE_FOLDER_TIME 20 /* characters of a time: "2026-11-21T08-15-00Z" */
#define FUSEE_FOLDER_ID 16   /* of the beginning of a profile's id, hexadecimal */

/* Copies as much of the text as there is room for, with '_' in place of what names cannot have. */
void fusee_folder_plain(char *to, size_t size, struct fusee_str text);
/* ns: CLOCK_REALTIME. */
void fusee_folder_put_time(char to[FUSEE_FOLDER_TIME + 1], uint64_t ns);
void fusee_folder_put_id(char to[FUSEE_FOLDER_ID + 1], const struct fusee_profile *);
/* Does s begin with `shape`, in which a '0' is any digit? */
bool fusee_folder_has_shape(const char *s, const char *shape);
/* A text that begins with a time. false: it does not. */
bool fusee_folder_read_time(const char *text, uint64_t *ns);
/* Has name[0 .. body) the form TIME-..-ID? *ns: its time. */
bool fusee_folder_is_name(const char *name, size_t body, uint64_t *ns);

#ifdef __cplusplus
}
#endif
#endif
