/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors of samples with the syntax of Prometheus: {service="web", pod=~"a.*", unit!="x"}, with
 * or without a profile type before the brace, as in cpu{..}. Expressions are anchored
 * (relabel/regex.h); a label that a sample lacks is an empty text. For one thread.
 */
#ifndef QUERY_SELECTOR_H
#define QUERY_SELECTOR_H

#include <stdbool.h>

#include <fusee/profile.h>

struct selector;

/* 0; -EINVAL with a malloc'ed sentence in *error, "character 7: .."; -ENOMEM. */
int selector_parse(struct selector **ret, const char *text, char **error);
void selector_free(struct selector *); /* NULL is fine */
/* "cpu"; NULL: the selector names no type. Borrowed. */
const char *selector_type(const struct selector *);

/* This and the next function return 1: all conditions are met; 0: not; -EAGAIN: an expression could
 * not be matched within its limits; -ENOMEM. */
int selector_matches(struct selector *, const struct fusee_profile *, const struct fusee_sample *);
/* Checks only the conditions on the given labels. 0: no sample with these labels meets all
 * conditions. */
int selector_may_match(struct selector *, const struct fusee_label *, uint32_t n);
/* The i-th condition that requires a label to equal a text that is not empty and has no NUL;
 * borrowed. false: there are fewer. */
bool selector_requires(const struct selector *, uint32_t i, const char **key, const char **text);
/* Whether a condition is on this label. */
bool selector_has(const struct selector *, struct fusee_str key);
/* selector_may_match() for one label whose value is only known to be from min to max. */
int selector_may_match_between(struct selector *, struct fusee_str key, struct fusee_str min,
			       struct fusee_str max);
#endif
