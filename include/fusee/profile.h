/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/profile.h - the profile: what samplers fill, sinks take and reports read.
 *
 * Dictionary shape: each distinct thing stands once in a table, and others name it by its index.
 * Index 0 of strings, functions, mappings, locations and stacks is the empty element, so that a
 * zeroed field means "none". Tables are plain arrays; `stride` is the size of one element as the
 * writer knew it, so that elements can grow at their end: always step by stride, never by sizeof.
 * Structs marked FROZEN never grow.
 *
 * Whoever is handed a profile borrows it until the call returns, unless the call says otherwise.
 */
#ifndef FUSEE_PROFILE_H
#define FUSEE_PROFILE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text or bytes: not terminated, UTF-8 where it is text. FROZEN */
struct fusee_str {
	const char *p;
	uint64_t len;
};

/* FROZEN */
struct fusee_table {
	const void *at;
	uint32_t n, stride;
};

/* A label: text when str.p is set, else the number num in `unit`. FROZEN */
struct fusee_label {
	struct fusee_str key, str, unit;
	int64_t num;
};

/* Half open: lo <= x < hi. FROZEN */
struct fusee_range {
	uint64_t lo, hi;
};

/* All uint32_t below that are not counts or flags are indices; texts index `strings`. */

struct fusee_value_type {
	uint32_t type, unit; /* "cpu", "nanoseconds" */
};

struct fusee_function {
	uint32_t name;        /* demangled; equals system_name where there is nothing to demangle */
	uint32_t system_name; /* the linker's name */
	uint32_t file;        /* source file */
	uint32_t start_line;  /* 1-based, 0 unknown */
};

enum fusee_mapping_flags {
	FUSEE_MAPPING_KERNEL = 1,     /* the kernel or one of its modules */
	FUSEE_MAPPING_MAIN = 2,       /* the target's executable */
	FUSEE_MAPPING_JIT = 4,        /* code made at run time: `path` is not a file */
	FUSEE_MAPPING_FUNCTIONS = 8,  /* every location in it carries a function name */
	FUSEE_MAPPING_FILENAMES = 16, /* ... a source file */
	FUSEE_MAPPING_LINES = 32,     /* ... a line */
	FUSEE_MAPPING_INLINES = 64,   /* ... its inlined frames */
	FUSEE_MAPPING_LIBRARY = 128,  /* a shared library */
};

/* One file content (or the kernel, or JIT code). Addresses are ELF virtual addresses of the file,
 * so start is 0, limit ~0 and offset 0 unless a foreign profile said otherwise. */
struct fusee_mapping {
	uint32_t path, build_id, flags, pad; /* build_id: lower-case hex */
	uint64_t start, limit, offset;
};

enum fusee_line_flags {
	FUSEE_LINE_INLINED = 1, /* this function was inlined into the next line's */
};

/* One source frame of a location. */
struct fusee_line {
	uint32_t function, line, column, flags;
};

enum fusee_location_flags {
	FUSEE_LOCATION_GUESSED = 1, /* this frame was guessed by the unwinder */
	FUSEE_LOCATION_STUB = 2,    /* the name is module+0xoffset: no symbol is known */
	FUSEE_LOCATION_REASON = 4,  /* not code: "[truncated: stack not readable]" and the like */
};

/* One code address; lines first_line .. first_line + nlines - 1, innermost first. */
struct fusee_location {
	/* frame_type: "native", "kernel", "go" .. */
	uint32_t mapping, frame_type, flags, first_line, nlines, pad;
	uint64_t address; /* ELF virtual address; of a caller: inside its call instruction */
};

/* Locations stack_locations[first .. first + n), leaf first. */
struct fusee_stack {
	uint32_t first, n;
};

struct fusee_sample {
	uint32_t stack, first_label, nlabels; /* into labels */
	uint32_t pid, tid;                    /* 0: merged over several */
	uint32_t ntimes;                      /* timestamps, if kept: times[first_time ..] */
	uint64_t first_time;
	uint64_t trace_id[2], span_id; /* zero: none */
};

struct fusee_profile {
	uint32_t size, flags;
	uint32_t kind;         /* string: "cpu", "off_cpu", "alloc": one sampler's output */
	uint32_t default_type; /* index into types */
	uint32_t period_type, period_unit; /* strings */
	int64_t period; /* the base rate's; values are sums of weights, not counts x period */
	uint64_t start_ns, duration_ns; /* CLOCK_REALTIME */
	uint8_t id[16];                 /* stable across retries: lets a backend drop duplicates */
	struct fusee_table strings;     /* struct fusee_str */
	struct fusee_table functions, mappings, lines, locations;
	struct fusee_table stack_locations; /* uint32_t */
	struct fusee_table stacks;
	struct fusee_table types; /* struct fusee_value_type */
	struct fusee_table samples;
	struct fusee_table labels;   /* struct fusee_label */
	struct fusee_table times;    /* uint64_t, CLOCK_REALTIME ns */
	struct fusee_table values;   /* int64_t: sample i's are values[i * types.n .. ] */
	struct fusee_table resource; /* fusee_label: the target's labels */
	struct fusee_table losses; /* fusee_label: reason -> number of samples that are not here, or
				      not whole */
	struct fusee_table comments; /* fusee_str: for humans */
};

/* Element i of a table whose elements begin with type T. */
#define FUSEE_AT(T, table, i) \
	((const T *)((const char *)(table).at + (uint64_t)(i) * (table).stride))

#ifdef __cplusplus
}
#endif
#endif
