/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static void put_string(struct buf *out, const char *p, size_t len)
{
	struct buf clean = {0};

	if (utf8_clean(&clean, p, len))
		out->error = clean.error;
	buf_str(out, "\"");
	for (size_t i = 0; i < clean.len; i++) {
		unsigned char c = (unsigned char)clean.p[i];

		if (c == '"' || c == '\\')
			buf_add(out, (char[]){'\\', (char)c}, 2);
		else if (c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&')
			buf_printf(out, "\\u%04x", c);
		else
			buf_add(out, &c, 1);
	}
	buf_str(out, "\"");
	buf_fini(&clean);
}

static void put_line(struct json *j)
{
	if (j->line)
		buf_printf(j->out, "\n%*s", (int)j->line - 1, "");
	j->line = 0;
}

/* Writes the comma, the line break and the name that precede a value. */
static void begin(struct json *j, const char *name)
{
	if (!j->keyed) {
		if (j->more)
			buf_str(j->out, j->spaced && !j->line ? ", " : ",");
		put_line(j);
	}
	if (name) {
		buf_str(j->out, "\"");
		buf_str(j->out, name);
		buf_str(j->out, j->spaced ? "\": " : "\":");
	}
	j->keyed = false;
	j->more = true;
}

static void begin_group(struct json *j, const char *name, bool array)
{
	begin(j, name);
	buf_str(j->out, array ? "[" : "{");
	j->arrays = j->arrays << 1 | array;
	j->more = false;
}

void json_open(struct json *j, const char *name)
{
	begin_group(j, name, false);
}

void json_list(struct json *j, const char *name)
{
	begin_group(j, name, true);
}

void json_end(struct json *j)
{
	put_line(j);
	buf_str(j->out, j->arrays & 1 ? "]" : "}");
	j->arrays >>= 1;
	j->more = true;
}

struct json *json_line(struct json *j, unsigned indent)
{
	j->line = indent + 1;
	return j;
}

void json_key(struct json *j, struct fusee_str key)
{
	begin(j, NULL);
	put_string(j->out, key.p, key.len);
	buf_str(j->out, j->spaced ? ": " : ":");
	j->keyed = true;
}

void json_str(struct json *j, const char *name, struct fusee_str s)
{
	begin(j, name);
	put_string(j->out, s.p, s.len);
}

void json_text(struct json *j, const char *name, const char *text)
{
	if (text)
		json_str(j, name, (struct fusee_str){text, strlen(text)});
	else
		json_printf(j, name, "null");
}

void json_buf(struct json *j, const char *name, const struct buf *b)
{
	json_str(j, name, (struct fusee_str){b->p ? b->p : "", b->len});
	if (b->error)
		j->out->error = b->error;
}

void json_flag(struct json *j, const char *name, bool b)
{
	json_printf(j, name, b ? "true" : "false");
}

void json_int(struct json *j, const char *name, int64_t v)
{
	json_printf(j, name, "%" PRId64, v);
}

void json_uint(struct json *j, const char *name, uint64_t v)
{
	json_printf(j, name, "%" PRIu64, v);
}

void json_printf(struct json *j, const char *name, const char *format, ...)
{
	va_list args;

	begin(j, name);
	va_start(args, format);
	buf_vprintf(j->out, format, args);
	va_end(args);
}

void json_labels(struct json *j, const char *name, const struct fusee_label *labels, uint32_t n)
{
	json_open(j, name);
	for (uint32_t i = 0; i < n; i++) {
		json_key(j, labels[i].key);
		json_str(j, NULL, labels[i].str);
	}
	json_end(j);
}
