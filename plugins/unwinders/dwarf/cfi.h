/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information: .eh_frame and .debug_frame to rows. Every byte of them is foreign. */
#ifndef DWARF_CFI_H
#define DWARF_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "rows.h"

/* ---- bounded reading ---- */

/* A read beyond the end gives 0 and sets bad, which stays. */
struct dwt_cursor {
	const uint8_t *p, *end;
	int bad;
};

uint64_t dwt_fixed(struct dwt_cursor *, unsigned int size); /* 1, 2, 4, 8 bytes, little-endian */
uint64_t dwt_uleb_slow(struct dwt_cursor *);
int64_t dwt_sleb(struct dwt_cursor *);

static inline uint64_t dwt_uleb(struct dwt_cursor *c)
{
	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	return dwt_uleb_slow(c);
}

static inline uint8_t dwt_u8(struct dwt_cursor *c)
{
	if (c->p < c->end)
		return *c->p++;
	c->bad = 1;
	return 0;
}

/* ---- what the instructions say about one address ---- */

enum dwt_place_kind {
	DWT_UNSPECIFIED,
	DWT_UNDEFINED,
	DWT_SAME,
	DWT_OFFSET,     /* at CFA + off. Of the CFA itself: reg + off */
	DWT_VAL_OFFSET, /* is CFA + off */
	DWT_REGISTER,   /* in reg */
	DWT_AT_EXPR,    /* at what the expression gives. Of the CFA itself: its value */
	DWT_VAL_EXPR,   /* what the expression gives */
};

struct dwt_place {
	uint8_t kind;
	uint16_t reg;
	uint32_t len; /* of expr */
	int64_t off;
	const uint8_t *expr; /* into the section */
};

struct dwt_frame {
	struct dwt_place cfa, fp, sp, ra;
	uint8_t signal; /* augmentation S */
};

/* ---- per machine: x86_64.c ---- */

/*
 * Compilers do not say that pop %rbp or leave has brought the caller's fp back: the description
 * goes on to place it where it was saved, which is below sp by then, free to be written over. Makes
 * it "same" there. A save that was below sp from the start (the red zone) stays. *saved: the
 * function's last place above sp, 0 at its start.
 */
void dwt_x86_64_popped(struct dwt_frame *, int64_t *saved);

#define DWT_MACHINE_X86_64 62

/* The place that holds DWARF register `reg`; NULL: one that the table has no use for. */
struct dwt_place *dwt_x86_64_place(struct dwt_frame *, uint64_t reg);
/* The 16 bits of table.h for a frame; specials are added as needed. */
uint32_t dwt_x86_64_rule(struct dwt *, const struct dwt_frame *);
/* What holds before the first instruction of a CIE. */
void dwt_x86_64_start(struct dwt_frame *);

/* ---- sections ---- */

struct dwt_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr; /* where .eh_frame is loaded; .debug_frame: any */
	int debug;      /* .debug_frame */
};

/*
 * Reads a section into sorted rows. Functions outside of dwt->text are left out and counted; those
 * whose description can't be read get the rule EXPRESSION and are counted. 0; -EBADMSG: an entry's
 * length leads outside the section (*ret has all entries before it); -ENOMEM; -E2BIG.
 */
int dwt_cfi_read(struct dwt *, const struct dwt_section *, struct dwt_rows *ret);
#endif
