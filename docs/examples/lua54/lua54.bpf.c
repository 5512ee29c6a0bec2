/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Lua unwinder's step. PUC Lua's interpreter is one C function, luaV_execute(L, ci), that runs
 * a Lua function and those which it calls: a frame of it on the C stack stands for the CallInfos
 * from the current one down to the first that C called (CIST_FRESH). C functions have frames of
 * their own, so their CallInfos are skipped. A coroutine has a lua_State with CallInfos of its own,
 * whose C frames lie below lua_resume's.
 */
#include <fusee/unwinder.bpf.h>

#include "lua54.h"

/* Offsets that all of 5.4.0 to 5.4.8 have in a 64-bit build: lobject.h, lstate.h, lopcodes.h. */
struct call_info {
	__u64 func, top, previous, next, savedpc, u[2];
	__u32 u2;
	__u16 nresults, callstatus;
};
#define CIST_C 2
struct state {                                                /* lua_State */
	__u64 gc, header, top, l_G, ci, more[5], errorjmp[2]; /* at 80 and 88 */
};
struct proto {
	__u64 gc;
	__u32 header[2], sizeupvalues, sizek, sizecode, sizelineinfo, sizep, sizelocvars;
	__u32 sizeabslineinfo, linedefined, lastlinedefined;
	__u64 k, code, p, upvalues, lineinfo, abslineinfo, locvars, source;
};
struct proto_middle {
	__u32 header[2], sizeupvalues, sizek, sizecode, sizelineinfo, sizep, sizelocvars,
		sizeabslineinfo, linedefined, last, pad;
	__u64 k, code;
};
#define PROTO_MIDDLE 8
#define PROTO_SOURCE 112
struct closure { /* LClosure, from 8 on */
	__u64 header, gclist, p;
};
#define STRING_TEXT 24
#define LUA_VTHREAD 8
#define LUA_VLCL 6
#define LUA_VPROTO 10
enum {
	OP_MOVE = 0,
	OP_GETUPVAL = 9,
	OP_GETTABUP = 11,
	OP_GETFIELD = 14,
	OP_SELF = 20,
	OP_JMP = 56,
	OP_CALL = 68,
	OP_EXTRAARG = 82
};

/* u->scratch */
enum {
	STATE, /* the lua_State of the current frames */
	CALL,  /* its next CallInfo; 0: they are all pushed */
	FRAME, /* sp of the current luaV_execute */
	DONE,  /* sp of the luaV_execute whose CallInfos are pushed */
	PAST,  /* the lua_State whose frames were pushed last */
	WORD,  /* between this file's functions */
	TRIED, /* not 0: the innermost frame is done */
	NEW,   /* the CallInfo that was pushed */
};

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* ---- which lua_State, which CallInfo ---- */

#define REGISTERS 6
#define WITHIN 40 /* words of luaV_execute's own */
#define WORDS (REGISTERS + WITHIN)

FUSEE_FN __u32 register_at(__u32 i)
{
	return i == 0 ? FUSEE_X86_RBP : i == 1 ? FUSEE_X86_RBX : FUSEE_X86_R12 + i - 2;
}

/*
 * L and ci live in callee-saved registers of luaV_execute, or in its frame, which ends below its
 * return address. scratch[WORD]: what is at place i of this order. 0, or -1: it is not known.
 */
static int word_at(struct fusee_unwind *u, __u32 i)
{
	__u64 at = u->sp + 8 * ((__u64)i - REGISTERS);

	if (i < REGISTERS)
		return fusee_register(u, register_at(i), &u->scratch[WORD]);
	return at & 7 || (u->cfa && at >= u->cfa - 8) ? -1 : AT(u, &u->scratch[WORD], at);
}
FUSEE_PART(fusee_lua54_word_at, word_at)

/* Is scratch[WORD] a lua_State that runs: that of a main program, or of a coroutine with a frame on
 * a C stack? 1: it is. */
static int is_state(struct fusee_unwind *u, __u32 unused)
{
	__u64 at = u->scratch[WORD], mainthread, global;
	__u32 errorjmp, where;
	struct state s;

	(void)unused;
	if (fusee_slab32(u, LUA54_ERRORJMP, &errorjmp) ||
	    fusee_slab32(u, LUA54_MAINTHREAD, &where) || AT(u, &s, at) ||
	    (__u8)s.header != LUA_VTHREAD || !s.l_G || s.l_G & 7 || !s.ci || s.ci & 7 ||
	    AT(u, &mainthread, s.l_G + where))
		return 0;
	if (mainthread != at) {
		if (!(errorjmp == 80 ? s.errorjmp[0] : s.errorjmp[1]))
			return 0; /* it waits to be resumed */
		if (AT(u, &global, mainthread + __builtin_offsetof(struct state, l_G)) ||
		    global != s.l_G)
			return 0;
	}
	u->scratch[STATE] = at;
	u->scratch[CALL] = s.ci;
	return 1;
}
FUSEE_PART(fusee_lua54_is_state, is_state)

/* Where a function begins luaV_execute runs L->ci, and the registers may still be its caller's. */
FUSEE_FN int beginning(const struct fusee_unwind *u)
{
	return u->flags & FUSEE_FIRST && u->pc - u->claim_lo < 64;
}

#define NEAR 5

/*
 * Which CallInfo of the list that begins at CALL does this frame of luaV_execute run? L->ci is a C
 * function's where it has called one; in the middle of a call or a return it is not yet, or not any
 * more, what the frame holds. near[0] has returned, so that its function may be overwritten: what
 * is run next is its caller. scratch[WORD] and 1; 2: near[0];
 * 0: none of these; -1.
 */
static int find_call(struct fusee_unwind *u, __u32 unused)
{
	__u64 *near = fusee_buffer(u), link[2], at = u->scratch[CALL];

	(void)unused;
	if (!near)
		return -1;
	for (__u32 i = 1; i < NEAR; i++) {
		near[i] = at;
		if (!at)
			continue;
		if (AT(u, &link, at + __builtin_offsetof(struct call_info, previous)))
			return -1;
		at = link[0];
		if (i == 1)
			near[0] = link[1];
	}
	for (__u32 i = 0; i < WORDS; i++) {
		if (FUSEE_CALL(fusee_lua54_word_at, u, i) || !u->scratch[WORD])
			continue;
		if (u->scratch[WORD] == near[0])
			return 2;
		for (__u32 k = 1; k < NEAR; k++)
			if (u->scratch[WORD] == near[k])
				return 1;
	}
	return 0;
}
FUSEE_PART(fusee_lua54_find_call, find_call)

/* CallInfo scratch[WORD] has returned. 0 or -1. */
static int returned(struct fusee_unwind *u, __u32 unused)
{
	struct call_info ci;
	__u32 fresh;

	(void)unused;
	if (fusee_slab32(u, LUA54_FRESH, &fresh) || AT(u, &ci, u->scratch[WORD]))
		return -1;
	if (!fresh || ci.callstatus & fresh)
		u->scratch[DONE] = u->sp;
	return 0;
}
FUSEE_PART(fusee_lua54_returned, returned)

/* Is scratch[WORD] the lua_State of this frame? 1: it is; 0: it is not; -1: not all could be read.
 */
FUSEE_FN int try_state(struct fusee_unwind *u)
{
	__u64 word = u->scratch[WORD];

	/* what points into the stack is none, nor is the state whose frames were pushed */
	if (word & 7 || word < 65536 || word >> 47 || word == u->scratch[PAST] ||
	    word - u->first_sp < u->sp - u->first_sp + 65536 ||
	    FUSEE_CALL(fusee_lua54_is_state, u, 0) != 1)
		return 0;
	if (beginning(u))
		return 1;
	switch (FUSEE_CALL(fusee_lua54_find_call, u, 0)) {
	case 0:
		return 0;
	case 1:
		u->scratch[CALL] = u->scratch[WORD];
		return 1;
	case 2: /* if it was the last of this frame, nothing remains of it */
		return FUSEE_CALL(fusee_lua54_returned, u, 0) ? -1 : 1;
	default:
		return -1;
	}
}

/* Finds the lua_State and the CallInfo of this frame of luaV_execute. 0 or -1. */
static int find_state(struct fusee_unwind *u, __u32 unused)
{
	int r = 0;

	(void)unused;
	if (beginning(u)) {
		u->scratch[WORD] = u->regs[FUSEE_X86_RDI];
		r = try_state(u);
	}
	for (__u32 i = 0; i < WORDS && !r; i++)
		if (!FUSEE_CALL(fusee_lua54_word_at, u, i))
			r = try_state(u);
	if (r == 1)
		return 0;
	u->scratch[STATE] = u->scratch[CALL] = 0;
	return -1;
}
FUSEE_PART(fusee_lua54_find_state, find_state)

/* Is luaV_execute about to return, its registers its caller's? */
FUSEE_FN int returning(struct fusee_unwind *u)
{
	__u8 code;

	if (!(u->flags & FUSEE_FIRST))
		return 0;
	for (__u32 i = 0; i < 16; i++) {
		if (AT(u, &code, u->pc + i))
			return 0;
		if (code == 0xc3)
			return 1;
		if (code != 0x41 && (code & 0xf8) != 0x58 && code != 0xc9) /* pop, leave */
			return 0;
	}
	return 0;
}

/* Skips what C functions have in the list: CALL is a Lua function's, or 0. 0 or -1. */
static int skip_c(struct fusee_unwind *u, __u32 unused)
{
	(void)unused;
	for (int i = 0; i < 64; i++) {
		struct call_info ci;

		if (!u->scratch[CALL])
			return 0;
		if (AT(u, &ci, u->scratch[CALL]))
			return -1;
		if (ci.previous && !(ci.callstatus & CIST_C))
			return 0;
		u->scratch[CALL] = ci.previous;
	}
	return -1;
}
FUSEE_PART(fusee_lua54_skip_c, skip_c)

/* The walk comes to a frame of luaV_execute: whose, and from which CallInfo on? 0 or -1, with
 * u->error set. */
FUSEE_FN int enter(struct fusee_unwind *u)
{
	u->scratch[FRAME] = u->sp;
	if (returning(u)) {
		u->scratch[DONE] = u->sp;
		u->scratch[TRIED] = 1;
		return 0;
	}
	u->error = LUA54_UNREADABLE;
	if (u->scratch[CALL] && FUSEE_CALL(fusee_lua54_skip_c, u, 0))
		return -1;
	if (!u->scratch[CALL]) {
		u->scratch[PAST] = u->scratch[STATE];
		if (FUSEE_CALL(fusee_lua54_find_state, u, 0)) {
			u->error = LUA54_NO_STATE;
			return -1;
		}
		if (FUSEE_CALL(fusee_lua54_skip_c, u, 0))
			return -1;
	}
	u->error = 0;
	return 0;
}

/* ---- what a function is called, and which line it is at: sent once for each instruction ---- */

/* In the buffer: what is sent, and, behind it, what would be too large for the stack. */
struct work {
	struct lua54_place place;
	struct call_info ci;
	struct proto p;
	struct closure f;
	__u64 value[2], name;
	__u32 pc, skip;
};

/* The function that CallInfo `at` runs goes to ci and p. 0, -1: none. */
FUSEE_FN int read_call(struct fusee_unwind *u, struct work *w, __u64 at)
{
	if (AT(u, &w->ci, at) || !w->ci.previous || w->ci.callstatus & CIST_C ||
	    AT(u, &w->value, w->ci.func) || AT(u, &w->f, w->value[0] + 8) || AT(u, &w->p, w->f.p) ||
	    (__u8)w->f.header != LUA_VLCL || (__u8)w->p.header[0] != LUA_VPROTO)
		return -1;
	return 0;
}

/*
 * A Lua function has no name: it is called what the code of its caller, CallInfo scratch[WORD],
 * says. That fetched it some instructions before the call. Lua itself looks better, but not much
 * (funcnamefromcode in ldebug.c). scratch[WORD]: that instruction, and above it where it stands.
 */
static int find_fetch(struct fusee_unwind *u, __u32 unused)
{
	struct work *w = fusee_buffer(u);
	__u32 i, reg = 0, pc;

	(void)unused;
	if (!w || read_call(u, w, u->scratch[WORD]))
		return -1;
	pc = (w->ci.savedpc - w->p.code) / 4 - 1; /* of the call */
	for (__u32 k = 0; k < 32 && k <= pc; k++) {
		if (AT(u, &i, w->p.code + 4ull * (pc - k)))
			return -1;
		if (k == 0) {
			if ((i & 127) != OP_CALL)
				return -1;
			reg = i >> 7 & 255;
		} else if ((i >> 7 & 255) == reg && (i & 127) != OP_JMP &&
			   (i & 127) != OP_EXTRAARG) {
			u->scratch[WORD] = (__u64)(pc - k) << 32 | i;
			return 0;
		}
	}
	return -1;
}
FUSEE_PART(fusee_lua54_find_fetch, find_fetch)

/* Is variable i of the function number w->skip, of those alive at instruction w->pc? 1:
 * its name is w->name; 0; -1: there are no more. */
static int local(struct fusee_unwind *u, __u32 i)
{
	struct work *w = fusee_buffer(u);
	struct {
		__u64 name;
		__u32 start, end;
	} v;

	if (!w || i >= w->p.sizelocvars || AT(u, &v, w->p.locvars + 16 * i) || v.start > w->pc)
		return -1;
	if (w->pc >= v.end || w->skip--)
		return 0;
	w->name = v.name;
	return 1;
}
FUSEE_PART(fusee_lua54_local, local)

/* Where the name stands by which instruction i has fetched a function, at w->pc. 0: it has none */
FUSEE_FN __u64 name_of(struct fusee_unwind *u, struct work *w, __u32 i)
{
	__u64 name = 0, at;
	int r = 0;

	switch (i & 127) {
	case OP_MOVE:
		w->skip = i >> 16 & 255;
		for (__u32 k = 0; k < 200 && !r; k++)
			r = FUSEE_CALL(fusee_lua54_local, u, k);
		return r == 1 ? w->name : 0;
	case OP_GETUPVAL:
		at = w->p.upvalues + 16 * (i >> 16 & 255);
		break;
	case OP_SELF:
		if (!(i >> 15 & 1))
			return 0;
		/* fall through */
	case OP_GETTABUP:
	case OP_GETFIELD:
		at = w->p.k + 16 * (i >> 24);
		break;
	default:
		return 0;
	}
	return AT(u, &name, at) ? 0 : name;
}

/* Reads the name. 0, -1: there is none. */
static int fetch_name(struct fusee_unwind *u, __u32 unused)
{
	struct work *w = fusee_buffer(u);
	__u64 name;

	(void)unused;
	if (!w)
		return -1;
	w->pc = u->scratch[WORD] >> 32;
	name = name_of(u, w, u->scratch[WORD]);
	return name && fusee_read_str(u, w->place.name, sizeof(w->place.name), name + STRING_TEXT) >
				       0
		       ? 0
		       : -1;
}
FUSEE_PART(fusee_lua54_fetch_name, fetch_name)

/* From where on to add up lines to have that of instruction pc: getbaseline() in ldebug.c. */
FUSEE_FN void find_line(struct fusee_unwind *u, const struct proto *p, __u32 pc,
			struct lua54_place *place)
{
	struct {
		__u32 pc, line;
	} next, base = {-1u, p->linedefined};
	__u32 i = pc / 128, n;

	i -= !!i;
	for (n = 0; n < 8 && i < p->sizeabslineinfo; n++, i++) {
		if (AT(u, &next, p->abslineinfo + 8ull * i) || next.pc > pc)
			break;
		base = next;
	}
	n = pc - base.pc;
	place->line = 0;
	place->deltas = 0;
	if (!p->lineinfo || n > sizeof(place->delta) || pc >= p->sizelineinfo)
		return;
	if (n && fusee_read(u, place->delta, n & 255, p->lineinfo + (__u32)(base.pc + 1)))
		return;
	place->line = base.line;
	place->deltas = n;
}

/* Sends what names the frame that was pushed, of CallInfo scratch[NEW]. */
static int emit(struct fusee_unwind *u, __u32 kind)
{
	struct work *w = fusee_buffer(u);
	__u32 tail;
	int n = -1;

	if (!w || fusee_slab32(u, LUA54_TAIL, &tail) || read_call(u, w, u->scratch[NEW]))
		return -1;
	w->place.proto = w->f.p;
	w->place.linedefined = w->p.linedefined;
	find_line(u, &w->p, u->pushed[1], &w->place);
	if (w->p.source)
		n = fusee_read_str(u, w->place.source, sizeof(w->place.source),
				   w->p.source + STRING_TEXT);
	if (n <= 0 || n > (int)sizeof(w->place.source)) {
		w->place.source[0] = 0;
		n = 1;
	}
	u->scratch[WORD] = w->ci.previous;
	if (kind == LUA54_OTHER || w->ci.callstatus & tail ||
	    FUSEE_CALL(fusee_lua54_find_fetch, u, 0) || FUSEE_CALL(fusee_lua54_fetch_name, u, 0))
		w->place.name[0] = 0;
	return fusee_emit(u, kind, u->pushed[0],
			  __builtin_offsetof(struct lua54_place, source) + (__u32)n);
}
FUSEE_PART(fusee_lua54_emit, emit)

/* ---- frames ---- */

/* The instruction that a function is at, -1: it has not begun. The interpreter stores it only
 * before what may raise an error: for the innermost function a register knows better. */
FUSEE_FN __u32 current(struct fusee_unwind *u, __u64 code, __u32 sizecode, __u64 savedpc)
{
	__u64 size = 4ull * sizecode, word;

	for (__u32 i = 0; i < REGISTERS && !u->scratch[TRIED]; i++)
		if (!fusee_register(u, register_at(i), &word) && word - code - 4 < size) {
			savedpc = word;
			break;
		}
	return savedpc - code - 4 < size ? (savedpc - code) / 4 - 1 : -1u;
}

/* Pushes the frame of CallInfo scratch[CALL], and goes to its caller's. */
static int push(struct fusee_unwind *u, __u32 unused)
{
	struct call_info ci;
	struct proto_middle p; /* the verifier counts the stack of all that call each other */
	struct closure f;
	__u64 value[2], source, key;
	__u32 fresh, pc;

	(void)unused;
	if (fusee_slab32(u, LUA54_FRESH, &fresh) || AT(u, &ci, u->scratch[CALL]) ||
	    AT(u, &value, ci.func))
		return fusee_stop(u, LUA54_UNREADABLE);
	if (!ci.previous || ci.callstatus & CIST_C)
		return fusee_stop(u, LUA54_NO_FUNCTION);
	if (!fresh || ci.callstatus & fresh)
		u->scratch[DONE] = u->sp;
	if ((value[1] & 0x3f) != LUA_VLCL || AT(u, &f, value[0] + 8) ||
	    (__u8)f.header != LUA_VLCL || AT(u, &p, f.p + PROTO_MIDDLE) ||
	    (__u8)p.header[0] != LUA_VPROTO || AT(u, &source, f.p + PROTO_SOURCE)) {
		if (u->scratch[TRIED])
			return fusee_stop(u, LUA54_NO_FUNCTION);
		u->scratch[TRIED] = 1; /* it returns: what it returns is where it was */
		u->scratch[CALL] = ci.previous;
		return FUSEE_AGAIN;
	}
	pc = current(u, p.code, p.sizecode, ci.savedpc);
	/* a function that has not begun may still be its caller, whose place a tail call gives it
	 */
	u->scratch[WORD] = ci.callstatus & fresh || pc == -1u ? LUA54_OTHER : LUA54_CALLED;
	pc = pc == -1u ? 0 : pc;
	key = fusee_mix(fusee_mix(LUA54_CALLED, f.p), p.code);
	key = fusee_mix(fusee_mix(fusee_mix(key, source), p.linedefined), pc);
	fusee_push(u, key, pc);
	u->scratch[NEW] = u->scratch[CALL];
	u->scratch[CALL] = ci.previous;
	u->scratch[TRIED] = 1;
	return FUSEE_AGAIN;
}
FUSEE_PART(fusee_lua54_push, push)

FUSEE_FN int push_and_name(struct fusee_unwind *u)
{
	__u32 kind;
	int next = FUSEE_CALL(fusee_lua54_push, u, 0);

	kind = u->scratch[WORD];
	if (u->npushed && !fusee_emitted(u, kind, u->pushed[0]))
		FUSEE_CALL(fusee_lua54_emit, u, kind); /* no room: with the next sample */
	return next;
}

/*
 * lua_resume: below were the frames of a coroutine. After it has yielded, what called it inside of
 * the coroutine has no C frames any more, but CallInfos.
 */
FUSEE_FN int leave(struct fusee_unwind *u)
{
	if (u->scratch[STATE] && u->scratch[CALL]) {
		if (FUSEE_CALL(fusee_lua54_skip_c, u, 0))
			return fusee_stop(u, LUA54_UNREADABLE);
		if (u->scratch[CALL])
			return push_and_name(u);
	}
	u->scratch[TRIED] = 1;
	return FUSEE_NATIVE_TOO; /* lua_resume itself is a frame, too */
}

static int lua54_step(struct fusee_unwind *u)
{
	if (u->claim_arg == LUA54_RESUME)
		return leave(u);
	if (u->scratch[DONE] == u->sp)
		return FUSEE_NATIVE;
	if (u->scratch[FRAME] != u->sp && enter(u))
		return FUSEE_STOP;
	if (!u->scratch[CALL] || u->scratch[DONE] == u->sp)
		return FUSEE_NATIVE;
	return push_and_name(u);
}
FUSEE_LANGUAGE_STEP(lua54, lua54_step);
