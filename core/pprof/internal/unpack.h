/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a pprof file, from any source, into protobuf-c's message of profile.proto. The
 * message has no samples: their bytes are read one by one (sample.h). */
#ifndef PPROF_UNPACK_H
#define PPROF_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "profile.pb-c.h"

/* Must not be moved. */
struct pprof_chunk;

struct pprof_message {
	Perftools__Profiles__Profile *profile; /* NULL: it could not be read */
	const char *error;                     /* why, one sentence; NULL: no error. Static */
	int code;                              /* likewise, -errno */
	uint64_t max_bytes;                    /* uncompressed */
	size_t memory;                         /* bytes that protobuf-c may still allocate */
	ProtobufCAllocator allocator;
	size_t nsamples;
	const uint8_t *samples, *end; /* the bytes of the samples that were not returned yet */
	struct buf plain;             /* the file, if it was compressed */
	struct buf rest;              /* its bytes without the samples */
	struct pprof_chunk *chunks;   /* all blocks of the message */
	char *at;                     /* free part of the newest, `room` bytes */
	size_t room;
};

/* gzip or plain, uncompressed at most max_bytes: plain bytes have to stay until the samples are
 * read. Memory is bounded by the limits of pprof.h. 0, -EINVAL, -EFBIG or -ENOMEM;
 * pprof_message_free() is to be called in any case. */
int pprof_unpack(struct pprof_message *, const void *bytes, size_t len, uint64_t max_bytes);
/* The bytes of the next sample; false: there is none. */
bool pprof_next_sample(struct pprof_message *, const uint8_t **sample, uint64_t *len);
void pprof_message_free(struct pprof_message *);
#endif
