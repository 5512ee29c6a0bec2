/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in protobuf's encoding. {0} is empty. A failed append sets `error`, and nothing is appended
 * from then on, so that a caller checks once.
 */
#ifndef OTLP_WIRE_H
#define OTLP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

struct wire {
	char *p; /* owned */
	size_t len, cap;
	int error; /* -ENOMEM; 0: none */
};

void wire_fini(struct wire *);
void wire_reset(struct wire *); /* empty again; the memory is kept */
/* Room for len more bytes. false: `error` is set. */
bool wire_reserve(struct wire *, size_t len);
void wire_add(struct wire *, const void *, size_t len);
void wire_varint(struct wire *, uint64_t);

/* Fields. A zero is not written, as proto3 has it. */
void wire_uint(struct wire *, uint32_t field, uint64_t);
void wire_fixed64(struct wire *, uint32_t field, uint64_t);
/* Written also if it is empty: an element of a repeated field. */
void wire_bytes(struct wire *, uint32_t field, const void *, size_t len);
/* Packed; nothing is written for n == 0. */
void wire_indexes(struct wire *, uint32_t field, const uint32_t *, uint32_t n);

/* A field of bytes that are appended between the two calls. begin() returns end()'s argument. */
size_t wire_begin(struct wire *, uint32_t field);
void wire_end(struct wire *, size_t begun);

/* A field that is read. */
struct wire_field {
	uint32_t number, type; /* type: 0 varint, 1 and 5 fixed, 2 bytes */
	uint64_t value;        /* of types 0, 1 and 5 */
	struct fusee_str bytes;
};

/* Takes the next field from *in, whose rest *in then is. 1; 0: *in is empty; -EBADMSG: these are
 * not fields of protobuf. */
int wire_next(struct fusee_str *in, struct wire_field *);
#endif
