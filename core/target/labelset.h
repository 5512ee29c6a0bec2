/* SPDX-License-Identifier: Apache-2.0 */
/* Interned label sets: equal sets have equal ids. All calls from one thread. */
#ifndef TARGET_LABELSET_H
#define TARGET_LABELSET_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/user_budget.h"

#define LABELSET_MAX 32u        /* labels of a set */
#define LABELSET_NAME_MAX 128u  /* bytes of a label's name */
#define LABELSET_VALUE_MAX 256u /* bytes of a label's value */

/* A set that is being put together. Its texts are borrowed. */
struct labelset_draft {
	struct fusee_label labels[LABELSET_MAX];
	uint32_t n;
};

struct labelsets {
	struct hashmap by_id, by_hash;
	struct user_budget *budget; /* borrowed; a set counts for its first user */
	uint32_t last;              /* the last id that was assigned; ids are not reused */
};

void labelsets_fini(struct labelsets *); /* {0} is valid */
/* Whether a name matches [a-zA-Z_][a-zA-Z0-9_]* and has at most LABELSET_NAME_MAX bytes. */
bool labelset_name(struct fusee_str name);
/* Appends a value in the form that a set holds: well-formed UTF-8, truncated between two
 * characters to LABELSET_VALUE_MAX bytes. 0 or -ENOMEM. */
int labelset_value(struct buf *out, struct fusee_str value);
/* The draft's label of that name. NULL: none. */
const struct fusee_label *labelset_find(const struct labelset_draft *, struct fusee_str name);
/* The id of the set. The names must be distinct; sorts the draft by name. 0: there is none. */
uint32_t labelsets_find(const struct labelsets *, struct labelset_draft *);
/* The same; a new set is copied, and its bytes count for that user. 0: no memory. */
uint32_t labelsets_intern(struct labelsets *, struct labelset_draft *, uint32_t uid);
/* The labels of a set, sorted by name, all with text values; texts end with a NUL too. They are
 * valid until the set is swept. NULL: no such id. */
const struct fusee_label *labelsets_get(const struct labelsets *, uint32_t id, uint32_t *n);
/* Frees the sets for which used() returns false. */
void labelsets_sweep(struct labelsets *, bool (*used)(void *arg, uint32_t id), void *arg);

/* ---- arrays of labels with text values ---- */

/* For qsort(): by name. */
int label_by_name(const void *, const void *);
bool labels_equal(const struct fusee_label *, uint32_t n, const struct fusee_label *, uint32_t m);
uint64_t labels_hash(const struct fusee_label *, uint32_t n);
/* The bytes that labels_copy() writes. */
size_t labels_size(const struct fusee_label *, uint32_t n);
/* Copies labels, followed by their texts, each with a NUL. */
void labels_copy(struct fusee_label *to, const struct fusee_label *, uint32_t n);
#endif
