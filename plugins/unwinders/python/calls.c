/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <elf.h>

#include "find.h"
#include "versions.h"

#define INSTRUCTIONS 256u   /* pointers in the table, one for each opcode */
#define LEAST_FUNCTIONS 64u /* different functions that a table has at least */
#define NEAR 64u            /* bytes from lea of the table to the use, at most */
#define MOST_JUMPS 5
#define MOST_TABLES 16u       /* possible tables that are checked */
#define MOST_CODE (64u << 20) /* bytes that are searched */
#define MOST_TARGETS 8u
#define PIECE (64u << 10) /* bytes of code that are searched at once */
#define LONGEST 16u       /* more than the bytes of any instruction */

struct search {
	const struct fusee_unwinder_host *host;
	uint64_t file;
	const uint32_t *words;
	/* functions whose calls are the interpreter's: those of the table, and others */
	uint64_t target[INSTRUCTIONS + MOST_TARGETS];
	uint32_t ntargets;
	uint32_t tables; /* how many were checked */
	struct python_calls *found;
};

/* ---- a use of the table ---- */

/* The address that a `lea N(%rip),%reg` near before byte i puts into the register. 0: there is
 * none. */
static uint64_t lea_before(const struct fusee_code *c, uint32_t i, uint32_t reg)
{
	for (uint32_t k = i; k-- > 0 && i - k <= NEAR;)
		if (k + 7 <= i && (c->at[k] & 0xfb) == 0x48 && c->at[k + 1] == 0x8d &&
		    (c->at[k + 2] & 0xc7) == 5 &&
		    ((uint32_t)(c->at[k + 2] >> 3 & 7) | (uint32_t)(c->at[k] >> 2 & 1) << 3) == reg)
			return fusee_code_target(c, k + 7);
	return 0;
}

/* Is byte i a `call *TABLE(,%reg,8)` or `call *(%base,%reg,8)` (how: 0x14), or such a jump (0x24)?
 * Returns the table's address, and sets *n to the instruction's bytes without its prefix. 0: it is
 * not. */
static uint64_t use_at(const struct fusee_code *c, uint32_t i, unsigned char how, uint32_t *n)
{
	uint32_t sib, rex = i && (c->at[i - 1] & 0xf0) == 0x40 ? c->at[i - 1] : 0;

	if (i + 3 > c->n || c->at[i] != 0xff || c->at[i + 1] != how)
		return 0;
	sib = c->at[i + 2];
	if (sib >> 6 != 3)
		return 0;
	*n = (sib & 7) == 5 ? 7 : 3;
	if (*n == 7)
		return i + 7 <= c->n && fusee_code_s32(c->at + i + 3) > 0
			       ? (uint64_t)fusee_code_s32(c->at + i + 3)
			       : 0;
	return lea_before(c, i, (sib & 7) | (rex & 1) << 3);
}

/* ---- the table ---- */

/* Sets the pointers of the table that relocations write. */
static void relocate(const struct search *s, uint64_t table, uint64_t *pointers)
{
	struct fusee_section section = FUSEE_SIZED(struct fusee_section);
	Elf64_Rela r;

	if (s->host->file_section(s->file, ".rela.dyn", &section))
		return;
	for (uint64_t i = 0; i < section.bytes.len / sizeof(r); i++) {
		memcpy(&r, (const char *)section.bytes.p + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE &&
		    r.r_offset - table < INSTRUCTIONS * sizeof(*pointers))
			pointers[(r.r_offset - table) / sizeof(*pointers)] = (uint64_t)r.r_addend;
	}
}

/* Does the table have pointers to functions only, and to many? Then these become targets. */
static int is_table(struct search *s, uint64_t table)
{
	uint64_t *pointers = s->target;
	struct fusee_range at;
	uint32_t different = 0;

	s->ntargets = 0;
	if (!table ||
	    s->host->file_read(s->file, table, pointers, INSTRUCTIONS * sizeof(*pointers)))
		return 0;
	relocate(s, table, pointers);
	for (uint32_t i = 0; i < INSTRUCTIONS; i++) {
		if (s->host->file_function(s->file, pointers[i], &at) || at.lo != pointers[i])
			return 0;
		different += !i || pointers[i] != pointers[i - 1];
	}
	s->ntargets = INSTRUCTIONS;
	return different >= LEAST_FUNCTIONS;
}

/* Finds a table that the code calls or jumps through. 0: there is none. */
static uint64_t table_in(struct search *s, const struct fusee_code *c, unsigned char how)
{
	uint64_t table;
	uint32_t n;

	for (uint32_t i = 0; i < c->n && s->tables < MOST_TABLES; i++) {
		table = use_at(c, i, how, &n);
		s->tables += table != 0;
		if (table && is_table(s, table))
			return table;
	}
	return 0;
}

/* ---- calls in _PyEval_EvalFrameDefault ---- */

/* Follows code that only jumps and moves between registers, and returns where it ends. */
static uint32_t goes_on(const struct fusee_code *c, uint64_t at)
{
	for (int i = 0; i < MOST_JUMPS && at + 5 <= c->n; i++) {
		const unsigned char *p = c->at + at;

		if (*p == 0xeb)
			at += 2 + (uint64_t)(int64_t)(signed char)p[1];
		else if (*p == 0xe9)
			at += 5 + (uint64_t)fusee_code_s32(p + 1);
		else if ((*p & 0xfa) == 0x48 && p[1] == 0x89 && p[2] >> 6 == 3)
			at += 3;
		else
			break;
	}
	return at < c->n ? (uint32_t)at : 0;
}

/* Adds the functions whose result the interpreter's function returns, as it does the result of an
 * instruction's function: their calls are followed by the function's end. */
static void add_targets(struct search *s, const struct fusee_code *c, uint32_t end)
{
	for (uint32_t i = 0; i + 5 <= c->n && s->ntargets < INSTRUCTIONS + MOST_TARGETS; i++)
		if (c->at[i] == 0xe8 && goes_on(c, i + 5) == end)
			s->target[s->ntargets++] = fusee_code_target(c, i + 5);
}

/* Finds the table by its use in the function or in a callee. Returns where the function ends; 0: no
 * table was found. */
static uint32_t find_table(struct search *s, const struct fusee_code *c)
{
	struct fusee_range at;
	struct fusee_code other;
	uint32_t n;

	s->found->table = table_in(s, c, 0x14);
	for (uint32_t i = 0; s->found->table && i < c->n; i++)
		if (use_at(c, i, 0x14, &n) == s->found->table)
			return goes_on(c, i + n);
	for (uint32_t i = 0; i + 5 <= c->n; i++) {
		if (c->at[i] != 0xe8 ||
		    s->host->file_function(s->file, fusee_code_target(c, i + 5), &at) ||
		    at.lo != fusee_code_target(c, i + 5) ||
		    fusee_read_code(s->host, s->file, at, &other))
			continue;
		s->found->table = table_in(s, &other, 0x24);
		free(other.at);
		if (s->found->table)
			return goes_on(c, i + 5);
	}
	return 0;
}

/* ---- all calls ---- */

/* Finds where the function that contains the call keeps its entry frame. 0: not found. */
static uint32_t place_at(const struct search *s, uint64_t call)
{
	struct fusee_range at;
	struct fusee_code c;
	uint32_t place;

	if (s->host->file_function(s->file, call, &at) || at.hi <= call)
		return 0;
	if (fusee_read_code(s->host, s->file, at, &c))
		return 0;
	place = python_find_entry_before(c, (uint32_t)(call - at.lo), s->words);
	free(c.at);
	return place;
}

static int is_target(const struct search *s, uint64_t to)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->target[i] == to)
			return 1;
	return 0;
}

/* Adds the calls that begin in [from, to) of this code. 0 or -ENOSPC. */
static int add_calls(struct search *s, const struct fusee_code *c, uint32_t from, uint32_t to)
{
	struct python_calls *f = s->found;
	uint32_t n;

	for (uint32_t i = from; i < to; i++) {
		if (c->at[i] == 0xe8 && i + 5 <= c->n && is_target(s, fusee_code_target(c, i + 5)))
			n = 5;
		else if (use_at(c, i, 0x14, &n) != f->table)
			continue;
		if (f->n && c->vaddr + i - f->call[f->n - 1].at.lo <
				    f->call[f->n - 1].at.hi - f->call[f->n - 1].at.lo)
			continue; /* i is within the call before */
		if (f->n == PYTHON_CALLS)
			return -ENOSPC;
		f->call[f->n].at = (struct fusee_range){c->vaddr + i, c->vaddr + i + n};
		f->call[f->n++].place = place_at(s, c->vaddr + i);
	}
	return 0;
}

/* Looks through one segment. */
static int search_segment(struct search *s, uint64_t lo, uint64_t hi)
{
	struct fusee_code c;
	int err = 0;

	for (uint64_t at = lo; at < hi && at - lo < MOST_CODE && !err; at += PIECE) {
		uint64_t from = at - lo < NEAR + LONGEST ? lo : at - NEAR - LONGEST;
		uint64_t to = hi - at < PIECE + LONGEST ? hi : at + PIECE + LONGEST;

		err = fusee_read_code(s->host, s->file, (struct fusee_range){from, to}, &c);
		if (err)
			return err;
		err = add_calls(s, &c, (uint32_t)(at - from),
				(uint32_t)((hi - at < PIECE ? hi : at + PIECE) - from));
		free(c.at);
	}
	return err;
}

int python_find_calls(const struct fusee_unwinder_host *host, uint64_t file,
		      const struct fusee_code *eval, const uint32_t *words,
		      struct python_calls *found)
{
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct search s = {.host = host, .file = file, .words = words, .found = found};
	uint32_t end;
	int err;

	memset(found, 0, sizeof(*found));
	if (words[PYTHON_FAMILY] != PYTHON_CHAIN || eval->n >= PYTHON_LEAST_CODE)
		return 0;
	end = find_table(&s, eval);
	if (!found->table)
		return 0;
	if (end)
		add_targets(&s, eval, end);
	err = host->file_info(file, &info);
	FUSEE_FOR_EACH (struct fusee_segment, g, info.segments)
		if (!err && g->flags & 1) /* PF_X */
			err = search_segment(&s, g->vaddr, g->vaddr + g->filesz);
	return err;
}
