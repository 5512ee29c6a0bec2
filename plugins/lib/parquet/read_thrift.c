/* SPDX-License-Identifier: Apache-2.0 */
#include "read_internal.h"

enum { STOP = 0, FALSE = 2, I16 = 4, DOUBLE = 7, LIST = 9, SET = 10 };

#define MAX_DEPTH 16
#define MAX_FIELD 32767

const uint8_t *pq_get_bytes(struct pq_in *in, uint64_t n)
{
	const uint8_t *p = in->at;

	if (in->bad || n > (uint64_t)(in->end - in->at)) {
		in->bad = true;
		return NULL;
	}
	in->at += n;
	return p;
}

static uint8_t get_byte(struct pq_in *in)
{
	const uint8_t *p = pq_get_bytes(in, 1);

	return p ? *p : 0;
}

uint64_t pq_get_varint(struct pq_in *in)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t b = get_byte(in);

		if (shift == 63 && b > 1)
			break;
		v |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return in->bad ? 0 : v;
	}
	in->bad = true;
	return 0;
}

uint64_t pq_get_number(struct pq_in *in, unsigned int size)
{
	const uint8_t *p = pq_get_bytes(in, size);
	uint64_t v = 0;

	for (unsigned int i = size; p && i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

bool pq_next(struct pq_in *in, struct pq_field *f)
{
	uint8_t b = get_byte(in);
	int64_t id = b >> 4 ? f->id + (b >> 4) : 0;

	f->type = b & 15;
	if (in->bad || f->type == STOP)
		return false;
	if (!id)
		id = unzigzag(pq_get_varint(in));
	if (id <= f->id || id > MAX_FIELD)
		in->bad = true;
	f->id = (int)id;
	return !in->bad;
}

void pq_check_type(struct pq_in *in, const struct pq_field *f, enum pq_thrift type)
{
	if (f->type != (int)type)
		in->bad = true;
}

int64_t pq_get_int(struct pq_in *in, const struct pq_field *f, enum pq_thrift type, int64_t min,
		   int64_t max)
{
	int64_t v;

	pq_check_type(in, f, type);
	v = unzigzag(pq_get_varint(in));
	if (!in->bad && v >= min && v <= max)
		return v;
	in->bad = true;
	return 0;
}

struct fusee_str pq_get_binary(struct pq_in *in, const struct pq_field *f)
{
	uint64_t n;
	const uint8_t *p;

	pq_check_type(in, f, PQ_BINARY);
	n = pq_get_varint(in);
	p = pq_get_bytes(in, n);
	return (struct fusee_str){p ? (const char *)p : "", p ? n : 0};
}

/* Each element takes a byte at least. */
static uint64_t get_size(struct pq_in *in, int *type)
{
	uint8_t b = get_byte(in);
	uint64_t n = b >> 4 == 15 ? pq_get_varint(in) : b >> 4;

	*type = b & 15;
	if (!in->bad && n <= (uint64_t)(in->end - in->at) && n <= INT32_MAX)
		return n;
	in->bad = true;
	return 0;
}

uint32_t pq_get_list(struct pq_in *in, const struct pq_field *f, enum pq_thrift element)
{
	int type = 0;
	uint64_t n;

	pq_check_type(in, f, (enum pq_thrift)LIST);
	n = get_size(in, &type);
	if (n && type != (int)element)
		in->bad = true;
	return in->bad ? 0 : (uint32_t)n;
}

static void skip(struct pq_in *in, int type, bool element, unsigned int depth)
{
	struct pq_field f = {0};
	int inner = 0;

	if (type == PQ_BOOL || type == FALSE) {
		if (element)
			get_byte(in);
	} else if (type == PQ_I8) {
		get_byte(in);
	} else if (type == I16 || type == PQ_I32 || type == PQ_I64) {
		pq_get_varint(in);
	} else if (type == DOUBLE) {
		pq_get_bytes(in, 8);
	} else if (type == PQ_BINARY) {
		pq_get_bytes(in, pq_get_varint(in));
	} else if (depth == MAX_DEPTH) {
		in->bad = true;
	} else if (type == LIST || type == SET) {
		for (uint64_t n = get_size(in, &inner); n && !in->bad; n--)
			skip(in, inner, true, depth + 1);
	} else if (type == PQ_STRUCT) {
		while (pq_next(in, &f))
			skip(in, f.type, false, depth + 1);
	} else {
		in->bad = true;
	}
}

void pq_skip(struct pq_in *in, const struct pq_field *f)
{
	skip(in, f->type, false, 0);
}
