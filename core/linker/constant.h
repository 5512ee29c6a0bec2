/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of BPF objects that are known only when they are linked: a static const volatile
 * variable, by its name. Written into the object before it is linked, so that each plugin's object
 * has its own.
 */
#ifndef LINKER_CONSTANT_H
#define LINKER_CONSTANT_H

#include <stddef.h>
#include <stdint.h>

/* The place in the ELF object of the 4 bytes of this variable. 0; -ENOENT: it has none; -EINVAL: it
 * is no such object. */
int constant_find(const void *object, size_t len, const char *name, size_t *at);
#endif
