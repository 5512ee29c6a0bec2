/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a server lacks, each uploaded once, by a thread of its own: no delivery waits. */
#ifndef PARCA_UPLOADS_H
#define PARCA_UPLOADS_H

#include <fusee/http.h>

struct uploads;

struct uploads_options {
	uint64_t rate, max_bytes; /* bytes a second; of a file */
	const struct fusee_http_options *http;
	const char *const *own; /* as of fusee_http_open() */
};

/* The options, self and http are borrowed. 0, or -errno after host->fail(). In init(). */
int uploads_new(struct uploads **ret, const struct fusee_self *, const struct uploads_options *);
/* Queues the files by which a server can symbolize the profile's locations without names, unless
 * they were uploaded. Does not block. */
void uploads_add(struct uploads *, const struct fusee_profile *);
/* [any thread] Ends uploads: the current transfer is aborted. */
void uploads_cancel(struct uploads *);
/* Waits for the thread, which reads no further. NULL is fine. */
void uploads_free(struct uploads *);
#endif
