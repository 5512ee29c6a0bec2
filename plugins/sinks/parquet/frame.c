/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <fusee/parquet.h>

/* Limits of a member's escaped text, whose sum is below the limit of a column's text. */
#define NAME_BYTES (FUSEE_PARQUET_MAX_TEXT / 2)
#define PATH_BYTES (FUSEE_PARQUET_MAX_TEXT / 8)
#define WORD_BYTES (FUSEE_PARQUET_MAX_TEXT / 32)
#define ESCAPE 6 /* bytes that a byte becomes at most: "\u001f" */

/* "{" or "," and the member's name. */
static void put_key(struct fusee_bytes *t, const char *key)
{
	fusee_bytes_add(t, t->len ? ",\"" : "{\"", 2);
	fusee_bytes_add(t, key, strlen(key));
	fusee_bytes_add(t, "\":", 2);
}

static void put_byte(struct fusee_bytes *t, char c)
{
	static const char digits[] = "0123456789abcdef";
	char escape[ESCAPE] = {'\\', 'u', '0', '0', digits[c >> 4 & 15], digits[c & 15]};

	if (c == '"' || c == '\\') {
		escape[1] = c;
		fusee_bytes_add(t, escape, 2);
	} else if ((unsigned char)c < ' ') {
		fusee_bytes_add(t, escape, sizeof(escape));
	} else {
		fusee_bytes_add(t, &c, 1);
	}
}

/* Bytes of the character that begins at s.p[i]. */
static uint64_t character(struct fusee_str s, uint64_t i)
{
	uint64_t n = 1;

	while (i + n < s.len && ((uint8_t)s.p[i + n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Whether no byte must be escaped and there is room, as for nearly all texts. */
static bool is_plain(struct fusee_str s, uint64_t most)
{
	uint8_t special = 0;

	if (s.len > most / ESCAPE)
		return false;
	for (uint64_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.p[i];

		special |= (uint8_t)((c < ' ') | (c == '"') | (c == '\\'));
	}
	return !special;
}

static bool put_text(struct fusee_bytes *t, const char *key, struct fusee_str s, uint64_t most)
{
	uint64_t end, i = 0, n;

	if (!s.len)
		return true;
	put_key(t, key);
	fusee_bytes_add(t, "\"", 1);
	if (is_plain(s, most)) {
		fusee_bytes_add(t, s.p, s.len);
		fusee_bytes_add(t, "\"", 1);
		return true;
	}
	end = t->len + most;
	while (!t->error && i < s.len) {
		n = character(s, i);
		if (t->len + n * ESCAPE > end)
			break;
		for (; n; n--)
			put_byte(t, s.p[i++]);
	}
	fusee_bytes_add(t, "\"", 1);
	return i == s.len;
}

static void put_number(struct fusee_bytes *t, const char *key, int64_t v)
{
	char text[24];

	if (!v)
		return;
	put_key(t, key);
	fusee_bytes_add(t, text, (uint64_t)snprintf(text, sizeof(text), "%lld", (long long)v));
}

bool frame_put(struct fusee_bytes *t, const struct fusee_rows_frame *f)
{
	bool complete;

	t->len = 0;
	complete = put_text(t, "function", f->function, NAME_BYTES);
	complete &= put_text(t, "file", f->file, PATH_BYTES);
	put_number(t, "line", f->line);
	complete &= put_text(t, "mapping", f->mapping, PATH_BYTES);
	complete &= put_text(t, "build_id", f->build_id, PATH_BYTES);
	put_number(t, "inlined", f->inlined);
	complete &= put_text(t, "type", f->type, WORD_BYTES);
	put_number(t, "start_line", f->start_line);
	complete &= put_text(t, "language", f->language, WORD_BYTES);
	put_number(t, "flags", f->flags);
	put_number(t, "address", f->address);
	if (!t->len)
		fusee_bytes_add(t, "{", 1);
	fusee_bytes_add(t, "}", 1);
	return complete;
}
