/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's frames and the messages in them. The numbers of fields are those of containerd's
 * services containers, events and namespaces (api/services) and of the CRI (runtime/v1/api.proto).
 */
#include <fusee/proto.h>
#include <stdlib.h>

#include "reader_internal.h"

#define CRI_EXITED 2u /* and 3: unknown */

struct grpc_reader {
	struct reader_base *base;
	uint8_t head[FUSEE_PROTO_FRAME];
	uint32_t nhead;
	uint32_t length;            /* of the message */
	struct fusee_bytes message; /* room grows with received bytes, not by the head's length */
};

/* ---- parts of messages ---- */

/* Calls each(base, field) for the fields of a message. 0 or what each() returned first. */
static int for_each(struct reader_base *b, struct fusee_str message,
		    int (*each)(struct reader_base *, const struct fusee_proto_field *))
{
	struct fusee_proto_field f;
	int r;

	while ((r = fusee_proto_next(&message, &f)) > 0) {
		r = each(b, &f);
		if (r)
			return r;
	}
	if (r)
		b->problem = "wrong protobuf";
	return r;
}

static int check_text(struct reader_base *b, const struct fusee_proto_field *f)
{
	if (f->type == FUSEE_PROTO_BYTES && text_is_clean(f->bytes))
		return 0;
	b->problem = f->type == FUSEE_PROTO_BYTES ? "not UTF-8" : "wrong protobuf";
	return -EBADMSG;
}

/* Field `number` of a message, a text. 0, or -EBADMSG. */
static int text_of(struct reader_base *b, struct fusee_str message, uint32_t number,
		   struct fusee_str *text)
{
	struct fusee_proto_field f;
	int r;

	*text = (struct fusee_str){"", 0};
	while ((r = fusee_proto_next(&message, &f)) > 0) {
		if (f.number != number)
			continue;
		r = check_text(b, &f);
		if (r)
			return r;
		*text = f.bytes;
	}
	if (r)
		b->problem = "wrong protobuf";
	return r;
}

static int set_text(struct reader_base *b, const struct fusee_proto_field *f, char *to, size_t size)
{
	int r = check_text(b, f);

	if (!r)
		fusee_text_copy(to, size, f->bytes);
	return r;
}

static int set_id(struct reader_base *b, const struct fusee_proto_field *f)
{
	if (f->bytes.len >= sizeof(b->container.id)) /* a truncated ID would be wrong */
		return check_text(b, f);
	return set_text(b, f, b->container.id, sizeof(b->container.id));
}

/* Takes a text of a message within this message: the name of metadata or of an image. */
static int set_inner(struct reader_base *b, const struct fusee_proto_field *f, char *to,
		     size_t size)
{
	struct fusee_str text;
	int r = text_of(b, f->bytes, 1, &text);

	if (!r)
		fusee_text_copy(to, size, text);
	return r;
}

/* An entry of a map is a message of key and value. */
static int add_label(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct fusee_str key, text;
	int r = text_of(b, f->bytes, 1, &key);

	r = r ? r : text_of(b, f->bytes, 2, &text);
	if (!r)
		container_label(&b->container, b->chosen, key, text);
	return r;
}

/* ---- containerd ---- */

static int on_spec(struct reader_base *b, const struct fusee_proto_field *f)
{
	if (f->number == 2) /* of Any: value */
		spec_cgroup(f->bytes, b->container.cgroup);
	return 0;
}

static int on_containerd_container(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct container *c = &b->container;

	switch (f->number) {
	case 1:
		return set_id(b, f);
	case 2:
		return add_label(b, f);
	case 3:
		return set_text(b, f, c->image, sizeof(c->image));
	case 5:
		return for_each(b, f->bytes, on_spec);
	default:
		return 0;
	}
}

/* Of ListContainerMessage and of GetContainerResponse. */
static int on_containerd(struct reader_base *b, const struct fusee_proto_field *f)
{
	int r;

	if (f->number != 1 || f->type != FUSEE_PROTO_BYTES)
		return 0;
	container_clear(&b->container);
	memcpy(b->container.space, b->space, sizeof(b->space));
	r = for_each(b, f->bytes, on_containerd_container);
	return r ? r : b->each(b->arg, FOUND_CONTAINER, &b->container);
}

static int on_space(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct container *c = &b->container;
	int r;

	if (f->number != 1 || f->type != FUSEE_PROTO_BYTES)
		return 0;
	container_clear(c);
	r = set_inner(b, f, c->space, sizeof(c->space));
	return r || !*c->space ? r : b->each(b->arg, FOUND_SPACE, c);
}

/* Of an event's Any: value, whose first field is the container's ID in all events of containers. */
static int on_any(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct fusee_proto_field id = {.type = FUSEE_PROTO_BYTES};
	int r;

	if (f->number != 2 || f->type != FUSEE_PROTO_BYTES)
		return 0;
	r = text_of(b, f->bytes, 1, &id.bytes);
	return r ? r : set_id(b, &id);
}

static int on_envelope(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct container *c = &b->container;

	switch (f->number) {
	case 2:
		return set_text(b, f, c->space, sizeof(c->space));
	case 3:
		return set_text(b, f, c->name, sizeof(c->name)); /* the topic */
	case 4:
		return for_each(b, f->bytes, on_any);
	default:
		return 0;
	}
}

static int read_event(struct reader_base *b, struct fusee_str message)
{
	struct container *c = &b->container;
	char topic[sizeof(c->name)];
	int r;

	container_clear(c);
	r = for_each(b, message, on_envelope);
	memcpy(topic, c->name, sizeof(topic));
	*c->name = '\0';
	if (r || !*c->id)
		return r;
	if (!strcmp(topic, "/containers/create") || !strcmp(topic, "/containers/update"))
		return b->each(b->arg, FOUND_CHANGED, c);
	return strcmp(topic, "/containers/delete") ? 0 : b->each(b->arg, FOUND_ENDED, c);
}

/* ---- the CRI ---- */

static int on_cri_container(struct reader_base *b, const struct fusee_proto_field *f)
{
	struct container *c = &b->container;
	bool status = b->ask == ASK_ONE;
	uint32_t image = status ? 8 : 4, state = status ? 3 : 6, metadata = status ? 2 : 3,
		 labels = status ? 12 : 8;

	if (f->number == 1)
		return set_id(b, f);
	if (f->number == metadata)
		return set_inner(b, f, c->name, sizeof(c->name));
	if (f->number == image)
		return set_inner(b, f, c->image, sizeof(c->image));
	if (f->number == labels)
		return add_label(b, f);
	if (f->number == state)
		c->ended = f->value >= CRI_EXITED;
	return 0;
}

static int on_cri(struct reader_base *b, const struct fusee_proto_field *f)
{
	int r;

	if (f->number != 1 || f->type != FUSEE_PROTO_BYTES)
		return 0;
	container_clear(&b->container);
	r = for_each(b, f->bytes, on_cri_container);
	return r || b->container.ended ? r : b->each(b->arg, FOUND_CONTAINER, &b->container);
}

/* ---- frames ---- */

static int read_message(struct grpc_reader *r)
{
	struct reader_base *b = r->base;
	struct fusee_str message = fusee_bytes_str(&r->message);

	if (b->kind == DAEMON_CRI)
		return for_each(b, message, on_cri);
	if (b->ask == ASK_EVENTS)
		return read_event(b, message);
	return for_each(b, message, b->ask == ASK_SPACES ? on_space : on_containerd);
}

static int wrong(struct grpc_reader *r, const char *problem)
{
	r->base->problem = problem;
	return -EBADMSG;
}

static int check_head(struct grpc_reader *r)
{
	r->length = fusee_proto_frame_length(r->head);
	if (r->head[0])
		return wrong(r, "compressed");
	return r->length > READER_MESSAGE ? wrong(r, "too large") : 0;
}

static void drop_message(struct grpc_reader *r)
{
	fusee_bytes_fini(&r->message);
	r->nhead = 0;
}

int grpc_reader_feed(struct grpc_reader *r, const char *bytes, size_t n)
{
	int err = 0;

	while (n) {
		size_t part;

		if (r->nhead < FUSEE_PROTO_FRAME) {
			r->head[r->nhead++] = (uint8_t)*bytes++;
			n--;
			if (r->nhead < FUSEE_PROTO_FRAME)
				continue;
			err = check_head(r);
		}
		if (err)
			break;
		part = r->length - r->message.len;
		part = n < part ? n : part;
		fusee_bytes_add(&r->message, bytes, part);
		err = r->message.error;
		if (err)
			break;
		bytes += part;
		n -= part;
		if (r->message.len < r->length)
			continue;
		err = read_message(r);
		drop_message(r);
		if (err)
			break;
	}
	return err;
}

struct grpc_reader *grpc_reader_new(struct reader_base *base)
{
	struct grpc_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->base = base;
	return r;
}

void grpc_reader_free(struct grpc_reader *r)
{
	if (!r)
		return;
	drop_message(r);
	free(r);
}

int grpc_reader_begin(struct grpc_reader *r)
{
	drop_message(r);
	return 0;
}

int grpc_reader_end(struct grpc_reader *r)
{
	return r->nhead && r->base->ask != ASK_EVENTS ? wrong(r, "incomplete") : 0;
}
