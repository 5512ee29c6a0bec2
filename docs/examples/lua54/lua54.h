/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The interface between the two halves of the Lua unwinder. */
#ifndef LUA54_H
#define LUA54_H

/* u->claim_arg: whose code pc is in. */
enum lua54_code { LUA54_EXECUTE = 1, LUA54_RESUME };

/* The table of a file: where its release of Lua 5.4 keeps what other releases keep in other places.
 */
enum lua54_word {
	LUA54_MAINTHREAD, /* offset in global_State */
	LUA54_ERRORJMP,   /* offset in lua_State: 80 or 88 */
	LUA54_FRESH,      /* bit of callstatus: C called this function; 0: C calls each */
	LUA54_TAIL,       /* bit of callstatus: a tail call: its caller has no frame */
	LUA54_WORDS,
};

/* Kinds of emissions: was the function called by code of Lua, which may have a name for it? */
enum lua54_kind { LUA54_CALLED = 1, LUA54_OTHER };

/* u->error */
enum lua54_reason { LUA54_NO_REASON, LUA54_NO_STATE, LUA54_UNREADABLE, LUA54_NO_FUNCTION };
#define LUA54_REASONS                                                                            \
	{                                                                                        \
		"Lua state not found", "Lua stack not readable", "not a Lua function", (void *)0 \
	}

/* What is emitted of a function at one of its instructions; bytes from `source` on are as many as
 * there are. Texts end with NUL. */
struct lua54_place {
	__u64 proto;        /* its address: functions on one line have others */
	__u32 linedefined;  /* 0: the main chunk of its source */
	__u32 line, deltas; /* the instruction's line: line + delta[0] + .. delta[deltas - 1] */
	__s8 delta[132];
	char name[48];    /* what its caller calls it; may be empty */
	char source[200]; /* as Lua keeps it: "@file", "=name" or the text itself */
};
#endif
