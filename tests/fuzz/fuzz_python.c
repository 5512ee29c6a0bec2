// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/python/codes.c plugins/unwinders/python/text.c plugins/unwinders/python/lines.c plugins/unwinders/python/find.c plugins/unwinders/python/counter.c plugins/unwinders/python/versions.c
// flags: -Iplugins/unwinders/python
// libs:
// clang-format on
// What a Python process may emit, and what a file may say of itself: records of {key, length,
// bytes} are added and symbolized; then the rest is an interpreter's function and a runtime's
// offsets. Places that are found are within the function.
#include "fuzz.h"

#include "codes.h"
#include "find.h"
#include "lines.h"
#include "tables.h"

static void symbolize(void *const *processes, uint64_t key)
{
	const struct python_code *c = python_codes_find(processes, 1, key);
	struct python_lines lines;

	if (!c)
		return;
	if (c->arrived > c->nlines || strlen(c->name) > 4 * PYTHON_NAME_BYTES * 64)
		abort();
	lines = (struct python_lines){c->minor, c->first_line, c->lines, c->arrived};
	for (uint32_t at = 0; at < 64; at++)
		if (python_line(&lines, at) > INT32_MAX)
			abort();
	python_line(&lines, PYTHON_NO_INSTRUCTION);
}

static void emissions(const uint8_t *data, size_t size)
{
	void *processes = NULL;

	while (size >= 3) {
		uint64_t key = data[0] & 7, n = data[1] | (uint64_t)(data[2] & 15) << 8;
		uint8_t *copy; /* so that a read behind the end is seen */

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		copy = malloc(n ? n : 1);
		memcpy(copy, data, n);
		python_codes_add(&processes, 1, key, copy, n);
		free(copy);
		symbolize(&processes, key);
		data += n;
		size -= n;
	}
	python_codes_remove(&processes, 1);
	python_codes_free(&processes);
}

static void places(const uint8_t *data, size_t size)
{
	static const uint32_t minors[] = {8, 9, 10, 11, 12};
	uint32_t words[PYTHON_WORDS], n = (uint32_t)size;
	struct python_places f;
	uint8_t *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	for (int i = 0; i < 6; i++) {
		if (i < 5)
			python_version_words(3u << 24 | minors[i] << 16, words);
		else if (python_debug_words(copy, n, words))
			break;
		python_find_places((struct fusee_code){copy, n, 0}, words, &f);
		if (f.prologue > n || f.epilogue > f.epilogue_end || f.epilogue_end > n ||
		    (f.place & ~PYTHON_BELOW_FP) > PYTHON_MOST_FRAME + 8)
			abort();
		for (int k = 0; k < PYTHON_RETURNS; k++)
			if (f.unlinked[k] > n)
				abort();
	}
	python_find_counter((struct fusee_code){copy, n, n}, 0);
	python_find_counter((struct fusee_code){copy, n, n}, 1);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	emissions(data, size);
	places(data, size);
	return 0;
}
