/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/probe_links.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

/* ---- probes of many places that are one link ---- */

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

uint64_t probe_links_number(const struct probe_point *p, size_t i)
{
	return p->number ? p->number : i + 1;
}

uint64_t probe_links_cookie(const struct probe_point *p, uint64_t number)
{
	return p->program == PROBE_ALLOC ? ALLOC_COOKIE(p->kind, p->bytes) : number;
}

/* Memory that is followed may have its return addresses replaced, which no exception passes. */
static bool is_of(const struct probe_point *p, const struct probe_linked *l)
{
	bool throws = p->program == PROBE_ALLOC && ALLOC_KIND(p->kind) == ALLOC_THROWS;

	return l->of == PROBE_THROWS
		       ? throws
		       : p->program == l->of && (l->type != UPROBE_SESSION || !throws);
}

int probe_links_put(const struct probe_linked *l, const struct probe_points *points,
		    const struct probe_where *to)
{
	uint64_t *words = calloc(points->n * 3, sizeof(*words)), *cookies = words + points->n,
		 *counters = cookies + points->n;
	struct uprobe_places at = {
		.offsets = words, .cookies = cookies, .counters = counters, .returns = l->returns};
	int r = words || !points->n ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < points->n; i++) {
		const struct probe_point *p = &points->at[i];

		if (!is_of(p, l))
			continue;
		words[at.n] = p->offset;
		cookies[at.n] = probe_links_cookie(p, probe_links_number(p, i));
		counters[at.n++] = p->semaphore;
	}
	if (!r && at.n)
		r = probe_links_add(
			to->links, uprobe_link_create(l->type, l->program, to->pid, to->path, &at));
	free(words);
	return r;
}

/* ---- what says that they have ended ---- */

/* An event that counts nothing. Without a ring poll() would always say that its thread has ended.
 */
int probe_links_watch(struct probe_links *links, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	links->watch = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1,
				    PERF_FLAG_FD_CLOEXEC);
	if (links->watch < 0)
		return -errno;
	links->ring = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, links->watch,
			   0);
	if (links->ring == MAP_FAILED) {
		links->ring = NULL;
		return -errno;
	}
	return 0;
}

int probe_links_watch_process(struct probe_links *links, pid_t pid)
{
	links->watch = (int)syscall(SYS_pidfd_open, pid, 0);
	return links->watch < 0 ? -errno : 0;
}

void probe_links_close_watch(struct probe_links *links)
{
	if (links->ring)
		munmap(links->ring, (size_t)sysconf(_SC_PAGESIZE));
	if (links->watch >= 0)
		close(links->watch);
	links->ring = NULL;
	links->watch = -1;
}
