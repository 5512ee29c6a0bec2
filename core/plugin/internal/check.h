/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plugin's file before dlopen(), because ld.so crashes on a truncated file. */
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include <stdint.h>

/* Checks that the file is a complete shared object for this machine and, if fusee runs as root,
 * with capabilities or setuid, that no other user can write the file or its folder. 0, or -errno
 * with a malloc'ed sentence in *text (NULL: no memory). */
int check_file(const char *path, char **text);

#define CHECK_NAME 64u /* bytes of a name, its NUL included */

struct check_identity {
	uint32_t kind;         /* enum fusee_kind; 0: unknown */
	char name[CHECK_NAME]; /* "": unknown, or built for another version of the plugin ABI */
};

/* Reads them from the descriptor in the file without loading it, so that a plugin that is not used
 * costs neither the memory nor the start of its libraries. */
void check_identity(const char *path, struct check_identity *ret);
#endif
