/* SPDX-License-Identifier: Apache-2.0 */
/* parca/debuginfo/v1alpha1/debuginfo.proto. Fields that are not here stay 0: `force`,
 * and `type`, which is then debug information, for symbolizing. */
#include "debuginfo.h"

#include <string.h>

#define FRAME_HEAD 5u
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { BUILD_ID_GNU = 1 };

/* ---- writing ---- */

static void put(struct debuginfo_frame *f, const void *bytes, size_t n)
{
	if (n > sizeof(f->bytes) - f->len)
		n = 0; /* not with ids that are as short as they must be */
	memcpy(f->bytes + f->len, bytes, n);
	f->len += (uint32_t)n;
}

static void put_varint(struct debuginfo_frame *f, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put(f, &(char){(char)(v | 0x80)}, 1);
	put(f, &(char){(char)v}, 1);
}

static void put_text(struct debuginfo_frame *f, uint32_t field, const char *text)
{
	size_t n = strlen(text);

	put_varint(f, field << 3 | BYTES);
	put_varint(f, n);
	put(f, text, n);
}

static void put_number(struct debuginfo_frame *f, uint32_t field, uint64_t v)
{
	put_varint(f, field << 3 | VARINT);
	put_varint(f, v);
}

static void begin(struct debuginfo_frame *f)
{
	memset(f->bytes, 0, FRAME_HEAD);
	f->len = FRAME_HEAD;
}

/* more: bytes of the message that follow the frame. */
static void end(struct debuginfo_frame *f, uint32_t more)
{
	uint32_t n = f->len - FRAME_HEAD + more;

	for (uint32_t i = 0; i < 4; i++)
		f->bytes[4 - i] = (char)(n >> 8 * i);
}

void debuginfo_should_initiate(struct debuginfo_frame *f, const char *build_id)
{
	begin(f);
	put_text(f, 1, build_id);
	put_number(f, 5, BUILD_ID_GNU);
	end(f, 0);
}

void debuginfo_initiate(struct debuginfo_frame *f, const char *build_id, uint64_t size,
			const char *hash)
{
	begin(f);
	put_text(f, 1, build_id);
	put_number(f, 2, size);
	put_text(f, 3, hash);
	put_number(f, 6, BUILD_ID_GNU);
	end(f, 0);
}

void debuginfo_finished(struct debuginfo_frame *f, const char *build_id, const char *upload_id)
{
	begin(f);
	put_text(f, 1, build_id);
	put_text(f, 2, upload_id);
	end(f, 0);
}

void debuginfo_info(struct debuginfo_frame *f, const char *build_id, const char *upload_id)
{
	struct debuginfo_frame info = {.len = 0};

	put_text(&info, 1, build_id);
	put_text(&info, 2, upload_id);
	begin(f);
	put_varint(f, 1 << 3 | BYTES);
	put_varint(f, info.len);
	put(f, info.bytes, info.len);
	end(f, 0);
}

void debuginfo_chunk(struct debuginfo_frame *f, uint32_t n)
{
	begin(f);
	put_varint(f, 2 << 3 | BYTES);
	put_varint(f, n);
	end(f, n);
}

/* ---- reading ---- */

struct field {
	uint32_t number, type;
	uint64_t value;         /* VARINT */
	struct fusee_str bytes; /* BYTES */
};

static bool take_varint(struct fusee_str *in, uint64_t *v)
{
	*v = 0;
	for (uint32_t shift = 0; shift < 64 && in->len; shift += 7) {
		uint8_t c = (uint8_t)*in->p++;

		in->len--;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

/* 1; 0: the end; -1: no message. */
static int next_field(struct fusee_str *in, struct field *f)
{
	uint64_t tag, n = 0;

	if (!in->len)
		return 0;
	if (!take_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -1;
	*f = (struct field){.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
	if (f->type == VARINT)
		return take_varint(in, &f->value) ? 1 : -1;
	if (f->type == BYTES && !take_varint(in, &n))
		return -1;
	if (f->type == FIXED64 || f->type == FIXED32)
		n = f->type == FIXED64 ? 8 : 4;
	else if (f->type != BYTES)
		return -1;
	if (n > in->len)
		return -1;
	f->bytes = (struct fusee_str){in->p, n};
	in->p += n;
	in->len -= n;
	return 1;
}

/* A text without a NUL that fits. */
static bool copy_text(char *to, size_t size, struct fusee_str s)
{
	if (s.len >= size || (s.len && memchr(s.p, '\0', s.len)))
		return false;
	if (s.len)
		memcpy(to, s.p, s.len);
	to[s.len] = '\0';
	return true;
}

bool debuginfo_read_should(struct fusee_str message, bool *should,
			   char reason[DEBUGINFO_MAX_REASON])
{
	struct field f;
	int r;

	*should = false;
	*reason = '\0';
	while ((r = next_field(&message, &f)) > 0) {
		if (f.number == 1 && f.type == VARINT)
			*should = f.value;
		else if (f.number == 2 && f.type == BYTES)
			copy_text(reason, DEBUGINFO_MAX_REASON, f.bytes); /* for people only */
	}
	return !r;
}

static bool read_upload(struct fusee_str message, struct debuginfo_instructions *to)
{
	struct field f;
	int r;

	while ((r = next_field(&message, &f)) > 0) {
		if (f.number == 3 && f.type == VARINT)
			to->strategy = f.value == DEBUGINFO_GRPC || f.value == DEBUGINFO_SIGNED_URL
					       ? (int)f.value
					       : DEBUGINFO_NO_STRATEGY;
		else if (f.number == 2 && f.type == BYTES &&
			 !copy_text(to->upload_id, sizeof(to->upload_id), f.bytes))
			return false;
		else if (f.number == 4 && f.type == BYTES &&
			 !copy_text(to->url, sizeof(to->url), f.bytes))
			return false;
	}
	return !r;
}

bool debuginfo_read_instructions(struct fusee_str message, struct debuginfo_instructions *to)
{
	struct field f;
	int r;

	*to = (struct debuginfo_instructions){.strategy = DEBUGINFO_NO_STRATEGY};
	while ((r = next_field(&message, &f)) > 0)
		if (f.number == 1 && f.type == BYTES && !read_upload(f.bytes, to))
			return false;
	return !r;
}
