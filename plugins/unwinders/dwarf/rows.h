/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one file while its table is made. A row's rule holds from its address to the address
 * of the next row. Each source (.eh_frame, .debug_frame, .gopclntab) makes a sorted list of rows.
 * The lists are combined and packed into the words of table.h.
 *
 * The callers have checked all addresses: they are below 2^47 and in the file's executable
 * segments. Functions return 0 or -errno unless their comment says otherwise.
 */
#ifndef DWARF_ROWS_H
#define DWARF_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

#include "table.h"

#define TABLE_MAX_ADDRESS (1ull << 47)
#define TABLE_MAX_ROWS (1u << 24)   /* the index has 24 bits for the number of a row */
#define TABLE_MAX_SPAN (1ull << 30) /* bytes of text, from the first row to the last */
#define TABLE_MAX_TEXTS 64

/* vaddr << 16 | rule, or for saves the pattern. {0} is an empty list. */
struct rows {
	uint64_t *p; /* owned */
	size_t n;
	uint64_t cap;
};

#define ROW(vaddr, rule) ((uint64_t)(vaddr) << 16 | (rule))
#define ROW_VADDR(row) ((row) >> 16)
#define ROW_RULE(row) ((uint32_t)((row)&0xffff))

/* The rows of one function, [first, first + n) of a list. They hold in [lo, hi). */
struct function_rows {
	uint64_t lo, hi;
	uint32_t first, n;
};

struct functions {
	struct function_rows *p; /* owned */
	size_t n;
	uint64_t cap;
};

/* Distinct specials, or patterns of saves with 0 in the words behind them. Beyond
 * DWARF_MAX_SPECIALS every new special becomes special 0: EXPRESSION, and every new pattern
 * UNKNOWN. */
struct table_specials {
	uint32_t (*p)[DWARF_SPECIAL_WORDS]; /* owned */
	uint32_t *slots;                    /* owned, 2 * cap of them; index + 1, 0 free */
	uint32_t n, cap;                    /* cap: a power of two */
};

/* The table of one file while it is built. */
struct table_build {
	struct table_specials specials, patterns;
	struct {
		uint64_t lo, hi;
	} text[TABLE_MAX_TEXTS]; /* executable segments */
	uint32_t n_texts;
	uint32_t fdes;    /* functions that were read */
	uint32_t outside; /* functions that were skipped: they are not in the text */
	uint32_t damaged; /* functions whose description could not be read: EXPRESSION */
	uint64_t unread;  /* bytes of code without a description for which there was no time */
	uint64_t late;    /* the part of them with CPU time to spare: the CPUs were busy */
	uint64_t omitted; /* bytes of such code in a brief table: it is read later */
	uint64_t began_ns, began_wall_ns; /* by table_cpu_ns(), table_wall_ns() */
	uint32_t signals;                 /* rows of signal frames */
};

int table_build_init(struct table_build *);
void table_build_fini(struct table_build *);
/* CPU time of this process, and the time that has passed. */
uint64_t table_cpu_ns(void);
uint64_t table_wall_ns(void);
/* True if [lo, hi) is not empty and in one executable segment. */
int table_in_text(const struct table_build *, uint64_t lo, uint64_t hi);
/* The rule of a special: kind | reg << 8 | flags << 16, cfa, fp, ra or add (table.h). */
uint32_t table_special(struct table_build *, uint32_t head, int32_t cfa, int32_t fp, int32_t ra);
/* The number of a pattern (table.h). */
uint32_t table_pattern(struct table_build *, const uint32_t words[DWARF_PATTERN_WORDS]);
#define DWARF_RULE_EXPRESSION DWARF_RULE_SPECIAL(0)
#define DWARF_RULE_END DWARF_RULE_SPECIAL(1)

int rows_add_slow(struct rows *, uint64_t row);
static inline int rows_add(struct rows *rows, uint64_t vaddr, uint32_t rule)
{
	if (rows->n == rows->cap)
		return rows_add_slow(rows, ROW(vaddr, rule));
	rows->p[rows->n++] = ROW(vaddr, rule);
	return 0;
}
void rows_fini(struct rows *);
int functions_add(struct functions *, const struct function_rows *);
void functions_fini(struct functions *);

/*
 * Makes one sorted list of the rows of all functions, and sorts the functions. Where functions
 * overlap, the nearest start below an address decides, and of equal starts the first in the list.
 * Behind the end of that function is a gap (rule NONE), also if a function that begins earlier
 * reaches further: the lookup by .eh_frame_hdr has the same result.
 */
int rows_arrange(const struct rows *, struct functions *, struct rows *ret);
/* Fills the gaps of `over` with `under`. */
int rows_overlay(const struct rows *over, const struct rows *under, struct rows *ret);
/* The same in place, for `all` as the functions above make it: only the part of it that `more`
 * covers is read. */
int rows_fill(struct rows *all, const struct rows *more);
/* Sets one rule for [lo, hi). */
int rows_force(struct rows *, uint64_t lo, uint64_t hi, uint32_t rule);

/* The rows of the text by one source, or by all sources together. */
struct sheet {
	struct rows rules;
	struct rows saves; /* has gaps where rules has gaps */
};

void sheet_fini(struct sheet *);
/* Fills the gaps of `all` with `more`, and frees that. */
int sheet_add(struct sheet *all, struct sheet *more);
/* The same for code of which it is not known where it saves registers. */
int sheet_add_rules(struct sheet *all, struct rows *rules);

/* The table of table.h, of a sheet that this makes compact. It is owned by the caller (free).
 * -E2BIG: beyond TABLE_MAX_ROWS or TABLE_MAX_SPAN. */
int table_pack(const struct table_build *, struct sheet *, uint32_t machine, uint32_t **words,
	       uint64_t *n);

/* The rule for vaddr, as the step finds it. *special: the four words of a special, else NULL. */
uint32_t table_lookup(const uint32_t *words, uint64_t n, uint64_t vaddr, const uint32_t **special);
/* The words of the pattern for vaddr; NULL: there is none. */
const uint32_t *table_saves(const uint32_t *words, uint64_t n, uint64_t vaddr);
#endif
