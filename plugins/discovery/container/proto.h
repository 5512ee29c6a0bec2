/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of protobuf messages (protobuf.dev/programming-guides/encoding), each checked against the
 * message's end. */
#ifndef CONTAINER_PROTO_H
#define CONTAINER_PROTO_H

#include <fusee/helpers.h>

struct field {
	uint32_t number;
	int is_bytes;           /* else it is a number */
	uint64_t value;         /* of a number */
	struct fusee_str bytes; /* a text, or a message in the message */
};

/* The next field of a message, which it is taken from. 1; 0: that was all; -EBADMSG: it is no
 * message. */
int proto_next(struct fusee_str *message, struct field *);
/* Is this UTF-8, without a NUL? */
int proto_is_text(struct fusee_str);

/* Appends a field with a text to a message of at most `size` bytes, of which *n are there. The text
 * has less than 128 bytes, or nothing is appended. */
void proto_add(uint8_t *message, size_t size, size_t *n, uint32_t number, const char *text);
#endif
