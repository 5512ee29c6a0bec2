/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

int pq_write(struct fusee_parquet *w, const struct fusee_bytes *b)
{
	int r = b->error;

	if (!r && b->len)
		r = w->o.write(w->o.arg, b->p, b->len);
	if (!r)
		w->at += b->len;
	return r;
}
