// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/symbolizer/kallsyms.c core/symbolizer/word_texts.c core/base/buf.c core/base/arena.c core/base/dict.c
// libs:
// clang-format on
// The kernel's symbols, whatever they say: a name that is found starts at or before its address.
#include "fuzz.h"

#include "symbolizer/internal/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	struct kallsyms *k;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!kallsyms_load(&k, path)) {
		for (uint64_t addr = 0, step = 1; step; addr += step, step *= 3) {
			const char *module = NULL, *name;
			uint64_t start;

			name = kallsyms_lookup(k, addr, &start, &module);
			if (name && (!module || start > addr || !*name))
				abort();
			if (addr > UINT64_MAX - step * 3 || step > UINT64_MAX / 3)
				break;
		}
		if (!kallsyms_drop_text(k)) {
			const char *module;
			uint64_t start;

			(void)kallsyms_lookup(k, UINT64_MAX, &start, &module);
			(void)kallsyms_is_inside_module(k, UINT64_MAX / 2);
		}
		kallsyms_free(k);
	}
	close(fd);
	return 0;
}
