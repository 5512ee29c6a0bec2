/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/proto
/* Fields of protobuf as they are written, read back, truncated; bytes that may not grow. */
#include "test.h"

#include <fusee/helpers.h>
#include <fusee/proto.h>

#define PUT(b, literal) CHECK_INT(memcmp((b)->p, literal, sizeof(literal) - 1), 0)

TEST(what_is_written_is_read)
{
	static const uint32_t numbers[] = {1, 300, 0};
	struct fusee_bytes b = {0};
	struct fusee_proto_field f;
	struct fusee_str in, in_field;
	uint64_t outer, inner;
	char text[200];

	memset(text, 'x', sizeof(text));
	fusee_proto_uint(&b, 1, 0);
	CHECK_INT(b.len, 0);
	fusee_proto_uint(&b, 1, 300);
	fusee_proto_fixed64(&b, 2, 0x0102030405060708);
	fusee_proto_indexes(&b, 3, numbers, 3);
	outer = fusee_proto_begin(&b, 400);
	inner = fusee_proto_begin(&b, 1);
	fusee_bytes_add(&b, text, sizeof(text));
	fusee_proto_end(&b, inner);
	fusee_proto_end(&b, outer);
	fusee_proto_bytes(&b, 5, "", 0);
	CHECK_INT(b.error, 0);
	PUT(&b, "\x08\xac\x02\x11\x08\x07\x06\x05\x04\x03\x02\x01\x1a\x04\x01\xac\x02\x00");
	in = fusee_bytes_str(&b);
	CHECK(fusee_proto_next(&in, &f) == 1 && f.number == 1 && f.value == 300);
	CHECK(fusee_proto_next(&in, &f) == 1 && f.type == FUSEE_PROTO_FIXED64);
	CHECK_INT(f.value, 0x0102030405060708);
	CHECK(fusee_proto_next(&in, &f) == 1 && f.number == 3 && f.bytes.len == 4);
	CHECK(fusee_proto_next(&in, &f) == 1 && f.number == 400);
	in_field = f.bytes;
	CHECK(fusee_proto_next(&in_field, &f) == 1 && f.number == 1);
	CHECK(f.bytes.len == sizeof(text) && !memcmp(f.bytes.p, text, sizeof(text)));
	CHECK(fusee_proto_next(&in, &f) == 1 && f.number == 5 && !f.bytes.len);
	CHECK_INT(fusee_proto_next(&in, &f), 0);
	for (uint64_t n = 1; n < b.len; n++) { /* truncated: no field goes beyond the end */
		in = (struct fusee_str){b.p, n};
		while (fusee_proto_next(&in, &f) == 1)
			CHECK(f.bytes.len <= n);
	}
	fusee_bytes_fini(&b);
}

TEST(what_is_no_message)
{
	static const struct fusee_str wrong[] = {
		FUSEE_TEXT("\x0b"),       /* a group */
		FUSEE_TEXT("\x00\x01"),   /* the number 0 */
		FUSEE_TEXT("\x12\x03no"), /* a text that does not end */
		FUSEE_TEXT("\x08"),
		FUSEE_TEXT("\x09zzzzzzz"),
		FUSEE_TEXT("\x0dzzz"),
		FUSEE_TEXT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	};
	struct fusee_proto_field f;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct fusee_str in = wrong[i];

		CHECK_INT(fusee_proto_next(&in, &f), -EBADMSG);
	}
}

TEST(bytes_that_may_not_grow)
{
	char room[64];
	struct fusee_bytes b = {.p = room, .cap = sizeof(room), .most = sizeof(room)};

	fusee_proto_text(&b, 1, (struct fusee_str)FUSEE_TEXT("0123456789"));
	CHECK_INT(b.error, 0);
	CHECK(b.p == room && b.len == 12);
	fusee_proto_text(&b, 1, (struct fusee_str){room, 50});
	CHECK_INT(b.error, -E2BIG);
	fusee_bytes_byte(&b, 1);
	CHECK(b.len == 12);
	fusee_bytes_reset(&b);
	fusee_bytes_add(&b, "x", 1);
	CHECK(!b.error && b.len == 1 && b.p == room);
}

TEST(frames)
{
	uint8_t head[FUSEE_PROTO_FRAME];

	fusee_proto_set_frame(head, 0x01020304);
	CHECK(!memcmp(head, "\0\1\2\3\4", sizeof(head)));
	CHECK_INT(fusee_proto_frame_length(head), 0x01020304);
}
