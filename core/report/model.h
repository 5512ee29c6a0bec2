/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of all reports: a profile, and a base to compare it with, of one value type, with the
 * filters applied and inlined calls expanded. A function is its mapping and its name; where no name
 * is in two mappings, every report counts the same as `go tool pprof`, which knows the name alone.
 */
#ifndef REPORT_MODEL_H
#define REPORT_MODEL_H

#include <regex.h>

#include "base/buf.h"
#include "base/dict.h"
#include "report/report.h"

/* The kind of a function's code. */
enum render_code {
	RENDER_PROGRAM,
	RENDER_LIBRARY,
	RENDER_KERNEL,
	RENDER_RUNTIME,  /* code generated at run time */
	RENDER_LANGUAGE, /* an interpreted program's frames */
	RENDER_REASON,   /* no code: "[truncated: too deep]", "[unknown]" */
	RENDER_LABEL,    /* no code: the value of a label of --by, "process: bb" */
};

/* The variances of a function's sums as random draws: the sum over the samples of the square of
 * what each represents. */
struct render_noise {
	double self, total, base_self, base_total;
};

/* Texts are borrowed from the profiles and not terminated. */
struct render_function {
	struct fusee_str name;     /* "[libc.so.6]" if it is unknown */
	struct fusee_str shown;    /* name, or "name [libc.so.6]" if several mappings have it */
	struct fusee_str file;     /* source file, may be empty */
	struct fusee_str library;  /* path of its mapping, may be empty */
	struct fusee_str build_id; /* of its mapping, may be empty */
	uint32_t module;           /* index into modules */
	uint32_t group;            /* index into groups; 0 but for RENDER_BY_ROW */
	uint32_t start_line;       /* 0 unknown */
	uint32_t code;             /* enum render_code */
	bool is_nameless;          /* the addresses of a mapping that no symbol covers */
	/* pprof's flat and cum; total counts a recursive function once for each stack. */
	int64_t self, total;
	int64_t base_self, base_total;
	struct render_noise noise;
};

enum render_frame_flags {
	RENDER_INLINED = 1, /* into the next frame */
	RENDER_GUESSED = 2,
};

struct render_frame {
	uint32_t function; /* index into functions */
	uint32_t flags;
	uint32_t line; /* in the function's file, 0 unknown */
};

struct render_stack {
	const uint32_t *frames; /* indices into frames, leaf first; of the profile or the model */
	uint32_t n;             /* never 0 */
	uint32_t group;         /* index into groups */
	int64_t value, base;    /* of the profile and of the base; one of them is 0 */
	double noise;           /* variance of value or base */
};

/* A function is identified by its name and its module: a file content, or the source file for code
 * without a file (run-time code, frames of an interpreter). Module 0: neither is known. */
struct render_module {
	struct fusee_str path, build_id;
	bool is_source;
	bool is_main;     /* the target's executable */
	bool shares_name; /* another module has the same base name .. */
	bool shares_path; /* .. and the same path */
	bool in_base;     /* the base has it */
};

/* Samples with the same values of the labels of --by. Group 0: all samples, or no label. */
struct render_group {
	struct fusee_str text; /* "process: bb, thread: io"; RENDER_BY_SET: a JSON object */
	int64_t total, base;
};

struct render_model {
	const struct fusee_profile *profile, *base; /* base: NULL without one */
	struct fusee_str type, unit;                /* "cpu", "nanoseconds" */
	struct render_function *functions;
	struct render_frame *frames; /* each once or a few times: stacks share them */
	struct render_stack *stacks;
	struct render_module *modules;
	struct render_group *groups;
	uint32_t nfunctions, nframes, nstacks, nmodules, ngroups;
	/* Sums of absolute values of all samples, filtered samples included. */
	int64_t total, base_total;
	double noise, base_noise; /* of these sums */
	double z_limit;           /* of render_z_limit(); 0 without a base */
	bool omits;               /* an interpreter's or allocator's own frames are omitted */

	/* private */
	struct render_tables *tables;
};

static inline const struct render_frame *render_frame_at(const struct render_model *m,
							 const struct render_stack *s, uint32_t k)
{
	return &m->frames[s->frames[k]];
}

/* base may be NULL. 0, -ENOMEM, or -EINVAL with a sentence in error->p (a bad regular expression,
 * no such type). */
int render_model_make(struct render_model *, const struct fusee_profile *,
		      const struct fusee_profile *base, const struct render_options *,
		      struct buf *error);
void render_model_free(struct render_model *);
/* The index of the first value type of this name, and of this unit if it is not NULL. */
bool render_find_type(const struct fusee_profile *, struct fusee_str name,
		      const struct fusee_str *unit, uint32_t *type);

/* 100 %: the total of the base if it is not empty, otherwise of the profile. */
int64_t render_percent_of(const struct render_model *);

/* ---- numbers as pprof prints them ---- */

#define RENDER_NUMBER 48 /* bytes that a formatted number needs */

/* "1.23s", "40ms", "12"; to: "auto", a unit ("s"), or the result of render_unit(). */
void render_value(char out[RENDER_NUMBER], int64_t value, struct fusee_str unit, const char *to);
/* " 12.34%", six characters wide. */
void render_percent(char out[RENDER_NUMBER], int64_t value, int64_t total);
/* The unit in which all values from smallest to largest (absolute) are readable. */
void render_unit(char out[RENDER_NUMBER], int64_t smallest, int64_t largest, struct fusee_str unit);

/* ---- text ---- */

#define RENDER_PLACE 128 /* bytes that a place needs */
/* "app.py:42" of a function that no library holds: its source file and first line. Empty if they
 * are not known. It is in text or in the function's texts. */
struct fusee_str render_place(const struct render_function *, char text[RENDER_PLACE]);
/* The name that is printed beside the library or place. It names its module only if another module
 * has the same base name. */
struct fusee_str render_name_beside_place(const struct render_model *,
					  const struct render_function *);
/* Appends text; a control character becomes '?', so that no escape sequence reaches a terminal. */
void render_plain(struct buf *, struct fusee_str);
/* Appends a name; if it has more columns than width, "..." replaces its middle. width 0: no limit.
 */
void render_name(struct buf *, struct fusee_str name, uint32_t width);
/* Only this many bytes of a text are matched. */
#define RENDER_MATCH_MAX 4096
bool render_matches(const regex_t *, struct fusee_str);
/* Compiles an extended regular expression. 0, or -EINVAL with "PREFIXbad regular expression .." in
 * error->p. The caller frees *re with regfree(). */
int render_compile(regex_t *re, const char *prefix, const char *regex, struct buf *error);
/* The columns that a text takes: its number of characters. */
uint32_t render_columns(struct fusee_str);
#endif
