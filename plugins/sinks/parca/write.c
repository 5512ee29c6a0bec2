/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WriteRawRequest { series = 2 { labels = 1 { labels = 1 { name = 1, value = 2 } }, samples = 2 {
 * raw_profile = 1 } }, normalized = 3 }, of parca/profilestore/v1alpha1/profilestore.proto; sizes
 * are summed first and the bytes follow. The gateway has the same as JSON, with raw_profile in
 * base64.
 */
#include "write.h"

#include <stdlib.h>

#define BYTES(field) ((field) << 3 | 2) /* a tag of fields below 16 */

/* ---- protobuf ---- */

static uint64_t field_size(uint64_t n)
{
	uint64_t size = 2 + n;

	for (uint64_t v = n; v >= 0x80; v >>= 7)
		size++;
	return size;
}

static uint64_t label_size(struct fusee_str name, struct fusee_str value)
{
	return field_size(field_size(name.len) + field_size(value.len));
}

static void put_head(FILE *f, uint32_t field, uint64_t n)
{
	fputc((int)BYTES(field), f);
	for (; n >= 0x80; n >>= 7)
		fputc((int)(n | 0x80) & 0xff, f);
	fputc((int)n, f);
}

static void put(FILE *f, uint32_t field, struct fusee_str s)
{
	put_head(f, field, s.len);
	fwrite(s.p, 1, s.len, f);
}

static void put_label(FILE *f, struct fusee_str name, struct fusee_str value)
{
	put_head(f, 1, field_size(name.len) + field_size(value.len));
	put(f, 1, name);
	put(f, 2, value);
}

static const struct fusee_str metric = FUSEE_TEXT("__name__");

static void put_message(FILE *f, struct fusee_str name, struct fusee_table labels,
			struct fusee_str pprof)
{
	uint64_t set = label_size(metric, name), sample = field_size(pprof.len), series, all;

	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		set += label_size(l->key, l->str);
	}
	series = field_size(set) + field_size(sample);
	all = field_size(series) + 2;
	fputc(0, f); /* a message that is not compressed */
	for (int shift = 24; shift >= 0; shift -= 8)
		fputc((int)(all >> shift) & 0xff, f);
	put_head(f, 2, series);
	put_head(f, 1, set);
	put_label(f, metric, name);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		put_label(f, l->key, l->str);
	}
	put_head(f, 2, sample);
	put(f, 1, pprof);
	fputc(3 << 3, f); /* normalized: addresses are those of the files */
	fputc(1, f);
}

/* ---- JSON ---- */

static void put_text(FILE *f, struct fusee_str s)
{
	fputc('"', f);
	for (uint64_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ')
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void put_base64(FILE *f, struct fusee_str s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (uint64_t i = 0; i < s.len; i += 3) {
		uint32_t v = 0;

		for (uint64_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < s.len ? (uint8_t)s.p[i + k] : 0);
		for (uint64_t k = 0; k < 4; k++)
			fputc(i + k > s.len ? '=' : digits[v >> (18 - 6 * k) & 63], f);
	}
}

static void put_json(FILE *f, struct fusee_str name, struct fusee_table labels,
		     struct fusee_str pprof)
{
	fputs("{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":", f);
	put_text(f, name);
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		fputs("},{\"name\":", f);
		put_text(f, l->key);
		fputs(",\"value\":", f);
		put_text(f, l->str);
	}
	fputs("}]},\"samples\":[{\"rawProfile\":\"", f);
	put_base64(f, pprof);
	fputs("\"}]}],\"normalized\":true}", f);
}

int write_encode(enum write_protocol protocol, const char *name, struct fusee_table labels,
		 struct fusee_str pprof, struct fusee_str *ret)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	bool failed;

	*ret = (struct fusee_str){NULL, 0};
	if (!f)
		return -ENOMEM;
	if (protocol == WRITE_JSON)
		put_json(f, fusee_text(name), labels, pprof);
	else
		put_message(f, fusee_text(name), labels, pprof);
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(bytes);
		return -ENOMEM;
	}
	*ret = (struct fusee_str){bytes, n};
	return 0;
}
