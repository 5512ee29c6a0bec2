/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WriteRawRequest { series = 2 { labels = 1 { labels = 1 { name = 1, value = 2 } }, samples = 2 {
 * raw_profile = 1 } }, normalized = 3 }, of parca/profilestore/v1alpha1/profilestore.proto. The
 * gateway has the same as JSON, with raw_profile in base64.
 */
#include "write.h"

#include <fusee/proto.h>

/* ---- protobuf ---- */

static void put_label(struct fusee_bytes *b, struct fusee_str name, struct fusee_str value)
{
	uint64_t label = fusee_proto_begin(b, 1);

	fusee_proto_text(b, 1, name);
	fusee_proto_text(b, 2, value);
	fusee_proto_end(b, label);
}

static void put_message(struct fusee_bytes *b, struct fusee_str name, struct fusee_table labels,
			struct fusee_str pprof)
{
	const struct fusee_str metric = FUSEE_TEXT("__name__");
	uint64_t series, part;

	fusee_bytes_add(b, (char[FUSEE_PROTO_FRAME]){0}, FUSEE_PROTO_FRAME);
	series = fusee_proto_begin(b, 2);
	part = fusee_proto_begin(b, 1);
	put_label(b, metric, name);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		put_label(b, l->key, l->str);
	}
	fusee_proto_end(b, part);
	part = fusee_proto_begin(b, 2);
	fusee_proto_text(b, 1, pprof);
	fusee_proto_end(b, part);
	fusee_proto_end(b, series);
	fusee_proto_uint(b, 3, 1); /* normalized: addresses are those of the files */
	if (!b->error)
		fusee_proto_set_frame(b->p, (uint32_t)(b->len - FUSEE_PROTO_FRAME));
}

/* ---- JSON ---- */

static void put(struct fusee_bytes *b, const char *text)
{
	fusee_bytes_add(b, text, strlen(text));
}

static void put_text(struct fusee_bytes *b, struct fusee_str s)
{
	char escape[8];

	put(b, "\"");
	for (uint64_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if (c == '"' || c == '\\')
			put(b, "\\");
		if (c < ' ') {
			snprintf(escape, sizeof(escape), "\\u%04x", c);
			put(b, escape);
		} else {
			fusee_bytes_byte(b, c);
		}
	}
	put(b, "\"");
}

static void put_base64(struct fusee_bytes *b, struct fusee_str s)
{
	uint64_t n = (s.len + 2) / 3 * 4;

	if (!fusee_bytes_reserve(b, n + 1))
		return;
	fusee_http_base64(b->p + b->len, s);
	b->len += n;
}

static void put_json(struct fusee_bytes *b, struct fusee_str name, struct fusee_table labels,
		     struct fusee_str pprof)
{
	put(b, "{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":");
	put_text(b, name);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		put(b, "},{\"name\":");
		put_text(b, l->key);
		put(b, ",\"value\":");
		put_text(b, l->str);
	}
	put(b, "}]},\"samples\":[{\"rawProfile\":\"");
	put_base64(b, pprof);
	put(b, "\"}]}],\"normalized\":true}");
}

int write_encode(enum write_protocol protocol, const char *name, struct fusee_table labels,
		 struct fusee_str pprof, struct fusee_bytes *to)
{
	if (protocol == WRITE_JSON)
		put_json(to, fusee_text(name), labels, pprof);
	else
		put_message(to, fusee_text(name), labels, pprof);
	return to->error;
}
