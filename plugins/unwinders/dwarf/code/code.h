/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for code without a description, such as musl's or hand-written assembly. The reader follows
 * each function from its first instruction along every branch, and counts what it pushes. Code that
 * contradicts itself (a return with words still pushed, two depths at one address) gets no rows.
 * * Code that is not reached in this way is read from its ways out (back.h). Every row is proved.
 */
#ifndef DWARF_CODE_H
#define DWARF_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "switch.h"
#include "../rows.h"

struct code_entries {
	uint64_t *p; /* owned; addresses, in any order, also outside of the text */
	size_t n;
	uint64_t cap;
};

int code_entries_add(struct code_entries *, uint64_t vaddr);
void code_entries_sort(struct code_entries *);
/* Adds those of a sorted list that are in [lo, hi). 0, -ENOMEM. */
int code_entries_copy(struct code_entries *, const struct code_entries *from, uint64_t lo,
		      uint64_t hi);
/* How many of a sorted list are below the address. */
size_t code_entries_below(const struct code_entries *, uint64_t vaddr);
/* The last address of a sorted list that is not above `vaddr`; 0: none. */
uint64_t code_entries_last(const struct code_entries *, uint64_t vaddr);
/* Whether the address is in a sorted list. */
int code_entries_has(const struct code_entries *, uint64_t vaddr);
void code_entries_fini(struct code_entries *);

struct code_data;

struct code {
	const uint8_t *bytes; /* of the text; borrowed */
	size_t len;
	uint64_t vaddr;
	const struct rows *known; /* code that has rows already is skipped */
	struct code_bytes data;   /* in which jump tables are; may be empty */
	/* Where parts of functions begin that are no functions: foo.cold. May be empty. */
	struct code_entries parts;
	/* Functions whose names say that they do not return, and words of the GOT with their
	 * addresses, sorted. May be empty. */
	struct code_entries noreturn;
	/* 1: only code that paths from the beginnings of functions reach has rows; 0: also code
	 * whose ways out prove its rows (back.h). */
	int paths_only;
	int symbols; /* 1: `sure` of code_read() has all functions */
	/* Words of data that are addresses; NULL: they are not known. */
	const struct code_data *pointers;
	/* The file's text that this is a part of, and where its functions begin, sorted, as far as
	 * symbols say. Empty: this is all. */
	uint64_t file_lo, file_hi;
	const struct code_entries *functions;
	/* Of each instruction that was decoded and does nothing but write other registers than rsp
	 * and rbp its length and, << 8, `written`: each is decoded many times. NULL: not kept. */
	uint32_t *plain;
};

/* sure: addresses where functions begin, by symbols. maybe: addresses that pointers in the file
 * lead to. Both lists grow by what the code calls and points to. 0, -ENOMEM, -E2BIG. */
int code_read(struct table_build *, const struct code *, struct code_entries *sure,
	      struct code_entries *maybe, struct rows *ret);
#endif
