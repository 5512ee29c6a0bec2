/* SPDX-License-Identifier: Apache-2.0 */
/* The builder, for builder.c, builder_stacks.c and builder_samples.c (what is added) and
 * builder_finish.c (the profile). Only they include this. */
#ifndef PROFILE_BUILDER_STATE_H
#define PROFILE_BUILDER_STATE_H

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/dict.h"
#include "profile/builder.h"

enum { LABEL_STR = 1 };

struct label_key {
	uint32_t key, str, unit, is_str;
	int64_t num;
};

/* Mappings with an equal key are the same; their flags may change. */
struct mapping_key {
	uint32_t path, build_id;
	uint64_t start, limit, offset;
};

struct sample_time {
	uint64_t ns;
	uint32_t sample, pad; /* id in samples */
};

/* Stacks, in the form of the profile's tables. */
struct builder_stacks {
	struct fusee_stack *at; /* 0 is the empty stack */
	uint32_t *hashes;
	uint32_t *locations;
	uint32_t *samples; /* the first sample of each; 0: none */
	uint32_t n, nlocations;
	uint32_t expected; /* samples of different stacks, if that is known */
	size_t cap, hashes_cap, samples_cap, locations_cap;
	struct slots slots;
};

/* Of builder_ids(). */
struct builder_ids {
	uint64_t trace_id[2], span_id;
};

/* Samples as they will be in the profile, but that first_label is an id in label_sets. 0 is none.
 * Most stacks have one sample, which the stack knows; slots has the others. */
struct builder_samples {
	struct fusee_sample *at;
	uint32_t *parts;
	uint32_t *more; /* elements of slots: samples */
	uint32_t n, nmore;
	size_t cap, parts_cap, more_cap;
	struct slots slots;
	struct builder_ids ids;
};

struct loss {
	uint32_t reason;
	enum loss_stage stage;
	uint32_t part;
	int64_t n;
};

struct builder_comments {
	struct buf strings; /* uint32_t */
	struct buf has;     /* char, by string: is it one of them? */
};

/* Of builder_hold(). */
struct held {
	void (*release)(void *arg); /* NULL: nothing is held */
	void *arg;
	uint64_t bytes;
};

/* Dicts hold the tables while they grow. An id in a dict is the index in the profile; 0 is the
 * empty entry. */
struct builder {
	struct arena arena; /* has the dicts, and the tables of the finished profile */
	struct fusee_profile profile;
	int error;
	uint32_t ntypes, part, nparts; /* nparts: 0: builder_part() was not called */
	struct dict strings, functions, mappings, locations;
	struct dict label_sets; /* struct label_key, each once, sorted by key */
	struct builder_stacks stacks;
	struct builder_samples samples;
	struct buf mapping_flags; /* uint32_t by mapping */
	struct buf values;        /* int64_t: ntypes for each sample, from id 1 on */
	struct buf types;         /* struct fusee_value_type */
	struct buf losses;        /* struct loss */
	struct builder_comments comments;
	struct buf resource; /* struct fusee_label */
	struct buf scratch;
	struct buf times;     /* struct sample_time */
	uint32_t last;        /* id of the sample that was added last; 0: none */
	uint64_t table_bytes; /* of builder_finish() */
	struct held held;
	bool finished;
};

int builder_stacks_init(struct builder *);
/* The number of the stack; BUILDER_NONE: no memory. The locations are checked. */
uint32_t builder_stacks_add(struct builder *, const uint32_t *locations, uint32_t n);
int builder_samples_init(struct builder *);
/* The number of the sample of this stack, labels, pid and tid (key) and of the current part.
 * BUILDER_NONE: no memory. */
uint32_t builder_samples_add(struct builder *, const struct fusee_sample *key);
/* Grows slots that have n elements, if one more needs it. hash_of: of an element. 0 or -ENOMEM. */
int builder_slots_room(struct builder *, struct slots *, uint32_t n,
		       uint32_t (*hash_of)(const struct builder *, uint32_t));

static inline uint32_t builder_fail(struct builder *b, int error)
{
	if (!b->error)
		b->error = error;
	return BUILDER_NONE;
}

/* Whether nothing may be added any more: an error occurred, or the profile is finished and points
 * into the dicts. An addition then is an error too. */
static inline bool builder_is_closed(struct builder *b)
{
	if (b->finished)
		builder_fail(b, -EBUSY);
	return b->error;
}

static inline struct fusee_str builder_text(const struct builder *b, uint32_t id)
{
	return (struct fusee_str){b->strings.entries[id].key, b->strings.entries[id].len};
}
#endif
