/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259) into a buffer as it comes: commas, colons, quotes and ends of lines. An
 * error stays in the buffer.
 *
 * A member has a name, which is ASCII and needs no escapes; an element of an array, the outermost
 * value, and the value behind json_key() have the name NULL. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"

struct json {
	struct buf *out;
	bool spaced; /* a space behind commas and colons */
	bool more;   /* the next value follows another one */
	/* for json.c alone */
	bool keyed;      /* json_key() was called */
	unsigned line;   /* spaces of indentation + 1; 0: the next value is on the same line */
	uint64_t arrays; /* a bit for each object or array around, the innermost lowest */
};

void json_open(struct json *, const char *name); /* an object */
void json_list(struct json *, const char *name); /* an array */
void json_end(struct json *);                    /* of the innermost object or array */
/* The next value, or end, begins a line. Returns its argument. */
struct json *json_line(struct json *, unsigned indent);
/* Writes the next value's name, which may be any text. */
void json_key(struct json *, struct fusee_str);
/* Strings are also safe in a script element of HTML. Bytes that are not UTF-8 become U+FFFD. */
void json_str(struct json *, const char *name, struct fusee_str);
void json_text(struct json *, const char *name, const char *); /* NULL: null */
void json_buf(struct json *, const char *name, const struct buf *);
void json_flag(struct json *, const char *name, bool);
void json_int(struct json *, const char *name, int64_t);
void json_uint(struct json *, const char *name, uint64_t);
/* Writes text that is JSON already, such as a number in a chosen format. */
void json_printf(struct json *, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* {"KEY": "VALUE", ..} */
void json_labels(struct json *, const char *name, const struct fusee_label *, uint32_t n);
#endif
