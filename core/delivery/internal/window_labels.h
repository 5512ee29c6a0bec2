/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels that a sink's rules of relabeling make of a window's label sets. Decisions exclude
 * label sets that the rules drop, but the rules are applied again when a window is built: meanwhile
 * a callback may have added a label, or a reload may have changed the rules.
 */
#ifndef DELIVERY_WINDOW_LABELS_H
#define DELIVERY_WINDOW_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"
#include "relabel/relabeler.h"

struct window_labels;

/* The plan's instance is borrowed. labels(arg, ..): the labels of a label set before relabeling, as
 * of sink_window_context. NULL: no memory. */
struct window_labels *window_labels_new(const struct plan_instance *,
					const struct fusee_label *(*labels)(void *arg, uint32_t set,
									    uint32_t *n),
					void *arg);
/* The same sink in a newer plan, with other rules. */
void window_labels_replan(struct window_labels *, const struct plan_instance *);
/* If not, labels are unchanged, and the functions below are not called. */
bool window_labels_has_rules(const struct window_labels *);
void window_labels_free(struct window_labels *); /* NULL is fine */
/* Before a window is built, and when all its profiles are. */
void window_labels_begin(struct window_labels *);
void window_labels_end(struct window_labels *);
/* build_options.labels and .group, with struct window_labels as arg. */
const struct fusee_label *window_labels_of(void *arg, uint32_t set, uint32_t *n);
uint32_t window_labels_group(void *arg, uint32_t set);
/* Why the samples of the set are excluded: relabel_reason(), or "no memory". NULL: they are not. */
const char *window_labels_dropped(struct window_labels *, uint32_t set);
#endif
