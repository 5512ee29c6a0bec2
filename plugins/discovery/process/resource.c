/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <fusee/helpers.h>
#include <fusee/proto.h>

#include "read.h"

/* ---- the environment's list ---- */

/* Removes blanks around the text. */
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
	char value[1025];

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
		text_clean(
			out, cap, value,
			fusee_unescape(value, sizeof(value), (struct fusee_str){equals, len}, "%"));
		return *out ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/* ---- the message ---- */

/* The last string or message of this number. */
static bool find(struct fusee_str b, uint32_t number, struct fusee_str *ret)
{
	bool found = false;
	struct fusee_proto_field f;

	while (fusee_proto_next(&b, &f) > 0)
		if (f.type == FUSEE_PROTO_BYTES && f.number == number) {
			*ret = f.bytes;
			found = true;
		}
	return found;
}

/* KeyValue { string key = 1; AnyValue value = 2 }, AnyValue { string string_value = 1; .. } */
static bool is_pair(struct fusee_str pair, const char *key, struct fusee_str *value)
{
	struct fusee_str name, any;

	return find(pair, 1, &name) && fusee_text_is(name, key) && find(pair, 2, &any) &&
	       find(any, 1, value);
}

/* The attribute among the fields of this number. */
static bool attribute(struct fusee_str b, uint32_t number, const char *key, struct fusee_str *value)
{
	struct fusee_proto_field f;

	while (fusee_proto_next(&b, &f) > 0)
		if (f.type == FUSEE_PROTO_BYTES && f.number == number &&
		    is_pair(f.bytes, key, value))
			return true;
	return false;
}

int resource_of_message(const void *message, size_t len, const char *key, char *out, size_t cap)
{
	struct fusee_str all = {message, len}, resource, value;

	if (!(find(all, 1, &resource) && attribute(resource, 1, key, &value)) &&
	    !attribute(all, 2, key, &value))
		return -ENOENT;
	text_clean(out, cap, value.p, value.len);
	return *out ? 0 : -ENOENT;
}
