/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of Parca's DebuginfoService, by which a server gets programs for symbolizing: writes
 * requests as frames of gRPC, reads answers. */
#ifndef PARCA_DEBUGINFO_H
#define PARCA_DEBUGINFO_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#define DEBUGINFO_SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define DEBUGINFO_MAX_ID 256u   /* bytes of a build ID in hex, or of an upload's id, with the NUL */
#define DEBUGINFO_MAX_URL 8192u /* of a signed URL, with the NUL */
#define DEBUGINFO_MAX_REASON 256u
#define DEBUGINFO_FRAME 1024u  /* bytes of any frame but a chunk */
#define DEBUGINFO_HEAD 16u     /* bytes of a frame before those of a chunk */
#define DEBUGINFO_CHUNK 65536u /* bytes of the file in a message */

/* A frame, of which `len` bytes are set. */
struct debuginfo_frame {
	char bytes[DEBUGINFO_FRAME];
	uint32_t len;
};

/* Requests. build_id: lower-case hex of a GNU build ID; both ids are shorter than
 * DEBUGINFO_MAX_ID. */
void debuginfo_should_initiate(struct debuginfo_frame *, const char *build_id);
void debuginfo_initiate(struct debuginfo_frame *, const char *build_id, uint64_t size,
			const char *hash);
void debuginfo_finished(struct debuginfo_frame *, const char *build_id, const char *upload_id);
/* The first message of an upload, and the bytes that precede each n bytes of the file. */
void debuginfo_info(struct debuginfo_frame *, const char *build_id, const char *upload_id);
void debuginfo_chunk(struct debuginfo_frame *, uint32_t n);

enum debuginfo_strategy {
	DEBUGINFO_NO_STRATEGY, /* or an unknown strategy */
	DEBUGINFO_GRPC,
	DEBUGINFO_SIGNED_URL,
};

struct debuginfo_instructions {
	int strategy; /* enum debuginfo_strategy */
	char upload_id[DEBUGINFO_MAX_ID], url[DEBUGINFO_MAX_URL];
};

/* Read answers' messages, whose bytes can be anything. false: it is no such message, or a text is
 * too long. reason: "" if there is none. */
bool debuginfo_read_should(struct fusee_str message, bool *should,
			   char reason[DEBUGINFO_MAX_REASON]);
bool debuginfo_read_instructions(struct fusee_str message, struct debuginfo_instructions *);
#endif
