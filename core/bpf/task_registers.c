/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/task_registers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "bpf/programs.h"

FUSEE_EMBED(task_registers_bpf, "task_registers.bpf.o");

#define BATCH 64u /* records that are read at once */

struct task_registers {
	struct bpf_object *object;
	struct bpf_link *link;
	struct task_record records[BATCH];
};

static int load(struct task_registers *t, pid_t pid)
{
	uint32_t zero = 0, tgid = (uint32_t)pid;
	int r;

	libbpf_set_print(NULL);
	r = programs_open(&t->object, "registers", task_registers_bpf,
			  (size_t)(task_registers_bpf_end - task_registers_bpf));
	if (!r)
		r = bpf_object__load(t->object);
	if (r)
		return r;
	return bpf_map_update_elem(bpf_object__find_map_fd_by_name(t->object, "task_registers_of"),
				   &zero, &tgid, 0)
		       ? -errno
		       : 0;
}

/* Linux 6.1 iterates over the threads of one process; before, over all threads. */
static int attach(struct task_registers *t, pid_t pid)
{
	union bpf_iter_link_info info = {.task = {.pid = (uint32_t)pid}};
	LIBBPF_OPTS(bpf_iter_attach_opts, one, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_program *p = bpf_object__find_program_by_name(t->object, "task_registers_write");

	t->link = bpf_program__attach_iter(p, &one);
	if (!t->link)
		t->link = bpf_program__attach_iter(p, NULL);
	return t->link ? 0 : -errno;
}

int task_registers_open(struct task_registers **ret, pid_t pid)
{
	struct task_registers *t;
	int r;

	if (!programs_see_our_pids())
		return -ENOTSUP;
	t = calloc(1, sizeof(*t));
	r = t ? load(t, pid) : -ENOMEM;
	if (!r)
		r = attach(t, pid);
	if (r)
		task_registers_close(t);
	else
		*ret = t;
	return r;
}

void task_registers_close(struct task_registers *t)
{
	if (!t)
		return;
	bpf_link__destroy(t->link);
	bpf_object__close(t->object);
	free(t);
}

int task_registers_read(struct task_registers *t,
			void (*each)(void *arg, const struct task_record *), void *arg)
{
	int fd = bpf_iter_create(bpf_link__fd(t->link));
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, t->records, sizeof(t->records))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(*t->records); i++)
			each(arg, &t->records[i]);
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}
