/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about each byte of text while its functions are followed: a word for each byte. */
#ifndef DWARF_CODE_TEXT_H
#define DWARF_CODE_TEXT_H

#include "code.h"
#include "state.h"
#include <fusee/insn.h>

/* Flags of a byte of text. The first byte of an instruction has in its low bits the packed state
 * before the instruction. */
enum {
	COVERED = 1u << 31,  /* has rows of another source */
	STATE = 1u << 30,    /* an instruction begins here and has been followed */
	INSIDE = 1u << 29,   /* a later byte of such an instruction */
	DOUBT = 1u << 28,    /* a path to here contradicts itself */
	TARGET = 1u << 27,   /* what looks like a call or a pointer leads here */
	SURE = 1u << 26,     /* a function begins here */
	NORETURN = 1u << 25, /* a function begins here that does not return */
	/* an instruction of the function that is followed, and not of the trial that goes on */
	OWN = 1u << 24,
};

#define HINTS (TARGET | SURE | NORETURN) /* that one pass leaves to the next */

/* As fusee_insn_decode(), of the instruction at this place. */
int code_decode_slow(const struct code *, size_t at, struct insn *);
static inline int code_decode(const struct code *code, size_t at, struct insn *in)
{
	uint32_t plain = code->plain ? code->plain[at] : 0;

	if (!plain)
		return code_decode_slow(code, at, in);
	*in = (struct insn){.len = (uint8_t)plain, .written = (uint16_t)(plain >> 8)};
	return 0;
}

static inline int code_text_has(const struct code *code, uint64_t vaddr, size_t *at)
{
	*at = vaddr - code->vaddr;
	return vaddr >= code->vaddr && *at < code->len;
}

/* Whether execution does not continue behind this instruction. */
static inline int code_text_ends(const struct insn *in)
{
	return in->effect == INSN_JUMP || in->effect == INSN_RETURN ||
	       in->effect == INSN_ODD_RETURN || in->effect == INSN_HALT;
}

/* Whether a call returns, by the code behind it. Behind padding begins the next function, or a
 * loop.
 */
enum code_behind { CODE_FOLLOWS, NOTHING_FOLLOWS, PADDING_FOLLOWS };
enum code_behind code_text_behind(const struct code *, const uint32_t *bytes, size_t at);
/* Whether it is padding behind which another function begins. Compilers jump there in code that
 * they assume is never executed. */
int code_text_is_padding(const struct code *, const uint32_t *bytes, size_t at);
/* Whether a function may begin at this place, to which only a pointer leads: the bytes before it
 * look like padding or the end of a function. A pointer into the middle of an instruction could
 * lead to a byte c3, which looks like a function that returns. */
int code_text_may_begin(const struct code *, size_t at);
/* Is a jump to this address outside of the text one to a function's beginning, or to where nothing
 * is pushed? Not known is what is in another part of the file's text: it may be the same function.
 */
int code_text_is_function(const struct code *, uint64_t vaddr);
/* Marks what has rows of another source with COVERED. */
void code_text_cover(const struct code *, uint32_t *bytes);
void code_text_mark(const struct code *, uint32_t *bytes, const struct code_entries *,
		    uint32_t bits);
/* Marks where calls and pointers seem to lead with TARGET, by decoding the text in sequence: a hint
 * of where functions begin. */
void code_text_mark_targets(const struct code *, uint32_t *bytes);
/* Adds the rows of what was followed without doubt. 0, or as rows_add(). */
int code_text_rows(struct table_build *, const struct code *, const struct code_states *,
		   const uint32_t *bytes, struct rows *ret);
/* Does the function at vaddr, if this text has it, change its return address at once, leave
 * its stack, or pop arguments, by its first return in sequence? Then the code behind a call of it
 * says nothing. */
int code_text_moves_return(const struct code *, uint64_t vaddr);
#endif
