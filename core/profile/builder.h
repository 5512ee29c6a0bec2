/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a struct fusee_profile: every add function returns the index of the (deduplicated) element,
 * or BUILDER_NONE after a failed allocation; the error stays and builder_finish() returns it, so
 * look once.
 */
#ifndef PROFILE_BUILDER_H
#define PROFILE_BUILDER_H

#include <stdint.h>

#include <fusee/profile.h>

#include "profile/loss.h"

#define BUILDER_NONE UINT32_MAX

struct builder;

int builder_new(struct builder **ret);
void builder_free(struct builder *); /* NULL is fine; the finished profile goes with it */

uint32_t builder_string(struct builder *, const char *p,
			uint64_t len);                 /* bad UTF-8 becomes U+FFFD */
uint32_t builder_cstr(struct builder *, const char *); /* NULL: "" */
uint32_t builder_function(struct builder *, const struct fusee_function *);
uint32_t builder_mapping(struct builder *, const struct fusee_mapping *);
/* location.first_line and nlines are filled in; lines are copied, innermost first. */
uint32_t builder_location(struct builder *, const struct fusee_location *,
			  const struct fusee_line *lines, uint32_t n);
uint32_t builder_stack(struct builder *, const uint32_t *locations, uint32_t n); /* leaf first */
uint32_t builder_type(struct builder *, const char *type,
		      const char *unit); /* before the first sample */
/* Adds to the sample of the same (stack, labels, pid, tid); values: one for each type. Label texts
 * are copied; of two labels of one key the first stays, and no more than 64 keys do. */
int builder_sample(struct builder *, uint32_t stack, const struct fusee_label *labels,
		   uint32_t nlabels, uint32_t pid, uint32_t tid, const int64_t *values);
/* The same text twice is one comment. */
void builder_comment(struct builder *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* n samples were lost or truncated (stage) for a reason; adds up by reason. */
void builder_loss(struct builder *, enum loss_stage, const char *reason, int64_t n);
/* All reasons of an account that are not 0, but those of delivery. */
void builder_losses(struct builder *, const struct loss_account *);
void builder_resource(struct builder *, const char *key, const char *value);
void builder_mapping_flags(struct builder *, uint32_t mapping, uint32_t set, uint32_t clear);
/* kind, default_type, period, times, id: set them here. strings as indices of this builder. */
struct fusee_profile *builder_profile(struct builder *);
/* Fills the tables. The profile lives as long as the builder; nothing can be added after it. */
int builder_finish(struct builder *, const struct fusee_profile **ret);
/* About how much memory it holds, finished or not: for queues with a limit. */
uint64_t builder_bytes(const struct builder *);
#endif
