// SPDX-License-Identifier: Apache-2.0
// sources: core/symbols/frames.c
// libs:
// Any bytes as .eh_frame and as .debug_frame: the search ends inside of them, and where it says the
// FDE is there is one.
#include "fuzz.h"

#include "symbols/frames.h"

static void find(const char *p, uint64_t len, uint64_t pc)
{
	struct frames_fde row;

	if (!frames_find((struct fusee_str){p, len}, 0x1000, pc, &row) &&
	    (row.at > len || len - row.at < 8))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t pc;
	char *copy;

	if (size < 8)
		return 0;
	memcpy(&pc, data, 8);
	data += 8;
	size -= 8;
	copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	find(copy, size, pc);
	find(copy, size, pc & 0xffffff);
	if (!frames_from_debug(copy, size))
		find(copy, size, pc);
	free(copy);
	return 0;
}
