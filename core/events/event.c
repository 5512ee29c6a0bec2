/* SPDX-License-Identifier: Apache-2.0 */
/* Record layouts: perf_event_open(2), linux/perf_event.h. */
#include "events/internal/event.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST: Linux 6.0, not in older headers */

#define SAMPLE_TYPE                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define TRAILER 32 /* sample_id_all for this type: pid tid, time, cpu, identifier */

/* perf's numbers of x86-64 registers (asm/perf_regs.h) in DWARF's order (psABI figure 3.36). */
static const uint8_t perf_reg[17] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
#define REGS_MASK 0xff01ffull

static int try_open(const struct event_form *f, const struct event_options *o, pid_t tid, int cpu)
{
	struct perf_event_attr a = {
		.type = o->kind ? o->kind->type : PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = o->kind     ? o->kind->config
			  : o->silent ? PERF_COUNT_SW_DUMMY
				      : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = o->period_ns,
		.sample_type = SAMPLE_TYPE,
		.read_format = PERF_FORMAT_ID | (f->lost ? FORMAT_LOST : 0),
		.disabled = 1,
		.inherit = o->inherit,
		.exclude_kernel = !f->kernel,
		.exclude_hv = 1,
		.exclude_idle = !o->idle,
		.mmap = o->sideband,
		.mmap2 = o->sideband,
		.comm = o->sideband,
		.comm_exec = o->sideband,
		.task = o->sideband,
		.enable_on_exec = o->on_exec,
		.watermark = 1,
		.wakeup_watermark = o->wake_bytes,
		.sample_id_all = 1,
		.exclude_callchain_user = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_regs_user = REGS_MASK,
		.sample_stack_user = o->stack_bytes,
	};

	if (f->period)
		a.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	if (f->kernel)
		a.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (f->read)
		a.sample_type |= PERF_SAMPLE_READ;
	return (int)syscall(SYS_perf_event_open, &a, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int event_open(struct event_form *f, const struct event_options *o, pid_t tid, int cpu)
{
	int fd;

	if (!f->settled)
		*f = (struct event_form){.kernel = o->kernel,
					 .read = o->read,
					 .lost = true,
					 .period = o->kind && !o->kind->hardware ? o->period_ns
										 : 0};
	for (;;) {
		fd = try_open(f, o, tid, cpu);
		if (fd >= 0) {
			f->settled = true;
			return fd;
		}
		if (f->settled)
			return -errno;
		if (errno == EINVAL && f->read)
			f->read = false;
		else if (errno == EINVAL && f->lost)
			f->lost = false;
		else if ((errno == EACCES || errno == EPERM) && f->kernel)
			f->kernel = false;
		else
			return -errno;
	}
}

int event_open_count(const struct event_form *f, pid_t tid, bool on_exec)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.read_format = PERF_FORMAT_ID | (f->lost ? FORMAT_LOST : 0),
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = on_exec,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int event_open_ring(int cpu, uint32_t wake_bytes)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = SAMPLE_TYPE &
			       ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER),
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = wake_bytes,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int event_open_output(const struct event_form *f, int cpu, uint32_t wake_bytes)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_ID | (f->lost ? FORMAT_LOST : 0),
		.watermark = 1,
		.wakeup_watermark = wake_bytes,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int event_open_clock(int cpu)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int event_id(int fd, uint64_t *id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, id) ? -errno : 0;
}

/* Reads one record; get() checks the bounds. */
struct cursor {
	const char *p, *end;
};

static bool get(struct cursor *c, void *to, size_t len)
{
	if ((size_t)(c->end - c->p) < len)
		return false;
	if (to)
		memcpy(to, c->p, len);
	c->p += len;
	return true;
}

uint64_t event_time(const struct perf_event_header *h)
{
	const char *p = (const char *)h;
	uint64_t time = 0;

	if (h->type == PERF_RECORD_SAMPLE) {
		if (h->size >= 32)
			memcpy(&time, p + 24, 8); /* behind header, identifier, pid and tid */
	} else if (h->size >= sizeof(*h) + TRAILER) {
		memcpy(&time, p + h->size - TRAILER + 8, 8);
	}
	return time;
}

static bool parse_kernel(struct cursor *c, struct sample *s)
{
	const uint64_t *ips;
	uint64_t n, i;

	if (!get(c, &n, 8) || n > (uint64_t)(c->end - c->p) / 8)
		return false;
	ips = (const void *)c->p;
	c->p += n * 8;
	/* A chain that begins with another context has no kernel part. */
	if (!n || ips[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return true;
	for (i = 1; i < n && ips[i] < (uint64_t)PERF_CONTEXT_MAX; i++)
		;
	s->kernel = ips + 1;
	s->nkernel = (uint32_t)(i - 1);
	return true;
}

static bool parse_regs(struct cursor *c, struct sample *s)
{
	uint64_t abi, regs[24] = {0};

	if (!get(c, &abi, 8))
		return false;
	s->abi = (uint32_t)abi;
	if (!abi)
		return true;
	for (int i = 0; i < 24; i++)
		if (REGS_MASK >> i & 1 && !get(c, &regs[i], 8))
			return false;
	for (int i = 0; i < 17; i++)
		s->regs[i] = regs[perf_reg[i]];
	return true;
}

static bool parse_stack(struct cursor *c, struct sample *s)
{
	uint64_t size, dyn;

	if (!get(c, &size, 8))
		return false;
	if (!size)
		return true;
	s->stack = c->p;
	if (!get(c, NULL, size) || !get(c, &dyn, 8) || dyn > size)
		return false;
	s->stack_len = (uint32_t)dyn;
	s->stack_full = dyn == size;
	return true;
}

bool event_parse_sample(const struct event_form *f, const struct perf_event_header *h,
			struct event_sample *e)
{
	struct cursor c = {(const char *)(h + 1), (const char *)h + h->size};
	struct sample *s = &e->s;
	uint32_t cpu[2];

	*e = (struct event_sample){.s.period = f->period};
	if (!get(&c, &e->id, 8) || !get(&c, &s->pid, 4) || !get(&c, &s->tid, 4) ||
	    !get(&c, &s->time, 8) || !get(&c, cpu, 8) || (!f->period && !get(&c, &s->period, 8)))
		return false;
	s->cpu = cpu[0];
	if (f->read && (!get(&c, &e->count_ns, 8) || !get(&c, NULL, f->lost ? 16 : 8)))
		return false;
	if (f->kernel && !parse_kernel(&c, s))
		return false;
	return parse_regs(&c, s) && parse_stack(&c, s);
}

uint64_t event_sample_id(const struct perf_event_header *h)
{
	struct cursor c = {(const char *)(h + 1), (const char *)h + h->size};
	uint64_t id = 0;

	get(&c, &id, 8);
	return id;
}

const void *event_parse_output(const struct perf_event_header *h, uint32_t *len, uint32_t *cpu,
			       uint32_t ids[2])
{
	struct cursor c = {(const char *)(h + 1), (const char *)h + h->size};
	uint32_t place[2];

	if (!get(&c, NULL, 8) || !get(&c, ids, 8) || !get(&c, NULL, 8) || !get(&c, place, 8) ||
	    !get(&c, len, 4) || *len > (size_t)(c.end - c.p))
		return NULL;
	*cpu = place[0];
	return c.p;
}

static void parse_mmap2(struct cursor *c, uint64_t time, const struct perf_stream_handlers *on)
{
	struct procfs_mapping m = {0};
	uint32_t ids[2], prot[2];
	uint64_t len;

	if (!get(c, ids, 8) || !get(c, &m.lo, 8) || !get(c, &len, 8) || !get(c, &m.offset, 8) ||
	    !get(c, &m.dev_major, 4) || !get(c, &m.dev_minor, 4) || !get(c, &m.ino, 8) ||
	    !get(c, &m.generation, 8) || !get(c, prot, 8) ||
	    !memchr(c->p, 0, (size_t)(c->end - c->p)))
		return;
	m.hi = m.lo + len;
	m.name = c->p;
	if (prot[0] & 4 /* PROT_EXEC */ && m.hi > m.lo)
		on->mapped(on->arg, (pid_t)ids[0], time, &m);
}

void event_parse_sideband(const struct perf_event_header *h, const struct perf_stream_handlers *on)
{
	struct cursor c = {(const char *)(h + 1), (const char *)h + h->size};
	uint64_t time = event_time(h);
	uint32_t ids[4];

	if (h->size < sizeof(*h) + TRAILER)
		return;
	c.end -= TRAILER;
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		parse_mmap2(&c, time, on);
		break;
	case PERF_RECORD_COMM:
		if (get(&c, ids, 8) && memchr(c.p, 0, (size_t)(c.end - c.p)))
			on->comm(on->arg, (pid_t)ids[0], (pid_t)ids[1], time, c.p,
				 h->misc & PERF_RECORD_MISC_COMM_EXEC);
		break;
	case PERF_RECORD_FORK: /* pid, ppid, tid, ptid, time */
		if (get(&c, ids, 16))
			on->forked(on->arg, (pid_t)ids[0], (pid_t)ids[1], (pid_t)ids[2], time);
		break;
	case PERF_RECORD_EXIT:
		if (get(&c, ids, 16))
			on->exited(on->arg, (pid_t)ids[0], (pid_t)ids[2], time);
		break;
	default:
		break;
	}
}

int event_read(const struct event_form *f, int fd, uint64_t *count_ns, uint64_t *lost)
{
	uint64_t v[3] = {0}; /* value, id, lost */
	ssize_t size = f->lost ? 24 : 16;
	ssize_t n = read(fd, v, (size_t)size);

	if (n != size)
		return n < 0 ? -errno : -EIO;
	*count_ns = v[0];
	*lost = v[2];
	return 0;
}
