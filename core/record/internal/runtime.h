/* SPDX-License-Identifier: Apache-2.0 */
/* Run times of languages whose functions have no names in a profile, and the options with which
 * they have names, as unwinders describe them (struct fusee_runtime). */
#ifndef RECORD_RUNTIME_H
#define RECORD_RUNTIME_H

#include "selection/selection.h"
#include "plugin/plugin.h"
#include "profile/builder.h"

/* Appends a hint for each runtime of which much CPU time has no names. `all_ns`: the CPU time of
 * the profile. 0 or -ENOMEM. */
int runtime_hints(const struct fusee_profile *, const struct plugin_set *unwinders,
		  const struct selection *, uint64_t all_ns, struct buf *);
#endif
