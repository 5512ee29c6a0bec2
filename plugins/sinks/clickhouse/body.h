/* SPDX-License-Identifier: Apache-2.0 */
/* Values in ClickHouse's format RowBinary; numbers are fusee_bytes_number(). */
#ifndef CLICKHOUSE_BODY_H
#define CLICKHOUSE_BODY_H

#include <fusee/bytes.h>

void body_text(struct fusee_bytes *, struct fusee_str); /* with its length before it */
/* The type UUID: two numbers, the first half of the id before the second. */
void body_uuid(struct fusee_bytes *, const uint8_t id[16]);
#endif
