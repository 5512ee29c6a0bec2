/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an encoder, and its messages and texts, for encode.c (the profile) and
 * encode_sample.c (its samples). Only they include this. */
#ifndef PPROF_ENCODER_H
#define PPROF_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/dict.h"

#define ENCODER_KNOWN 512    /* a power of two */
#define ENCODER_LABELLED 512 /* the same */

/* A text of the profile that was looked up, by its address. */
struct known_text {
	const char *p;
	uint64_t len;
	uint32_t id;
};

/* The labels of a sample without ids that was written, as bytes of the complete message. */
struct labels_written {
	uint32_t first_label, nlabels, pid, tid; /* as of the sample */
	size_t at, len;                          /* len 0: none */
};

struct encoder {
	const struct fusee_profile *p;
	struct buf *out;
	int error;
	bool gzip, unknown_used;
	struct dict texts; /* the file's string table */
	struct known_text known[ENCODER_KNOWN];
	struct labels_written labelled[ENCODER_LABELLED];
	uint32_t *text_of;    /* by string of the profile: id in texts + 1; 0: not in texts yet */
	uint32_t *mapping_of; /* by mapping of the profile: id in the file */
	uint32_t *mapping_flags; /* FUSEE_MAPPING_*, those of symbols only if they are true */
	uint32_t *language_of;   /* by function: language, a string; 0: the most frequent */
	bool *guessed;           /* by function: a location of it is guessed */
	struct buf msg, sub, clean, keys;
	struct buf plain; /* the complete message, if it is to be compressed */
};

static inline void encoder_fail(struct encoder *e, int error)
{
	if (!e->error)
		e->error = error;
}

/* Where the complete message is made. */
static inline struct buf *encoder_message(struct encoder *e)
{
	return e->gzip ? &e->plain : e->out;
}

/* The id of a location. Where there is none, an extra location behind the last is written. */
static inline uint32_t encoder_location(struct encoder *e, uint32_t i)
{
	if (i)
		return i;
	e->unknown_used = true;
	return e->p->locations.n;
}

/* The text's id in the file; invalid UTF-8 becomes U+FFFD. */
uint32_t encoder_text(struct encoder *, const char *p, uint64_t len);
/* Writes bytes as a field of Profile. */
void encoder_bytes(struct encoder *, uint32_t field, const void *p, size_t len);
/* Writes e->msg as a field of Profile and empties it. */
void encoder_emit(struct encoder *, uint32_t field);
/* Writes a sample. Of encode_sample.c. */
void encoder_sample(struct encoder *, uint32_t sample);
#endif
