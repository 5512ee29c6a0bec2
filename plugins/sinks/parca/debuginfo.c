/* SPDX-License-Identifier: Apache-2.0 */
/* parca/debuginfo/v1alpha1/debuginfo.proto. Other fields stay 0: `force`, and `type`, whose 0 is
 * debug information for symbolizing. */
#include "debuginfo.h"

#include <fusee/proto.h>

enum { BUILD_ID_GNU = 1 };

/* ---- writing ---- */

/* The bytes of the frame, which never grow, because ids are short enough. */
static struct fusee_bytes begin(struct debuginfo_frame *f)
{
	return (struct fusee_bytes){.p = f->bytes,
				    .len = FUSEE_PROTO_FRAME,
				    .cap = sizeof(f->bytes),
				    .most = sizeof(f->bytes)};
}

/* more: bytes of the message that follow the frame. */
static void end(struct debuginfo_frame *f, const struct fusee_bytes *b, uint32_t more)
{
	f->len = (uint32_t)b->len;
	fusee_proto_set_frame(f->bytes, f->len - FUSEE_PROTO_FRAME + more);
}

static void put_text(struct fusee_bytes *b, uint32_t field, const char *text)
{
	fusee_proto_bytes(b, field, text, strlen(text));
}

void debuginfo_should_initiate(struct debuginfo_frame *f, const char *build_id)
{
	struct fusee_bytes b = begin(f);

	put_text(&b, 1, build_id);
	fusee_proto_uint(&b, 5, BUILD_ID_GNU);
	end(f, &b, 0);
}

void debuginfo_initiate(struct debuginfo_frame *f, const char *build_id, uint64_t size,
			const char *hash)
{
	struct fusee_bytes b = begin(f);

	put_text(&b, 1, build_id);
	fusee_proto_uint(&b, 2, size);
	put_text(&b, 3, hash);
	fusee_proto_uint(&b, 6, BUILD_ID_GNU);
	end(f, &b, 0);
}

void debuginfo_finished(struct debuginfo_frame *f, const char *build_id, const char *upload_id)
{
	struct fusee_bytes b = begin(f);

	put_text(&b, 1, build_id);
	put_text(&b, 2, upload_id);
	end(f, &b, 0);
}

void debuginfo_info(struct debuginfo_frame *f, const char *build_id, const char *upload_id)
{
	struct fusee_bytes b = begin(f);
	uint64_t info = fusee_proto_begin(&b, 1);

	put_text(&b, 1, build_id);
	put_text(&b, 2, upload_id);
	fusee_proto_end(&b, info);
	end(f, &b, 0);
}

void debuginfo_chunk(struct debuginfo_frame *f, uint32_t n)
{
	struct fusee_bytes b = begin(f);

	fusee_bytes_varint(&b, 2 << 3 | FUSEE_PROTO_BYTES);
	fusee_bytes_varint(&b, n);
	end(f, &b, n);
}

/* ---- reading ---- */

/* Copies a text that fits and has no NUL. */
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
	struct fusee_proto_field f;
	int r;

	*should = false;
	*reason = '\0';
	while ((r = fusee_proto_next(&message, &f)) > 0) {
		if (f.number == 1 && f.type == FUSEE_PROTO_VARINT)
			*should = f.value;
		else if (f.number == 2 && f.type == FUSEE_PROTO_BYTES)
			copy_text(reason, DEBUGINFO_MAX_REASON, f.bytes); /* for people only */
	}
	return !r;
}

static bool read_upload(struct fusee_str message, struct debuginfo_instructions *to)
{
	struct fusee_proto_field f;
	int r;

	while ((r = fusee_proto_next(&message, &f)) > 0) {
		if (f.number == 3 && f.type == FUSEE_PROTO_VARINT)
			to->strategy = f.value == DEBUGINFO_GRPC || f.value == DEBUGINFO_SIGNED_URL
					       ? (int)f.value
					       : DEBUGINFO_NO_STRATEGY;
		else if (f.number == 2 && f.type == FUSEE_PROTO_BYTES &&
			 !copy_text(to->upload_id, sizeof(to->upload_id), f.bytes))
			return false;
		else if (f.number == 4 && f.type == FUSEE_PROTO_BYTES &&
			 !copy_text(to->url, sizeof(to->url), f.bytes))
			return false;
	}
	return !r;
}

bool debuginfo_read_instructions(struct fusee_str message, struct debuginfo_instructions *to)
{
	struct fusee_proto_field f;
	int r;

	*to = (struct debuginfo_instructions){.strategy = DEBUGINFO_NO_STRATEGY};
	while ((r = fusee_proto_next(&message, &f)) > 0)
		if (f.number == 1 && f.type == FUSEE_PROTO_BYTES && !read_upload(f.bytes, to))
			return false;
	return !r;
}
