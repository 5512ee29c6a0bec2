/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which label sets, known by the hash in the names of their files, a selector excludes. A file that
 * is read teaches the labels of all files with its hash: a set of the labels that all its samples
 * have, and whose hash is that of the name, is the set. So of each target that is not selected one
 * file is read.
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
/* No sample of a file of this name is selected. */
bool label_sets_excludes(const struct label_sets *, const struct file_name *);
/* Where the labels of such files are not known yet, looks at those of this profile. 0 or -errno. */
int label_sets_learn(struct label_sets *, const struct file_name *, const struct fusee_profile *);
#endif
