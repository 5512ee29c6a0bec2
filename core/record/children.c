/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/children.h"

#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/procfs.h"

#define MOST 64u     /* processes that are counted */
#define MOST_DEEP 8u /* generations */

struct family {
	const struct selection *o;
	uint64_t before; /* clock ticks since boot: later children are sampled */
	pid_t pids[MOST];
	uint32_t n;
};

static bool has(const struct family *f, pid_t pid)
{
	for (uint32_t i = 0; i < f->o->npids; i++)
		if (f->o->pids[i] == pid)
			return true;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->pids[i] == pid)
			return true;
	return false;
}

static int see(void *arg, pid_t pid)
{
	struct family *f = arg;
	uint64_t ticks;
	pid_t parent;

	if (f->n == MOST || has(f, pid) || procfs_is_own(pid) || procfs_parent(pid, &parent) ||
	    !has(f, parent) || procfs_start_ticks(pid, &ticks) || ticks >= f->before)
		return 0;
	f->pids[f->n++] = pid;
	return 0;
}

/* Processes below those of -p that ran before the recording began. */
static void find(struct family *f, uint64_t start_ns)
{
	uint64_t ago_ns = clock_now() - start_ns, boot_ns = clock_ns(CLOCK_BOOTTIME);
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);

	f->before = (boot_ns - ago_ns) / 1000000000 * ticks +
		    (boot_ns - ago_ns) % 1000000000 * ticks / 1000000000;
	for (uint32_t deep = 0, before = 1; deep < MOST_DEEP && before != f->n; deep++) {
		before = f->n;
		procfs_each_process(see, f);
	}
}

bool children_hint(const struct session *s, struct buf *b)
{
	const struct selection *o = &s->o.selection;
	struct family f = {.o = o};

	if (!o->npids || o->all || o->command || o->ngroups || *s->o.event.name)
		return false;
	find(&f, s->start_ns);
	if (!f.n)
		return false;
	buf_printf(b, "  %s%u child process%s of -p ran before and %s not sampled. With %s:\n",
		   f.n == MOST ? "At least " : "", f.n, f.n > 1 ? "es" : "", f.n > 1 ? "are" : "is",
		   f.n > 1 ? "them" : "it");
	buf_printf(b, "    fusee record %s--children -p ", s->o.wall ? "--wall " : "");
	for (uint32_t i = 0; i < o->npids; i++)
		buf_printf(b, "%s%d", i ? "," : "", (int)o->pids[i]);
	buf_str(b, "\n");
	return true;
}
