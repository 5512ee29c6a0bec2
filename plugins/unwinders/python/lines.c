/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

/* The line, or 0 if it is not positive: such lines are not known. */
static uint32_t known(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.8, 3.9: pairs of a difference of addresses, unsigned, and a difference of lines, signed. The
 * line of the last pair holds for all bytecode behind it. */
static uint32_t line_of_pairs(const struct python_lines *l, uint32_t at)
{
	int64_t line = l->first_line;
	uint64_t addr = 0;

	for (uint32_t i = 0; i + 2 <= l->n; i += 2) {
		addr += l->at[i];
		if (addr > at)
			break;
		line += (int8_t)l->at[i + 1];
	}
	return known(line);
}

/* 3.10: pairs of a number of bytes, unsigned, and a difference of lines, signed; -128: these bytes
 * have no line. */
static uint32_t line_of_rows(const struct python_lines *l, uint64_t at)
{
	int64_t line = l->first_line;
	uint64_t end = 0;

	for (uint32_t i = 0; i + 2 <= l->n; i += 2) {
		int8_t by = (int8_t)l->at[i + 1];

		end += l->at[i];
		if (by != -128)
			line += by;
		if (at < end)
			return by == -128 ? 0 : known(line);
	}
	return 0;
}

/* 3.11 and later: decodes a number of 6 bits a byte, the lowest first; bit 6 is set if more
 * follow. */
static uint32_t varint(const struct python_lines *l, uint32_t *i)
{
	uint32_t value = 0, shift = 0, byte;

	do {
		byte = *i < l->n ? l->at[(*i)++] : 0;
		if (shift < 32)
			value |= (byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return value;
}

static int64_t signed_varint(const struct python_lines *l, uint32_t *i)
{
	uint32_t value = varint(l, i);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Codes of an entry: Include/cpython/code.h. */
enum { ONE_LINE0 = 10, ONE_LINE2 = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

/* 3.11 and later. The first byte of an entry: bit 7 is 1, then 4 bits of code, and 3 bits of the
 * number of instructions - 1. What follows depends on the code. */
static uint32_t line_of_entries(const struct python_lines *l, uint32_t at)
{
	int64_t line = l->first_line;
	uint64_t end = 0;

	for (uint32_t i = 0; i < l->n;) {
		uint32_t first = l->at[i++], code = first >> 3 & 15;

		end += (first & 7) + 1;
		if (code == NO_COLUMNS || code == LONG)
			line += signed_varint(l, &i);
		else if (code >= ONE_LINE0 && code <= ONE_LINE2)
			line += code - ONE_LINE0;
		if (at < end)
			return code == NONE ? 0 : known(line);
		if (code == LONG) {
			varint(l, &i);
			varint(l, &i);
			varint(l, &i);
		} else if (code < NO_COLUMNS) {
			i += code < ONE_LINE0 ? 1 : 2;
		}
	}
	return 0;
}

uint32_t python_line(const struct python_lines *lines, uint32_t instruction)
{
	if (lines->minor >= 11)
		return line_of_entries(lines, instruction);
	if (lines->minor == 10)
		return line_of_rows(lines, 2ull * instruction);
	return line_of_pairs(lines, instruction);
}
