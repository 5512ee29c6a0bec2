/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protobuf's wire format (protobuf.dev, "Encoding"). Each moves *p, and is false if the bytes
 * end before the value does, or are none. */
#ifndef PPROF_VARINT_H
#define PPROF_VARINT_H

#include <stdbool.h>
#include <stdint.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static inline bool get_long_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (uint32_t shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (*p == end)
			return false;
		byte = *(*p)++;
		*v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Most numbers of a profile have one or two bytes. */
static inline bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	const uint8_t *at = *p;

	if (end - at >= 2 && !(at[0] & at[1] & 0x80)) {
		uint32_t two = at[0] >> 7;

		*v = (at[0] & 0x7fu) | (at[1] & (0u - two)) << 7;
		*p = at + 1 + two;
		return true;
	}
	return get_long_varint(p, end, v);
}

/* The number of a field and the type of its value. */
static inline bool get_tag(const uint8_t **p, const uint8_t *end, uint32_t *field, uint32_t *wire)
{
	uint64_t tag;

	if (!get_varint(p, end, &tag) || tag > UINT32_MAX)
		return false;
	*field = (uint32_t)(tag >> 3);
	*wire = tag & 7;
	return true;
}

/* Passes over a field's value: *v, of a varint; or the len bytes *at. */
static inline bool get_value(const uint8_t **p, const uint8_t *end, uint32_t wire, uint64_t *v,
			     const uint8_t **at, uint64_t *len)
{
	*v = 0;
	*len = wire == WIRE_64 ? 8 : 4;
	*at = *p;
	if (wire == WIRE_VARINT)
		return get_varint(p, end, v);
	if (wire == WIRE_BYTES) {
		if (!get_varint(p, end, len))
			return false;
		*at = *p;
	} else if (wire != WIRE_64 && wire != WIRE_32) {
		return false;
	}
	if (*len > (uint64_t)(end - *p))
		return false;
	*p += *len;
	return true;
}
#endif
