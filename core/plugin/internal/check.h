/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plugin's file before dlopen(), because ld.so crashes on a truncated file. */
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

/* Checks that the file is a complete shared object for this machine and, if fusee runs as root,
 * with capabilities or setuid, that no other user can write the file or its folder. 0, or -errno
 * with a malloc'ed sentence in *text (NULL: no memory). */
int check_file(const char *path, char **text);

/* Does this core load plugins of this version of the ABI? */
static inline bool check_is_known(uint16_t major, uint16_t minor)
{
	return major ? major == FUSEE_ABI_MAJOR && minor <= FUSEE_ABI_MINOR
		     : minor >= FUSEE_ABI_BEFORE_FIRST && minor <= FUSEE_ABI_BEFORE_LAST;
}

#define CHECK_NAME 64u /* bytes of a name, its NUL included */

struct check_identity {
	uint32_t kind;         /* enum fusee_kind; 0: unknown */
	char name[CHECK_NAME]; /* "": unknown, or built for another version of the plugin ABI */
};

/* Reads them from the descriptor in the file without loading it, so that a plugin that is not used
 * costs neither the memory nor the start of its libraries. */
void check_identity(const char *path, struct check_identity *ret);
#endif
