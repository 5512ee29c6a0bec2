/* SPDX-License-Identifier: Apache-2.0 */
/* A field begins with its type and its distance from the field before, if that is at most 15. */
#include "internal.h"

#define LIST 9
#define FALSE 2

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static void begin_field(struct pq_struct *s, int field, int type)
{
	int step = field - s->last;

	s->last = field;
	if (step > 0 && step < 16) {
		fusee_bytes_byte(s->to, (uint8_t)(step << 4 | type));
		return;
	}
	fusee_bytes_byte(s->to, (uint8_t)type);
	fusee_bytes_varint(s->to, zigzag(field));
}

void pq_bool(struct pq_struct *s, int field, bool v)
{
	begin_field(s, field, v ? PQ_BOOL : FALSE);
}

void pq_i32(struct pq_struct *s, int field, int32_t v)
{
	begin_field(s, field, PQ_I32);
	pq_put_i32(s->to, v);
}

void pq_i64(struct pq_struct *s, int field, int64_t v)
{
	begin_field(s, field, PQ_I64);
	pq_put_i64(s->to, v);
}

void pq_binary(struct pq_struct *s, int field, struct fusee_str v)
{
	begin_field(s, field, PQ_BINARY);
	pq_put_binary(s->to, v);
}

struct pq_struct pq_begin(struct pq_struct *s, int field)
{
	begin_field(s, field, PQ_STRUCT);
	return pq_begin_element(s->to);
}

void pq_list(struct pq_struct *s, int field, enum pq_thrift type, uint32_t n)
{
	begin_field(s, field, LIST);
	if (n < 15) {
		fusee_bytes_byte(s->to, (uint8_t)(n << 4 | type));
		return;
	}
	fusee_bytes_byte(s->to, (uint8_t)(0xf0 | type));
	fusee_bytes_varint(s->to, n);
}

struct pq_struct pq_begin_element(struct fusee_bytes *to)
{
	return (struct pq_struct){.to = to};
}

void pq_put_i32(struct fusee_bytes *to, int32_t v)
{
	fusee_bytes_varint(to, zigzag(v));
}

void pq_put_i64(struct fusee_bytes *to, int64_t v)
{
	fusee_bytes_varint(to, zigzag(v));
}

void pq_put_binary(struct fusee_bytes *to, struct fusee_str v)
{
	fusee_bytes_varint(to, v.len);
	fusee_bytes_add(to, v.p, v.len);
}

void pq_end(struct pq_struct *s)
{
	fusee_bytes_byte(s->to, 0);
}
