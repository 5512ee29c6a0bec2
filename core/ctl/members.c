// SPDX-License-Identifier: Apache-2.0
#include "ctl/members.h"

const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *v = json_object_object_get(o, name);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

uint64_t number_of(struct json_object *o, const char *name)
{
	int64_t v = json_object_get_int64(json_object_object_get(o, name));

	return v > 0 ? (uint64_t)v : 0;
}

double real_of(struct json_object *o, const char *name)
{
	return json_object_get_double(json_object_object_get(o, name));
}

bool bool_of(struct json_object *o, const char *name)
{
	return json_object_get_boolean(json_object_object_get(o, name));
}

struct json_object *list_of(struct json_object *o, const char *name)
{
	struct json_object *v = json_object_object_get(o, name);

	return json_object_is_type(v, json_type_array) ? v : NULL;
}

size_t length_of(struct json_object *list)
{
	return list ? json_object_array_length(list) : 0;
}
