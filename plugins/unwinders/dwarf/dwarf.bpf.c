/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The step of the dwarf unwinder, which follows the table that inspect() made. x86-64. */
#include <fusee/unwinder.bpf.h>

#include "reasons.h"
#include "table.h"

#define SEARCH_STEPS 9 /* of a binary search: a block has at most 256 rows */

/* struct ucontext of x86-64 Linux (asm/ucontext.h, asm/sigcontext.h): the general registers from
 * byte 40 on, and their DWARF numbers; rip follows rsp. */
#define UCONTEXT_REGS 40
#define UCONTEXT_NREGS 17

_Static_assert(FUSEE_X86_RIP + UCONTEXT_NREGS <= FUSEE_MAX_REGS, "they fit behind the registers");

struct special {
	__u32 kind, reg, flags;
	__s32 cfa, fp, extra;
};

FUSEE_FN __u64 add_signed(__u64 base, __s32 n)
{
	return base + (__u64)(__s64)n;
}

/* Where a table has the block of an address, and its index and rows. */
struct places {
	__u32 block, index_at, rows_at, rows;
};

/* Reads the header of the table at word `from`. 0; 1: the address is in no block; -1: the table is
 * damaged. */
FUSEE_FN int load_places(struct fusee_unwind *u, __u32 from, __u64 at, struct places *p)
{
	struct fusee_page_words header;
	__u64 block;
	__u32 magic, blocks;

	/* headers are aligned, so that none lies in two pages */
	if (from % DWARF_HEADER_WORDS || fusee_table_words(u, from, DWARF_HEADER_WORDS, &header))
		return -1;
	magic = fusee_table_word(&header, DWARF_MAGIC);
	block = at - ((__u64)fusee_table_word(&header, DWARF_LO_HIGH) << 32 |
		      fusee_table_word(&header, DWARF_LO));
	block >>= DWARF_BLOCK_SHIFT + (fusee_table_word(&header, DWARF_SHIFT) & 31);
	blocks = fusee_table_word(&header, DWARF_BLOCKS);
	p->index_at = fusee_table_word(&header, DWARF_INDEX_AT);
	p->rows_at = fusee_table_word(&header, DWARF_ROWS_AT);
	p->rows = fusee_table_word(&header, DWARF_ROWS);
	if (fusee_table_holds(u, &header) || magic != DWARF_TABLE_MAGIC)
		return -1;
	p->block = (__u32)block;
	return block >= blocks;
}

/* Returns the rule of the last row at or below pc_low: the last of `before` rows and then `count`
 * rows of the block, all consecutive words. */
FUSEE_FN __u32 search_words(const struct fusee_page_words *rows, __u32 before, __u32 count,
			    __u32 pc_low)
{
	__u32 low = 0, high = count;

	for (int i = 0; i < SEARCH_STEPS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;

		if ((fusee_table_word(rows, before + middle) & 0xffff) <= pc_low)
			low = middle + 1;
		else
			high = middle;
	}
	/* low + before is 0 if the block is the first with rows, and all of them are above pc */
	return low + before ? fusee_table_word(rows, low + before - 1) >> 16 : DWARF_RULE_NONE;
}

/* The same for rows that do not lie in one page of the kernel's copy. -1: the table is damaged. */
FUSEE_FN int search_slab(struct fusee_unwind *u, __u64 rows_at, __u32 rows, __u32 first,
			 __u32 count, __u32 pc_low)
{
	__u32 low = first, high = first + count, row;

	for (int i = 0; i < SEARCH_STEPS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;

		if (middle >= rows || fusee_table32(u, rows_at + middle, &row))
			return -1;
		if ((row & 0xffff) <= pc_low)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return DWARF_RULE_NONE;
	if (low > rows || fusee_table32(u, rows_at + low - 1, &row))
		return -1;
	return (int)(row >> 16);
}

/* The rule for `at`, DWARF_RULE_NONE if there is no row; -1: the table is damaged. from: the word
 * where the table begins; not 0: the table of saves, whose rules are patterns. */
FUSEE_FN int find_rule(struct fusee_unwind *u, __u32 from, __u64 at)
{
	struct fusee_page_words rows;
	struct places p;
	__u32 word, first, count, before;
	int r = load_places(u, from, at, &p);

	if (r)
		return r < 0 ? -1 : (int)DWARF_RULE_NONE;
	if (fusee_table32(u, (__u64)from + p.index_at + p.block, &word))
		return -1;
	first = word >> 8;
	count = word & 0xff;
	before = first > 0;
	if (first + count > p.rows ||
	    fusee_table_words(u, (__u64)from + p.rows_at + first - before, count + before, &rows))
		return search_slab(u, (__u64)from + p.rows_at, p.rows, first, count, at & 0xffff);
	word = search_words(&rows, before, count, at & 0xffff);
	return fusee_table_holds(u, &rows) ? -1 : (int)word;
}

/* Replaces a special of kind END in the cache: each complete stack ends with such a special, which
 * need not be looked up again. No table has this rule, which would be CFA = sp. */
#define RULE_END ((int)DWARF_RULE_SP(0, 1))

enum { REMEMBERED_RULES, REMEMBERED_PATTERNS, REMEMBERED_KINDS };

#ifdef __bpf__
/*
 * Two caches by pc: of rules and of patterns. An entry is one word, so that no CPU reads half of
 * what another CPU writes. The key, slab_id (29 bits) and address (32 bits), is multiplied by an
 * odd number, which can be undone. The upper 13 bits of the product are the index of the entry; the
 * other 48 bits are the entry's tag, above the 16 bits of the rule. Index and tag together
 * determine the key, so that no other key matches.
 */
#define PLACE_BITS 13
#define ADDRESS_BITS 32
#define SLAB_ID_BITS (48 + PLACE_BITS - ADDRESS_BITS)

struct remembered {
	__u64 entry[1 << PLACE_BITS];
};

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, REMEMBERED_KINDS);
	__type(key, __u32);
	__type(value, struct remembered);
} fusee_dwarf_rules SEC(".maps") __attribute__((weak));

/* Returns the cache entry for `at`, and sets *tag. NULL: this key cannot be cached. */
FUSEE_FN volatile __u64 *entry_of(struct fusee_unwind *u, __u32 kind, __u64 at, __u64 *tag)
{
	__u64 key = (u->slab_id << ADDRESS_BITS | at) * 0x9e3779b97f4a7c15ull;
	struct remembered *r;

	if (!u->slab_id || u->slab_id >> SLAB_ID_BITS || at >> ADDRESS_BITS)
		return 0;
	r = fusee_bpf_map_lookup_elem(&fusee_dwarf_rules, &kind);
	if (!r)
		return 0;
	*tag = key << 16;
	return &r->entry[key >> 48 & ((1 << PLACE_BITS) - 1)];
}

FUSEE_FN __u32 remembered_rule(struct fusee_unwind *u, __u32 kind, __u64 at)
{
	__u64 tag = 0, rule;
	volatile __u64 *entry = entry_of(u, kind, at, &tag);

	rule = entry ? *entry ^ tag : 0;
	return rule <= 0xffff ? (__u32)rule : DWARF_RULE_NONE;
}

FUSEE_FN void remember_rule(struct fusee_unwind *u, __u32 kind, __u64 at, __u32 rule)
{
	__u64 tag = 0;
	volatile __u64 *entry = entry_of(u, kind, at, &tag);

	if (entry)
		*entry = tag | rule;
}
#else
FUSEE_FN __u32 remembered_rule(struct fusee_unwind *u, __u32 kind, __u64 at)
{
	(void)u;
	(void)kind;
	(void)at;
	return DWARF_RULE_NONE;
}

FUSEE_FN void remember_rule(struct fusee_unwind *u, __u32 kind, __u64 at, __u32 rule)
{
	(void)u;
	(void)kind;
	(void)at;
	(void)rule;
}
#endif

/* The address to look up for this frame: a return address may be behind the last byte of its
 * function, so the byte before it. */
FUSEE_FN __u64 place_of(const struct fusee_unwind *u)
{
	return u->offset - (u->flags & FUSEE_PC_EXACT ? 0 : 1);
}

/* The word where special i begins; 0: the table is damaged. It reads single words of the header,
 * not all of it, as a walk in the kernel has little stack. */
FUSEE_FN __u64 special_at(struct fusee_unwind *u, __u32 i)
{
	__u32 n;

	if (fusee_table32(u, DWARF_MAGIC, &n) || n != DWARF_TABLE_MAGIC ||
	    fusee_table32(u, DWARF_SPECIALS, &n) || i >= n ||
	    fusee_table32(u, DWARF_SPECIALS_AT, &n))
		return 0;
	return (__u64)n + i * DWARF_SPECIAL_WORDS;
}

/* The kind of special i; -1: the table is damaged. */
FUSEE_FN int load_kind(struct fusee_unwind *u, __u32 i)
{
	__u64 at = special_at(u, i);
	__u32 word;

	return !at || fusee_table32(u, at, &word) ? -1 : (int)(word & 0xff);
}

FUSEE_FN int load_special(struct fusee_unwind *u, __u32 i, struct special *s)
{
	__u64 at = special_at(u, i);
	__u32 word;

	if (!at || fusee_table32(u, at, &word) || fusee_table32(u, at + 1, (__u32 *)&s->cfa) ||
	    fusee_table32(u, at + 2, (__u32 *)&s->fp) ||
	    fusee_table32(u, at + 3, (__u32 *)&s->extra))
		return -1;
	s->kind = word & 0xff;
	s->reg = word >> 8 & 0xff;
	s->flags = word >> 16;
	return 0;
}

/* The rule of this frame, or RULE_END; -1: the table is damaged. from: as of find_rule(). */
FUSEE_FN int search(struct fusee_unwind *u, __u32 from)
{
	__u64 at = place_of(u);
	int rule = find_rule(u, from, at);

	if (from) {
		if (rule > 0)
			remember_rule(u, REMEMBERED_PATTERNS, at, (__u32)rule);
		return rule;
	}
	if (rule == RULE_END)
		return -1;
	if (rule >= 0xc000) { /* a special, which may be the end of the stack */
		int kind = load_kind(u, (__u32)rule & 0x3fff);

		if (kind < 0)
			return -1;
		if (kind == DWARF_END)
			rule = RULE_END;
	}
	if (rule > 0)
		remember_rule(u, REMEMBERED_RULES, at, (__u32)rule);
	return rule;
}

FUSEE_PART(fusee_dwarf_search, search)

/* ---- callee-saved registers ---- */

#define RED_ZONE 128 /* bytes below sp that signal handlers do not overwrite */

#define NOTHING_KNOWN 0x0101010101ull

/* The pattern of this frame: which slots have saved registers. The upper half is its second
 * word. */
FUSEE_FN __u64 load_pattern(struct fusee_unwind *u)
{
	int i = (int)remembered_rule(u, REMEMBERED_PATTERNS, place_of(u));
	__u32 from, word;
	__u64 at, first;

	if (fusee_table32(u, DWARF_SAVES_AT, &from) || !from)
		return NOTHING_KNOWN;
	if (!i)
		i = FUSEE_CALL(fusee_dwarf_search, u, from);
	if (i <= 0 || fusee_table32(u, (__u64)from + DWARF_SPECIALS_AT, &word))
		return NOTHING_KNOWN;
	at = (__u64)from + word + (__u64)(i - 1) * DWARF_PATTERN_WORDS;
	if (fusee_table32(u, at, &word))
		return NOTHING_KNOWN;
	first = word;
	return fusee_table32(u, at + 1, &word) ? NOTHING_KNOWN : (__u64)word << 32 | first;
}

enum { IS_SAME = 1 };

/* Reads a register that was saved in slot k. 0; IS_SAME: it has the caller's value; -1: not
 * known. */
FUSEE_FN int read_saved(struct fusee_unwind *u, __u32 k, int by_fp, __u64 *value)
{
	__u64 at = (by_fp ? u->fp : u->cfa) - 8 * (__u64)k;

	if (by_fp) {
		if (u->flags & FUSEE_FP_LOST)
			return -1;
		/* While an aligned frame is taken down, the description still has the slot, but
		 * the register was popped, and perhaps fp, too. */
		if (at < u->sp || at > u->cfa - 16)
			return IS_SAME;
	} else if (at + RED_ZONE < u->sp) {
		return -1;
	}
	return fusee_read(u, value, 8, at);
}

/* Restores the caller's callee-saved registers. u->cfa is set; all other registers are still those
 * of this frame. 1: only the CFA is required, or a page of the table is not loaded. */
FUSEE_FN int restore(struct fusee_unwind *u, __u32 unused)
{
	__u64 pattern;

	(void)unused;
	if (u->flags & FUSEE_CFA_ONLY)
		return 1;
	u->valid_regs &= FUSEE_CALLEE_SAVED;
	pattern = load_pattern(u);
	if (u->absent) /* the frame must stay unchanged, so that a later walk can go on from it */
		return 1;
	for (__u32 i = 0; i < DWARF_SAVED_REGS; i++) {
		__u32 byte = pattern >> 8 * i & 0xff;
		__u32 reg = i ? FUSEE_X86_R12 + i - 1 : FUSEE_X86_RBX;
		__u64 value = 0;
		int r;

		if (!byte)
			continue;
		r = byte > 1 ? read_saved(u, byte - 1, pattern >> 32 & DWARF_BY_FP(i), &value) : -1;
		if (r == IS_SAME)
			continue;
		u->valid_regs &= ~(1ull << reg);
		if (r)
			continue;
		u->valid_regs |= 1ull << reg;
		u->regs[reg & 15] = value;
	}
	return 0;
}

FUSEE_PART(fusee_dwarf_restore, restore)

/* Sets the caller's pc, sp and fp. Other registers are restored only if the core follows them
 * (FUSEE_FOLLOW); otherwise they are not known. */
FUSEE_FN int set_caller(struct fusee_unwind *u, __u64 cfa, __u64 pc, __u64 fp, int fp_known)
{
	if (__builtin_expect(u->flags & FUSEE_FOLLOW, 0)) {
		u->cfa = cfa;
		if (FUSEE_CALL(fusee_dwarf_restore, u, 0))
			return FUSEE_STOP;
	} else {
		u->valid_regs = 0;
	}
	u->pc = pc;
	u->sp = cfa;
	u->fp = fp;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FP_LOST | FUSEE_SP_UNSURE);
	if (!fp_known)
		u->flags |= FUSEE_FP_LOST;
	return FUSEE_NEXT;
}

/* Steps by a plain rule: the return address is at CFA - 8, the caller's fp is in a slot, or
 * unchanged if slot is 0. */
FUSEE_FN int step_plain(struct fusee_unwind *u, __u64 cfa, __u32 slot)
{
	__u64 pc, fp = u->fp;
	int known = !(u->flags & FUSEE_FP_LOST);

	if (cfa <= u->sp)
		return fusee_stop(u, DWARF_REASON_NO_PROGRESS);
	if (fusee_read(u, &pc, 8, cfa - 8))
		return fusee_stop(u, DWARF_REASON_STACK_UNREADABLE);
	if (slot) {
		if (fusee_read(u, &fp, 8, cfa - 8 * (slot + 1)))
			return fusee_stop(u, DWARF_REASON_STACK_UNREADABLE);
		known = 1;
	}
	return set_caller(u, cfa, pc, fp, known);
}

/* Sets *fp to the caller's frame pointer, and *known to 1 if it is known. 0 or a reason. */
FUSEE_FN __u32 caller_fp(struct fusee_unwind *u, const struct special *s, __u64 cfa, __u64 *fp,
			 int *known)
{
	__u64 at = add_signed(cfa, s->fp);

	*fp = u->fp;
	*known = !(u->flags & FUSEE_FP_LOST);
	if (s->flags & DWARF_FP_UNKNOWN) {
		*known = 0;
	} else if (s->flags & DWARF_FP_IN_REG) {
		*known = !fusee_register(u, (__u32)s->fp, fp);
	} else if (s->flags & (DWARF_FP_SAVED | DWARF_FP_AT_FP)) {
		if (s->flags & DWARF_FP_AT_FP) {
			if (u->flags & FUSEE_FP_LOST)
				return DWARF_REASON_REGISTER;
			at = add_signed(u->fp, s->fp);
			/* Between pop %rbp and the lea that ends an aligned frame the description
			 * of gcc still has this place. But fp is the caller's by then, so that the
			 * place is not in this frame. */
			if (s->kind == DWARF_REG && (at < u->sp || at > cfa - 16))
				return 0;
		}
		if (fusee_read(u, fp, 8, at))
			return DWARF_REASON_STACK_UNREADABLE;
		*known = 1;
	}
	return 0;
}

/* Code made at run time may have another sp behind a call than before it: HotSpot's interpreter
 * does that to compiled callers. */
FUSEE_FN int is_sp_unsure(const struct fusee_unwind *u)
{
	return u->flags & FUSEE_SP_UNSURE && !u->file;
}

/* Steps by a special of kind REG or DEREF. */
FUSEE_FN int step_by_register(struct fusee_unwind *u, const struct special *s)
{
	__u64 base, cfa, pc, fp;
	__u32 reason;
	int known;

	if (s->reg == FUSEE_X86_RSP && is_sp_unsure(u))
		return fusee_stop(u, DWARF_REASON_REGISTER);
	if (fusee_register(u, s->reg, &base)) {
		u->flags |= FUSEE_INEXPRESSIBLE; /* a walk that follows all registers can go on */
		return fusee_stop(u, DWARF_REASON_REGISTER);
	}
	cfa = add_signed(base, s->cfa);
	if (s->kind == DWARF_DEREF) {
		if (fusee_read(u, &cfa, 8, cfa))
			return fusee_stop(u, DWARF_REASON_STACK_UNREADABLE);
		cfa = add_signed(cfa, s->extra);
	}
	if (s->kind == DWARF_REG && s->flags & DWARF_RA_IN_REG) {
		if (fusee_register(u, (__u32)s->extra, &pc))
			return fusee_stop(u, DWARF_REASON_REGISTER);
	} else if (fusee_read(u, &pc, 8,
			      s->kind == DWARF_REG && s->flags & DWARF_RA_AT
				      ? add_signed(cfa, s->extra)
				      : cfa - 8)) {
		return fusee_stop(u, DWARF_REASON_STACK_UNREADABLE);
	}
	reason = caller_fp(u, s, cfa, &fp, &known);
	if (reason)
		return fusee_stop(u, reason);
	/* If the return address is in a register, because it was popped, sp may stay the same, but
	 * then pc must change. */
	if (!(s->flags & DWARF_OTHER_STACK) && (cfa < u->sp || (cfa == u->sp && pc == u->pc)))
		return fusee_stop(u, DWARF_REASON_NO_PROGRESS);
	if (set_caller(u, cfa, pc, fp, known) != FUSEE_NEXT)
		return FUSEE_STOP;
	if (s->flags & DWARF_SP_MOVED)
		u->flags |= FUSEE_SP_UNSURE;
	return FUSEE_NEXT;
}

/* Steps to the code that a signal interrupted. The kernel has put its registers on the stack. */
FUSEE_FN int step_signal_frame(struct fusee_unwind *u)
{
	/* r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	static const __u8 dwarf_number[UCONTEXT_NREGS] = {8, 9, 10, 11, 12, 13, 14, 15, 5,
							  4, 6, 3,  1,  0,  2,  7,  16};
	__u64 *regs = &u->regs[FUSEE_X86_RIP]; /* not on the stack, which has too little room */

	if (u->flags & FUSEE_CFA_ONLY)
		return FUSEE_STOP;
	if (fusee_read(u, regs, UCONTEXT_NREGS * 8, u->sp + UCONTEXT_REGS))
		return fusee_stop(u, DWARF_REASON_STACK_UNREADABLE);
	for (int i = 0; i < UCONTEXT_NREGS - 1; i++)
		u->regs[dwarf_number[i] & 15] = regs[i];
	/* no check of sp: a handler may run on a stack of its own */
	u->fp = regs[10];
	u->sp = regs[15];
	u->pc = regs[16];
	u->valid_regs = 0xffff & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP);
	u->flags &= ~(__u32)(FUSEE_FP_LOST | FUSEE_SP_UNSURE);
	u->flags |= FUSEE_PC_EXACT | FUSEE_SIGNAL;
	return FUSEE_NEXT;
}

/* Steps from runtime.morestack to the goroutine that called it, by the registers that the runtime
 * has saved in m.curg.sched. Over a stack copy that memory cannot be read. The saved pc must be
 * behind a call of morestack; otherwise the registers are those of an earlier switch. */
FUSEE_FN int step_grown(struct fusee_unwind *u, const struct special *s)
{
	__u64 g, m, place, pc, sp, fp, near;
	__s32 distance;

	if (u->flags & FUSEE_CFA_ONLY)
		return FUSEE_STOP;
	if (!u->tls || fusee_read(u, &g, 8, add_signed(u->tls, s->cfa)) ||
	    fusee_read(u, &m, 8, g + ((__u32)s->fp & 0xff)) ||
	    fusee_read(u, &place, 8, m + ((__u32)s->fp >> 8)) || !place || place == g ||
	    fusee_read(u, &pc, 8, place + ((__u32)s->extra & 0xff)) ||
	    fusee_read(u, &sp, 8, place + ((__u32)s->extra >> 8 & 0xff)) ||
	    fusee_read(u, &fp, 8, place + ((__u32)s->extra >> 16 & 0xff)) ||
	    fusee_read(u, &distance, 4, pc - 4))
		return fusee_stop(u, DWARF_REASON_SWITCH);
	near = add_signed(pc, distance) - u->pc + DWARF_GO_NEAR;
	if (near >= 2 * DWARF_GO_NEAR)
		return fusee_stop(u, DWARF_REASON_SWITCH);
	u->pc = pc;
	u->sp = sp;
	u->fp = fp;
	u->valid_regs = 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FP_LOST | FUSEE_SP_UNSURE);
	return FUSEE_NEXT;
}

FUSEE_FN int step_special(struct fusee_unwind *u, __u32 i)
{
	struct special s;

	if (load_special(u, i, &s))
		return fusee_stop(u, DWARF_REASON_TABLE);
	switch (s.kind) {
	case DWARF_SIGNAL:
		return step_signal_frame(u);
	case DWARF_PLT:
		return step_plain(u, u->sp + ((u->pc & 15) >= (__u32)s.extra ? 16 : 8), 0);
	case DWARF_DEREF:
	case DWARF_REG:
		return step_by_register(u, &s);
	case DWARF_GO_GROWS:
		return step_grown(u, &s);
	case DWARF_SWITCH:
		return fusee_stop(u, DWARF_REASON_SWITCH);
	case DWARF_EXPRESSION:
		u->flags |= FUSEE_INEXPRESSIBLE;
		return fusee_stop(u, DWARF_REASON_EXPRESSION);
	default:
		return fusee_stop(u, DWARF_REASON_TABLE);
	}
}

FUSEE_PART(fusee_dwarf_special, step_special)

static int dwarf_step(struct fusee_unwind *u)
{
	__u64 cfa;
	__u32 slot;
	int rule;

	u->error = 0;
	if (!u->slab_words)
		return FUSEE_PASS;
	rule = (int)remembered_rule(u, REMEMBERED_RULES, place_of(u));
	if (!rule)
		rule = FUSEE_CALL(fusee_dwarf_search, u, 0);
	if (rule < 0)
		return fusee_stop(u, DWARF_REASON_TABLE);
	if (rule == DWARF_RULE_NONE)
		return FUSEE_PASS;
	if (rule == RULE_END)
		return fusee_stop(u, 0);
	if (rule >= 0xc000)
		return FUSEE_CALL(fusee_dwarf_special, u, (__u32)rule & 0x3fff);
	if (rule >= 0x8000) {
		if (u->flags & FUSEE_FP_LOST)
			return fusee_stop(u, DWARF_REASON_REGISTER);
		cfa = u->fp + 8 * ((__u32)rule & DWARF_FP_MAX_OFFSET);
		slot = (__u32)rule >> 10 & DWARF_MAX_SLOT;
	} else {
		if (is_sp_unsure(u))
			return fusee_stop(u, DWARF_REASON_REGISTER);
		cfa = u->sp + 8 * ((__u32)rule & DWARF_SP_MAX_OFFSET);
		slot = (__u32)rule >> 11;
	}
	return step_plain(u, cfa, slot);
}

FUSEE_NATIVE_STEP(dwarf, dwarf_step);
