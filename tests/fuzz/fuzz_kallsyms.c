// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/symbolizer/kallsyms.c core/base/buf.c core/base/arena.c core/base/dict.c
// libs:
// clang-format on
// The kernel's symbols, whatever they say: a name that is found starts at or before its address.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/internal/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct kallsyms *k;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
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
		kallsyms_free(k);
	}
	close(fd);
	return 0;
}
