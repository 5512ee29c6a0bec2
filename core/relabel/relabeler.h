/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lists of rules make of label sets, kept from window to window: rules are applied to a label
 * set once, as long as samples with it arrive. For one thread.
 */
#ifndef RELABEL_RELABELER_H
#define RELABEL_RELABELER_H

#include <stdint.h>

#include "relabel/relabel.h"

struct relabeler;

struct relabeler *relabeler_new(void); /* without rules; NULL: no memory */
/* Two lists, borrowed, one after the other; either may be NULL. Forgets what other rules made. */
void relabeler_set_rules(struct relabeler *, const struct relabel_rules *first,
			 const struct relabel_rules *second);
void relabeler_free(struct relabeler *); /* NULL is fine */
/* What the rules make of these labels, valid until relabeler_tidy(). *id: the same number, not 0,
 * for the same labels of the result, as long as it is kept. NULL: no memory. */
const struct relabeled *relabeler_get(struct relabeler *, const struct fusee_label *, uint32_t n,
				      uint32_t *id);
/* Once for each window: forgets what was not requested since the call before the last. */
void relabeler_tidy(struct relabeler *);
#endif
