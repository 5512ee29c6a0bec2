/* SPDX-License-Identifier: Apache-2.0 */
/* The builder, for builder.c (what is added) and builder_finish.c (the profile). Only they include
 * this. */
#ifndef PROFILE_BUILDER_STATE_H
#define PROFILE_BUILDER_STATE_H

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/dict.h"
#include "profile/builder.h"

enum { LABEL_STR = 1 };

/* Samples with an equal key are added up. Followed by the labels. No padding. */
struct sample_key {
	uint32_t stack, pid, tid, nlabels, part, zero;
};

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

struct loss {
	uint32_t reason;
	enum loss_stage stage;
	uint32_t part;
	int64_t n;
};

/* Dicts hold the tables while they grow. An id in a dict is the index in the profile; 0 is the
 * empty entry. */
struct builder {
	struct arena arena; /* has the dicts, and the tables of the finished profile */
	struct fusee_profile profile;
	int error;
	uint32_t ntypes, part, nparts; /* nparts: 0: builder_part() was not called */
	struct dict strings, functions, mappings, locations, stacks, samples;
	struct buf mapping_flags; /* uint32_t by mapping */
	struct buf values;        /* int64_t: ntypes for each sample, from id 1 on */
	struct buf types;         /* struct fusee_value_type */
	struct buf losses;        /* struct loss */
	struct buf comments;      /* uint32_t: strings */
	struct buf resource;      /* struct fusee_label */
	struct buf is_comment;    /* char, by string */
	struct buf scratch;
	struct buf times;     /* struct sample_time */
	uint32_t last;        /* id of the sample that was added last; 0: none */
	uint64_t table_bytes; /* of builder_finish() */
	bool finished;
};

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
