/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that a command line names: for `report` and `push`. */
#ifndef VIEW_PROFILE_INPUT_H
#define VIEW_PROFILE_INPUT_H

#include <stddef.h>

#include "import/read.h"

/* Reads a file of at most max bytes, in a form that profile_read() knows; "-" is standard input.
 * 0; or an exit code, after one error was logged. */
int profile_input(const char *path, size_t max, struct profile_file **ret);
#endif
