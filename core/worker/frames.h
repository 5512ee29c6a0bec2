/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame description of an address in .eh_frame, for the stepper. Foreign bytes: each read
 * is checked. */
#ifndef WORKER_FRAMES_H
#define WORKER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct frames_row {
	uint64_t at;       /* position in the section of the FDE */
	bool signal_frame; /* its CIE says so */
};

/* The FDE that covers pc, an ELF virtual address; `vaddr` is the section's. 0; -ENOENT: none does;
 * -EBADMSG: the entries before it can't be walked. One pass over the section. */
int frames_find(struct fusee_str section, uint64_t vaddr, uint64_t pc, struct frames_row *);
/* Makes a copy of .debug_frame read as .eh_frame does, in place: CIE marks and pointers. */
int frames_from_debug(char *bytes, uint64_t len);
#endif
