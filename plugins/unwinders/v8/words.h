/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The table of one V8 that inspect() makes and the step reads, and what the step emits. */
#ifndef V8_WORDS_H
#define V8_WORDS_H

#define V8_SCALES 3
#define V8_MOST_BYTECODES 256

/* Words of the table: constants of the library. Names without more are offsets of fields, in bytes,
 * in the object that they begin with. */
enum v8_word {
	/* vaddrs of the code of the builtins */
	V8_BUILTINS_LO,
	V8_BUILTINS_HI,
	/* instance types */
	V8_FIRST_FUNCTION,
	V8_LAST_FUNCTION,
	V8_TYPE_SHARED, /* SharedFunctionInfo */
	V8_TYPE_SCOPE,  /* ScopeInfo */
	V8_TYPE_SCRIPT,
	V8_TYPE_BYTECODE,
	V8_TYPE_TABLE, /* of positions */
	/* strings: what their instance type consists of */
	V8_FIRST_NONSTRING,
	V8_SHAPE_MASK,
	V8_ONE_BYTE,
	V8_CONS,
	V8_EXTERNAL,
	V8_SLICED,
	V8_THIN,
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_SHARED_NAME, /* a name, or a ScopeInfo */
	V8_SHARED_SCRIPT,
	V8_SHARED_LENGTH, /* of the function; then the number of its parameters, and its beginning
			   */
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_NAME,
	V8_SCRIPT_LINE_ENDS,
	V8_STRING_LENGTH,
	V8_STRING_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_SLICED_PARENT,
	V8_SLICED_OFFSET,
	V8_THIN_ACTUAL,
	V8_EXTERNAL_RESOURCE, /* where its bytes are is behind it */
	V8_SCOPE_LOCALS,      /* index of a word: their number */
	V8_SCOPE_FIRST,       /* index of the first local's name */
	V8_BYTECODE_LENGTH,
	V8_BYTECODE_DATA,
	V8_BYTECODE_POSITIONS, /* its table of positions in the source */
	V8_TABLE_DATA,         /* of an array of bytes */
	/* compiled code; 0 in a V8 that keeps it otherwise */
	V8_TYPE_CODE,
	V8_TYPE_STREAM, /* InstructionStream, or Code: what instructions are in, behind its head */
	V8_STREAM_HEAD,
	V8_STREAM_CODE, /* its Code; 0: it is itself the Code */
	V8_CODE_START,  /* the address of its instructions; 0: they are behind its head */
	V8_CODE_SIZE,
	V8_CODE_DATA, /* for deoptimization; of Sparkplug's code: its bytecode */
	V8_CODE_POSITIONS,
	/* indices in its data for deoptimization */
	V8_DEOPT_COUNT, /* of the functions that were inlined, which are the first literals */
	V8_DEOPT_LITERALS,
	V8_DEOPT_PLACES,   /* where they were inlined */
	V8_DEOPT_SHARED,   /* the SharedFunctionInfo, or an object with it */
	V8_WRAPPED_SHARED, /* where it is in that object; 0: there is none */
	/* WebAssembly; 0 in a V8 whose constants do not say it */
	V8_WASM_MARKER,    /* what a frame of a function of WebAssembly has in place of a context */
	V8_TO_JS_MARKER,   /* the same of a wrapper in which WebAssembly calls JavaScript */
	V8_TO_WASM_MARKER, /* the same of one in which JavaScript calls WebAssembly */
	V8_TYPE_MODULE,    /* WasmModuleObject */
	V8_TYPE_INSTANCE,  /* WasmInstanceObject, if frames have another object that leads to it */
	V8_SCRIPT_MODULE,  /* of a module's Script: what leads to its bytes */
	V8_BYTECODES,      /* how many there are; 0: their sizes are not known */
	/* The size of each in bytes, a byte each: with operands of one byte, of two, of four. */
	V8_BYTECODE_SIZES,
	V8_WORDS = V8_BYTECODE_SIZES + V8_SCALES * V8_MOST_BYTECODES / 4,
};

/* Kinds of emissions. Tables come in V8_PARTS parts, each of its own kind. */
enum v8_kind { V8_FUNCTION = 1, V8_SCRIPT, V8_CODE, V8_MODULE, V8_WASM, V8_POSITIONS };

/* Tables of a function or code, in the order of their kinds from V8_POSITIONS on. */
enum v8_table_of {
	V8_TABLE_POSITIONS, /* of code of Sparkplug: which instructions are which bytecode's */
	V8_TABLE_BYTECODE,  /* the bytecode of a function that Sparkplug has compiled */
	V8_TABLES,
};

#define V8_NAME_BYTES 511u /* powers of two less one: the most that is emitted */
#define V8_SCRIPT_BYTES 1023u
#define V8_PART_BYTES 1024u /* of a table */
#define V8_PARTS 8u

/* A text; its bytes follow, of a text of two-byte characters two for each. */
struct v8_text {
	unsigned short bytes, wide;
};

enum v8_function_flags {
	V8_IS_BUILTIN = 1, /* it has no script */
};

/* A function; the bytes of its name follow. */
struct v8_function {
	unsigned long long script; /* its key; 0: it has none */
	unsigned int flags;
	struct v8_text name;
};

#define V8_MOST_INLINED 24u /* functions in compiled code */
#define V8_MOST_PLACES 112u

/* Where a function was inlined. */
struct v8_inlined {
	long long
		position; /* in the function that it was inlined into, as in tables of positions */
	int function;     /* which of those that were inlined; -1: the code's own */
	int pad;
};

/* Compiled code; behind it are the keys of the functions that were inlined, and so many struct
 * v8_inlined. */
struct v8_code {
	unsigned int functions, places;
};

/* A part of a table of the function or code with this key: its kind is V8_POSITIONS + the table *
 * V8_PARTS + i, and it has the bytes from i * V8_PART_BYTES on. Part 0 is emitted last. */
struct v8_positions {
	unsigned int bytes; /* of the table; those of this part follow */
};

/* A script; the bytes of its name follow. */
struct v8_script {
	unsigned long long object; /* in the process, tagged */
	unsigned long long source; /* its text, tagged */
	unsigned long long at;     /* address of the text's characters; 0: not known */
	unsigned int length, wide; /* characters of the text; 1: of two bytes */
	unsigned int line_offset;  /* of the text's first line */
	struct v8_text name;
};

#define V8_INSTANCE_WORDS 40u

/* A module of WebAssembly; its key is that of its script. */
struct v8_module {
	unsigned long long managed;                     /* address of what leads to its bytes */
	unsigned long long instance[V8_INSTANCE_WORDS]; /* an instance of it, from its first word */
};

/* An address in code of WebAssembly. */
struct v8_wasm {
	unsigned long long module; /* its key */
	unsigned long long at;     /* an address in the instruction, or right behind it */
	unsigned long long caller; /* the address that the function returns to */
};

/* The second word of a pushed frame: the offset of the bytecode, or this; or of pc in compiled
 * code, whose key is the third word. */
#define V8_NO_OFFSET 0xffffffffu
#define V8_IS_CODE (1ull << 32)
#define V8_IS_EXACT (2ull << 32)    /* of compiled code: it was interrupted there */
#define V8_IS_BASELINE (4ull << 32) /* of compiled code: Sparkplug has compiled it */
#define V8_IS_WASM (8ull << 32)     /* a function of WebAssembly; nothing else is known of it */
#define V8_IS_TO_JS (16ull << 32)   /* a wrapper; nothing else is known of it */
#define V8_IS_TO_WASM (32ull << 32) /* the same */

enum v8_reason {
	V8_UNREADABLE = 1,
	V8_NO_FRAME,
};
#define V8_REASONS                                                                           \
	{                                                                                    \
		"frame of JavaScript unreadable", "frame of JavaScript not found", (void *)0 \
	}

#endif
