/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/proto.h - fields of protobuf messages and frames of gRPC, written and read. Optional: a
 * plugin links it statically (libfusee-proto.a, `pkg-config --libs fusee-proto`; in fusee's own
 * tree the plugin's file `uses` has the line "proto"). Any thread, one at a time for the same
 * bytes.
 */
#ifndef FUSEE_PROTO_H
#define FUSEE_PROTO_H

#include <fusee/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing: an error is kept in the bytes ---- */

/* A zero is not written, as proto3 has it. */
void fusee_proto_uint(struct fusee_bytes *, uint32_t field, uint64_t);
void fusee_proto_fixed64(struct fusee_bytes *, uint32_t field, uint64_t);
/* Written also if it is empty: an element of a repeated field. */
void fusee_proto_bytes(struct fusee_bytes *, uint32_t field, const void *, uint64_t len);
void fusee_proto_text(struct fusee_bytes *, uint32_t field, struct fusee_str);
/* Packed; nothing is written for n == 0. */
void fusee_proto_indexes(struct fusee_bytes *, uint32_t field, const uint32_t *, uint32_t n);

/* A field of bytes that are appended between the two calls. begin() returns end()'s argument. */
uint64_t fusee_proto_begin(struct fusee_bytes *, uint32_t field);
void fusee_proto_end(struct fusee_bytes *, uint64_t begun);

/* ---- reading ---- */

enum fusee_proto_type {
	FUSEE_PROTO_VARINT = 0,
	FUSEE_PROTO_FIXED64 = 1,
	FUSEE_PROTO_BYTES = 2,
	FUSEE_PROTO_FIXED32 = 5,
};

struct fusee_proto_field {
	uint32_t number, type;  /* enum fusee_proto_type */
	uint64_t value;         /* of all types but bytes */
	struct fusee_str bytes; /* a text, or a message in the message */
};

/* Takes the next field from *in, whose rest *in then is. 1; 0: *in is empty; -EBADMSG: these are
 * not fields of protobuf. */
int fusee_proto_next(struct fusee_str *in, struct fusee_proto_field *);

/* ---- frames of gRPC ---- */

/* Bytes before a message: flags, 0 if it is not compressed, and its length. */
#define FUSEE_PROTO_FRAME 5u

/* Sets the length of a message that is not compressed. */
static inline void fusee_proto_set_frame(void *head, uint32_t len)
{
	uint8_t *p = (uint8_t *)head;

	p[0] = 0;
	for (int i = 0; i < 4; i++)
		p[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

static inline uint32_t fusee_proto_frame_length(const void *head)
{
	const uint8_t *p = (const uint8_t *)head;

	return (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
}

#ifdef __cplusplus
}
#endif
#endif
