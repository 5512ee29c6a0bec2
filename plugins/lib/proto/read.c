/* SPDX-License-Identifier: Apache-2.0 */
#include <fusee/proto.h>

static bool take_varint(struct fusee_str *in, uint64_t *v)
{
	*v = 0;
	for (unsigned n = 0; n < 10 && in->len; n++) {
		uint8_t byte = (uint8_t)*in->p++;

		in->len--;
		*v |= (uint64_t)(byte & 0x7f) << 7 * n;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_fixed(struct fusee_str *in, unsigned n, uint64_t *v)
{
	*v = 0;
	if (in->len < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		*v |= (uint64_t)(uint8_t)in->p[i] << 8 * i;
	in->p += n;
	in->len -= n;
	return true;
}

int fusee_proto_next(struct fusee_str *in, struct fusee_proto_field *f)
{
	uint64_t tag, len;
	bool ok = false;

	*f = (struct fusee_proto_field){0};
	if (!in->len)
		return 0;
	if (!take_varint(in, &tag) || tag >> 32 || tag < 8)
		return -EBADMSG;
	f->number = (uint32_t)tag >> 3;
	f->type = tag & 7;
	if (f->type == FUSEE_PROTO_VARINT) {
		ok = take_varint(in, &f->value);
	} else if (f->type == FUSEE_PROTO_FIXED64 || f->type == FUSEE_PROTO_FIXED32) {
		ok = take_fixed(in, f->type == FUSEE_PROTO_FIXED64 ? 8 : 4, &f->value);
	} else if (f->type == FUSEE_PROTO_BYTES) {
		ok = take_varint(in, &len) && len <= in->len;
		f->bytes = (struct fusee_str){in->p, ok ? len : 0};
		in->p += f->bytes.len;
		in->len -= f->bytes.len;
	}
	return ok ? 1 : -EBADMSG;
}
