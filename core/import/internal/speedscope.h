/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of speedscope as a profile: https://www.speedscope.app/file-format-schema.json. Its
 * profiles, which most programs write one of for a thread, are added up; if there are several, each
 * sample has the label `profile`, its profile's name.
 */
#ifndef IMPORT_SPEEDSCOPE_H
#define IMPORT_SPEEDSCOPE_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/builder.h"

/* true: it begins as JSON does. */
bool speedscope_is(const char *text, size_t len);

/*
 * Adds all stacks to an empty builder and sets its value types, one for each unit of a profile:
 * time/nanoseconds, space/bytes, and samples/count where it has none. 0 or -errno; then *error is a
 * sentence, which is static.
 */
int speedscope_read(struct builder *, const char *text, size_t len, const char **error);
#endif
