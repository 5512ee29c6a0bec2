/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about one process from /proc, with bounded length. The process controls its texts, so they
 * are made valid UTF-8 without control characters. */
#ifndef PROCESS_READ_H
#define PROCESS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct passwd_cache;
/* Names of users from /etc/passwd, which is read again when it changes. NSS is not used, since it
 * may block. NULL: no memory. */
struct passwd_cache *passwd_open(void);
void passwd_close(struct passwd_cache *); /* NULL is fine */

enum facts_which { FACTS_STATUS = 1, FACTS_ENVIRON = 2, FACTS_CMDLINE = 4, FACTS_CONTEXT = 8 };

struct facts {
	uint64_t start_ticks; /* or another number that only this process has */
	char exe[4096];       /* path without " (deleted)"; "" not readable */
	char name[256];       /* base name of exe, else the name of the thread */
	char user[64];        /* name, or number; "" unknown */
	char cmdline[512];    /* arguments with blanks between, truncated; "" not read */
	char *environ;        /* owned; "NAME=value" texts, each terminated; NULL: not read */
	size_t environ_len;
	void *context; /* owned; the message of resource.h; NULL: none, or not read */
	size_t context_len;
	bool unread;     /* a text in its memory could not be read in time */
	bool no_cmdline; /* that text was its command line */
	bool empty;      /* its environment was read, and is empty */
};

struct fusee_instance;
/* Reads texts in a process's memory, as fusee_discovery_host's process_text(). */
struct facts_source {
	int64_t (*text)(struct fusee_instance *, uint32_t pid, const char *name, uint64_t offset,
			void *buf, uint64_t len);
	struct fusee_instance *in;
};

/* Reads the facts that `which` selects. 0; -ESRCH: the process has ended; -ENOENT: it has ended,
 * or is a kernel thread, which has no executable; -ENOMEM. The caller frees them in any case. */
int facts_read(struct facts *, uint32_t pid, uint32_t which, struct passwd_cache *,
	       const struct facts_source *);
void facts_free(struct facts *);

/* Copies the value of a variable, cleaned and truncated to fit. 0, or -ENOENT: not set, or empty.
 */
int environment_get(const char *environ, size_t len, const char *name, char *out, size_t cap);
/* Copies text, terminated and truncated to fit; bytes that are not UTF-8 and control characters
 * become
 * '?'. */
void text_clean(char *out, size_t cap, const char *text, size_t len);
#endif
