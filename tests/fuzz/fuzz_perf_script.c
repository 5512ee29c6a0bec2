/* SPDX-License-Identifier: Apache-2.0 */
// sources: core/import/perf_script.c core/profile/build*.c core/loss/loss.c
// sources: core/base/[!al]*.c core/base/arena.c
/* Any text as the output of perf script: a profile that is consistent, or a sentence. */
#include "fuzz.h"

#include "import/internal/perf_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_profile *p;
	struct builder *b;
	const char *error;

	if (builder_new(&b))
		abort();
	if (perf_script_read(b, (const char *)data, size, &error)) {
		if (!*error)
			abort();
	} else if (builder_finish(b, &p)) {
		abort();
	}
	builder_free(b);
	return 0;
}
