/* SPDX-License-Identifier: Apache-2.0 */
/* The upload of one file: the server answers whether it needs the file and how to send it, the
 * bytes are sent, and the upload is marked as complete. */
#ifndef PARCA_UPLOAD_H
#define PARCA_UPLOAD_H

#include <stdatomic.h>

#include <fusee/http.h>

enum upload_result {
	UPLOAD_DONE,
	UPLOAD_KNOWN,   /* the server has it, or does not want it */
	UPLOAD_BUSY,    /* another agent uploads it, or the token is wrong: minutes later */
	UPLOAD_REFUSED, /* permanently */
	UPLOAD_LATER,   /* no answer, or a temporary failure */
	UPLOAD_FILE,    /* the file cannot be read: see err */
	UPLOAD_ENDED,   /* cancelled */
};

struct upload {
	const struct fusee_self *self; /* these three are borrowed */
	struct fusee_http *client;
	const char *server; /* the URL of the option */
	uint64_t rate;      /* bytes a second; more for a large file by gRPC, see upload.c */
	uint64_t max_bytes; /* of a file */
	atomic_bool ended;  /* set by any thread: the file is read no further */

	/* of the last upload_file() */
	int err;                    /* of UPLOAD_FILE: as of open_file() */
	bool answered;              /* of UPLOAD_LATER: the server has answered */
	uint64_t bytes;             /* of the file */
	uint64_t sent;              /* of them */
	uint64_t retry_after;       /* ns; 0: the server named no time */
	char why[FUSEE_HTTP_WORDS]; /* of all but UPLOAD_DONE */
};

/* build_id: lower-case hex. Waits for the server and for the file; ended by `ended`
 * with fusee_http_cancel(). */
enum upload_result upload_file(struct upload *, const char *build_id);
#endif
