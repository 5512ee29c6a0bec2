/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says about its separate debug files, and whether one is really its own. */
#ifndef SYMBOLS_DEBUGLINK_H
#define SYMBOLS_DEBUGLINK_H

#include <stddef.h>
#include <stdint.h>

struct source;

/* Is `debug` the debug file of `file`? By build id where both have one, else by .gnu_debuglink's
 * CRC. 1, 0, -errno */
int debuglink_matches(const struct source *file, const struct source *debug);
/* What .gnu_debugaltlink of `file` says: the dwz file's *name (free() it) and build id, *n bytes of
 * it. 0; -ENOENT: it names none; -EBADMSG, -ENOMEM. */
int debugaltlink_read(const struct source *file, char **name, uint8_t id[64], size_t *n);
/* Is `alt` the dwz file that .gnu_debugaltlink of `file` names? 1; 0; -ENOENT: it names none. */
int debugaltlink_matches(const struct source *file, const struct source *alt);
#endif
