/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a plugin's file before dlopen() does: ld.so dies of a file that ends too early. */
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include <stdint.h>

/* 0, or -errno with one malloc'ed sentence in *text: not an ELF file for this machine, ends before
 * its headers say, or, when we have rights that others lack, can be written by others (the file or
 * its folder). */
int check_file(const char *path, char **text);

/* The kind that the descriptor in a plugin's file says, without loading it: what is of no use here
 * need not bring its libraries in. 0: the file does not tell. */
uint32_t check_kind(const char *path);
#endif
