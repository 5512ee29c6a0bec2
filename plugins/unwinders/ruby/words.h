/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The table of one interpreter that inspect() makes and the step reads, and what the step emits. */
#ifndef RUBY_WORDS_H
#define RUBY_WORDS_H

/* How a thread finds its execution context (struct rb_execution_context_struct). */
enum ruby_context {
	/* RUBY_CONTEXT is a pair in the GOT, as __tls_get_addr() takes it: its first word is the
	 * module's number, RUBY_CONTEXT_OFFSET the variable's offset in the module's block. */
	RUBY_BY_MODULE = 1,
	/* The variable is at the thread pointer + RUBY_CONTEXT_OFFSET (signed). */
	RUBY_BY_OFFSET,
	/* To 2.7: RUBY_CONTEXT is a variable that holds the number of a pthread key; its value is
	 * the thread, which has the context at RUBY_CONTEXT_OFFSET. */
	RUBY_BY_KEY,
};

/* Words of the table. "vaddr": of the file. Offsets and sizes are in bytes. */
enum ruby_word {
	RUBY_BY,      /* enum ruby_context */
	RUBY_CONTEXT, /* vaddr: two words, low and high */
	RUBY_CONTEXT_HIGH,
	RUBY_CONTEXT_OFFSET,
	RUBY_FRAME_SIZE, /* of rb_control_frame_t */
	RUBY_INSNS,     /* insns_info in struct rb_iseq_constant_body; positions, size and the index
			   follow */
	RUBY_INSN_SIZE, /* of struct iseq_insn_info_entry */
	RUBY_FIRST_LINE,   /* 1: location.first_lineno is a Fixnum, 0: an int */
	RUBY_STRING_EMBED, /* offset of the characters of an embedded String: 16 or 24 */
	RUBY_SYMBOLS,      /* vaddr of the table of symbols: two words; 0: not found */
	RUBY_SYMBOLS_HIGH,
	RUBY_LAST_OPERATOR, /* tLAST_OP_ID: up to it a symbol's ID is its number in the table */
	/*
	 * Parts of the functions, each two words: its first byte and the byte behind it, from the
	 * function's beginning. The core before its first control frame is in r15; the core when it
	 * has popped its last; rb_vm_exec() when the core has returned, in one or two parts.
	 */
	RUBY_CORE_BEGIN,
	RUBY_CORE_BEGIN_TO,
	RUBY_CORE_END,
	RUBY_CORE_END_TO,
	RUBY_EXEC_END,
	RUBY_EXEC_END_TO,
	RUBY_EXEC_RETURN,
	RUBY_EXEC_RETURN_TO,
	RUBY_WORDS,
};

/* u->claim_arg: whose code pc is in. */
enum ruby_code {
	RUBY_CORE = 1, /* vm_exec_core(): runs methods until the method that C has called returns */
	RUBY_COLD,     /* a part of it that is rarely used */
	RUBY_EXEC,     /* rb_vm_exec(): calls it, and goes on after an exception */
};

/* Kinds of emissions. */
enum ruby_kind { RUBY_FUNCTION = 1, RUBY_PLACE };

#define RUBY_LABEL_BYTES 192u
#define RUBY_PATH_BYTES 512u

/* What names a function; the path's bytes are as many as are emitted. Neither text is terminated.
 */
struct ruby_function {
	unsigned int first_line;
	unsigned short label_bytes, path_bytes;
	unsigned int is_c, pad; /* is_c: 1: implemented in C, without path and line */
	char label[RUBY_LABEL_BYTES];
	char path[RUBY_PATH_BYTES];
};

/* The line of an instruction of a function. */
struct ruby_place {
	unsigned long long function; /* its key */
	unsigned int line, pad;
};

/* Mixes a word into a key. The place of instruction n of function f has the key ruby_mix(f, n). */
static inline __attribute__((always_inline)) unsigned long long ruby_mix(unsigned long long a,
									 unsigned long long b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 32;
}

enum ruby_reason {
	RUBY_NO_CONTEXT = 1,
	RUBY_UNREADABLE,
	RUBY_OUT_OF_STEP,
};
#define RUBY_REASONS                                                     \
	{                                                                \
		"no Ruby execution context", "Ruby frame unreadable",    \
			"Ruby frames do not fit the C frames", (void *)0 \
	}

#endif
