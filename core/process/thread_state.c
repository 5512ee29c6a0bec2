/* SPDX-License-Identifier: Apache-2.0 */
#include "process/thread_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/internal/procfs.h"

#define PF_KTHREAD 0x00200000u /* the kernel's linux/sched.h */

/* Reads /proc/PID/task/TID/NAME, up to cap - 1 bytes, terminated. 0 or -errno. */
static int read_of(pid_t pid, pid_t tid, const char *name, char *buf, size_t cap)
{
	char path[96];

	*buf = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return procfs_read_small(path, buf, cap);
}

static int read_stat(pid_t pid, struct thread_state *t)
{
	char text[1024], *p, *open;
	unsigned int flags;
	int r = read_of(pid, t->tid, "stat", text, sizeof(text));

	if (r)
		return r;
	open = strchr(text, '(');
	p = strrchr(text, ')'); /* the name can contain anything */
	if (!open || !p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", &t->state, &flags) != 2)
		return -EBADMSG;
	snprintf(t->comm, sizeof(t->comm), "%.*s", (int)(p - open - 1), open + 1);
	t->kernel = flags & PF_KTHREAD;
	return 0;
}

static void read_tracer(pid_t pid, struct thread_state *t)
{
	char text[2048], *at;

	if (read_of(pid, t->tid, "status", text, sizeof(text)))
		return;
	at = strstr(text, "\nTracerPid:");
	if (at)
		t->tracer = (pid_t)strtol(at + strlen("\nTracerPid:"), NULL, 10);
}

/* "running", "-1 SP PC" in the kernel outside of a system call, or "NUMBER 6 ARGUMENTS SP PC". */
static void read_registers(pid_t pid, struct thread_state *t)
{
	char text[512], *pc, *sp;

	if (read_of(pid, t->tid, "syscall", text, sizeof(text)) || *text == 'r')
		return;
	text[strcspn(text, "\n")] = '\0';
	pc = strrchr(text, ' ');
	if (!pc)
		return;
	*pc++ = '\0';
	sp = strrchr(text, ' ');
	t->waits = true;
	t->pc = strtoull(pc, NULL, 16);
	t->sp = sp ? strtoull(sp + 1, NULL, 16) : 0;
}

/* Makes "[<0>] name+0x1/0x2 [module]\n" lines "name [module]\n". */
static void read_stack(pid_t pid, struct thread_state *t)
{
	char text[sizeof(t->stack)], *line, *rest = NULL;
	size_t used = 0;

	if (read_of(pid, t->tid, "stack", text, sizeof(text)))
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *name = strstr(line, "] "), *module;
		int n;

		if (!name || name[2] == '0') /* an address: symbols are hidden, or the stack ends */
			continue;
		name += 2;
		module = strchr(name, ' ');
		name[strcspn(name, "+ ")] = '\0';
		n = snprintf(t->stack + used, sizeof(t->stack) - used, "%s%s%s\n", name,
			     module ? " " : "", module ? module + 1 : "");
		if (n < 0 || (size_t)n >= sizeof(t->stack) - used) {
			t->stack[used] = '\0';
			return;
		}
		used += (size_t)n;
	}
}

int thread_state_read(pid_t pid, pid_t tid, struct thread_state *t)
{
	int r;

	*t = (struct thread_state){.tid = tid};
	r = read_stat(pid, t);
	if (r)
		return r;
	read_tracer(pid, t);
	if (t->state == 'R' || t->state == 'Z' || t->state == 'X')
		return 0;
	if (read_of(pid, tid, "wchan", t->wchan, sizeof(t->wchan)) || !strcmp(t->wchan, "0"))
		*t->wchan = '\0';
	read_registers(pid, t);
	read_stack(pid, t);
	return 0;
}

/* The number behind a key of a status file. 0; -EBADMSG: there is none; -errno. */
static int number_of(const char *path, const char *key, uint64_t *to)
{
	char text[STATUS_VALUE_BYTES];
	int r = procfs_status_value(path, key, text);

	if (r < 0)
		return r;
	return r && sscanf(text, " %" SCNu64, to) == 1 ? 0 : -EBADMSG;
}

int thread_switches_read(pid_t pid, pid_t tid, uint64_t *voluntary, uint64_t *involuntary)
{
	struct thread_state t = {.tid = tid};
	char path[96];
	int r;

	/* To print the registers, the kernel waits until the thread is off its CPU, which it has
	 * counted by then. The state alone can be "sleeping" while the thread still runs. */
	read_registers(pid, &t);
	if (!t.waits)
		return -EBUSY;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	r = number_of(path, "\nvoluntary_ctxt_switches:", voluntary);
	return r ? r : number_of(path, "\nnonvoluntary_ctxt_switches:", involuntary);
}

const char *thread_state_text(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by its tracer";
	case 'Z':
		return "ended, not waited for";
	case 'X':
		return "ended";
	case 'I':
		return "idle";
	default:
		return "in an unknown state";
	}
}
