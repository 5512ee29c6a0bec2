/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/task_registers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "programs/programs.h"

FUSEE_EMBED(task_registers_bpf, "task_registers.bpf.o");

#define BATCH 64u /* records that are read at once */

struct task_registers {
	struct bpf_object *object;
	pid_t pid;
	struct bpf_link *link;
	struct bpf_link *returns; /* NULL: not needed yet */
	struct task_record records[BATCH];
};

/* Sets the only element of a map. 0 or -errno. */
static int set(const struct task_registers *t, const char *map, pid_t to)
{
	uint32_t zero = 0, value = (uint32_t)to;
	int fd = bpf_object__find_map_fd_by_name(t->object, map);

	return bpf_map_update_elem(fd, &zero, &value, 0) ? -errno : 0;
}

static int load(struct task_registers *t)
{
	int r;

	libbpf_set_print(NULL);
	r = programs_open(&t->object, "registers", task_registers_bpf,
			  (size_t)(task_registers_bpf_end - task_registers_bpf));
	if (!r)
		r = bpf_object__load(t->object);
	return r ? r : set(t, "task_registers_of", t->pid);
}

/* Linux 6.1 iterates over the threads of one process; before, over all threads. 0 or -errno. */
static int attach(const struct task_registers *t, const char *program, struct bpf_link **ret)
{
	union bpf_iter_link_info info = {.task = {.pid = (uint32_t)t->pid}};
	LIBBPF_OPTS(bpf_iter_attach_opts, one, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_program *p = bpf_object__find_program_by_name(t->object, program);

	*ret = bpf_program__attach_iter(p, &one);
	if (!*ret)
		*ret = bpf_program__attach_iter(p, NULL);
	return *ret ? 0 : -errno;
}

int task_registers_open(struct task_registers **ret, pid_t pid)
{
	struct task_registers *t;
	int r;

	if (!programs_see_our_pids())
		return -ENOTSUP;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->pid = pid;
	r = load(t);
	if (!r)
		r = attach(t, "task_registers_write", &t->link);
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
	bpf_link__destroy(t->returns);
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

int task_registers_returns(struct task_registers *t, pid_t tid, struct task_returns *to)
{
	int r = t->returns ? 0 : attach(t, "task_returns_write", &t->returns), fd;
	ssize_t n;

	to->n = 0;
	if (!r)
		r = set(t, "task_returns_of", tid);
	if (r)
		return r;
	fd = bpf_iter_create(bpf_link__fd(t->returns));
	if (fd < 0)
		return -errno;
	n = read(fd, to, sizeof(*to));
	r = n < 0 ? -errno : 0;
	close(fd);
	if (n < (ssize_t)TASK_RETURNS_HEAD ||
	    to->n > ((size_t)n - TASK_RETURNS_HEAD) / sizeof(to->at[0]))
		to->n = 0;
	return r;
}
