/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plugin's file before dlopen(), because ld.so crashes on a truncated file. */
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include <stdint.h>

/* Checks that the file is a complete shared object for this machine and, if fusee runs as root,
 * with capabilities or setuid, that no other user can write the file or its folder. 0, or -errno
 * with a malloc'ed sentence in *text (NULL: no memory). */
int check_file(const char *path, char **text);

/* Reads the kind (enum fusee_kind) from the descriptor in the file without loading it, so that the
 * libraries of a plugin that is not needed are not loaded either. 0: the kind is unknown. */
uint32_t check_kind(const char *path);
#endif
