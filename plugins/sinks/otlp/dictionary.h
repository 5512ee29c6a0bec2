/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of a request: the elements that the samples of one profile need, each once.
 * Without memory, functions that return a number return 0, the number of the zero value, and set
 * `error`.
 */
#ifndef OTLP_DICTIONARY_H
#define OTLP_DICTIONARY_H

#include "proto.h"
#include "table.h"

struct dictionary {
	const struct fusee_profile *p;
	struct table tables[PROTO_NTABLES];
	/* by index in the profile: number + 1; 0: not in the dictionary yet */
	uint32_t *strings, *functions, *mappings, *locations, *stacks;
	/* each for elements of one kind while they are made */
	struct fusee_bytes ids, stack, location, lines, function, mapping, attribute, link, text;
	int error; /* of the first failure */
};

/* p is borrowed. 0 or -ENOMEM. */
int dictionary_init(struct dictionary *, const struct fusee_profile *p);
void dictionary_fini(struct dictionary *);

/* Bytes that are not UTF-8 become U+FFFD, because receivers refuse the complete request for a
 * single such byte. */
uint32_t dictionary_string(struct dictionary *, uint32_t index); /* of the profile's strings */
uint32_t dictionary_stack(struct dictionary *, uint32_t index);
uint32_t dictionary_link(struct dictionary *, const struct fusee_sample *);
uint32_t dictionary_attribute(struct dictionary *, struct fusee_str key, const struct proto_value *,
			      struct fusee_str unit);
/* Appends the tables to a request. */
void dictionary_write(const struct dictionary *, struct fusee_bytes *);
/* The text, or in *clean the text with U+FFFD in place of other bytes. */
struct fusee_str dictionary_clean(struct fusee_bytes *clean, struct fusee_str);
#endif
