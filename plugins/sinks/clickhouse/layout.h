/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of both tables: their contents, and the types of a server's columns. */
#ifndef CLICKHOUSE_LAYOUT_H
#define CLICKHOUSE_LAYOUT_H

#include <stdbool.h>

#include <fusee/helpers.h>

enum table { STACKS, SAMPLES, TABLES }; /* in the order in which they are sent */

/* The contents of a column: of `samples` .. */
enum samples_field {
	TS,
	DURATION,
	PROFILE,
	SAMPLE_TYPE,
	UNIT,
	PERIOD,
	HOST,
	SERVICE,
	PROCESS,
	NAMESPACE,
	POD,
	CONTAINER,
	PID,
	TID,
	THREAD,
	TRACE,
	SPAN,
	LABELS,
	LABEL_KEY,
	LABEL_VALUE,
	VALUE,
	COUNT,
	STACK,
	STACK_ID,
	PROFILE_ID,
	ROW,
	FIELDS
};

/* .. and of `stacks`. */
enum stacks_field {
	S_ID,
	S_TS,
	S_STACK,
	F_FUNCTION,
	F_FILE,
	F_LINE,
	F_ADDRESS,
	F_MAPPING,
	F_BUILD_ID,
	F_INLINED,
	F_TYPE
};

/* How a value is written. */
enum shape {
	SHAPE_TEXT,
	SHAPE_INT,     /* of `size` bytes */
	SHAPE_SECONDS, /* DateTime */
	SHAPE_TICKS,   /* DateTime64 with `size` digits behind the point */
	SHAPE_UUID,
	SHAPE_UUID_TEXT,
	SHAPE_MAP,   /* labels */
	SHAPE_TEXTS, /* of each label or frame */
	SHAPE_INTS,
};

struct column {
	uint8_t field, shape, size;
	uint8_t nullable; /* a byte before each value: 0, not null */
};

#define LAYOUT_NAME 64 /* bytes of the name of a database or table, at most */
#define LAYOUT_INSERT 2048

/* The columns of a server's table that are filled. */
struct layout {
	struct column at[FIELDS];
	uint32_t n;
	char insert[LAYOUT_INSERT]; /* the statement, as a part of a URL's query */
};

/* Servers from this version on get types that older servers do not have. */
#define LAYOUT_MODERN 2203 /* 22.3 */

/* Whether the name can be in a statement, between backticks and between quotes. */
bool layout_is_name(const char *);
/* The statement that makes a table. version: 1816 is 18.16. keep: seconds until rows are removed;
 * 0: never. The caller frees it; NULL: no memory. */
char *layout_create(enum table, const char *database, const char *name, uint32_t version,
		    uint64_t keep);
/* Reads the lines "name<tab>type" of a server's table. why: a sentence about the error; with 0 the
 * names of columns that the table lacks, or "". 0 or -EBADMSG; *layout has no columns if there are
 * no lines. */
int layout_read(enum table, const char *database, const char *name, struct fusee_str lines,
		struct layout *, char *why, size_t size);
#endif
