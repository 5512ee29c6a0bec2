/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker's API (docs.docker.com/reference/api/engine), as Podman has it too. yajl reports each
 * value as it comes. Values without an edge are ignored.
 */
#include <fusee/http_curl.h>
#include <fusee/json.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "reader_internal.h"

enum state {
	TOP = FUSEE_JSON_TOP,
	ITEM,
	ID,
	NAMES,
	NAME,
	IMAGE,
	LABELS,
	LABEL,
	ACTION,
	TYPE,
	ACTOR,
	ATTRIBUTES,
	ATTRIBUTE,
	MESSAGE,
	LINUX, /* of a specification */
	CGROUP,
};

static const struct fusee_json_edge edges[] = {
	{TOP, ITEM, NULL}, /* a list */
	{ITEM, ID, "Id"},
	{ITEM, NAMES, "Names"},
	{NAMES, NAME, NULL},
	{ITEM, IMAGE, "Image"},
	{ITEM, LABELS, "Labels"},
	{LABELS, LABEL, ""},
	{TOP, TYPE, "Type"}, /* an event */
	{TOP, ACTION, "Action"},
	{TOP, ACTOR, "Actor"},
	{ACTOR, ID, "ID"},
	{ACTOR, ATTRIBUTES, "Attributes"},
	{ATTRIBUTES, ATTRIBUTE, ""},
	{TOP, MESSAGE, "message"}, /* an error */
};

struct json_reader {
	struct reader_base *base;
	yajl_handle yajl;
	struct fusee_json_place place;
	char key[512]; /* of a label or attribute; a longer key was not chosen */
	size_t key_n;
	uint64_t bytes; /* since the last object was complete */
	int error;      /* why yajl was stopped */
	bool is_list;
	char type[32], action[64]; /* of an event */
	char message[512];
};

/* ---- values ---- */

static int on_key(void *arg, const unsigned char *key, size_t n)
{
	struct json_reader *r = arg;

	fusee_json_key(&r->place, (const char *)key, n);
	r->key_n = n < sizeof(r->key) ? n : 0;
	memcpy(r->key, key, r->key_n);
	return 1;
}

/* The attributes of an event are the container's labels, its image and its name. */
static void on_attribute(struct json_reader *r, struct fusee_str key, struct fusee_str text)
{
	struct container *c = &r->base->container;

	if (fusee_text_is(key, "name"))
		TEXT_SET(c->name, text);
	else if (fusee_text_is(key, "image"))
		TEXT_SET(c->image, text);
	else
		container_label(c, r->base->chosen, key, text);
}

static void on_id(struct container *c, struct fusee_str text)
{
	if (text.len < sizeof(c->id)) /* a truncated ID would be wrong */
		TEXT_SET(c->id, text);
}

static void on_name(struct container *c, struct fusee_str text)
{
	if (text.len && *text.p == '/') {
		text.p++;
		text.len--;
	}
	/* "/web/alias" is another container's name for it */
	if (!*c->name && !memchr(text.len ? text.p : "", '/', text.len))
		TEXT_SET(c->name, text);
}

static int on_string(void *arg, const unsigned char *p, size_t n)
{
	struct json_reader *r = arg;
	struct fusee_str text = {(const char *)p, n}, key = {r->key, r->key_n};

	switch (fusee_json_state(&r->place)) {
	case ID:
		on_id(&r->base->container, text);
		break;
	case NAME:
		on_name(&r->base->container, text);
		break;
	case IMAGE:
		TEXT_SET(r->base->container.image, text);
		break;
	case LABEL:
		container_label(&r->base->container, r->base->chosen, key, text);
		break;
	case ATTRIBUTE:
		on_attribute(r, key, text);
		break;
	case TYPE:
		TEXT_SET(r->type, text);
		break;
	case ACTION:
		TEXT_SET(r->action, text);
		break;
	case MESSAGE:
		fusee_http_clean(r->message, sizeof(r->message), text.p, text.len);
		break;
	default:
		break;
	}
	return 1;
}

/* ---- objects and arrays ---- */

static int begin_value(struct json_reader *r, bool array)
{
	uint32_t depth = r->place.depth;

	if (!fusee_json_enter(&r->place, array)) {
		r->base->problem = "too large";
		r->error = -EBADMSG;
		return 0;
	}
	if (!depth) {
		r->is_list |= array;
		*r->type = *r->action = '\0';
	}
	if (!array && (!depth || r->place.states[depth] == ITEM))
		container_clear(&r->base->container);
	return 1;
}

static int on_map(void *arg)
{
	return begin_value(arg, false);
}

static int on_array(void *arg)
{
	return begin_value(arg, true);
}

static int report(struct json_reader *r, enum found found)
{
	r->error = r->base->each(r->base->arg, found, &r->base->container);
	return !r->error;
}

static int end_event(struct json_reader *r)
{
	static const char *const changes[] = {"create", "init",    "start",   "restart",
					      "rename", "unpause", "restore", "update"},
				 *const ends[] = {"die", "destroy", "remove"};

	if (strcmp(r->type, "container") || !*r->base->container.id)
		return 1;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (!strcmp(r->action, changes[i]))
			return report(r, FOUND_CONTAINER);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(r->action, ends[i]))
			return report(r, FOUND_ENDED);
	return 1;
}

static int on_end_map(void *arg)
{
	struct json_reader *r = arg;
	uint8_t state = fusee_json_leave(&r->place);
	bool event = !r->place.depth && r->base->ask == ASK_EVENTS;

	if (!event && !(state == ITEM && r->base->ask == ASK_LIST))
		return 1;
	r->bytes = 0;
	return event ? end_event(r) : report(r, FOUND_CONTAINER);
}

static int on_end_array(void *arg)
{
	struct json_reader *r = arg;

	fusee_json_leave(&r->place);
	return 1;
}

/* ---- an answer ---- */

static const yajl_callbacks callbacks = {.yajl_string = on_string,
					 .yajl_start_map = on_map,
					 .yajl_map_key = on_key,
					 .yajl_end_map = on_end_map,
					 .yajl_start_array = on_array,
					 .yajl_end_array = on_end_array};

struct json_reader *json_reader_new(struct reader_base *base)
{
	struct json_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->base = base;
	return r;
}

void json_reader_free(struct json_reader *r)
{
	if (!r)
		return;
	if (r->yajl)
		yajl_free(r->yajl);
	free(r);
}

int json_reader_begin(struct json_reader *r)
{
	struct reader_base *base = r->base;

	if (r->yajl)
		yajl_free(r->yajl);
	*r = (struct json_reader){
		.base = base,
		.place = {.edges = edges, .nedges = sizeof(edges) / sizeof(edges[0])},
		.yajl = yajl_alloc(&callbacks, NULL, r)};
	if (!r->yajl)
		return -ENOMEM;
	yajl_config(r->yajl, yajl_allow_multiple_values, base->ask == ASK_EVENTS);
	return 0;
}

static int is_wrong(struct json_reader *r)
{
	unsigned char *text = yajl_get_error(r->yajl, 0, NULL, 0);

	r->base->problem = text && strstr((const char *)text, "UTF8") ? "not UTF-8" : "not JSON";
	if (text)
		yajl_free_error(r->yajl, text);
	return -EBADMSG;
}

int json_reader_feed(struct json_reader *r, const char *bytes, size_t n)
{
	yajl_status status;

	r->bytes += n;
	if (r->bytes > READER_OBJECT) {
		r->base->problem = "too large";
		return -EBADMSG;
	}
	status = yajl_parse(r->yajl, (const unsigned char *)bytes, n);
	if (r->error)
		return r->error;
	return status == yajl_status_ok ? 0 : is_wrong(r);
}

int json_reader_end(struct json_reader *r)
{
	if (r->base->ask == ASK_EVENTS)
		return 0; /* events may end anywhere */
	if (yajl_complete_parse(r->yajl) == yajl_status_ok && !r->place.depth && r->is_list)
		return 0;
	r->base->problem = r->place.depth ? "incomplete" : "no list";
	return -EBADMSG;
}

const char *json_reader_message(const struct json_reader *r)
{
	return r->message;
}

/* ---- specifications ---- */

void spec_cgroup(struct fusee_str spec, char path[CONTAINER_PATH])
{
	static const struct fusee_json_edge of_spec[] = {{TOP, LINUX, "linux"},
							 {LINUX, CGROUP, "cgroupsPath"}};
	char text[CONTAINER_PATH + 1]; /* a path that fills it may have been truncated */

	*path = '\0';
	if (fusee_json_text(spec, of_spec, 2, CGROUP, text, sizeof(text)) && *text == '/' &&
	    strlen(text) < CONTAINER_PATH)
		strcpy(path, text);
}
