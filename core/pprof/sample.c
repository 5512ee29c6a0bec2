/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/sample.h"

#include <errno.h>

#include "pprof/internal/varint.h"

enum { FIELD_LOCATIONS = 1, FIELD_VALUES = 2, FIELD_LABEL = 3, FIELD_TIMES = 1000 };

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* Appends packed numbers. They have one byte each at least, so there is room for all. */
static int read_packed(struct buf *to, const uint8_t *p, uint64_t len)
{
	const uint8_t *end = p + len;
	uint64_t *at = buf_grow(to, len * sizeof(*at)), *from = at;

	if (!at)
		return -ENOMEM;
	while (p < end)
		if (!get_varint(&p, end, at++))
			return -EINVAL;
	to->len -= (len - (size_t)(at - from)) * sizeof(*at);
	return 0;
}

static int read_numbers(struct buf *to, uint32_t wire, uint64_t v, const uint8_t *p, uint64_t len)
{
	if (wire == WIRE_BYTES)
		return read_packed(to, p, len);
	return wire == WIRE_VARINT ? buf_add(to, &v, sizeof(v)) : -EINVAL;
}

static int read_label(struct buf *to, const uint8_t *p, uint64_t n)
{
	const uint8_t *end = p + n, *at;
	struct pprof_label l = {0};
	uint32_t field, wire;
	uint64_t v, len;

	while (p < end) {
		if (!get_tag(&p, end, &field, &wire) || !get_value(&p, end, wire, &v, &at, &len))
			return -EINVAL;
		if (field < 1 || field > 4)
			continue;
		if (wire != WIRE_VARINT)
			return -EINVAL;
		*(field == 1   ? &l.key
		  : field == 2 ? &l.str
		  : field == 3 ? &l.num
			       : &l.num_unit) = (int64_t)v;
	}
	return buf_add(to, &l, sizeof(l));
}

static int read_times(struct buf *to, uint32_t wire, uint64_t v, const uint8_t *p, uint64_t len)
{
	size_t before = to->len;
	int r = read_numbers(to, wire, v, p, len);

	for (size_t i = before; !r && i < to->len; i += sizeof(v)) {
		uint64_t *at = (uint64_t *)(void *)(to->p + i);

		*at = (uint64_t)zigzag(*at);
	}
	return r;
}

int pprof_sample_read(struct pprof_sample *s, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n, *at;
	uint32_t field, wire;
	uint64_t v, len;
	int r = 0;

	buf_reset(&s->locations);
	buf_reset(&s->values);
	buf_reset(&s->labels);
	buf_reset(&s->times);
	while (!r && p < end) {
		if (!get_tag(&p, end, &field, &wire) || !get_value(&p, end, wire, &v, &at, &len))
			return -EINVAL;
		if (field == FIELD_LOCATIONS)
			r = read_numbers(&s->locations, wire, v, at, len);
		else if (field == FIELD_VALUES)
			r = read_numbers(&s->values, wire, v, at, len);
		else if (field == FIELD_LABEL)
			r = wire == WIRE_BYTES ? read_label(&s->labels, at, len) : -EINVAL;
		else if (field == FIELD_TIMES)
			r = read_times(&s->times, wire, v, at, len);
	}
	return r;
}

void pprof_sample_fini(struct pprof_sample *s)
{
	buf_fini(&s->locations);
	buf_fini(&s->values);
	buf_fini(&s->labels);
	buf_fini(&s->times);
}
