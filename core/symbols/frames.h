/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of call frame information: .eh_frame, and .debug_frame in its form. Each read of the
 * section is checked. Addresses are ELF virtual addresses. */
#ifndef SYMBOLS_FRAMES_H
#define SYMBOLS_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

/* A pass over a section. Zeroed but for the section, which is borrowed, and its own address. */
struct frames_pass {
	struct fusee_str section;
	uint64_t vaddr;
	uint64_t next; /* position of the next entry */
	uint64_t cie;  /* position of the last CIE, .. */
	bool is_cie;   /* .. if it was read: */
	unsigned int encoding;
	bool signal_frame;
};

struct frames_fde {
	uint64_t at;          /* its position in the section */
	uint64_t start, len;  /* of its function */
	bool is_signal_frame; /* by its CIE */
};

/* Reads the next FDE; entries that cannot be read are skipped. 1; 0: the end; -EBADMSG: the section
 * is malformed there. */
int frames_next(struct frames_pass *, struct frames_fde *);
/* The first FDE that covers pc. 0; -ENOENT: none; -EBADMSG: the section is malformed before it. */
int frames_find(struct fusee_str section, uint64_t vaddr, uint64_t pc, struct frames_fde *);
/* Converts a .debug_frame in place to the form of .eh_frame: CIE ids and pointers. 0 or -EBADMSG.
 */
int frames_from_debug(char *bytes, uint64_t len);
#endif
