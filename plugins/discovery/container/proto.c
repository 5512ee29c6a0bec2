/* SPDX-License-Identifier: Apache-2.0 */
#include "proto.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static int take_varint(struct fusee_str *m, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && m->len; shift += 7) {
		uint8_t byte = (uint8_t)*m->p++;

		m->len--;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return 0;
	}
	return -EBADMSG;
}

static int take_bytes(struct fusee_str *m, uint64_t n, struct fusee_str *bytes)
{
	if (n > m->len)
		return -EBADMSG;
	*bytes = (struct fusee_str){m->p, n};
	m->p += n;
	m->len -= n;
	return 0;
}

int proto_next(struct fusee_str *m, struct field *f)
{
	uint64_t tag, n;

	if (!m->len)
		return 0;
	*f = (struct field){0};
	if (take_varint(m, &tag) || !(tag >> 3) || tag >> 3 > UINT32_MAX)
		return -EBADMSG;
	f->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case WIRE_VARINT:
		return take_varint(m, &f->value) ? -EBADMSG : 1;
	case WIRE_64:
		return take_bytes(m, 8, &f->bytes) ? -EBADMSG : 1;
	case WIRE_32:
		return take_bytes(m, 4, &f->bytes) ? -EBADMSG : 1;
	case WIRE_BYTES:
		f->is_bytes = 1;
		return take_varint(m, &n) || take_bytes(m, n, &f->bytes) ? -EBADMSG : 1;
	default: /* groups, which proto3 does not have */
		return -EBADMSG;
	}
}

/* The bytes of the character that begins at p; 0: it is none. */
static size_t character(const unsigned char *p, uint64_t len)
{
	static const uint32_t least[] = {0, 1, 0x80, 0x800, 0x10000};
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc0 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf8 ? 4
			       : 0;
	uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);

	if (!n || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

int proto_is_text(struct fusee_str s)
{
	while (s.len) {
		size_t n = character((const unsigned char *)s.p, s.len);

		if (!n)
			return 0;
		s.p += n;
		s.len -= n;
	}
	return 1;
}

void proto_add(uint8_t *message, size_t size, size_t *n, uint32_t number, const char *text)
{
	size_t len = strlen(text);

	if (len >= 128 || number >= 16 || *n + len + 2 > size)
		return;
	message[(*n)++] = (uint8_t)(number << 3 | WIRE_BYTES);
	message[(*n)++] = (uint8_t)len;
	memcpy(message + *n, text, len);
	*n += len;
}
