/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a struct fusee_profile. Each function that adds an element returns its index; equal
 * elements have one index. After an error they return BUILDER_NONE, and builder_finish() returns
 * the first error, so that a caller checks once. For one thread.
 */
#ifndef PROFILE_BUILDER_H
#define PROFILE_BUILDER_H

#include <stdint.h>

#include <fusee/profile.h>

#include "loss/loss.h"

#define BUILDER_NONE UINT32_MAX

struct builder;

int builder_new(struct builder **ret);
/* Frees the finished profile too. NULL is fine. */
void builder_free(struct builder *);

/* Invalid UTF-8 becomes U+FFFD. */
uint32_t builder_string(struct builder *, const char *p, uint64_t len);
uint32_t builder_cstr(struct builder *, const char *); /* NULL: "" */
uint32_t builder_function(struct builder *, const struct fusee_function *);
uint32_t builder_mapping(struct builder *, const struct fusee_mapping *);
/* Copies the lines, innermost first; first_line and nlines of the location are ignored. */
uint32_t builder_location(struct builder *, const struct fusee_location *,
			  const struct fusee_line *lines, uint32_t n);
uint32_t builder_stack(struct builder *, const uint32_t *locations, uint32_t n); /* leaf first */
/* The stack will be added soon: begins to load what its search needs from memory. */
void builder_stack_soon(const struct builder *, const uint32_t *locations, uint32_t n);
/* To be called before the first sample. */
uint32_t builder_type(struct builder *, const char *type, const char *unit);
/* About so many samples of different stacks will be added. */
void builder_expect(struct builder *, uint64_t samples);
/* The number of these labels, for samples that have them. Texts are copied. Of two labels with the
 * same key the first is kept, and at most 76 keys are. */
uint32_t builder_labels(struct builder *, const struct fusee_label *labels, uint32_t n);
/* Adds values, one for each type, to the sample with this stack, labels, pid and tid. 0 or -errno.
 */
int builder_sample_of(struct builder *, uint32_t stack, uint32_t labels, uint32_t pid, uint32_t tid,
		      const int64_t *values);
/* The same, with builder_labels(). */
int builder_sample(struct builder *, uint32_t stack, const struct fusee_label *labels,
		   uint32_t nlabels, uint32_t pid, uint32_t tid, const int64_t *values);
/* The same, with the labels, pid and tid of the sample before. 0 or -errno. */
int builder_sample_alike(struct builder *, uint32_t stack, const int64_t *values);
/* Adds a time, CLOCK_REALTIME ns, to the sample that builder_sample() has added last; without one
 * nothing happens. 0 or -errno. */
int builder_time(struct builder *, uint64_t ns);
/* All later additions belong to this part until the next call; equal samples and losses of
 * different parts are not added up. In the finished profile samples and losses are in order of
 * their parts, within a part in the order of their addition. */
void builder_part(struct builder *, uint32_t part);
/* All samples that are added until the next call carry these ids, as of struct fusee_sample;
 * samples with other ids are other samples. */
void builder_ids(struct builder *, const uint64_t trace_id[2], uint64_t span_id);
/* A text is added only once. */
void builder_comment(struct builder *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* n more samples were lost or truncated (stage) for this reason. */
void builder_loss(struct builder *, enum loss_stage, const char *reason, int64_t n);
/* Adds the samples that an account has as lost or truncated. */
void builder_losses(struct builder *, const struct loss_account *);
/* A label of the target; replaces that of the same key. */
void builder_resource(struct builder *, const char *key, const char *value);
/* FUSEE_MAPPING_* of a mapping that was added. */
void builder_mapping_flags(struct builder *, uint32_t mapping, uint32_t set, uint32_t clear);
/* The profile, to set kind, default_type, period, start_ns, duration_ns and id; strings are indices
 * of this builder. */
struct fusee_profile *builder_profile(struct builder *);
/* Fills the tables of the profile, which is valid until builder_free(). Nothing can be added after
 * it. 0 or -errno. */
int builder_finish(struct builder *, const struct fusee_profile **ret);
/* Where the samples and losses of parts 0 to n - 1 begin in the finished profile's tables;
 * places[n]: where those of later parts begin. */
struct builder_place {
	uint32_t sample, loss;
};
void builder_places(const struct builder *, struct builder_place *places, uint32_t n);
/* The builder holds memory of others, which its profile points to: release(arg) is called by
 * builder_free(), and bytes counts in builder_bytes(). At most once. */
void builder_hold(struct builder *, void (*release)(void *arg), void *arg, uint64_t bytes);
/* About how many bytes of memory the builder holds. */
uint64_t builder_bytes(const struct builder *);
#endif
