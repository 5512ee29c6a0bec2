/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which label sets a selector excludes, by the hash in the names of their files. The
 * first file with a hash is read: those labels of all its samples whose hash is that of the name
 * are the label set of all files with this hash. So only one file of each target that is not
 * selected is read.
 */
#ifndef STORE_LABEL_SETS_H
#define STORE_LABEL_SETS_H

#include <stdbool.h>

#include "base/hashmap.h"
#include "store/internal/file_name.h"
#include "query/selector.h"

struct label_sets {
	struct selector *selector;
	struct hashmap known; /* by label_sets.c's key of a name */
};

void label_sets_init(struct label_sets *, struct selector *);
void label_sets_fini(struct label_sets *);
/* Whether the selector is known to exclude all samples of a file of this name. */
bool label_sets_excludes(const struct label_sets *, const struct file_name *);
/* Learns the label set of such files from this profile, if it is not known yet. 0 or -errno. */
int label_sets_learn(struct label_sets *, const struct file_name *, const struct fusee_profile *);
#endif
