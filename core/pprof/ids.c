// SPDX-License-Identifier: Apache-2.0
#include "pprof/internal/ids.h"

#include <errno.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct pprof_id *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int pprof_ids_make(struct pprof_ids *ids, size_t n)
{
	ids->at = calloc(n ? n : 1, sizeof(*ids->at));
	ids->n = 0;
	return ids->at ? 0 : -ENOMEM;
}

int pprof_ids_close(struct pprof_ids *ids)
{
	qsort(ids->at, ids->n, sizeof(*ids->at), compare);
	if (ids->n && !ids->at[0].id)
		return -EINVAL;
	for (size_t i = 1; i < ids->n; i++)
		if (ids->at[i].id == ids->at[i - 1].id)
			return -EINVAL;
	return 0;
}

/* Ids usually count from 1, so element id - 1 is tried first. */
const struct pprof_id *pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
{
	struct pprof_id key = {.id = id};

	if (id - 1 < ids->n && ids->at[id - 1].id == id)
		return &ids->at[id - 1];
	return bsearch(&key, ids->at, ids->n, sizeof(*ids->at), compare);
}
