/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request of OTLP's profiles signal says, read by libprotobuf-c (tests/lib/otlp.proto), and
 * the rules of the signal that receivers do not check, or only some of them. Include it once in a
 * test program, after lib/fakehost.h.
 */
#ifndef OTLP_READ_H
#define OTLP_READ_H

#include "base/dict.h"
#include "base/utf8.h"
#include "otlp.pb-c.h"

#define OTLP __attribute__((unused)) static

/* ---- rules ---- */

OTLP void otlp_in(int64_t index, size_t n)
{
	CHECK(index >= 0 && (uint64_t)index < n);
}

/* Bits of the elements that something refers to; the zero value always counts. */
struct otlp_used {
	bool *at;
	size_t n;
};

OTLP struct otlp_used otlp_used(size_t n)
{
	struct otlp_used u = {calloc(n + 1, 1), n};

	CHECK(u.at && n);
	u.at[0] = true;
	return u;
}

OTLP void otlp_use(struct otlp_used *u, int64_t index)
{
	otlp_in(index, u->n);
	u->at[index] = true;
}

OTLP void otlp_all_used(struct otlp_used *u)
{
	for (size_t i = 0; i < u->n; i++)
		CHECK(u->at[i]);
	free(u->at);
}

/* Attributes of one thing have different keys. */
OTLP void otlp_attributes(const Otlp__Dictionary *d, struct otlp_used *used, size_t n,
			  const int32_t *at)
{
	for (size_t i = 0; i < n; i++) {
		otlp_use(used, at[i]);
		CHECK(at[i]);
		for (size_t k = 0; k < i; k++)
			CHECK(d->attribute_table[at[i]]->key_strindex !=
			      d->attribute_table[at[k]]->key_strindex);
	}
}

OTLP void otlp_distinct(void *const *messages, size_t n)
{
	struct dict all;

	CHECK(!dict_init(&all));
	for (size_t i = 0; i < n; i++) {
		const ProtobufCMessage *m = messages[i];
		size_t len = protobuf_c_message_get_packed_size(m);
		uint8_t *bytes = malloc(len + 1);

		CHECK(bytes && protobuf_c_message_pack(m, bytes) == len);
		CHECK(!len == !i); /* the zero value, and no other */
		CHECK(!len || dict_find(&all, bytes, len) == DICT_NONE);
		dict_add(&all, bytes, len);
		free(bytes);
	}
	dict_fini(&all);
}

struct otlp_usage {
	struct otlp_used mappings, locations, functions, links, strings, attributes, stacks;
};

OTLP void otlp_check_code(const Otlp__Dictionary *d, struct otlp_usage *u)
{
	for (size_t i = 0; i < d->n_stack_table; i++)
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++) {
			CHECK(d->stack_table[i]->location_indices[k]);
			otlp_use(&u->locations, d->stack_table[i]->location_indices[k]);
		}
	for (size_t i = 0; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];

		otlp_use(&u->mappings, l->mapping_index);
		otlp_attributes(d, &u->attributes, l->n_attribute_indices, l->attribute_indices);
		for (size_t k = 0; k < l->n_lines; k++) {
			CHECK(l->lines[k]->function_index && l->lines[k]->line >= 0);
			otlp_use(&u->functions, l->lines[k]->function_index);
		}
	}
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		const Otlp__Mapping *m = d->mapping_table[i];

		CHECK((!m->memory_start && !m->memory_limit) || m->memory_start < m->memory_limit);
		otlp_use(&u->strings, m->filename_strindex);
		otlp_attributes(d, &u->attributes, m->n_attribute_indices, m->attribute_indices);
	}
	for (size_t i = 0; i < d->n_function_table; i++) {
		const Otlp__Function *f = d->function_table[i];

		CHECK(i == 0 || f->name_strindex);
		otlp_use(&u->strings, f->name_strindex);
		otlp_use(&u->strings, f->system_name_strindex);
		otlp_use(&u->strings, f->filename_strindex);
	}
}

OTLP void otlp_check_tables(const Otlp__Dictionary *d, struct otlp_usage *u)
{
	for (size_t i = 0; i < d->n_attribute_table; i++) {
		otlp_use(&u->strings, d->attribute_table[i]->key_strindex);
		otlp_use(&u->strings, d->attribute_table[i]->unit_strindex);
		CHECK(!d->attribute_table[i]->value == (i == 0));
	}
	for (size_t i = 0; i < d->n_link_table; i++)
		CHECK(!i ||
		      (d->link_table[i]->trace_id.len == 16 && d->link_table[i]->span_id.len == 8));
	CHECK_STR(d->string_table[0], "");
	for (size_t i = 1; i < d->n_string_table; i++) {
		CHECK(d->string_table[i][0]);
		CHECK(utf8_valid(d->string_table[i], strlen(d->string_table[i])));
	}
	otlp_distinct((void *const *)d->mapping_table, d->n_mapping_table);
	otlp_distinct((void *const *)d->location_table, d->n_location_table);
	otlp_distinct((void *const *)d->function_table, d->n_function_table);
	otlp_distinct((void *const *)d->attribute_table, d->n_attribute_table);
	otlp_distinct((void *const *)d->stack_table, d->n_stack_table);
	otlp_distinct((void *const *)d->link_table, d->n_link_table);
}

OTLP void otlp_check_profile(const Otlp__Dictionary *d, struct otlp_usage *u,
			     const Otlp__Profile *p)
{
	static const uint8_t zero[16];

	CHECK(p->sample_type && p->period_type && p->n_samples);
	otlp_use(&u->strings, p->sample_type->type_strindex);
	otlp_use(&u->strings, p->sample_type->unit_strindex);
	otlp_use(&u->strings, p->period_type->type_strindex);
	otlp_use(&u->strings, p->period_type->unit_strindex);
	otlp_attributes(d, &u->attributes, p->n_attribute_indices, p->attribute_indices);
	CHECK(p->profile_id.len == 16 && memcmp(p->profile_id.data, zero, 16));
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Sample *s = p->samples[i];

		CHECK(s->stack_index && s->n_values == 1 && !s->n_timestamps_unix_nano);
		otlp_use(&u->stacks, s->stack_index);
		otlp_use(&u->links, s->link_index);
		otlp_attributes(d, &u->attributes, s->n_attribute_indices, s->attribute_indices);
	}
}

/* The signal's rules: indices lead somewhere, zero values are where they must be, keys are unique,
 * samples have one shape, no element of the dictionary is there twice or unused. */
OTLP void otlp_check(const Otlp__Request *r)
{
	const Otlp__Dictionary *d = r->dictionary;
	struct otlp_usage u;

	CHECK(d && r->n_resource_profiles);
	u.mappings = otlp_used(d->n_mapping_table);
	u.locations = otlp_used(d->n_location_table);
	u.functions = otlp_used(d->n_function_table);
	u.links = otlp_used(d->n_link_table);
	u.strings = otlp_used(d->n_string_table);
	u.attributes = otlp_used(d->n_attribute_table);
	u.stacks = otlp_used(d->n_stack_table);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__ResourceProfiles *rp = r->resource_profiles[i];

		CHECK(rp->n_scope_profiles == 1 && rp->scope_profiles[0]->n_profiles);
		for (size_t k = 0; k < rp->scope_profiles[0]->n_profiles; k++)
			otlp_check_profile(d, &u, rp->scope_profiles[0]->profiles[k]);
	}
	otlp_check_code(d, &u);
	otlp_check_tables(d, &u);
	otlp_all_used(&u.mappings);
	otlp_all_used(&u.locations);
	otlp_all_used(&u.functions);
	otlp_all_used(&u.links);
	otlp_all_used(&u.strings);
	otlp_all_used(&u.attributes);
	otlp_all_used(&u.stacks);
}

/* ---- as text ---- */

OTLP void otlp_put_value(struct buf *b, const Otlp__AnyValue *v)
{
	switch (v->value_case) {
	case OTLP__ANY_VALUE__VALUE_STRING_VALUE:
		buf_str(b, v->string_value);
		break;
	case OTLP__ANY_VALUE__VALUE_INT_VALUE:
		buf_printf(b, "%lld", (long long)v->int_value);
		break;
	case OTLP__ANY_VALUE__VALUE_BOOL_VALUE:
		buf_str(b, v->bool_value ? "yes" : "no");
		break;
	case OTLP__ANY_VALUE__VALUE_ARRAY_VALUE:
		for (size_t i = 0; i < v->array_value->n_values; i++)
			buf_printf(b, "[%s]", v->array_value->values[i]->string_value);
		break;
	default:
		CHECK(!"a value that fusee does not write");
	}
}

/* " key=value" for each. */
OTLP void otlp_put_attributes(struct buf *b, const Otlp__Dictionary *d, size_t n, const int32_t *at)
{
	for (size_t i = 0; i < n; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[at[i]];

		buf_printf(b, " %s=", d->string_table[a->key_strindex]);
		otlp_put_value(b, a->value);
		buf_str(b, d->string_table[a->unit_strindex]);
	}
}

OTLP void otlp_put_link(struct buf *b, const Otlp__Link *l)
{
	if (l->trace_id.len)
		buf_str(b, " ");
	for (size_t i = 0; i < l->trace_id.len; i++)
		buf_printf(b, "%02x", l->trace_id.data[i]);
	for (size_t i = 0; i < l->span_id.len; i++)
		buf_printf(b, "%02x", l->span_id.data[i]);
}

OTLP void otlp_put_resource(struct buf *b, const Otlp__Resource *r)
{
	for (size_t i = 0; i < r->n_attributes; i++) {
		buf_printf(b, " %s=", r->attributes[i]->key);
		otlp_put_value(b, r->attributes[i]->value);
	}
}

/* " name|system name|file:start@line.column" for each line, " /" behind each location with its
 * mapping and attributes. */
OTLP void otlp_put_stack(struct buf *b, const Otlp__Dictionary *d, const Otlp__Stack *s)
{
	for (size_t i = 0; i < s->n_location_indices; i++) {
		const Otlp__Location *l = d->location_table[s->location_indices[i]];
		const Otlp__Mapping *m = d->mapping_table[l->mapping_index];

		for (size_t k = 0; k < l->n_lines; k++) {
			const Otlp__Function *f = d->function_table[l->lines[k]->function_index];

			buf_printf(b, " %s|%s|%s:%lld@%lld.%lld", d->string_table[f->name_strindex],
				   d->string_table[f->system_name_strindex],
				   d->string_table[f->filename_strindex], (long long)f->start_line,
				   (long long)l->lines[k]->line, (long long)l->lines[k]->column);
		}
		buf_printf(b, " /%llx", (unsigned long long)l->address);
		if (l->mapping_index)
			buf_printf(b, " in %s %llx-%llx+%llx",
				   d->string_table[m->filename_strindex],
				   (unsigned long long)m->memory_start,
				   (unsigned long long)m->memory_limit,
				   (unsigned long long)m->file_offset);
		otlp_put_attributes(b, d, m->n_attribute_indices, m->attribute_indices);
		otlp_put_attributes(b, d, l->n_attribute_indices, l->attribute_indices);
		buf_str(b, ";");
	}
}
#endif
