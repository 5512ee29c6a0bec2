/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of one process, bounded and cleaned: its texts are its own and may hold anything.
 */
#ifndef PROCESS_READ_H
#define PROCESS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct passwd_cache;
/* Names of users from /etc/passwd, read anew when it changes: no NSS, which may block. NULL: no
 * memory. */
struct passwd_cache *passwd_open(void);
void passwd_close(struct passwd_cache *); /* NULL is fine */

enum facts_want { FACTS_STATUS = 1, FACTS_ENVIRON = 2, FACTS_CMDLINE = 4 };

struct facts {
	uint64_t start_ticks;
	char exe[4096];    /* without " (deleted)"; "" not readable */
	char name[256];    /* base name of exe, else the thread's */
	char user[64];     /* name, or number; "" unknown */
	char cmdline[512]; /* blanks between, cut; "" not read */
	char *environ;     /* as it stands: NUL between; NULL: not readable */
	size_t environ_len;
};

/* 0; -ESRCH: gone; -ENOENT: a kernel thread, which has no executable; -ENOMEM. */
int facts_read(struct facts *, uint32_t pid, uint32_t want, struct passwd_cache *);
void facts_free(struct facts *);

/* A variable's value, cleaned and cut to fit. 0 or -ENOENT (not there, or empty). */
int environment_get(const char *environ, size_t len, const char *name, char *out, size_t cap);
/* The service's name: OTEL_SERVICE_NAME, else service.name of OTEL_RESOURCE_ATTRIBUTES
 * (OpenTelemetry specification, SDK environment variables). 0 or -ENOENT. */
int environment_service(const char *environ, size_t len, char *out, size_t cap);
/* Copies text so that it is UTF-8 without control characters; what is not becomes '?'. */
void text_clean(char *out, size_t cap, const char *text, size_t len);
#endif
