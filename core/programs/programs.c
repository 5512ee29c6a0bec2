/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PID_NAMESPACE 0xeffffffcu /* PROC_PID_INIT_INO of linux/proc_ns.h */

int programs_next_id(uint32_t id, uint32_t *next)
{
	return bpf_prog_get_next_id(id, next) ? -errno : 0;
}

bool programs_see_our_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE;
}

bool programs_may_allocate(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_NO_PREALLOC);
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "fusee_probe", 4, 4, 1, &o), program;
	const struct bpf_insn insns[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = 1,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = map},
		{0}, /* the upper half of the instruction before */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};

	if (map < 0)
		return false;
	program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "fusee_probe", "GPL", insns,
				sizeof(insns) / sizeof(*insns), NULL);
	close(map);
	if (program < 0)
		return false;
	close(program);
	return true;
}

int programs_open(struct bpf_object **ret, const char *name, const void *bytes, size_t len)
{
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = name);
	struct bpf_object *object = bpf_object__open_mem(bytes, len, &o);
	struct bpf_map *map;

	if (!object)
		return -errno;
	bpf_object__for_each_map(map, object)
	{
		if (!strncmp(bpf_map__name(map), "fusee_", strlen("fusee_")))
			bpf_map__set_autocreate(map, false);
	}
	*ret = object;
	return 0;
}

void *programs_map_memory(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}
