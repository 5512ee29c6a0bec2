/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame description of an address in .eh_frame, for the stepper. Foreign bytes: each read is checked. */
#ifndef WORKER_FRAMES_H
#define WORKER_FRAMES_H

#include <stdint.h>

#include <fusee/plugin.h>

/* Position in section of the FDE that covers pc (both ELF virtual addresses); `vaddr` is the section's address.
 * 0; -ENOENT: none does; -EBADMSG: the entries before it can't be walked. One pass over the section. */
int frames_find(struct fusee_str section, uint64_t vaddr, uint64_t pc, uint64_t *at);
/* Makes a copy of .debug_frame read as .eh_frame does, in place: CIE marks and pointers. */
int frames_from_debug(char *bytes, uint64_t len);
#endif
