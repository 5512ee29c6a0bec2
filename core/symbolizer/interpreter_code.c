// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/interpreter_code.h"

#include <stddef.h>

const char *interpreter_code_at(const struct claims *c, const struct file *f, uint64_t vaddr)
{
	const char *of_file = NULL;

	for (uint32_t u = 0; f->claimed && u < FILES_MAX_UNWINDERS; u++)
		for (uint32_t i = 0; f->slabs[u] && i < f->slabs[u]->nclaims; i++) {
			const struct inspection_claim *l = &f->slabs[u]->claims[i];

			if (vaddr >= l->lo && vaddr < l->hi)
				return claims_frame_type(c, u);
			if (l->flags & FUSEE_CLAIM_INTERPRETER)
				of_file = claims_frame_type(c, u);
		}
	return of_file;
}
