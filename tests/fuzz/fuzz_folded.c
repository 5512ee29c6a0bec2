/* SPDX-License-Identifier: Apache-2.0 */
// sources: core/import/folded.c core/profile/build*.c core/loss/loss.c
// sources: core/base/[!al]*.c core/base/arena.c
/* Any text as folded stacks: a profile that is consistent, or a sentence. */
#include <stdio.h>
#include <stdlib.h>

#include "import/internal/folded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_profile *p;
	struct builder *b;
	const char *error;

	folded_is((const char *)data, size);
	if (builder_new(&b))
		abort();
	if (folded_read(b, (const char *)data, size, &error)) {
		if (!*error)
			abort();
	} else if (builder_finish(b, &p)) {
		abort();
	}
	builder_free(b);
	return 0;
}
