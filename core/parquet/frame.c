/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/internal/frame.h"

#include <errno.h>
#include <string.h>

/* The rest of a text that is being read. */
struct in {
	const char *at, *end;
	struct buf *room;
};

/* A member, in the order of files. */
struct member {
	const char *key; /* with its quotes and colon */
	uint8_t len;
	bool is_text;
	uint8_t index;
};

#define TEXT(key, index)                                     \
	{                                                    \
		"\"" key "\":", sizeof(key) + 2, true, index \
	}
#define NUMBER(key, index)                                    \
	{                                                     \
		"\"" key "\":", sizeof(key) + 2, false, index \
	}
static const struct member members[] = {
	TEXT("function", FRAME_FUNCTION), TEXT("file", FRAME_FILE),
	NUMBER("line", FRAME_LINE),       TEXT("mapping", FRAME_MAPPING),
	TEXT("build_id", FRAME_BUILD_ID), NUMBER("inlined", FRAME_INLINED),
	TEXT("type", FRAME_TYPE),         NUMBER("start_line", FRAME_START_LINE),
	TEXT("language", FRAME_LANGUAGE), NUMBER("flags", FRAME_FLAGS),
	NUMBER("address", FRAME_ADDRESS),
};
#define MEMBERS (sizeof(members) / sizeof(*members))

static bool take(struct in *in, char c)
{
	if (in->at == in->end || *in->at != c)
		return false;
	in->at++;
	return true;
}

static bool take_key(struct in *in, const struct member *m)
{
	if ((uint64_t)(in->end - in->at) < m->len || memcmp(in->at, m->key, m->len))
		return false;
	in->at += m->len;
	return true;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads what follows a backslash: a quote, a backslash, or "u00" and the two digits of a byte. */
static bool take_escape(struct in *in, char *c)
{
	if (in->at == in->end)
		return false;
	*c = *in->at++;
	if (*c == '"' || *c == '\\')
		return true;
	if (*c != 'u' || in->end - in->at < 4 || memcmp(in->at, "00", 2) || digit(in->at[2]) < 0 ||
	    digit(in->at[2]) > 1 || digit(in->at[3]) < 0)
		return false;
	*c = (char)(digit(in->at[2]) << 4 | digit(in->at[3]));
	in->at += 4;
	return true;
}

/* Reads the rest of a text with escapes, whose first bytes are `begin`. Room for all of it was
 * made. */
static int take_escaped(struct in *in, const char *begin, struct fusee_str *s)
{
	char *to = in->room->p + in->room->len, *first = to;

	memcpy(to, begin, (size_t)(in->at - begin));
	to += in->at - begin;
	while (in->at < in->end && *in->at != '"') {
		*to = *in->at++;
		if (*to == '\\' && !take_escape(in, to))
			return -EINVAL;
		to++;
	}
	in->room->len += (size_t)(to - first);
	*s = (struct fusee_str){first, (uint64_t)(to - first)};
	return take(in, '"') ? 0 : -EINVAL;
}

static int take_text(struct in *in, struct fusee_str *s)
{
	const char *begin = in->at + 1;

	if (!take(in, '"'))
		return -EINVAL;
	while (in->at < in->end && *in->at != '"' && *in->at != '\\')
		in->at++;
	if (in->at < in->end && *in->at == '\\')
		return take_escaped(in, begin, s);
	*s = (struct fusee_str){begin, (uint64_t)(in->at - begin)};
	return take(in, '"') ? 0 : -EINVAL;
}

static int take_number(struct in *in, int64_t *v)
{
	bool negative = take(in, '-');
	const char *begin = in->at;

	*v = 0;
	for (; in->at < in->end && digit(*in->at) >= 0 && digit(*in->at) < 10; in->at++) {
		int64_t d = digit(*in->at);

		if (__builtin_mul_overflow(*v, 10, v) ||
		    __builtin_add_overflow(*v, negative ? -d : d, v))
			return -EINVAL;
	}
	return in->at == begin ? -EINVAL : 0;
}

/* Makes room for all texts with escapes at once, because texts point into it. */
static int begin(struct in *in, struct fusee_str text, struct buf *room)
{
	*in = (struct in){text.p, text.p + text.len, room};
	buf_reset(room);
	if (text.len && memchr(text.p, '\\', text.len)) {
		if (!buf_grow(room, text.len))
			return -ENOMEM;
		buf_reset(room);
	}
	return take(in, '{') ? 0 : -EINVAL;
}

int parquet_frame_read(struct parquet_frame *f, struct fusee_str text, struct buf *room)
{
	struct in in;
	int err = begin(&in, text, room);
	bool any = false;

	*f = (struct parquet_frame){0};
	for (uint32_t i = 0; !err && i < MEMBERS; i++) {
		const struct member *m = &members[i];
		const char *at = in.at;

		if ((any && !take(&in, ',')) || !take_key(&in, m)) {
			in.at = at;
			continue;
		}
		any = true;
		err = m->is_text ? take_text(&in, &f->texts[m->index])
				 : take_number(&in, &f->numbers[m->index]);
	}
	return err ? err : take(&in, '}') && in.at == in.end ? 0 : -EINVAL;
}

int parquet_frame_function(struct fusee_str *function, struct fusee_str text, struct buf *room)
{
	struct in in;
	int err = begin(&in, text, room);

	*function = (struct fusee_str){"", 0};
	return err || !take_key(&in, &members[0]) ? err : take_text(&in, function);
}
