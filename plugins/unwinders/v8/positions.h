/* SPDX-License-Identifier: Apache-2.0 */
/* A function's table of positions: which bytecode is of which place in the script's text. */
#ifndef V8_POSITIONS_H
#define V8_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

struct v8_place {
	uint32_t position; /* in the script, from 0 on */
	int inlined;       /* in compiled code: which of its struct v8_inlined; -1: it is not */
	bool known;
};

/* The place that a number in a table is. */
struct v8_place v8_place_of(uint64_t raw);

struct v8_table {
	const unsigned char *at;
	uint32_t n;
	bool complete; /* or it is a beginning: what is behind that is not known */
};

/* The place of the bytecode at this offset, or of the call in compiled code. */
struct v8_place v8_position(const struct v8_table *, uint32_t offset);
/* Of an instruction in compiled code which is none of those that have a place: in the function that
 * both the last place before it and the next are in. Otherwise it is not known. */
struct v8_place v8_position_between(const struct v8_table *, uint32_t offset);

#endif
