/* SPDX-License-Identifier: Apache-2.0 */
/* A function's table of positions: which bytecode is of which place in the script's text. */
#ifndef V8_POSITIONS_H
#define V8_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

struct v8_place {
	uint32_t position; /* in the script, from 0 on */
	bool known;
};

/* The place of the bytecode at this offset. The table can be a beginning of it: what is behind that
 * is not known. */
struct v8_place v8_position(const unsigned char *table, uint32_t n, bool complete, uint32_t offset);

#endif
