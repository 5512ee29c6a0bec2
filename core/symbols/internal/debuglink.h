/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a file to its separate debug files, and whether a debug file belongs to it. */
#ifndef SYMBOLS_DEBUGLINK_H
#define SYMBOLS_DEBUGLINK_H

#include <stddef.h>
#include <stdint.h>

struct source;

/* Whether `debug` is the debug file of `file`: by build ID if both have one, else by the CRC in
 * .gnu_debuglink. 1, 0 or -errno. */
int debuglink_matches(const struct source *file, const struct source *debug);
/* Reads .gnu_debugaltlink of `file`: *name of the dwz file, which the caller frees, and *n bytes of
 * its build ID. 0; -ENOENT: no such section; -EBADMSG; -ENOMEM. */
int debugaltlink_read(const struct source *file, char **name, uint8_t id[64], size_t *n);
/* Whether `alt` is the dwz file that `file` names. 1, 0 or -errno (-ENOENT: it names none). */
int debugaltlink_matches(const struct source *file, const struct source *alt);
#endif
