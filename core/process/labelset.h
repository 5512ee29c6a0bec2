/* SPDX-License-Identifier: Apache-2.0 */
/* Interned label sets: equal ones have one id. For one thread. */
#ifndef PROCESS_LABELSET_H
#define PROCESS_LABELSET_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/hashmap.h"

#define LABELSET_MAX 32u        /* labels of a set */
#define LABELSET_NAME_MAX 128u  /* bytes of a label's name */
#define LABELSET_VALUE_MAX 256u /* bytes of its value */

/* One in the making; texts are borrowed. */
struct labelset_draft {
	struct fusee_label labels[LABELSET_MAX];
	uint32_t n;
};

struct labelsets {
	struct hashmap by_id, by_hash;
	uint32_t last; /* id given out; ids are never used again */
};

void labelsets_fini(struct labelsets *); /* {0} is fine */
/* Of [a-zA-Z_][a-zA-Z0-9_]*, and not too long. */
bool labelset_name(struct fusee_str name);
/* Appends a value as it may stand in a set: well-formed UTF-8, cut between two characters. */
int labelset_value(struct buf *out, struct fusee_str value);
/* NULL: not there. */
const struct fusee_label *labelset_find(const struct labelset_draft *, struct fusee_str name);
/* Sorts the draft by name; its names are distinct. 0: no memory. */
uint32_t labelsets_intern(struct labelsets *, struct labelset_draft *);
/* NULL: no such id. Sorted by name, text ones; texts are terminated too. */
const struct fusee_label *labelsets_get(const struct labelsets *, uint32_t id, uint32_t *n);
void labelsets_sweep(struct labelsets *, bool (*used)(void *arg, uint32_t id), void *arg);
#endif
