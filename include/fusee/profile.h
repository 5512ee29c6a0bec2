/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/profile.h - the profile, which the core builds and sinks receive.
 *
 * A profile is a dictionary: each distinct string, function, mapping, location and stack is an
 * element of a table, and other elements refer to it by its index. Element 0 of these five tables
 * is empty, so that a zeroed index means "none". A table is an array whose `stride` is the size of
 * an element as the writer of the table knew it. Elements can grow at their end, so step by stride,
 * with FUSEE_AT(), and never by sizeof. Structs marked FROZEN never grow.
 *
 * A function that receives a profile may read it until it returns, and does not free it. No thread
 * changes the profile meanwhile.
 */
#ifndef FUSEE_PROFILE_H
#define FUSEE_PROFILE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text or bytes, not terminated. Text is UTF-8. FROZEN */
struct fusee_str {
	const char *p;
	uint64_t len;
};

/* An array of n elements of `stride` bytes each. FROZEN */
struct fusee_table {
	const void *at; /* may be NULL if n is 0 */
	uint32_t n, stride;
};

/* A label with the text str, or if str.p is NULL with the number num in `unit`. FROZEN */
struct fusee_label {
	struct fusee_str key, str, unit;
	int64_t num; /* with a text: 0, or FUSEE_LABEL_OWN */
};

/* The sampled program itself has given its thread this label, so it may have very many values. */
#define FUSEE_LABEL_OWN 1

/* The addresses x with lo <= x < hi. FROZEN */
struct fusee_range {
	uint64_t lo, hi;
};

/* Below, every uint32_t that is neither a count nor flags is an index; texts are indices of
 * `strings`. */

struct fusee_value_type {
	uint32_t type, unit; /* "cpu", "nanoseconds" */
};

enum fusee_frame_flags {
	FUSEE_FRAME_ASYNC = 1,   /* its caller in the stack does not call it, but awaits it */
	FUSEE_FRAME_BUILTIN = 2, /* a function of the language that has no source in it */
	/* A part of the language's run time, which views omit unless all frames are requested. */
	FUSEE_FRAME_HIDDEN = 4,
};

struct fusee_function {
	uint32_t name;        /* demangled; equals system_name if that is not mangled */
	uint32_t system_name; /* the symbol's name */
	uint32_t file;        /* source file */
	uint32_t start_line;  /* from 1; 0: unknown */
	uint32_t flags;       /* enum fusee_frame_flags: functions with other flags are others */
};

enum fusee_mapping_flags {
	FUSEE_MAPPING_KERNEL = 1,     /* the kernel or one of its modules */
	FUSEE_MAPPING_MAIN = 2,       /* the target's executable */
	FUSEE_MAPPING_JIT = 4,        /* code generated at run time: `path` is not a file */
	FUSEE_MAPPING_FUNCTIONS = 8,  /* every location of the mapping has a function name */
	FUSEE_MAPPING_FILENAMES = 16, /* every location has a source file */
	FUSEE_MAPPING_LINES = 32,     /* every location has a line */
	FUSEE_MAPPING_INLINES = 64,   /* every location has its inlined frames */
	FUSEE_MAPPING_LIBRARY = 128,  /* a shared library */
};

/* A file content, the kernel, or JIT code. Addresses of locations are ELF virtual addresses of the
 * file: start is 0, limit ~0 and offset 0, except in a profile that another program made. */
struct fusee_mapping {
	uint32_t path, build_id, flags, pad; /* build_id: text, lower-case hex */
	uint64_t start, limit, offset;
};

enum fusee_line_flags {
	FUSEE_LINE_INLINED = 1, /* the function is inlined into the function of the next line */
};

/* A source frame of a location. */
struct fusee_line {
	uint32_t function, line, column, flags; /* line, column: from 1; 0: unknown */
};

enum fusee_location_flags {
	FUSEE_LOCATION_GUESSED = 1, /* the unwinder has guessed this frame */
	FUSEE_LOCATION_STUB = 2,    /* no symbol is known: the name is module+0xoffset */
	FUSEE_LOCATION_REASON = 4,  /* no code, but a reason: "[truncated: stack not readable]" */
	/* An interpreter's own code: reports omit it in stacks that have frames of its language. */
	FUSEE_LOCATION_INTERPRETER = 8,
};

/* A code address. Its source frames are lines[first_line] to lines[first_line + nlines - 1],
 * innermost first. nlines 0: a reader that has the file of the mapping's build_id finds them (the
 * option `names` of sinks). */
struct fusee_location {
	/* frame_type: text: "native", "kernel", "go"; language: of an interpreter's own code the
	 * frame_type of the functions that it runs, 0: not known */
	uint32_t mapping, frame_type, flags, first_line, nlines, language;
	uint64_t address; /* ELF virtual address; of a caller: an address in its call instruction */
};

/* The locations are stack_locations[first] to stack_locations[first + n - 1], leaf first. */
struct fusee_stack {
	uint32_t first, n;
};

struct fusee_sample {
	uint32_t stack, first_label, nlabels; /* labels[first_label] and the following */
	uint32_t pid, tid;                    /* 0: samples of several were merged */
	uint32_t ntimes; /* times[first_time] and the following; 0: none are kept */
	uint64_t first_time;
	uint64_t trace_id[2], span_id; /* 0: none */
};

struct fusee_profile {
	uint32_t size, flags;
	uint32_t kind;                     /* text: the sampler, "cpu", "off_cpu" or "alloc" */
	uint32_t default_type;             /* index into types */
	uint32_t period_type, period_unit; /* texts */
	int64_t period; /* of the base rate; values are sums of weights, not counts x period */
	uint64_t start_ns, duration_ns; /* start: CLOCK_REALTIME */
	uint8_t id[16];                 /* equal at each attempt: backends can drop duplicates */
	struct fusee_table strings;     /* struct fusee_str */
	struct fusee_table functions, mappings, lines, locations;
	struct fusee_table stack_locations; /* uint32_t */
	struct fusee_table stacks;
	struct fusee_table types; /* struct fusee_value_type */
	struct fusee_table samples;
	struct fusee_table labels;   /* struct fusee_label */
	struct fusee_table times;    /* uint64_t, CLOCK_REALTIME ns; a sample's are in order */
	struct fusee_table values;   /* int64_t: sample i has values[i * types.n] and following */
	struct fusee_table resource; /* fusee_label: the target's labels */
	/* fusee_label: key is the reason, str "lost" or "truncated", num the number of samples */
	struct fusee_table losses;
	struct fusee_table comments; /* fusee_str: for human readers */
};

/* Element i of a table whose elements begin with a T, as const T *. */
#define FUSEE_AT(T, table, i) \
	((const T *)((const char *)(table).at + (uint64_t)(i) * (table).stride))

#ifdef __cplusplus
}
#endif
#endif
