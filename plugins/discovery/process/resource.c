/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "read.h"

/* ---- the environment's list ---- */

static int hex(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
					    : -1;
}

/* "%2C" and the like, to `to`, of cap bytes. A '%' without two digits stays. Returns the length. */
static size_t decode(char *to, size_t cap, const char *from, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n && len < cap; i++) {
		if (from[i] == '%' && n - i > 2 && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0) {
			to[len++] = (char)(hex(from[i + 1]) * 16 + hex(from[i + 2]));
			i += 2;
		} else {
			to[len++] = from[i];
		}
	}
	return len;
}

/* Without blanks around it. */
static void strip(const char **p, size_t *n)
{
	while (*n && **p == ' ') {
		++*p;
		--*n;
	}
	while (*n && (*p)[*n - 1] == ' ')
		--*n;
}

int resource_of_list(const char *list, const char *key, char *out, size_t cap)
{
	char value[1024];

	while (*list) {
		const char *pair = list, *name = list, *equals;
		size_t n = strcspn(list, ","), len;

		list += n + (list[n] == ',');
		equals = memchr(pair, '=', n);
		if (!equals)
			continue;
		len = (size_t)(equals - pair);
		strip(&name, &len);
		if (len != strlen(key) || memcmp(name, key, len))
			continue;
		equals++;
		len = n - (size_t)(equals - pair);
		strip(&equals, &len);
		text_clean(out, cap, value, decode(value, sizeof(value), equals, len));
		return *out ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/* ---- the message ---- */

/* What is not read yet of a message. */
struct bytes {
	const uint8_t *p;
	size_t n;
};

struct field {
	uint64_t number;
	bool has_bytes;     /* it is a string or a message */
	struct bytes bytes; /* then */
};

static bool varint(struct bytes *b, uint64_t *v)
{
	*v = 0;
	for (unsigned int shift = 0; b->n && shift < 64; shift += 7) {
		uint8_t byte = *b->p++;

		b->n--;
		*v |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return true;
	}
	return false;
}

static bool skip(struct bytes *b, uint64_t n)
{
	if (n > b->n)
		return false;
	b->p += n;
	b->n -= n;
	return true;
}

/* Takes the next field off. false: the end, or what is no field. */
static bool next(struct bytes *b, struct field *f)
{
	uint64_t tag, n;

	if (!b->n || !varint(b, &tag))
		return false;
	*f = (struct field){.number = tag >> 3};
	switch (tag & 7) {
	case 0:
		return varint(b, &n);
	case 1:
		return skip(b, 8);
	case 2:
		if (!varint(b, &n))
			return false;
		f->has_bytes = true;
		f->bytes = (struct bytes){b->p, n};
		return skip(b, n);
	case 5:
		return skip(b, 4);
	default:
		return false;
	}
}

/* The last string or message of this number. */
static bool find(struct bytes b, uint64_t number, struct bytes *ret)
{
	bool found = false;
	struct field f;

	while (next(&b, &f))
		if (f.has_bytes && f.number == number) {
			*ret = f.bytes;
			found = true;
		}
	return found;
}

/* KeyValue { string key = 1; AnyValue value = 2 }, AnyValue { string string_value = 1; .. } */
static bool is_pair(struct bytes pair, const char *key, struct bytes *value)
{
	struct bytes name, any;

	return find(pair, 1, &name) && name.n == strlen(key) && !memcmp(name.p, key, name.n) &&
	       find(pair, 2, &any) && find(any, 1, value);
}

/* The attribute among the fields of this number. */
static bool attribute(struct bytes b, uint64_t number, const char *key, struct bytes *value)
{
	struct field f;

	while (next(&b, &f))
		if (f.has_bytes && f.number == number && is_pair(f.bytes, key, value))
			return true;
	return false;
}

int resource_of_message(const void *message, size_t len, const char *key, char *out, size_t cap)
{
	struct bytes all = {message, len}, resource, value;

	if (!(find(all, 1, &resource) && attribute(resource, 1, key, &value)) &&
	    !attribute(all, 2, key, &value))
		return -ENOENT;
	text_clean(out, cap, (const char *)value.p, value.n);
	return *out ? 0 : -ENOENT;
}
