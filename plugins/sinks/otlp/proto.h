/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that depends on the version of OTLP's profiles signal: the fields of its messages, the path,
 * and the version that requests state. It is development version 1, which is
 * opentelemetry-proto 1.10 and 1.11 (profiles/v1development). The next version is a change of
 * proto.c and of this header.
 */
#ifndef OTLP_PROTO_H
#define OTLP_PROTO_H

#include <fusee/proto.h>

#define PROTO_PATH "/v1development/profiles"
#define PROTO_CONTENT_TYPE "application/x-protobuf"
/* A receiver that has another version refuses requests that state it, with 400. */
#define PROTO_VERSION_HEADER "OTLP-Profiles-Development-Version"
#define PROTO_VERSION "1"

/* ---- elements of the dictionary, without tag and length. Numbers are those of other tables;
 * texts are numbers in the table of strings. Element 0 of each table is the zero value, which has
 * no bytes. Of links the schema would rather have ids of zeroes, for receivers that expect their
 * length; the signal's own checker (profcheck) refuses that, and no receiver over HTTP is known to
 * need it.
 * ---- */

enum proto_table {
	PROTO_MAPPINGS,
	PROTO_LOCATIONS,
	PROTO_FUNCTIONS,
	PROTO_LINKS,
	PROTO_STRINGS,
	PROTO_ATTRIBUTES,
	PROTO_STACKS,
	PROTO_NTABLES,
};

struct proto_indexes {
	const uint32_t *at;
	uint32_t n;
};

struct proto_mapping {
	uint64_t start, limit, offset;
	uint32_t path;
	struct proto_indexes attributes;
};

struct proto_line {
	uint32_t function, line, column;
};

struct proto_location {
	uint64_t address;
	uint32_t mapping, nlines;
	const struct proto_line *lines;
	struct proto_indexes attributes;
};

struct proto_function {
	uint32_t name, system_name, file, start_line;
};

/* The value of an attribute. */
enum proto_kind { PROTO_TEXT, PROTO_NUMBER, PROTO_TRUE, PROTO_TEXTS };

struct proto_value {
	enum proto_kind kind;
	struct fusee_str text;
	int64_t number;
	struct fusee_table texts; /* struct fusee_str */
};

void proto_mapping(struct fusee_bytes *, const struct proto_mapping *);
void proto_location(struct fusee_bytes *, const struct proto_location *);
void proto_function(struct fusee_bytes *, const struct proto_function *);
void proto_link(struct fusee_bytes *, const uint64_t trace_id[2], uint64_t span_id);
void proto_attribute(struct fusee_bytes *, uint32_t key, const struct proto_value *, uint32_t unit);
void proto_stack(struct fusee_bytes *, struct proto_indexes locations);
/* The field of the table's elements in the dictionary. */
uint32_t proto_table_field(enum proto_table);

/* ---- the request, in the order of these functions. A begin returns its end's argument ---- */

struct proto_type {
	uint32_t type, unit;
};

struct proto_profile {
	struct proto_type type, period_type;
	int64_t period;
	uint64_t start_ns, duration_ns;
	uint8_t id[16];
	struct proto_indexes attributes;
};

struct proto_sample {
	uint32_t stack, link;
	struct proto_indexes attributes;
};

/* The end of a profile and of all profiles of a resource need no more than fusee_proto_end(). */
size_t proto_begin_resource(struct fusee_bytes *);
/* An attribute of the resource, whose bytes are kept apart until they are its key. */
void proto_resource_attribute(struct fusee_bytes *, struct fusee_str key,
			      const struct proto_value *);
/* The resource with these attributes, and the scope. Returns the argument of fusee_proto_end(). */
size_t proto_begin_scope(struct fusee_bytes *, struct fusee_str attributes);
size_t proto_begin_profile(struct fusee_bytes *, const struct proto_profile *);
/* What a sample has in the profile of each of its values, whose bytes are kept apart. */
void proto_sample(struct fusee_bytes *, const struct proto_sample *);
/* That sample with this value. */
void proto_value_of_sample(struct fusee_bytes *, struct fusee_str sample, int64_t value);
/* The dictionary, but for the elements of its tables: they follow, `len` bytes. */
void proto_begin_dictionary(struct fusee_bytes *, size_t len);

/* ---- answers. Texts are bytes of the answer, and can be anything ---- */

struct proto_answer {
	int64_t rejected; /* profiles that the server did not take */
	struct fusee_str message;
};

/* The body of an answer with status 200. false: it is not a message of this protocol. */
bool proto_read_answer(struct fusee_str body, struct proto_answer *);
/* The sentence of an answer with another status; empty: the body has none. */
struct fusee_str proto_read_error(struct fusee_str body);
#endif
