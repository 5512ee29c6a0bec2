/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/uprobe_link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OF_RETURNS 1u /* BPF_F_UPROBE_MULTI_RETURN */

/* The part of union bpf_attr that links of uprobes have. */
struct link_attr {
	uint32_t program, target, type, flags;
	uint64_t path, offsets, counters, cookies;
	uint32_t n, probe_flags;
	uint32_t pid, pad;
};

void uprobe_link_set_type(struct bpf_object *object, enum uprobe_link_type type)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, object)
	{
		if (type != UPROBE_EVENTS && !strcmp(bpf_program__section_name(p), "uprobe"))
			bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)type);
	}
}

static int create(const struct link_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

int uprobe_link_create(enum uprobe_link_type type, int program, pid_t pid, const char *path,
		       const struct uprobe_places *at)
{
	return create(&(struct link_attr){.program = (uint32_t)program,
					  .type = type,
					  .path = (uintptr_t)path,
					  .offsets = (uintptr_t)at->offsets,
					  .cookies = (uintptr_t)at->cookies,
					  .counters = (uintptr_t)at->counters,
					  .n = at->n,
					  .probe_flags = at->returns ? OF_RETURNS : 0,
					  .pid = pid > 0 ? (uint32_t)pid : 0});
}

/* What a kernel answers to a link at "/", which is no file of code. */
static int try(enum uprobe_link_type type, int program, uint32_t pid)
{
	const uint64_t offset = 0;

	return create(&(struct link_attr){.program = (uint32_t)program,
					  .type = type,
					  .path = (uintptr_t) "/",
					  .offsets = (uintptr_t)&offset,
					  .n = 1,
					  .pid = pid});
}

bool uprobe_link_has_sessions(int program)
{
	const char *given = secure_getenv("FUSEE_UPROBE_LINKS"); /* for tests */

	return (!given || strcmp(given, "0") != 0) && try(UPROBE_SESSION, program, 0) == -EBADF;
}

/* A kernel whose links are of processes refuses this pid before it looks at the path. */
bool uprobe_link_has_multi(void)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o,
		    .expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "GPL", nothing, 2, &o);
	bool has;

	if (program < 0)
		return false;
	has = try(UPROBE_MULTI, program, 0) == -EBADF &&
	      try(UPROBE_MULTI, program, UINT32_MAX) == -EINVAL;
	close(program);
	return has;
}

#define LOOK 4 /* descriptors that libbpf has open while it looks, at most */

int uprobe_link_error(int err)
{
	int fds[LOOK], n = 0, r = -err;

	if (err != EOPNOTSUPP)
		return r;
	while (n < LOOK && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	if (n < LOOK)
		r = -errno;
	while (n)
		close(fds[--n]);
	return r;
}
