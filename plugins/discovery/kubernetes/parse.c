/* SPDX-License-Identifier: Apache-2.0 */
/* yajl reports each value as it comes. Values without an edge are ignored. */
#include "parse.h"

#include <fusee/http_curl.h>
#include <fusee/json.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

enum state {
	TOP = FUSEE_JSON_TOP,
	EVENT,
	KIND,
	CODE,
	MESSAGE,
	DETAILS,
	RETRY_AFTER,
	LIST_META,
	LIST_VERSION,
	LIST_NEXT,
	ITEMS,
	POD,
	META,
	NAME,
	NAMESPACE,
	UID,
	VERSION,
	LABELS,
	LABEL,
	ANNOTATIONS,
	ANNOTATION,
	OWNERS,
	OWNER,
	OWNER_KIND,
	OWNER_NAME,
	OWNER_CONTROLLER,
	SPEC,
	NODE,
	CONTAINERS,
	INIT_CONTAINERS,
	EPHEMERAL_CONTAINERS,
	CONTAINER,
	CONTAINER_NAME,
	CONTAINER_IMAGE,
	CONTAINER_RESTART,
	STATUS,
	STATUSES,
	CONTAINER_STATUS,
	CONTAINER_ID,
};

static const struct fusee_json_edge edges[] = {
	{TOP, EVENT, "type"},
	{TOP, KIND, "kind"},
	{TOP, POD, "object"},
	{TOP, ITEMS, "items"},
	{TOP, LIST_META, "metadata"},
	{TOP, CODE, "code"},
	{TOP, MESSAGE, "message"},
	{TOP, DETAILS, "details"},
	{DETAILS, RETRY_AFTER, "retryAfterSeconds"},
	{LIST_META, LIST_VERSION, "resourceVersion"},
	{LIST_META, LIST_NEXT, "continue"},
	{ITEMS, POD, NULL},
	{POD, META, "metadata"},
	{POD, SPEC, "spec"},
	{POD, STATUS, "status"},
	{POD, CODE, "code"},
	{POD, MESSAGE, "message"},
	{META, NAME, "name"},
	{META, NAMESPACE, "namespace"},
	{META, UID, "uid"},
	{META, VERSION, "resourceVersion"},
	{META, LABELS, "labels"},
	{META, ANNOTATIONS, "annotations"},
	{META, OWNERS, "ownerReferences"},
	{LABELS, LABEL, ""},
	{ANNOTATIONS, ANNOTATION, ""},
	{OWNERS, OWNER, NULL},
	{OWNER, OWNER_KIND, "kind"},
	{OWNER, OWNER_NAME, "name"},
	{OWNER, OWNER_CONTROLLER, "controller"},
	{SPEC, NODE, "nodeName"},
	{SPEC, CONTAINERS, "containers"},
	{SPEC, INIT_CONTAINERS, "initContainers"},
	{SPEC, EPHEMERAL_CONTAINERS, "ephemeralContainers"},
	{CONTAINERS, CONTAINER, NULL},
	{INIT_CONTAINERS, CONTAINER, NULL},
	{EPHEMERAL_CONTAINERS, CONTAINER, NULL},
	{CONTAINER, CONTAINER_NAME, "name"},
	{CONTAINER, CONTAINER_IMAGE, "image"},
	{CONTAINER, CONTAINER_RESTART, "restartPolicy"},
	{STATUS, STATUSES, "containerStatuses"},
	{STATUS, STATUSES, "initContainerStatuses"},
	{STATUS, STATUSES, "ephemeralContainerStatuses"},
	{STATUSES, CONTAINER_STATUS, NULL},
	{CONTAINER_STATUS, CONTAINER_NAME, "name"},
	{CONTAINER_STATUS, CONTAINER_ID, "containerID"},
};

struct owner {
	char kind[64], name[POD_NAME];
	bool controller;
};

struct parser {
	const struct chosen *chosen;
	uint32_t nchosen;
	int (*each)(void *arg, enum parse_event, const struct pod *);
	void *arg;

	yajl_handle yajl;
	struct fusee_json_place place;
	char key[320];  /* of a label or annotation, which have 317 bytes at most */
	uint64_t bytes; /* since the last object was complete */
	int error;      /* why yajl was stopped */

	char event[16];
	struct pod pod;
	struct container container; /* and owner: those being read */
	struct owner owner;
	struct answer answer;
};

#define SET(field, text, n) fusee_text_copy(field, sizeof(field), (struct fusee_str){text, n})

static int on_key(void *arg, const unsigned char *key, size_t n)
{
	struct parser *p = arg;

	fusee_json_key(&p->place, (const char *)key, n);
	if (p->place.next == LABEL || p->place.next == ANNOTATION)
		SET(p->key, (const char *)key, n);
	return 1;
}

/* ---- values ---- */

static void on_label(struct parser *p, bool annotation, const char *text, size_t n)
{
	if (!annotation && !strcmp(p->key, "pod-template-hash"))
		SET(p->pod.template_hash, text, n);
	if (annotation && !strcmp(p->key, "kubernetes.io/config.mirror"))
		SET(p->pod.static_uid, text, n);
	for (uint32_t i = 0; i < p->nchosen; i++)
		if (p->chosen[i].annotation == annotation && !strcmp(p->chosen[i].key, p->key))
			SET(p->pod.values[i], text, n);
}

/* "containerd://ID" */
static void on_id(struct parser *p, const char *text, size_t n)
{
	const char *slashes = memmem(text, n, "://", 3);

	if (slashes) {
		n -= (size_t)(slashes + 3 - text);
		text = slashes + 3;
	}
	if (n < sizeof(p->container.id)) /* a truncated ID would be wrong */
		SET(p->container.id, text, n);
}

static void on_text(struct parser *p, uint8_t state, const char *text, size_t n)
{
	switch (state) {
	case EVENT:
		SET(p->event, text, n);
		break;
	case KIND:
		p->answer.list = n == 7 && !memcmp(text, "PodList", 7);
		break;
	case MESSAGE:
		fusee_http_clean(p->answer.message, sizeof(p->answer.message), text, n);
		break;
	case LIST_VERSION:
		SET(p->answer.version, text, n);
		break;
	case LIST_NEXT:
		SET(p->answer.next, text, n);
		break;
	case NAME:
		SET(p->pod.name, text, n);
		break;
	case NAMESPACE:
		SET(p->pod.namespace, text, n);
		break;
	case UID:
		SET(p->pod.uid, text, n);
		break;
	case VERSION:
		SET(p->pod.version, text, n);
		break;
	case LABEL:
	case ANNOTATION:
		on_label(p, state == ANNOTATION, text, n);
		break;
	case NODE:
		SET(p->pod.node, text, n);
		break;
	default:
		break;
	}
}

/* Takes a value of the container or owner that is being read. */
static void on_part(struct parser *p, uint8_t state, const char *text, size_t n)
{
	switch (state) {
	case OWNER_KIND:
		SET(p->owner.kind, text, n);
		break;
	case OWNER_NAME:
		SET(p->owner.name, text, n);
		break;
	case CONTAINER_NAME:
		SET(p->container.name, text, n);
		break;
	case CONTAINER_IMAGE:
		SET(p->container.image, text, n);
		break;
	case CONTAINER_RESTART:
		if (p->container.kind == CONTAINER_INIT && n == 6 && !memcmp(text, "Always", 6))
			p->container.kind = CONTAINER_SIDECAR;
		break;
	case CONTAINER_ID:
		on_id(p, text, n);
		break;
	default:
		break;
	}
}

static int on_string(void *arg, const unsigned char *text, size_t n)
{
	struct parser *p = arg;
	uint8_t state = fusee_json_state(&p->place);

	if (state != FUSEE_JSON_IGNORED) {
		on_text(p, state, (const char *)text, n);
		on_part(p, state, (const char *)text, n);
	}
	return 1;
}

static int on_number(void *arg, const char *text, size_t n)
{
	struct parser *p = arg;
	uint8_t state = fusee_json_state(&p->place);
	char digits[24];

	SET(digits, text, n);
	if (state == CODE)
		p->answer.code = strtoll(digits, NULL, 10);
	else if (state == RETRY_AFTER)
		p->answer.retry_after = strtoll(digits, NULL, 10);
	return 1;
}

static int on_bool(void *arg, int value)
{
	struct parser *p = arg;

	if (fusee_json_state(&p->place) == OWNER_CONTROLLER)
		p->owner.controller = value;
	return 1;
}

/* ---- objects and arrays ---- */

static int enter(struct parser *p, bool array)
{
	uint8_t state = fusee_json_state(&p->place);

	if (!fusee_json_enter(&p->place, array)) {
		p->error = -EBADMSG;
		return 0;
	}
	if (p->place.depth == 1)
		*p->event = '\0';
	if (p->place.depth == 1 || (!array && state == POD))
		pod_clear(&p->pod);
	if (!array && state == OWNER)
		p->owner = (struct owner){0};
	if (!array && (state == CONTAINER || state == CONTAINER_STATUS)) {
		uint8_t list = p->place.states[p->place.depth - 2];

		p->container = (struct container){.kind = list == INIT_CONTAINERS ? CONTAINER_INIT
							  : list == EPHEMERAL_CONTAINERS
								  ? CONTAINER_EPHEMERAL
								  : CONTAINER_MAIN};
	}
	return 1;
}

static int on_map(void *arg)
{
	return enter(arg, false);
}

static int on_array(void *arg)
{
	return enter(arg, true);
}

/* The spec's part and the status's part of a container come in either order. */
static void end_container(struct parser *p, bool status)
{
	struct container *c = *p->container.name ? pod_container(&p->pod, p->container.name) : NULL;

	if (!c) {
		p->answer.containers_ignored += *p->container.name != '\0';
		return;
	}
	if (status) {
		memcpy(c->id, p->container.id, sizeof(c->id));
	} else {
		memcpy(c->image, p->container.image, sizeof(c->image));
		c->kind = p->container.kind;
	}
}

static int report(struct parser *p, enum parse_event event)
{
	p->bytes = 0;
	p->error = p->each(p->arg, event, &p->pod);
	return !p->error;
}

/* Handles the end of an object: an event of a watch, or all of a list or an error. */
static int end_event(struct parser *p)
{
	static const struct {
		const char *name;
		enum parse_event event;
	} events[] = {{"ADDED", PARSE_PUT},
		      {"MODIFIED", PARSE_PUT},
		      {"DELETED", PARSE_DELETE},
		      {"BOOKMARK", PARSE_BOOKMARK},
		      {"ERROR", PARSE_ERROR}};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (!strcmp(p->event, events[i].name))
			return report(p, events[i].event);
	p->bytes = 0;
	return 1;
}

static int on_end_map(void *arg)
{
	struct parser *p = arg;
	uint8_t state = fusee_json_leave(&p->place);

	switch (state) {
	case OWNER:
		if (p->owner.controller) {
			memcpy(p->pod.owner, p->owner.name, sizeof(p->pod.owner));
			memcpy(p->pod.owner_kind, p->owner.kind, sizeof(p->pod.owner_kind));
		}
		break;
	case CONTAINER:
	case CONTAINER_STATUS:
		end_container(p, state == CONTAINER_STATUS);
		break;
	case POD:
		if (p->place.depth && p->place.states[p->place.depth - 1] == ITEMS)
			return report(p, PARSE_ITEM);
		break;
	default:
		break;
	}
	return p->place.depth || end_event(p);
}

static int on_end_array(void *arg)
{
	struct parser *p = arg;

	fusee_json_leave(&p->place);
	return 1;
}

/* ---- an answer ---- */

static const yajl_callbacks callbacks = {.yajl_boolean = on_bool,
					 .yajl_number = on_number,
					 .yajl_string = on_string,
					 .yajl_start_map = on_map,
					 .yajl_map_key = on_key,
					 .yajl_end_map = on_end_map,
					 .yajl_start_array = on_array,
					 .yajl_end_array = on_end_array};

struct parser *parser_new(const struct chosen *chosen, uint32_t nchosen,
			  int (*each)(void *arg, enum parse_event, const struct pod *), void *arg)
{
	struct parser *p = calloc(1, sizeof(*p));

	if (!p || pod_init(&p->pod, nchosen)) {
		free(p);
		return NULL;
	}
	p->chosen = chosen;
	p->nchosen = nchosen;
	p->each = each;
	p->arg = arg;
	return p;
}

void parser_free(struct parser *p)
{
	if (!p)
		return;
	if (p->yajl)
		yajl_free(p->yajl);
	pod_fini(&p->pod);
	free(p);
}

int parser_begin(struct parser *p)
{
	if (p->yajl)
		yajl_free(p->yajl);
	p->yajl = yajl_alloc(&callbacks, NULL, p);
	if (!p->yajl)
		return -ENOMEM;
	yajl_config(p->yajl, yajl_allow_multiple_values, 1);
	p->answer = (struct answer){0};
	p->place = (struct fusee_json_place){.edges = edges,
					     .nedges = sizeof(edges) / sizeof(edges[0])};
	p->bytes = 0;
	p->error = 0;
	return 0;
}

int parser_feed(struct parser *p, const char *bytes, size_t n)
{
	yajl_status status;

	p->bytes += n;
	if (p->bytes > PARSE_OBJECT)
		return -EBADMSG;
	status = yajl_parse(p->yajl, (const unsigned char *)bytes, n);
	if (p->error)
		return p->error;
	return status == yajl_status_ok ? 0 : -EBADMSG;
}

int parser_end(struct parser *p)
{
	return yajl_complete_parse(p->yajl) == yajl_status_ok && !p->place.depth ? 0 : -EBADMSG;
}

const struct answer *parser_answer(const struct parser *p)
{
	return &p->answer;
}
