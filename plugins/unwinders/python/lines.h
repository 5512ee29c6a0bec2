/* SPDX-License-Identifier: Apache-2.0 */
/* The line tables of code objects: Objects/lnotab_notes.txt and, from 3.11 on,
 * Objects/locations.md of CPython's sources describe them. */
#ifndef PYTHON_LINES_H
#define PYTHON_LINES_H

#include <stdint.h>

/* A code object's table: co_lnotab to 3.9, co_linetable from 3.10 on. The bytes can be anything. */
struct python_lines {
	uint32_t minor; /* of the version: 8 for 3.8 */
	uint32_t first_line;
	const unsigned char *at;
	uint32_t n; /* bytes; fewer than the complete table are allowed */
};

/* The line of an instruction, 0: it has none, or is behind the end of the table. instruction: from
 * 3.10 on its number, before that the number of its first byte. */
uint32_t python_line(const struct python_lines *lines, uint32_t instruction);

#endif
