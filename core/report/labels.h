/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of samples: selects the samples that --where keeps, and forms the groups of --by. */
#ifndef REPORT_LABELS_H
#define REPORT_LABELS_H

#include <regex.h>

#include "base/buf.h"
#include "report/report.h"

#define RENDER_MAX_KEYS 8

struct render_condition {
	struct fusee_str key, value;
	bool is_regex, negated;
	regex_t regex;
};

struct render_labels {
	struct fusee_str keys[RENDER_MAX_KEYS]; /* of --by */
	struct render_condition conditions[RENDER_MAX_WHERE];
	uint32_t nkeys, nconditions;
};

/* Parses --by and --where. Borrows the texts of the options. base may be NULL. 0, or -EINVAL with a
 * sentence in error->p: a malformed condition, a key that no sample has. */
int render_labels_make(struct render_labels *, const struct fusee_profile *,
		       const struct fusee_profile *base, const struct render_options *,
		       struct buf *error);
void render_labels_free(struct render_labels *);
/* Whether the sample meets all conditions. A sample without the label meets != and !~. */
bool render_labels_keep(const struct render_labels *, const struct fusee_profile *,
			const struct fusee_sample *);
/* Appends the sample's value of a label as text; pid and tid, and labels of the profile itself, are
 * labels too. false: it has none. */
bool render_label(const struct fusee_profile *, const struct fusee_sample *, struct fusee_str key,
		  struct buf *out);
/* Appends all labels of a sample as a JSON object. */
void render_labels_json(const struct fusee_profile *, const struct fusee_sample *, struct buf *out);
#endif
