/* SPDX-License-Identifier: Apache-2.0 */
#include "process/call.h"

#include <stdint.h>

/* Is this, of so many bytes, a call through a register or memory? */
static bool is_indirect(const unsigned char *b, uint32_t len)
{
	uint32_t mode = b[1] >> 6, base = b[1] & 7, n = 2;

	if (b[0] != 0xff || (b[1] & 0x38) != 0x10)
		return false;
	if (base == 4 && mode != 3) {
		n++;
		base = len > 2 ? b[2] & 7 : 0;
	}
	if (mode == 2 || (!mode && base == 5))
		n += 4;
	return n + (mode == 1) == len;
}

bool call_ends(const unsigned char code[CALL_BYTES])
{
	for (uint32_t len = 2; len <= CALL_BYTES; len++)
		if (is_indirect(code + CALL_BYTES - len, len))
			return true;
	return code[CALL_BYTES - 5] == 0xe8;
}
