/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PushRequest { series = 1 { labels = 1 { name = 1, value = 2 }, samples = 2 { raw_profile = 1, ID
 * = 2 } } }: all of it length-delimited, so sizes are summed first and the bytes follow.
 */
#include "push.h"

#include <stdlib.h>

#define BYTES(field) ((field) << 3 | 2) /* a tag of fields below 16 */
#define ID_TEXT 36                      /* characters of an UUID */

/* ---- sizes ---- */

static uint64_t varint_size(uint64_t n)
{
	uint64_t size = 1;

	for (; n >= 0x80; n >>= 7)
		size++;
	return size;
}

static uint64_t field_size(uint64_t n)
{
	return 1 + varint_size(n) + n;
}

static uint64_t label_size(uint64_t name, uint64_t value)
{
	return field_size(name) + field_size(value);
}

/* ---- bytes ---- */

static char *put_head(char *to, uint32_t field, uint64_t n)
{
	*to++ = (char)BYTES(field);
	for (; n >= 0x80; n >>= 7)
		*to++ = (char)(n | 0x80);
	*to++ = (char)n;
	return to;
}

static char *put(char *to, uint32_t field, struct fusee_str text)
{
	to = put_head(to, field, text.len);
	memcpy(to, text.p, text.len);
	return to + text.len;
}

static char *put_label(char *to, struct fusee_str name, struct fusee_str value)
{
	to = put_head(to, 1, label_size(name.len, value.len));
	return put(put(to, 1, name), 2, value);
}

/* As an UUID, since servers may parse it. */
static void id_text(char text[ID_TEXT + 1], const uint8_t id[16])
{
	size_t n = 0;

	for (size_t i = 0; i < 16; i++)
		n += (size_t)snprintf(text + n, ID_TEXT + 1 - n,
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
				      id[i]);
}

int push_encode(const char *name, struct fusee_table labels, const struct fusee_profile *p,
		struct fusee_str pprof, struct fusee_str *ret)
{
	const struct fusee_str metric = FUSEE_TEXT("__name__");
	uint64_t sample = field_size(pprof.len) + field_size(ID_TEXT), series;
	char id[ID_TEXT + 1], *bytes, *to;

	series = field_size(sample) + field_size(label_size(metric.len, strlen(name)));
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		series += field_size(label_size(l->key.len, l->str.len));
	}
	bytes = malloc(field_size(series));
	*ret = (struct fusee_str){bytes, bytes ? field_size(series) : 0};
	if (!bytes)
		return -ENOMEM;
	id_text(id, p->id);
	to = put_label(put_head(bytes, 1, series), metric, fusee_text(name));
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		to = put_label(to, l->key, l->str);
	}
	to = put(put_head(to, 2, sample), 1, pprof);
	put(to, 2, (struct fusee_str){id, ID_TEXT});
	return 0;
}
