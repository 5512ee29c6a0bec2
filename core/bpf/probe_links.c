/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of many places that are one link. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "bpf/internal/sampler_state.h"

int probe_links_add(struct probe_links *links, int fd)
{
	if (fd < 0)
		return fd;
	if (!ARRAY_ROOM(links->many, links->nmany, links->many_cap)) {
		close(fd);
		return -ENOMEM;
	}
	links->many[links->nmany++] = fd;
	return 0;
}

uint64_t probe_links_cookie(const struct probe_point *p, uint64_t number)
{
	return p->program == PROBE_ALLOC ? ALLOC_COOKIE(p->kind, p->bytes) : number;
}

/* Memory that is followed may have its return addresses replaced, which no exception passes. */
static bool is_of(const struct probe_point *p, enum uprobe_link_type type, enum probe_program which)
{
	bool throws = p->program == PROBE_ALLOC && ALLOC_KIND(p->kind) == ALLOC_THROWS;

	return which == PROBE_THROWS ? throws
				     : p->program == which && (type != UPROBE_SESSION || !throws);
}

int probe_links_put(enum uprobe_link_type type, int program, const struct probe_points *points,
		    enum probe_program which, const struct probe_target *to)
{
	uint64_t *words = calloc(points->n * 3, sizeof(*words)), *cookies = words + points->n,
		 *counters = cookies + points->n;
	struct uprobe_places at = {.offsets = words, .cookies = cookies, .counters = counters};
	int r = words || !points->n ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < points->n; i++) {
		const struct probe_point *p = &points->at[i];

		if (!is_of(p, type, which))
			continue;
		words[at.n] = p->offset;
		cookies[at.n] = probe_links_cookie(p, i + 1);
		counters[at.n++] = p->semaphore;
	}
	if (!r && at.n)
		r = probe_links_add(to->links,
				    uprobe_link_create(type, program, to->pid, to->path, &at));
	free(words);
	return r;
}
