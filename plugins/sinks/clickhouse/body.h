/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a request, in ClickHouse's format RowBinary. */
#ifndef CLICKHOUSE_BODY_H
#define CLICKHOUSE_BODY_H

#include <fusee/helpers.h>

/* Zeroed is empty. After an error nothing is added. */
struct body {
	char *p; /* owned */
	uint64_t len, cap;
	uint64_t most; /* bytes that it may have */
	int error;     /* -ENOMEM, or -E2BIG: it would have more */
};

void body_reset(struct body *); /* empty, the memory is kept */
void body_fini(struct body *);
void body_add(struct body *, const void *bytes, uint64_t n);
void body_varint(struct body *, uint64_t);
/* The lowest `size` bytes of v, the lowest first. size: at most 8. */
void body_int(struct body *, uint64_t v, uint32_t size);
void body_text(struct body *, struct fusee_str); /* with its length before it */
/* The type UUID: two numbers, the first half of the id before the second. */
void body_uuid(struct body *, const uint8_t id[16]);
#endif
