/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/claims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/hashmap.h"
#include "process/procfs.h"

#define SECOND 1000000000u
#define ASKS 8u           /* new mappings that are asked about at once, a second */
#define MAX_CLAIMS 65536u /* of a process */
#define MAX_UNWINDERS 32u /* bits of code.told */

struct claims {
	const struct plugin_set *unwinders;
	struct hashmap processes; /* id -> struct code * */
};

/* What is known of one process: the plugins' `process` handle. */
struct code {
	struct claims *claims;
	struct process *process;
	uint64_t start_ticks;
	uint32_t generation;
	uint32_t told;      /* bit i: unwinder i was told of it */
	struct claim *list; /* sorted, disjoint */
	uint32_t n, cap;
	uint64_t asked, asked_lo; /* when and about which mapping they were asked last */
	uint32_t asks;            /* in that second */
	uint64_t refreshed;
	bool marked;
};

static const struct fusee_unwinder_ops *ops_of(const struct claims *c, uint32_t i)
{
	return c->unwinders->instances[i]->descriptor->ops;
}

int claims_new(struct claims **ret, const struct plugin_set *unwinders)
{
	struct claims *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->unwinders = unwinders;
	*ret = c;
	return 0;
}

static uint64_t handle(const struct code *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct code *code_of(uint64_t process)
{
	return (struct code *)(uintptr_t)process;
}

static void code_free(struct code *p)
{
	for (uint32_t i = 0; i < p->claims->unwinders->n && i < MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

		if (p->told & 1u << i && ops->detach)
			ops->detach(p->claims->unwinders->instances[i]->ctx, handle(p));
	}
	free(p->list);
	free(p);
}

static void free_one(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	code_free(value);
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	hashmap_each(&c->processes, free_one, NULL);
	hashmap_fini(&c->processes);
	free(c);
}

void claims_forget(struct claims *c, uint64_t process)
{
	struct code *p = hashmap_del(&c->processes, process);

	if (p)
		code_free(p);
}

static void unmark(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	((struct code *)value)->marked = false;
}

void claims_unmark(struct claims *c)
{
	hashmap_each(&c->processes, unmark, NULL);
}

void claims_mark(struct claims *c, uint64_t process)
{
	struct code *p = hashmap_get(&c->processes, process);

	if (p)
		p->marked = true;
}

bool claims_is_marked(const struct claims *c, uint64_t process)
{
	const struct code *p = hashmap_get(&c->processes, process);

	return p && p->marked;
}

/* ---- asking the plugins ---- */

/* Index of the first claim that ends above addr. */
static uint32_t above(const struct code *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->list[mid].hi > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static const struct claim *find(const struct code *p, uint64_t addr)
{
	uint32_t i = above(p, addr);

	return i < p->n && p->list[i].lo <= addr ? &p->list[i] : NULL;
}

static struct code *code_get(struct claims *c, struct process *process)
{
	struct code *p = hashmap_get(&c->processes, process->id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct code){.claims = c, .process = process, .generation = 1};
	if (process->replaced || procfs_start_ticks(process->pid, &p->start_ticks))
		p->start_ticks = 0; /* gone before we came */
	if (hashmap_put(&c->processes, process->id, p)) {
		free(p);
		return NULL;
	}
	return p;
}

/* Not one mapping twice in a second, and not many new ones. */
static bool may_ask(struct code *p, uint64_t lo, uint64_t time)
{
	if (!p->asked || time > p->asked + SECOND) {
		p->asked = time;
		p->asks = 0;
	} else if (lo == p->asked_lo || p->asks >= ASKS) {
		return false;
	}
	p->asked_lo = lo;
	p->asks++;
	return true;
}

static void ask(struct code *p, const struct process_mapping *m)
{
	struct fusee_mapping_view view = {.size = sizeof(view), .lo = m->lo, .hi = m->hi};
	const struct plugin_set *set = p->claims->unwinders;

	for (uint32_t i = 0; i < set->n && i < MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);
		int r;

		if (!ops->mapped)
			continue;
		p->told |= 1u << i;
		r = ops->mapped(set->instances[i]->ctx, handle(p), &view);
		if (r < 0)
			log_debug("%s: pid %d: %s", set->instances[i]->name, (int)p->process->pid,
				  strerror(-r));
	}
}

static void refresh(struct code *p)
{
	const struct plugin_set *set = p->claims->unwinders;

	if (p->process->replaced) /* what is there now is another program's */
		return;
	for (uint32_t i = 0; i < set->n && i < MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

		if (p->told & 1u << i && ops->refresh)
			ops->refresh(set->instances[i]->ctx, handle(p));
	}
}

static void refresh_one(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	refresh(value);
}

void claims_refresh(struct claims *c)
{
	hashmap_each(&c->processes, refresh_one, NULL);
}

const struct claim *claims_at(struct claims *c, struct process *process,
			      const struct process_mapping *m, uint64_t addr, uint64_t time,
			      uint32_t *generation)
{
	struct code *p = code_get(c, process);
	const struct claim *claim;

	*generation = 0;
	if (!p)
		return NULL;
	claim = find(p, addr);
	if (!claim && !process->replaced && may_ask(p, m->lo, time)) {
		ask(p, m);
		claim = find(p, addr);
	} else if (claim && time > p->refreshed + SECOND) {
		p->refreshed = time;
		refresh(p);
		claim = find(p, addr);
	}
	*generation = p->generation;
	return claim;
}

bool claims_were_offered(const struct claims *c, uint64_t process)
{
	const struct code *p = hashmap_get(&c->processes, process);

	return p && p->told;
}

void claims_each_step(const struct claims *c, uint64_t process, uint64_t lo, uint64_t hi,
		      void (*each)(void *arg, const struct claim *), void *arg)
{
	const struct code *p = c ? hashmap_get(&c->processes, process) : NULL;

	for (uint32_t i = p ? above(p, lo) : 0; p && i < p->n && p->list[i].lo < hi; i++)
		if (p->list[i].flags & FUSEE_CLAIM_STEP)
			each(arg, &p->list[i]);
}

/* ---- frames that were pushed ---- */

void claims_expect_pushed(struct claims *c, struct process *process, uint32_t unwinder)
{
	struct code *p = unwinder < MAX_UNWINDERS ? code_get(c, process) : NULL;

	if (p)
		p->told |= 1u << unwinder;
}

int claims_record(struct claims *c, struct process *process, uint32_t unwinder,
		  const struct fusee_emission *e)
{
	const struct fusee_unwinder_ops *ops;
	struct fusee_instance *in;
	struct code *p;

	if (unwinder >= c->unwinders->n || unwinder >= MAX_UNWINDERS)
		return -EINVAL;
	in = c->unwinders->instances[unwinder];
	ops = in->descriptor->ops;
	p = code_get(c, process);
	if (!p)
		return -ENOMEM;
	p->told |= 1u << unwinder;
	return ops->record ? ops->record(in->ctx, handle(p), e) : 0;
}

/* ---- naming ---- */

static int name_by(struct code *p, uint32_t i, const struct fusee_raw_frame *raw,
		   struct fusee_frame_out *out, const char **type)
{
	const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

	*type = ops->frame_type;
	return ops->symbolize ? ops->symbolize(p->claims->unwinders->instances[i]->ctx, raw, out)
			      : 0;
}

int claims_name(struct claims *c, uint64_t process, uint64_t addr, uint32_t generation,
		struct fusee_frame_out *out, const char **type)
{
	struct code *p = hashmap_get(&c->processes, process);
	struct fusee_raw_frame raw = {.size = sizeof(raw), .generation = generation, .addr = addr};
	const struct claim *claim = p ? find(p, addr) : NULL;
	int r = 0;

	if (!p)
		return 0;
	raw.process = handle(p);
	if (claim && claim->flags & FUSEE_CLAIM_NAME)
		return name_by(p, claim->unwinder, &raw, out, type);
	for (uint32_t i = 0; !r && i < c->unwinders->n && i < MAX_UNWINDERS; i++)
		if (p->told & 1u << i)
			r = name_by(p, i, &raw, out, type);
	return r;
}

int claims_name_pushed(struct claims *c, uint64_t process, uint32_t unwinder, const uint64_t v[2],
		       struct fusee_frame_out *out, const char **type)
{
	struct code *p = hashmap_get(&c->processes, process);
	struct fusee_raw_frame raw = {.size = sizeof(raw), .v = {v[0], v[1]}};

	*type = ops_of(c, unwinder)->frame_type;
	if (!p)
		return 0;
	raw.process = handle(p);
	raw.generation = p->generation;
	return name_by(p, unwinder, &raw, out, type);
}

/* ---- the host ---- */

/* Its pid is still this life's. */
static bool is_there(const struct code *p)
{
	uint64_t ticks;

	return p->start_ticks && !p->process->replaced &&
	       !procfs_start_ticks(p->process->pid, &ticks) && ticks == p->start_ticks;
}

static int host_info(uint64_t process, struct fusee_process_info *info)
{
	struct code *p = code_of(process);
	uint64_t tick = SECOND / (uint64_t)sysconf(_SC_CLK_TCK);
	struct procfs_status status;
	int r = procfs_status(p->process->pid, &status);

	if (r)
		return r;
	if (!is_there(p))
		return -ESRCH;
	*info = (struct fusee_process_info){
		.size = sizeof(*info),
		.pid = (uint32_t)p->process->pid,
		.ns_pid = (uint32_t)status.ns_pid,
		.uid = status.uid,
		.fs_uid = status.fs_uid,
		.start_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			    p->start_ticks * tick,
	};
	return 0;
}

/* Holds what the path names, without opening it: descriptor or -errno. */
static int hold(int root, const char *path)
{
	int at = root;

	while (at >= 0 && *path) {
		char name[256];
		size_t len;
		int next;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!len)
			break;
		if (len >= sizeof(name) || (len == 2 && !memcmp(path, "..", 2)))
			next = -EINVAL;
		else {
			memcpy(name, path, len);
			name[len] = '\0';
			next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
			next = next < 0 ? -errno : next;
		}
		close(at);
		at = next;
		path += len;
	}
	return at;
}

static int open_held(int held, uint32_t flags)
{
	bool folder = flags & FUSEE_OPEN_DIRECTORY;
	struct stat st;
	char path[64];
	int fd;

	if (fstat(held, &st))
		return -errno;
	if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		return folder ? -ENOTDIR : -EINVAL;
	if (folder)
		return fcntl(held, F_DUPFD_CLOEXEC, 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int host_open(uint64_t process, const char *path, uint32_t flags)
{
	struct code *p = code_of(process);
	char root[64];
	int held, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)p->process->pid);
	held = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (held < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	held = hold(held, path);
	if (held < 0)
		return held;
	fd = is_there(p) ? open_held(held, flags) : -ESRCH;
	close(held);
	return fd;
}

static int host_read(uint64_t process, uint64_t addr, void *buf, uint32_t len)
{
	struct code *p = code_of(process);
	struct iovec to = {buf, len}, from = {(void *)(uintptr_t)addr, len};
	ssize_t n = p->process->replaced ? -1
					 : process_vm_readv(p->process->pid, &to, 1, &from, 1, 0);

	if (n != (ssize_t)len)
		return n < 0 && errno != ESRCH && !p->process->replaced ? -errno
		       : n < 0                                          ? -ESRCH
									: -EFAULT;
	return 0;
}

static uint32_t host_changed(uint64_t process)
{
	return ++code_of(process)->generation;
}

/* Takes [lo, hi) away from the claims of this unwinder. The list has room for one more. */
static void cut(struct code *p, uint64_t lo, uint64_t hi, uint32_t unwinder)
{
	for (uint32_t i = above(p, lo); i < p->n && p->list[i].lo < hi;) {
		struct claim *c = &p->list[i];

		if (c->unwinder != unwinder) {
			i++;
		} else if (c->lo < lo && c->hi > hi) {
			memmove(c + 1, c, (p->n++ - i) * sizeof(*c));
			c[0].hi = lo;
			c[1].lo = hi;
			return;
		} else if (c->lo < lo) {
			c->hi = lo;
			i++;
		} else if (c->hi > hi) {
			c->lo = hi;
			return;
		} else {
			memmove(c, c + 1, (--p->n - i) * sizeof(*c));
		}
	}
}

/* Fills what nobody has. false: no memory. */
static bool fill(struct code *p, struct claim want)
{
	uint32_t i = above(p, want.lo);

	while (want.lo < want.hi) {
		struct claim *next = i < p->n ? &p->list[i] : NULL;
		uint64_t end = next && next->lo < want.hi ? next->lo : want.hi;

		if (end > want.lo) {
			if (p->n + 2 > p->cap) {
				uint32_t cap = p->cap ? p->cap * 2 : 16;
				void *grown = realloc(p->list, cap * sizeof(*p->list));

				if (!grown)
					return false;
				p->list = grown;
				p->cap = cap;
			}
			memmove(p->list + i + 1, p->list + i, (p->n++ - i) * sizeof(*p->list));
			p->list[i] = want;
			p->list[i++].hi = end;
		}
		if (i == p->n || p->list[i].lo >= want.hi)
			break;
		want.lo = p->list[i++].hi;
	}
	return true;
}

/* Neighbours that say the same become one. */
static void join(struct code *p)
{
	uint32_t left = 0;

	for (uint32_t i = 1; i < p->n; i++) {
		struct claim *a = &p->list[left], *b = &p->list[i];

		if (a->hi == b->lo && a->unwinder == b->unwinder && a->flags == b->flags &&
		    a->arg == b->arg)
			a->hi = b->hi;
		else
			p->list[++left] = *b;
	}
	p->n = p->n ? left + 1 : 0;
}

static uint32_t index_of(const struct claims *c, const struct fusee_instance *in)
{
	uint32_t i = 0;

	while (i < c->unwinders->n && c->unwinders->instances[i] != in)
		i++;
	return i;
}

static int host_claim(struct fusee_instance *in, uint64_t process, const struct fusee_claim *c)
{
	struct code *p = code_of(process);
	struct claim want = {.lo = c->range.lo,
			     .hi = c->range.hi,
			     .arg = c->arg,
			     .unwinder = index_of(p->claims, in),
			     .flags = c->flags};

	if (want.unwinder == p->claims->unwinders->n)
		return -EINVAL;
	if (want.lo >= want.hi)
		return plugin_misused(in, PLUGIN_PROCESS_CLAIM_RANGE);
	if (p->n + 2 > MAX_CLAIMS)
		return -ENOSPC;
	cut(p, want.lo, want.hi, want.unwinder);
	if (!fill(p, want))
		return -ENOMEM;
	join(p);
	return 0;
}

static int host_unclaim(struct fusee_instance *in, uint64_t process, struct fusee_range range)
{
	struct code *p = code_of(process);

	if (range.lo >= range.hi)
		return -EINVAL;
	cut(p, range.lo, range.hi, index_of(p->claims, in));
	return 0;
}

static int host_frame(struct fusee_frame_out *out, const struct fusee_source_frame *frame)
{
	return out->frame(out, frame);
}

static const struct fusee_unwinder_host unwinder_host = {
	.size = sizeof(unwinder_host),
	.process_info = host_info,
	.process_open = host_open,
	.process_read = host_read,
	.process_claim = host_claim,
	.process_unclaim = host_unclaim,
	.process_changed = host_changed,
	.frame = host_frame,
};

const struct fusee_host claims_host = {
	.size = sizeof(claims_host),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = plugin_host_log,
	.fail = plugin_host_fail,
	.count = plugin_host_count,
	.read_secret = plugin_host_read_secret,
	.unwinder = &unwinder_host,
};
