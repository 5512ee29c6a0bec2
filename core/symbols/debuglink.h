/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says about its separate debug files, and whether one is really its own. */
#ifndef SYMBOLS_DEBUGLINK_H
#define SYMBOLS_DEBUGLINK_H

#include <stdint.h>

struct source;

/* Is `debug` the debug file of `file`? By build id where both have one, else by .gnu_debuglink's
 * CRC. 1, 0, -errno */
int debuglink_matches(const struct source *file, const struct source *debug);
/* Is `alt` the dwz file that .gnu_debugaltlink of `file` names? 1; 0; -ENOENT: it names none. */
int debugaltlink_matches(const struct source *file, const struct source *alt);
#endif
