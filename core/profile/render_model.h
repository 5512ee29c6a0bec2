/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all reports are made of: a profile (and a base to compare it with) with one value type
 * chosen, the filters applied, inlined calls expanded, and functions told apart by name as pprof
 * does it. So every report counts the same, and the same as `go tool pprof`.
 */
#ifndef PROFILE_RENDER_MODEL_H
#define PROFILE_RENDER_MODEL_H

#include <regex.h>

#include "base/buf.h"
#include "base/dict.h"
#include "profile/render.h"

/* Where a function's code lives. */
enum render_code {
	RENDER_PROGRAM,
	RENDER_LIBRARY,
	RENDER_KERNEL,
	RENDER_RUNTIME, /* JIT code, an interpreter's frames */
	RENDER_REASON,  /* no code: "[truncated: too deep]", "[unknown]" */
};

/* Texts live as long as the profiles; they are not terminated. */
struct render_function {
	struct fusee_str name;    /* "[libc.so.6]" where none is known */
	struct fusee_str file;    /* source file, may be empty */
	struct fusee_str library; /* path of the mapping that it was first seen in, may be empty */
	uint32_t start_line;      /* 0 unknown */
	uint32_t code;            /* enum render_code */
	int64_t self, total; /* flat and cum; a recursive function counts once a stack in total */
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
	int64_t total, base_total; /* of all samples, also of those that a filter took away;
				      absolute values */

	/* the rest is the model's own */
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

/* What 100 % is: the base's total where there is a base that is not empty. */
int64_t render_percent_of(const struct render_model *);

/* ---- numbers as pprof prints them ---- */

#define RENDER_NUMBER 48 /* bytes that a formatted number needs */

/* "1.23s", "40ms", "12"; to: "auto", or a unit ("s"), or the one render_unit() chose. */
void render_value(char out[RENDER_NUMBER], int64_t value, struct fusee_str unit, const char *to);
/* " 12.34%", six characters wide. */
void render_percent(char out[RENDER_NUMBER], int64_t value, int64_t total);
/* The one unit in which all values from smallest to largest (absolute) can be read. */
void render_unit(char out[RENDER_NUMBER], int64_t smallest, int64_t largest, struct fusee_str unit);

/* ---- text ---- */

const char *render_base_name(struct fusee_str path, uint32_t *len);
/* Appends text without what a terminal would obey: a control character becomes '?'. */
void render_plain(struct buf *, struct fusee_str);
/* Appends a name of at most `width` columns, cut in its middle with "..."; 0: whole. */
void render_name(struct buf *, struct fusee_str name, uint32_t width);
/* A text that is longer than RENDER_MATCH_MAX is looked at up to there. */
#define RENDER_MATCH_MAX 4096
bool render_matches(const regex_t *, struct fusee_str);
/* How many columns a text takes: its characters. */
uint32_t render_columns(struct fusee_str);
/* Appends "text" with its quotes, fit for JSON and for a <script> of a page. */
void render_json_string(struct buf *, struct fusee_str);
#endif
