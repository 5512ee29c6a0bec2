/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the FDE of an address in .eh_frame, for the stepper. Each read of the section is checked.
 */
#ifndef WORKER_FRAMES_H
#define WORKER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct frames_row {
	uint64_t at;       /* position of the FDE in the section */
	bool signal_frame; /* by its CIE */
};

/* The FDE that covers pc, an ELF virtual address, by one pass over the section, whose own address
 * is vaddr. 0; -ENOENT: none; -EBADMSG: the section is malformed before it. */
int frames_find(struct fusee_str section, uint64_t vaddr, uint64_t pc, struct frames_row *);
/* Converts a .debug_frame in place to the form of .eh_frame: CIE ids and pointers. 0 or -EBADMSG.
 */
int frames_from_debug(char *bytes, uint64_t len);
#endif
