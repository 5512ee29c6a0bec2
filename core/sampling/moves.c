/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/moves.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* All after which /proc/PID/cgroup may say something else (trace/events/cgroup.h). */
static const char *const points[] = {"cgroup_attach_task", "cgroup_transfer_tasks", "cgroup_rename",
				     "cgroup_setup_root", "cgroup_remount"};
#define POINTS (sizeof(points) / sizeof(*points))

struct moves {
	uint64_t *count; /* the map's memory */
	int map, program, links[POINTS];
};

static int open_map(struct moves *m)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	void *at;

	m->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fusee_moves", 4, sizeof(*m->count), 1, &o);
	if (m->map < 0)
		return m->map;
	at = mmap(NULL, sizeof(*m->count), PROT_READ | PROT_WRITE, MAP_SHARED, m->map, 0);
	if (at == MAP_FAILED)
		return -errno;
	m->count = at;
	*m->count = 1;
	return 0;
}

/* ++*count; return 0; */
static int open_program(struct moves *m)
{
	const struct bpf_insn code[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_PSEUDO_MAP_VALUE,
		 .imm = m->map},
		{0}, /* its upper half: from the value's beginning */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 1},
		{.code = BPF_STX | BPF_DW | BPF_ATOMIC,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_REG_2,
		 .imm = BPF_ADD},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	m->program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "fusee_moves", "Dual BSD/GPL",
				   code, sizeof(code) / sizeof(*code), NULL);
	return m->program < 0 ? m->program : 0;
}

int moves_open(struct moves **ret)
{
	struct moves *m = malloc(sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	*m = (struct moves){.map = -1, .program = -1};
	for (uint32_t i = 0; i < POINTS; i++)
		m->links[i] = -1;
	r = open_map(m);
	if (!r)
		r = open_program(m);
	for (uint32_t i = 0; !r && i < POINTS; i++) {
		m->links[i] = bpf_raw_tracepoint_open(points[i], m->program);
		r = m->links[i] < 0 ? m->links[i] : 0;
	}
	if (r)
		moves_close(m);
	else
		*ret = m;
	return r;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void moves_close(struct moves *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < POINTS; i++)
		close_fd(m->links[i]);
	close_fd(m->program);
	if (m->count)
		munmap(m->count, sizeof(*m->count));
	close_fd(m->map);
	free(m);
}

uint64_t moves_count(const struct moves *m)
{
	return m ? __atomic_load_n(m->count, __ATOMIC_ACQUIRE) : 0;
}
