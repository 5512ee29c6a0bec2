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
	RUBY_PUBLISHED_EARLY, /* 1: ec->cfp is a new control frame before that is filled in */
	RUBY_LOCAL_ISEQ,      /* offset of local_iseq in struct rb_iseq_constant_body */
	RUBY_CLASS_BY,        /* enum ruby_class */
	RUBY_VM,              /* vaddr of ruby_current_vm_ptr: two words */
	RUBY_VM_HIGH,
	RUBY_VM_SHAPES, /* RUBY_CLASS_BY_SHAPE: offset of shape_list in rb_vm_t */
	/* Offsets: of objspace in rb_vm_t; in struct rb_objspace of the number of collections, 0:
	 * not found, and of its flags. */
	RUBY_VM_SPACE,
	RUBY_COLLECTIONS,
	RUBY_SPACE_FLAGS,
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
	/* rb_vm_exec() behind its first and second call of code that YJIT made, if it has them;
	 * and Qundef, with which that code returns if the core is to go on with its frame. */
	RUBY_EXEC_JIT,
	RUBY_EXEC_JIT_TO,
	RUBY_EXEC_JIT_2,
	RUBY_EXEC_JIT_2_TO,
	RUBY_UNDEF,
	RUBY_WORDS,
};

/* Words of a process, each two words: the library's bias, and its code. */
enum ruby_process_word {
	RUBY_PROCESS_BIAS,
	RUBY_PROCESS_LO = 2,
	RUBY_PROCESS_HI = 4,
	RUBY_PROCESS_WORDS = 6,
};

/* Where a class has its name. */
enum ruby_class {
	RUBY_CLASS_BY_TABLE = 1, /* to 3.1: its table of variables */
	RUBY_CLASS_BY_SHAPE,     /* 3.2: its variables, by its shape */
	RUBY_CLASS_BY_FIELD,     /* from 3.3 on: a field */
};

/* u->claim_arg: whose code pc is in. */
enum ruby_part {
	RUBY_CORE = 1, /* vm_exec_core(): runs methods until the method that C has called returns */
	RUBY_COLD,     /* a part of it that is rarely used */
	RUBY_EXEC,     /* rb_vm_exec(): calls it, and goes on after an exception */
	RUBY_COROUTINE, /* the outermost function of a fiber, or of a ractor's thread */
	RUBY_JIT,       /* memory in which YJIT makes code */
};

/* Kinds of emissions. */
enum ruby_kind { RUBY_FUNCTION = 1, RUBY_PLACE };

#define RUBY_LABEL_BYTES 192u
#define RUBY_PATH_BYTES 512u

#define RUBY_CLASS_BYTES 192u

/* What names a function; the path's bytes are as many as are emitted. No text is terminated. */
struct ruby_function {
	unsigned int first_line;
	unsigned short label_bytes, path_bytes;
	/* The name of the class or module; 0 bytes: it has none. The last base_bytes of the label,
	 * if there are as many, are the method's name. */
	unsigned short class_bytes, base_bytes;
	unsigned short is_c;         /* 1: implemented in C, without path and line */
	unsigned short is_singleton; /* 1: a method of the class itself */
	char label[RUBY_LABEL_BYTES];
	char class_name[RUBY_CLASS_BYTES];
	char path[RUBY_PATH_BYTES];
};

/* The line of an instruction of a function. The place of function f with pc p has the key
 * fusee_mix(f, p). */
struct ruby_place {
	unsigned long long function; /* its key */
	unsigned int line, pad;
};

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
