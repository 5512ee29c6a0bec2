/* SPDX-License-Identifier: Apache-2.0 */
#include "gostack.h"

#include <errno.h>
#include <string.h>

/* The functions whose code is read. */
enum { SYSTEMSTACK, MORESTACK, MORESTACK_NOCTXT, NEWSTACK, GIVES_AWAY, KINDS = GIVES_AWAY + 5 };

static const char *const names[KINDS] = {
	"runtime.systemstack", "runtime.morestack",   "runtime.morestack_noctxt",
	"runtime.newstack",    "runtime.gopreempt_m", "runtime.goschedImpl",
	"runtime.preemptPark", "runtime.schedule",    "runtime.park_m",
};

/* Offsets of the members of g.sched in g. */
struct places {
	uint8_t pc, sp, bp;
};

struct go_functions {
	struct fusee_go_func at[KINDS]; /* name NULL: it was not found */
};

/* Finds the functions. A wrapper for another ABI has the same name as its function, but is
 * smaller. */
static void find_functions(const struct fusee_go_table *go, struct go_functions *fs)
{
	struct fusee_go_func f;

	memset(fs, 0, sizeof(*fs));
	for (uint64_t i = 0; i < go->n; i++) {
		if (fusee_go_function(go, i, &f) || f.name_len < 15 || f.name[0] != 'r')
			continue;
		for (size_t k = 0; k < KINDS; k++)
			if (f.name_len == strlen(names[k]) &&
			    !memcmp(f.name, names[k], f.name_len) &&
			    (!fs->at[k].name || f.hi - f.lo > fs->at[k].hi - fs->at[k].lo))
				fs->at[k] = f;
	}
}

/* ---- instructions ---- */

static uint32_t load_32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Reads offsets from morestack, where it saves the registers of its caller (g is in any register):
 *	mov (%rsp),%rax; mov %rax,pc(g)
 *	lea 8(%rsp),%rax; mov %rax,sp(g)
 *	mov %rbp,bp(g)
 */
static int find_saved(const struct fusee_go_table *go, const struct fusee_go_func *f,
		      struct places *p)
{
	for (uint64_t pc = f->lo; pc < f->hi; pc++) {
		const uint8_t *c = fusee_go_code(go, pc, 21);
		uint8_t g;

		if (!c || memcmp(c, "\x48\x8b\x04\x24\x48\x89", 6) ||
		    memcmp(c + 8, "\x48\x8d\x44\x24\x08\x48\x89", 7) ||
		    memcmp(c + 17, "\x48\x89", 2))
			continue;
		g = c[6] & 7;
		if (c[6] != (0x40 | g) || c[15] != c[6] || c[19] != (0x68 | g) || g == 4)
			continue;
		p->pc = c[7];
		p->sp = c[16];
		p->bp = c[20];
		return p->pc < 0x80 && p->sp < 0x80 && p->bp < 0x80 ? 0 : -EBADMSG;
	}
	return -ENOENT;
}

static int gives_away(const struct go_functions *fs, uint64_t callee)
{
	for (size_t k = GIVES_AWAY; k < KINDS; k++)
		if (fs->at[k].name && fs->at[k].lo == callee)
			return 1;
	return 0;
}

/* Finds the calls in newstack that give the goroutine away. Other bytes that look like such a call
 * do no harm, as no return address is behind them. */
static int find_given(const struct fusee_go_table *go, const struct go_functions *fs,
		      struct go_stack *s)
{
	const struct fusee_go_func *f = &fs->at[NEWSTACK];

	for (uint64_t pc = f->lo; pc + 5 <= f->hi; pc++) {
		const uint8_t *c = fusee_go_code(go, pc, 5);

		if (!c)
			return -EBADMSG;
		if (c[0] != 0xe8 || !gives_away(fs, pc + 5 + (uint64_t)(int32_t)load_32(c + 1)))
			continue;
		if (s->n == GOSTACK_CALLS)
			return -E2BIG;
		s->given[s->n++] = pc + 5;
	}
	return s->n ? 0 : -ENOENT;
}

void gostack_find(struct table_build *build, const struct fusee_go_table *go, struct go_stack *s)
{
	struct go_functions fs;
	struct fusee_go_places to;
	struct places p = {0};

	memset(s, 0, sizeof(*s));
	find_functions(go, &fs);
	for (size_t k = 0; k < GIVES_AWAY; k++)
		if (!fs.at[k].name)
			return;
	/* the step accepts a call of either, as it cannot tell which it was */
	if (fs.at[MORESTACK_NOCTXT].lo - fs.at[MORESTACK].lo >= DWARF_GO_NEAR / 2 ||
	    fs.at[MORESTACK].hi - fs.at[MORESTACK].lo >= DWARF_GO_NEAR / 2)
		return;
	if (fusee_go_find_places(go, &fs.at[SYSTEMSTACK], &to) ||
	    find_saved(go, &fs.at[MORESTACK], &p) || find_given(go, &fs, s)) {
		s->n = 0;
		return;
	}
	s->morestack = table_special(build, DWARF_GO_GROWS, to.g, (int32_t)(to.m | to.curg << 8),
				     p.pc | p.sp << 8 | p.bp << 16);
}
