/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of a selection: of a file, of several files that are added up, or of a range of time
 * of the store. */
#ifndef UI_PROFILES_H
#define UI_PROFILES_H

#include <stdatomic.h>

#include "query/merged.h"
#include "query/store.h"
#include "ui/internal/files.h"
#include "ui/internal/selection.h"

#define UI_MAX_SUMS 5u /* both sides of a comparison, with those of mixed types, and one more */
#define UI_MAX_SUM (256ull << 20) /* bytes of memory */
#define UI_MAX_TYPES 32u          /* that are listed, of profiles of several kinds */

/* Profiles that were added up. */
struct ui_sum {
	char *key; /* of the selection; NULL: unused */
	uint64_t used;
	struct merged merged;
	struct selector *selector;
	const struct fusee_profile *profile; /* NULL: no sample, or the kinds are mixed */
	bool mixed;                          /* with other types: a type must be selected */
	uint64_t others; /* windows with other types, which are not in the sum */
	struct store_counts counts;
	struct buf types; /* names of the value types of all windows, each with its NUL */
	uint32_t ntypes;
	struct buf first; /* the default type of the first window, terminated */
};

struct ui_profiles {
	struct ui_files files;
	struct store *store; /* of all profiles; owned */
	const char *place;   /* its name; NULL: the files, or their folder */
	struct ui_sum sums[UI_MAX_SUMS];
	uint64_t uses, changes; /* changes: of sums */
	atomic_bool ending;     /* set by any thread: fusee ends */
};

/* Takes a store of the caller, NULL: the files are one, and its name, which is borrowed. 0 or
 * -ENOMEM. */
int ui_profiles_open(struct ui_profiles *, struct store *, const char *place);
void ui_profiles_close(struct ui_profiles *); /* {0} is fine */
/* The profile of a side, valid until two others were requested. *sum: how it was added up; NULL if
 * it is one file. type: the selected value type, NULL: none. 0; -ENOENT: no such file; or -errno
 * with a sentence in error->p. */
int ui_profiles_get(struct ui_profiles *, const struct ui_side *, const char *type,
		    const struct fusee_profile **ret, const struct ui_sum **sum, struct buf *error);
/* Reads the store; window() also ends with -ECANCELED when `ending` is set. 0 or
 * -errno with a sentence in error->p. */
int ui_profiles_read(struct ui_profiles *, const struct store_request *,
		     int (*window)(void *arg, const struct fusee_profile *, const char *name),
		     void *arg, struct store_counts *, struct buf *error);
/* Appends the name of the default value type, with its NUL. */
void ui_default_type(const struct fusee_profile *, struct buf *to);
/* A selector of a value type; NULL: of all. 0 or -ENOMEM. */
int ui_type_selector(struct selector **ret, const char *type);
#endif
