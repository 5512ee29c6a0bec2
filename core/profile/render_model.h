/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of all reports: a profile, and a base to compare it with, of one value type, with the
 * filters applied and inlined calls expanded. Functions are distinguished by name, as pprof does,
 * so that every report counts the same as `go tool pprof`.
 */
#ifndef PROFILE_RENDER_MODEL_H
#define PROFILE_RENDER_MODEL_H

#include <regex.h>

#include "base/buf.h"
#include "base/dict.h"
#include "profile/render.h"

/* The kind of a function's code. */
enum render_code {
	RENDER_PROGRAM,
	RENDER_LIBRARY,
	RENDER_KERNEL,
	RENDER_RUNTIME, /* JIT code, an interpreter's frames */
	RENDER_REASON,  /* no code: "[truncated: too deep]", "[unknown]" */
};

/* Texts are borrowed from the profiles and not terminated. */
struct render_function {
	struct fusee_str name;    /* "[libc.so.6]" if it is unknown */
	struct fusee_str file;    /* source file, may be empty */
	struct fusee_str library; /* path of the first mapping with it, may be empty */
	uint32_t start_line;      /* 0 unknown */
	uint32_t code;            /* enum render_code */
	/* pprof's flat and cum; total counts a recursive function once for each stack. */
	int64_t self, total;
	int64_t base_self, base_total;
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
	uint32_t first, n;   /* frames, leaf first; n is never 0 */
	int64_t value, base; /* of the profile and of the base; one of them is 0 */
};

struct render_model {
	const struct fusee_profile *profile, *base; /* base: NULL without one */
	struct fusee_str type, unit;                /* "cpu", "nanoseconds" */
	struct render_function *functions;
	struct render_frame *frames;
	struct render_stack *stacks;
	uint32_t nfunctions, nframes, nstacks;
	/* Sums of absolute values of all samples, filtered samples included. */
	int64_t total, base_total;

	/* private */
	struct dict names;
	struct buf function_buf, frame_buf, stack_buf;
	char **kept;
	uint32_t nkept;
};

/* base may be NULL. 0, -ENOMEM, or -EINVAL with a sentence in error->p (a bad regular expression,
 * no such type). */
int render_model_make(struct render_model *, const struct fusee_profile *,
		      const struct fusee_profile *base, const struct render_options *,
		      struct buf *error);
void render_model_free(struct render_model *);

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

const char *render_base_name(struct fusee_str path, uint32_t *len);
/* Appends text; a control character becomes '?', so that a terminal obeys nothing. */
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
/* Appends "text" with quotes, escaped for JSON and for a <script> of a page. */
void render_json_string(struct buf *, struct fusee_str);
#endif
