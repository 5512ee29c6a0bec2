/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jump tables: where `jmp *%rax` and `jmp *table(,%rax,8)` lead. The instructions before the jump
 * must say which table it reads and, by a comparison, how many entries that has; else the jump is
 * unknown.
 */
#ifndef DWARF_CODE_SWITCH_H
#define DWARF_CODE_SWITCH_H

#include <stddef.h>
#include <stdint.h>

struct code_switch {
	uint64_t table; /* vaddr */
	uint32_t entries;
	uint32_t size; /* 4: relative to the table; 8: addresses */
};

struct code_bytes {
	const uint8_t *p; /* borrowed */
	size_t len;
	uint64_t vaddr;
};

/* path: the instructions that are executed one behind the other up to the jump, as offsets in text,
 * the jump last. 0; -1: the table is not known. */
int code_switch_find(const struct code_bytes *text, const size_t *path, size_t n,
		     struct code_switch *ret);
/* The same of `jmp *%rax` where other instructions stand between those that matter, and nothing
 * says how many entries the table has: ret->entries is 0. *base: what its entries are relative to.
 */
int code_switch_find_unbounded(const struct code_bytes *text, const size_t *path, size_t n,
			       struct code_switch *ret, uint64_t *base);
/* Where entry i leads. 0; -1: the entry is not in `data`. */
int code_switch_entry(const struct code_switch *, const struct code_bytes *data, uint32_t i,
		      uint64_t *target);

/* What jumps at offsets in text read, once found. A zeroed struct is empty. */
struct code_switches {
	struct code_switches_slot {
		size_t at; /* plus 1; 0: nothing is here */
		struct code_switch table;
	} * p;
	size_t n, cap;
};

int code_switches_add(struct code_switches *, size_t at, const struct code_switch *);
/* NULL: none is known there. Valid until the next is added. */
const struct code_switch *code_switches_at(const struct code_switches *, size_t at);
void code_switches_fini(struct code_switches *);
#endif
