/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that install debug symbols of an installed file, by Debian's packages. */
#ifndef CONSOLE_PACKAGE_H
#define CONSOLE_PACKAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PACKAGE_MAX 8u /* files of one call */

/* Sets texts[i] to the lines of the shell that install the symbols of paths[i], by the package that
 * owns it and what apt's lists say; NULL: not known, installed already, or Debian has none. Looks
 * at local files only; apt is called once, which takes a second where it keeps no cache. The caller
 * frees the texts. */
void package_debug_symbols(const char *const *paths, uint32_t n, char **texts);
/* A value of os-release(5), as of "ID": "debian". false: there is none. */
bool package_release(const char *key, char value[64]);
#endif
