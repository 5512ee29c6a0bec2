/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table that the python unwinder makes of a version: python_words VERSION
 * [DEBUG_OFFSETS]; the second is a file with the bytes of _PyRuntime. */
#include <stdio.h>
#include <stdlib.h>

#include "tables.h"

int main(int argc, char **argv)
{
	unsigned char offsets[PYTHON_DEBUG_OFFSETS];
	uint32_t w[PYTHON_WORDS];
	FILE *f;
	int err;

	if (argc < 2)
		return 2;
	if (argc > 2) {
		f = fopen(argv[2], "rb");
		if (!f || fread(offsets, sizeof(offsets), 1, f) != 1)
			return 2;
		err = python_debug_words(offsets, sizeof(offsets), w);
	} else {
		err = python_version_words((uint32_t)strtoul(argv[1], NULL, 0), w);
	}
	if (err)
		return 1;
	for (uint32_t i = 0; i < PYTHON_WORDS; i++)
		printf("%u\n", w[i]);
	return 0;
}
