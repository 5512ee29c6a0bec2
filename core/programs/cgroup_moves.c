/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/cgroup_moves.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "programs/programs.h"

FUSEE_EMBED(cgroup_moves_bpf, "cgroup_moves.bpf.o");

/* The tracepoints after which /proc/PID/cgroup may differ (trace/events/cgroup.h). */
static const char *const points[] = {"cgroup_attach_task", "cgroup_transfer_tasks", "cgroup_rename",
				     "cgroup_setup_root", "cgroup_remount"};
#define POINTS (sizeof(points) / sizeof(*points))

struct cgroup_moves {
	struct bpf_object *object;
	struct bpf_link *links[POINTS];
	const uint64_t *count; /* the map's memory; NULL: not mapped */
};

static int load(struct cgroup_moves *m)
{
	void *at;
	int r = programs_open(&m->object, "moves", cgroup_moves_bpf,
			      (size_t)(cgroup_moves_bpf_end - cgroup_moves_bpf));

	if (!r)
		r = bpf_object__load(m->object);
	if (r)
		return r;
	at = mmap(NULL, sizeof(*m->count), PROT_READ, MAP_SHARED,
		  bpf_object__find_map_fd_by_name(m->object, "moves"), 0);
	if (at == MAP_FAILED)
		return -errno;
	m->count = at;
	return 0;
}

static int attach(struct cgroup_moves *m)
{
	struct bpf_program *p = bpf_object__find_program_by_name(m->object, "cgroup_moves_note");

	for (uint32_t i = 0; i < POINTS; i++) {
		m->links[i] = bpf_program__attach_raw_tracepoint(p, points[i]);
		if (!m->links[i])
			return -errno;
	}
	return 0;
}

int cgroup_moves_open(struct cgroup_moves **ret)
{
	struct cgroup_moves *m = calloc(1, sizeof(*m));
	int r = m ? load(m) : -ENOMEM;

	if (!r)
		r = attach(m);
	if (r)
		cgroup_moves_close(m);
	else
		*ret = m;
	return r;
}

void cgroup_moves_close(struct cgroup_moves *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < POINTS; i++)
		bpf_link__destroy(m->links[i]);
	if (m->count)
		munmap((void *)m->count, sizeof(*m->count));
	bpf_object__close(m->object);
	free(m);
}

uint64_t cgroup_moves_count(const struct cgroup_moves *m)
{
	return m ? __atomic_load_n(m->count, __ATOMIC_ACQUIRE) + 1 : 0;
}
