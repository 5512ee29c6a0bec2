/* SPDX-License-Identifier: Apache-2.0 */
/* How to get the debug symbols of an installed file. */
#ifndef CLI_PACKAGE_H
#define CLI_PACKAGE_H

/* "apt install libc6-dbg" and the like, by the package that owns path; NULL: not known. Owned by
 * the caller. */
char *package_debug_symbols(const char *path);
#endif
