/* SPDX-License-Identifier: Apache-2.0 */
/* fusee report --annotate: source lines and instructions with their values. */
#ifndef VIEW_ANNOTATE_H
#define VIEW_ANNOTATE_H

#include "base/buf.h"
#include <fusee/profile.h>

/* Appends, for each function whose name matches the extended regular expression, its source lines
 * and instructions. Names the files that are not on this machine. With a base (NULL: none) the
 * values are those of the profile less those of the base. type: a value type, NULL: the default. 0;
 * -ENOMEM; -EINVAL with one sentence in out->p. */
int annotate(const struct fusee_profile *, const struct fusee_profile *base, const char *regex,
	     const char *type, struct buf *out);
#endif
