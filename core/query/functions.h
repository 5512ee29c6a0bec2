/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the stacks with a function whose name matches an expression. */
#ifndef QUERY_FUNCTIONS_H
#define QUERY_FUNCTIONS_H

#include <regex.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/dict.h"
#include <fusee/profile.h>

/* Names recur from window to window: each is matched once. */
struct functions {
	regex_t regex;
	struct dict names;
	struct buf results; /* char, by id of names: whether it matches */
	struct buf matched; /* char, by function of the window */
};

/* An extended regular expression that matches a part of the name, as everywhere in reports. 0;
 * -EINVAL with a sentence in error->p; -ENOMEM. */
int functions_init(struct functions *, const char *regex, struct buf *error);
void functions_fini(struct functions *);
/* Whether a name matches: 1, 0 or -ENOMEM. */
int functions_match(struct functions *, struct fusee_str name);
/* Before functions_has() of a window. 0 or -ENOMEM. */
int functions_begin(struct functions *, const struct fusee_profile *);
bool functions_has(const struct functions *, const struct fusee_profile *, uint32_t stack);
#endif
