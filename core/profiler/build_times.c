/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_times.h"

#include <errno.h>
#include <stdlib.h>

#include "pipeline/collector.h"

/* The row of build_sort_times() in which the time is. */
static uint32_t row_of(const struct collector *c, const struct collected_time *t)
{
	return t->ids ? c->samples.n + t->ids : t->sample;
}

int build_sort_times(const struct collector *c, uint64_t **times, uint32_t **first)
{
	const struct collected_time *t = (const struct collected_time *)(const void *)c->times.p;
	size_t n = c->times.len / sizeof(*t);
	uint32_t *begin, rows = c->samples.n + c->ids.n;

	*times = n ? calloc(n, sizeof(**times)) : NULL;
	*first = begin = n ? calloc((size_t)rows + 2, sizeof(*begin)) : NULL;
	if (!n)
		return 0;
	if (!*times || !begin || n > UINT32_MAX) {
		free(*times);
		free(begin);
		*times = NULL;
		*first = NULL;
		return -ENOMEM;
	}
	/* begin[id + 1] counts up from the first time of the sample to that of the next */
	for (size_t i = 0; i < n; i++)
		begin[row_of(c, &t[i]) + 2]++;
	for (uint32_t i = 2; i < rows + 2; i++)
		begin[i] += begin[i - 1];
	for (size_t i = 0; i < n; i++)
		(*times)[begin[row_of(c, &t[i]) + 1]++] = c->start_wall_ns + t[i].time_ns -
							  c->start_ns;
	return 0;
}
