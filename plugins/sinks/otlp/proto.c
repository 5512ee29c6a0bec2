/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of fields are those of opentelemetry-proto 1.11: profiles.proto, common.proto,
 * resource.proto and profiles_service.proto; those of errors are google.rpc.Status. */
#include "proto.h"

#define SCOPE_NAME "fusee"
#define SCOPE_VERSION "0.1"
/* of the names of attributes */
#define SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

#define TEXT(literal) literal, sizeof(literal) - 1

/* by enum proto_table */
static const uint32_t table_fields[] = {
	[PROTO_MAPPINGS] = 1, [PROTO_LOCATIONS] = 2,  [PROTO_FUNCTIONS] = 3, [PROTO_LINKS] = 4,
	[PROTO_STRINGS] = 5,  [PROTO_ATTRIBUTES] = 6, [PROTO_STACKS] = 7,
};

/* ---- the dictionary ---- */

static void put_indexes(struct fusee_bytes *w, uint32_t field, struct proto_indexes i)
{
	fusee_proto_indexes(w, field, i.at, i.n);
}

void proto_mapping(struct fusee_bytes *w, const struct proto_mapping *m)
{
	fusee_proto_uint(w, 1, m->start);
	fusee_proto_uint(w, 2, m->limit);
	fusee_proto_uint(w, 3, m->offset);
	fusee_proto_uint(w, 4, m->path);
	put_indexes(w, 5, m->attributes);
}

void proto_location(struct fusee_bytes *w, const struct proto_location *l)
{
	fusee_proto_uint(w, 1, l->mapping);
	fusee_proto_uint(w, 2, l->address);
	for (uint32_t i = 0; i < l->nlines; i++) {
		size_t line = fusee_proto_begin(w, 3);

		fusee_proto_uint(w, 1, l->lines[i].function);
		fusee_proto_uint(w, 2, l->lines[i].line);
		fusee_proto_uint(w, 3, l->lines[i].column);
		fusee_proto_end(w, line);
	}
	put_indexes(w, 4, l->attributes);
}

void proto_function(struct fusee_bytes *w, const struct proto_function *f)
{
	fusee_proto_uint(w, 1, f->name);
	fusee_proto_uint(w, 2, f->system_name);
	fusee_proto_uint(w, 3, f->file);
	fusee_proto_uint(w, 4, f->start_line);
}

/* Big-endian, as trace contexts are written. */
static void put_id(struct fusee_bytes *w, uint32_t field, const uint64_t *words, uint32_t n)
{
	uint8_t bytes[16];

	for (uint32_t i = 0; i < 8 * n; i++)
		bytes[i] = (uint8_t)(words[i / 8] >> (56 - i % 8 * 8));
	fusee_proto_bytes(w, field, bytes, (size_t)8 * n);
}

void proto_link(struct fusee_bytes *w, const uint64_t trace_id[2], uint64_t span_id)
{
	put_id(w, 1, trace_id, 2);
	put_id(w, 2, &span_id, 1);
}

static void put_value(struct fusee_bytes *w, const struct proto_value *v)
{
	size_t list, element;

	switch (v->kind) {
	case PROTO_TEXT:
		fusee_proto_bytes(w, 1, v->text.p, v->text.len);
		break;
	case PROTO_NUMBER: /* of a oneof: a zero is written too */
		fusee_bytes_varint(w, 3 << 3);
		fusee_bytes_varint(w, (uint64_t)v->number);
		break;
	case PROTO_TRUE:
		fusee_proto_uint(w, 2, 1);
		break;
	case PROTO_TEXTS:
		list = fusee_proto_begin(w, 5);
		for (uint32_t i = 0; i < v->texts.n; i++) {
			const struct fusee_str *s = FUSEE_AT(struct fusee_str, v->texts, i);

			element = fusee_proto_begin(w, 1);
			fusee_proto_bytes(w, 1, s->p, s->len);
			fusee_proto_end(w, element);
		}
		fusee_proto_end(w, list);
	}
}

void proto_attribute(struct fusee_bytes *w, uint32_t key, const struct proto_value *v,
		     uint32_t unit)
{
	size_t value;

	fusee_proto_uint(w, 1, key);
	value = fusee_proto_begin(w, 2);
	put_value(w, v);
	fusee_proto_end(w, value);
	fusee_proto_uint(w, 3, unit);
}

void proto_stack(struct fusee_bytes *w, struct proto_indexes locations)
{
	put_indexes(w, 1, locations);
}

uint32_t proto_table_field(enum proto_table t)
{
	return table_fields[t];
}

/* ---- the request ---- */

size_t proto_begin_resource(struct fusee_bytes *w)
{
	return fusee_proto_begin(w, 1);
}

void proto_resource_attribute(struct fusee_bytes *w, struct fusee_str key,
			      const struct proto_value *v)
{
	size_t pair = fusee_proto_begin(w, 1), value;

	fusee_proto_bytes(w, 1, key.p, key.len);
	value = fusee_proto_begin(w, 2);
	put_value(w, v);
	fusee_proto_end(w, value);
	fusee_proto_end(w, pair);
}

size_t proto_begin_scope(struct fusee_bytes *w, struct fusee_str attributes)
{
	size_t profiles, scope;

	fusee_proto_bytes(w, 1, attributes.p, attributes.len);
	fusee_proto_bytes(w, 3, TEXT(SCHEMA_URL));
	profiles = fusee_proto_begin(w, 2);
	scope = fusee_proto_begin(w, 1);
	fusee_proto_bytes(w, 1, TEXT(SCOPE_NAME));
	fusee_proto_bytes(w, 2, TEXT(SCOPE_VERSION));
	fusee_proto_end(w, scope);
	return profiles;
}

static void put_type(struct fusee_bytes *w, uint32_t field, struct proto_type t)
{
	size_t type = fusee_proto_begin(w, field);

	fusee_proto_uint(w, 1, t.type);
	fusee_proto_uint(w, 2, t.unit);
	fusee_proto_end(w, type);
}

size_t proto_begin_profile(struct fusee_bytes *w, const struct proto_profile *p)
{
	size_t profile = fusee_proto_begin(w, 2);

	put_type(w, 1, p->type);
	fusee_proto_fixed64(w, 3, p->start_ns);
	fusee_proto_uint(w, 4, p->duration_ns);
	put_type(w, 5, p->period_type);
	fusee_proto_uint(w, 6, (uint64_t)p->period);
	fusee_proto_bytes(w, 7, p->id, sizeof(p->id));
	put_indexes(w, 11, p->attributes);
	return profile;
}

void proto_sample(struct fusee_bytes *w, const struct proto_sample *s)
{
	fusee_proto_uint(w, 1, s->stack);
	put_indexes(w, 2, s->attributes);
	fusee_proto_uint(w, 3, s->link);
}

/* One value and no timestamps: the sum of the profile's time. */
void proto_value_of_sample(struct fusee_bytes *w, struct fusee_str sample, int64_t value)
{
	size_t begun = fusee_proto_begin(w, 2), values;

	fusee_bytes_add(w, sample.p, sample.len);
	values = fusee_proto_begin(w, 4);
	fusee_bytes_varint(w, (uint64_t)value);
	fusee_proto_end(w, values);
	fusee_proto_end(w, begun);
}

void proto_begin_dictionary(struct fusee_bytes *w, size_t len)
{
	fusee_bytes_varint(w, 2 << 3 | 2);
	fusee_bytes_varint(w, len);
}

/* ---- answers ---- */

/* The bytes of the last field `number`; *in must be fields of protobuf to its end. */
static bool find_bytes(struct fusee_str in, uint32_t number, struct fusee_str *found)
{
	struct fusee_proto_field f;
	int r;

	*found = (struct fusee_str){"", 0};
	while ((r = fusee_proto_next(&in, &f)) > 0)
		if (f.number == number) {
			if (f.type != 2)
				return false;
			*found = f.bytes;
		}
	return !r;
}

bool proto_read_answer(struct fusee_str body, struct proto_answer *a)
{
	struct fusee_str partial;
	struct fusee_proto_field f;
	int r;

	*a = (struct proto_answer){.message = {"", 0}};
	if (!find_bytes(body, 1, &partial))
		return false;
	while ((r = fusee_proto_next(&partial, &f)) > 0) {
		if (f.number == 1 && f.type == 0)
			a->rejected = (int64_t)f.value;
		else if (f.number == 2 && f.type == 2)
			a->message = f.bytes;
	}
	return !r;
}

struct fusee_str proto_read_error(struct fusee_str body)
{
	struct fusee_str message;

	if (!find_bytes(body, 2, &message))
		message.len = 0;
	return message;
}
