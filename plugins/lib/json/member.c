/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <yajl/yajl_parse.h>

#include <fusee/json.h>

#define MEMBER 2

struct member {
	struct fusee_json_place place;
	uint8_t state;
	char *to;
	size_t size;
	bool found;
};

static int on_key(void *arg, const unsigned char *key, size_t n)
{
	struct member *m = arg;

	fusee_json_key(&m->place, (const char *)key, n);
	return 1;
}

static int on_string(void *arg, const unsigned char *text, size_t n)
{
	struct member *m = arg;

	if (m->found || fusee_json_state(&m->place) != m->state)
		return 1;
	n = n < m->size ? n : m->size - 1;
	memcpy(m->to, text, n);
	m->to[n] = '\0';
	m->found = true;
	return 1;
}

static int on_map(void *arg)
{
	return fusee_json_enter(&((struct member *)arg)->place, false);
}

static int on_array(void *arg)
{
	return fusee_json_enter(&((struct member *)arg)->place, true);
}

static int on_end(void *arg)
{
	fusee_json_leave(&((struct member *)arg)->place);
	return 1;
}

bool fusee_json_text(struct fusee_str json, const struct fusee_json_edge *edges, uint32_t nedges,
		     uint8_t state, char *to, size_t size)
{
	static const yajl_callbacks callbacks = {.yajl_string = on_string,
						 .yajl_start_map = on_map,
						 .yajl_map_key = on_key,
						 .yajl_end_map = on_end,
						 .yajl_start_array = on_array,
						 .yajl_end_array = on_end};
	struct member m = {.place = {.edges = edges, .nedges = nedges},
			   .state = state,
			   .to = to,
			   .size = size};
	yajl_handle yajl = yajl_alloc(&callbacks, NULL, &m);

	*to = '\0';
	if (!yajl)
		return false;
	yajl_parse(yajl, (const unsigned char *)(json.len ? json.p : ""), json.len);
	yajl_free(yajl);
	return m.found;
}

bool fusee_json_member(struct fusee_str json, const char *key, char *to, size_t size)
{
	const struct fusee_json_edge edge = {FUSEE_JSON_TOP, MEMBER, key};

	return fusee_json_text(json, &edge, 1, MEMBER, to, size);
}
