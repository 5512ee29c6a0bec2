/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a profile by source line and by address, for the functions that match an
 * expression: what `fusee report --annotate` prints beside source and instructions. `go tool pprof
 * -list` and -disasm count the same.
 */
#ifndef ANNOTATION_ANNOTATION_H
#define ANNOTATION_ANNOTATION_H

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

/* type: a value type of the profile, NULL: its default. 0; -ENOMEM; or with one sentence in
 * error->p -EINVAL: a bad expression, no such type; or -ENOENT: no such function. After 0 and
 * -ENOENT *a is to be freed. */
int annotation_make(struct annotation *, const struct fusee_profile *, const char *regex,
		    const char *type, struct buf *error);
/* Subtracts the values of base, by function and line; by address too where the build is the same,
 * and where it is not the function has no addresses any more. Functions that only base has are
 * added. The total is base's. 0 or -ENOMEM, after which *a is still to be freed. */
int annotation_subtract(struct annotation *a, const struct annotation *base);
void annotation_free(struct annotation *);
#endif
