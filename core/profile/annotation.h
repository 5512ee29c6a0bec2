/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a profile by source line and by address, for the functions that match an
 * expression: what `fusee report --annotate` prints beside source and instructions. `go tool pprof
 * -list` and -disasm count the same.
 */
#ifndef PROFILE_ANNOTATION_H
#define PROFILE_ANNOTATION_H

#include <stdint.h>

#include "base/buf.h"
#include <fusee/profile.h>

struct annotated_line {
	uint32_t line; /* 0: unknown */
	int64_t flat, cum;
};

struct annotated_address {
	uint32_t mapping; /* of the profile */
	uint64_t address; /* ELF virtual address; of a caller inside its call instruction */
	int64_t flat, cum;
};

/* One function of one source file and one mapping. Texts live as long as the profile. */
struct annotated_function {
	struct fusee_str name, file;
	struct fusee_str library, build_id; /* of the mapping, may be empty */
	uint32_t start_line;                /* 0: unknown */
	int64_t flat, cum;
	struct annotated_line *lines; /* by line */
	uint32_t nlines;
	struct annotated_address
		*addresses; /* by mapping and address; none where it was only inlined */
	uint32_t naddresses;
};

struct annotation {
	struct fusee_str type, unit;
	int64_t total;
	struct annotated_function *functions; /* those with a value, the largest cum first */
	uint32_t n;
};

/* type: a value type of the profile, NULL: its default. 0; -ENOMEM; or -EINVAL with one sentence in
 * error->p: a bad expression, no such type, no such function. */
int annotation_make(struct annotation *, const struct fusee_profile *, const char *regex,
		    const char *type, struct buf *error);
void annotation_free(struct annotation *);
#endif
