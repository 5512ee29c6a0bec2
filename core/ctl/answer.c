/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/answer.h"

#include "console/grid.h"

const char *answer_text(struct json_object *o, const char *key)
{
	struct json_object *v = json_object_object_get(o, key);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

uint64_t answer_number(struct json_object *o, const char *key)
{
	int64_t v = json_object_get_int64(json_object_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

double answer_real(struct json_object *o, const char *key)
{
	return json_object_get_double(json_object_object_get(o, key));
}

bool answer_bool(struct json_object *o, const char *key)
{
	return json_object_get_boolean(json_object_object_get(o, key));
}

struct json_object *answer_list(struct json_object *o, const char *key)
{
	struct json_object *v = json_object_object_get(o, key);

	return json_object_is_type(v, json_type_array) ? v : NULL;
}

size_t answer_length(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

void answer_wrap(struct buf *out, uint32_t width, uint32_t used, uint32_t indent, struct buf *text)
{
	buf_add(text, "", 1);
	if (text->error)
		out->error = text->error;
	else
		grid_wrap(out, text->p, used, indent, width);
}

void answer_line(struct buf *out, uint32_t width, const char *name, struct buf *text)
{
	buf_printf(out, "%-10s ", name);
	answer_wrap(out, width, 11, 11, text);
}
