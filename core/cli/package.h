/* SPDX-License-Identifier: Apache-2.0 */
/* How to get the debug symbols of an installed file, where Debian has them. */
#ifndef CLI_PACKAGE_H
#define CLI_PACKAGE_H

/* A line of the shell that installs them, by the package that owns path and what apt's lists say;
 * NULL: not known, installed already, or Debian has none. Looks at local files only and takes a few
 * seconds at most. Owned by the caller. */
char *package_debug_symbols(const char *path);
#endif
