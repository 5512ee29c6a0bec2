/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The table of one interpreter that inspect() makes and the step reads, and what the step emits. */
#ifndef PYTHON_VERSIONS_H
#define PYTHON_VERSIONS_H

/* How an interpreter keeps the frames of its functions. */
enum python_family {
	/* 3.8 to 3.10: a frame object for each function, each in a C frame of its own */
	PYTHON_OBJECTS = 1,
	/* 3.11: many frames in one C frame; the outermost is marked, the innermost is in a struct
	 * on the C stack */
	PYTHON_ENTRIES = 2,
	/* 3.12: as before, but a frame on the C stack ends them */
	PYTHON_SHIMS = 3,
	/* 3.13 on: as before, but only the thread state has the innermost frame */
	PYTHON_CHAIN = 4,
};

/* Words of the table. "vaddr": of the file. Offsets and places are in bytes. */
enum python_word {
	PYTHON_FAMILY,
	PYTHON_RUNTIME, /* vaddr of _PyRuntime: two words, low and high */
	PYTHON_RUNTIME_HIGH,
	PYTHON_KEY,          /* autoTSSkey in _PyRuntime: is it made, and the key; 0: not known */
	PYTHON_HOLDER,       /* OBJECTS: gilstate.tstate_current in _PyRuntime: who has the GIL */
	PYTHON_INTERPRETERS, /* interpreters.head in _PyRuntime */
	PYTHON_NEXT,         /* next in PyInterpreterState */
	PYTHON_THREADS,      /* threads.head in PyInterpreterState */
	PYTHON_THREAD_ID,    /* thread_id in PyThreadState */
	PYTHON_CURRENT,      /* frame, cframe or current_frame in PyThreadState */
	/* ENTRIES, SHIMS: cframe.current_frame, from sp in the function's body; CHAIN: entry_frame,
	 * from there; OBJECTS: DWARF number of the register that holds the frame, or with
	 * PYTHON_IN_STACK its place from sp. 0: not found */
	PYTHON_PLACE,    /* with PYTHON_BELOW_FP: bytes below fp, and not above sp */
	PYTHON_PROLOGUE, /* bytes of the function before what PYTHON_PLACE names is filled */
	PYTHON_EPILOGUE, /* bytes [from, to) of the function in which sp moves; 0, 0: not found */
	PYTHON_EPILOGUE_END,
	/* OBJECTS: f_lasti in a frame. Else bits 0-7: the bit of `owner` or `is_entry` in bytes 64
	 * to 79 of a frame; bits 8-15: its value in the frame that ends those of a C frame */
	PYTHON_FRAME,
	PYTHON_CODE,       /* first byte of a code object that is read */
	PYTHON_FIRST_LINE, /* its bit in what is read */
	PYTHON_BYTECODE,   /* co_code_adaptive in PyCodeObject */
	PYTHON_TEXT,       /* sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject) << 16 */
	PYTHON_KIND,       /* bit of a str's state where the bytes of a character begin */
	PYTHON_HEADER,     /* bytes that each object's header has more: without the GIL 16 */
	PYTHON_VERSION,    /* minor << 8 | micro */
	/* u32 that each new code object raises, from 3.14 on each that ends: two words, low and
	 * high. SHIMS: vaddr; CHAIN: in PyInterpreterState. 0: there is none, or it was not found
	 */
	PYTHON_COUNTER,
	PYTHON_COUNTER_HIGH,
	/* co_tlbc in PyCodeObject: copies of its bytecode, of which a frame has the number in bytes
	 * 72 to 75. 0: there are none */
	PYTHON_COPIES,
	/* offset of _fut_waiter in a task of asyncio, | offset of the frame in a coroutine << 16;
	 * 0: tasks are not shown */
	PYTHON_TASKS,
	PYTHON_UNLINKED, /* OBJECTS: offsets of return addresses at which the frame is unlinked */
	PYTHON_WORDS = PYTHON_UNLINKED + 4,
};

#define PYTHON_BELOW_FP (1u << 31)
#define PYTHON_IN_STACK (1u << 30)
#define PYTHON_MOST_FRAME 4096 /* bytes of a C frame of the interpreter */

/* claim_arg */
enum python_claim {
	PYTHON_EVAL = 0, /* _PyEval_EvalFrameDefault */
	PYTHON_COLD = 1, /* a part of it that the compiler moved away */
	/* The low byte: a call of a function of an instruction, where these call each other; bits
	 * 32-63: as PYTHON_PLACE, of that call. See calls.h. */
	PYTHON_CALL = 2,
};

/* Words of a code object, from PYTHON_CODE on. */
#define PYTHON_CODE_WORDS 11
enum python_code_word {
	PYTHON_OLD_FILENAME = 8, /* OBJECTS; co_name and co_lnotab follow */
	PYTHON_NEW_FILENAME = 6, /* co_name, co_qualname, co_linetable follow */
};

/*
 * What is emitted about a code object. Its first emission begins with struct python_head; then come
 * the two texts as they are in memory, each padded to a multiple of 8 bytes, then the beginning of
 * the line table. The others begin with struct python_part, and go on with the table. The last has
 * kind 0; the others have the number of their part + 1.
 */
#define PYTHON_NAME_BYTES 320u
#define PYTHON_FILE_BYTES 640u
#define PYTHON_PART_BYTES 1024u /* of the line table in one emission */
#define PYTHON_PARTS 128u       /* of one code object, at most */

struct python_part {
	unsigned int part;  /* 0: struct python_head */
	unsigned int bytes; /* of the line table in this emission */
};

struct python_text {
	unsigned short bytes; /* that are emitted */
	unsigned char kind;   /* bytes of a character: 1, 2, 4 */
	unsigned char shortened;
};

struct python_head {
	struct python_part part;
	unsigned int first_line;
	unsigned int table; /* bytes of the complete line table */
	struct python_text name, file;
	unsigned int minor, micro;   /* of the version */
	unsigned int has_tasks, pad; /* 1: tasks that await are shown */
};

#define PYTHON_NO_INSTRUCTION 0xffffffffu /* v[1] of a frame that has not begun */

enum python_reason {
	PYTHON_NO_STATE = 1,
	PYTHON_UNREADABLE,
	PYTHON_OUT_OF_STEP,
	PYTHON_TASKS_UNREADABLE,
	PYTHON_MANY_TASKS,
};
#define PYTHON_REASONS                                                                             \
	{                                                                                          \
		"no Python thread state", "Python frame unreadable",                               \
			"Python frames do not fit the C frames",                                   \
			"awaiting Python tasks unreadable", "too many awaiting Python tasks", NULL \
	}

#endif
