/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a pprof file, from any source, into protobuf-c's message of profile.proto. */
#ifndef PPROF_UNPACK_H
#define PPROF_UNPACK_H

#include <stddef.h>

#include "profile.pb-c.h"

/* Must not be moved. */
struct pprof_chunk;

struct pprof_message {
	Perftools__Profiles__Profile *profile; /* NULL: it could not be read */
	const char *error;                     /* why, one sentence; NULL: no error. Static */
	int code;                              /* likewise, -errno */
	size_t memory;                         /* bytes that protobuf-c may still allocate */
	ProtobufCAllocator allocator;
	struct pprof_chunk *chunks; /* all blocks of the message */
	char *at;                   /* free part of the newest, `room` bytes */
	size_t room;
};

/* gzip or plain. Memory is bounded by the limits of pprof.h. 0, -EINVAL, -EFBIG or -ENOMEM;
 * pprof_message_free() is to be called in any case. */
int pprof_unpack(struct pprof_message *, const void *bytes, size_t len);
void pprof_message_free(struct pprof_message *);
#endif
