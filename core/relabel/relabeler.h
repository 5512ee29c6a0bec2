/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the labels that rules make of label sets, kept from window to window: rules are
 * applied to a label set once, as long as samples with it arrive. For one thread.
 */
#ifndef RELABEL_RELABELER_H
#define RELABEL_RELABELER_H

#include <stdint.h>

#include "relabel/relabel.h"

struct relabeler;

struct relabeler *relabeler_new(void); /* without rules; NULL: no memory */
/* Sets two lists that are applied in order, borrowed; either may be NULL. Forgets the results of
 * other rules. */
void relabeler_set_rules(struct relabeler *, const struct relabel_rules *first,
			 const struct relabel_rules *second);
void relabeler_free(struct relabeler *); /* NULL is fine */
/* The labels that the rules make of these labels, valid until relabeler_tidy(). *id: a number other
 * than 0, the same for equal results as long as they are kept. NULL: no memory. */
const struct relabeled *relabeler_get(struct relabeler *, const struct fusee_label *, uint32_t n,
				      uint32_t *id);
/* To be called once a window: forgets results that were not requested since the call before the
 * last. */
void relabeler_tidy(struct relabeler *);
#endif
