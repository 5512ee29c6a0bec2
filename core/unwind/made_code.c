/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/made_code.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fusee/unwinder.bpf.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "process/procfs.h"
#include "unwind/internal/made_image.h"
#include "unwind/unwinders.h"
#include "opener/opener.h"

#define STACK_WORDS 8192u /* of the made-up stack */
#define STACK 0x10000000ull
#define FRAME_WORD (STACK_WORDS / 2)
#define FRAME (STACK + 8 * FRAME_WORD)
#define MAX_REGIONS 64u
#define MAX_OF_PROCESS 8u
#define MAX_OF_USER 24u       /* root has no such limit */
#define PAUSE_NS 250000000ull /* between two readings of a region */
/* .. while new places are found: who calls a function is seen once its own row is known */
#define FRESH_NS 50000000ull
#define SECOND_NS 1000000000ull
#define SECOND_BYTES (8u << 20) /* that are read in a second */
#define KEPT 8u
#define MAX_TABLE (2u << 20)   /* bytes of the tables of one reading */
#define MOST_BYTES (64u << 20) /* of all that is kept */

/* What a reading led to. */
struct reading {
	struct inspection *tables; /* a reference; NULL: none */
	uint64_t began;            /* 0: there was no such reading */
};

/* What a reading read, by which an equal reading is known. A process that makes its code so that
 * two are equal has a wrong table of its own code. */
struct digest {
	uint64_t bytes; /* 0: nothing was read, or it is to be looked at again */
	XXH128_hash_t hash;
};

/* Executable memory without a file. */
struct region {
	struct made_code *all;
	struct process *process; /* borrowed; NULL: it was freed */
	uint64_t id;             /* of the process */
	uint32_t uid;
	uint64_t lo, hi, bias;
	struct hashmap starts;   /* by start_key(): number of the first reading that has it */
	uint64_t readings, done; /* that were begun; and of these the last whose end came */
	struct digest newest;    /* of what the worker was handed */
	struct reading at[KEPT]; /* the newest first */
	uint64_t table;          /* number of the newest table */
	uint64_t sampled;        /* time of the newest sample */
	bool ended;              /* the process has */
	bool fresh;              /* there are starts that were not handed to the worker */
	uint32_t failures;       /* since the last table */
	uint64_t tried;          /* when it was last to be read */
	uint64_t began;          /* the reading that the worker looks at; 0: none */
	int fd;                  /* .. and its file */
};

struct made_code {
	struct worker *worker;              /* borrowed */
	const struct plugin_set *unwinders; /* borrowed */
	void (*changed)(void *arg, struct process *);
	void *arg;
	struct region *regions[MAX_REGIONS];
	uint32_t n;
	uint64_t tables; /* numbers of tables so far */
	bool was_read;   /* code, since made_code_was_read() */
	uint64_t second, bytes;
	struct made_counts counts;
	uint64_t stack[STACK_WORDS]; /* made up: each word is another number */
};

int made_code_new(struct made_code **ret, struct worker *worker, const struct plugin_set *unwinders,
		  void (*changed)(void *arg, struct process *), void *arg)
{
	struct made_code *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->worker = worker;
	m->unwinders = unwinders;
	m->changed = changed;
	m->arg = arg;
	for (uint64_t i = 0; i < STACK_WORDS; i++)
		m->stack[i] = (i + 1) << 32;
	*ret = m;
	return 0;
}

static void region_free(struct region *r)
{
	for (uint32_t i = 0; i < KEPT; i++)
		inspection_unref(r->at[i].tables);
	hashmap_fini(&r->starts);
	free(r);
}

/* Its request may be under way: the answer frees it. */
static void drop(struct made_code *m, uint32_t i)
{
	struct region *r = m->regions[i];

	m->regions[i] = m->regions[--m->n];
	r->process = NULL;
	if (!r->began)
		region_free(r);
}

void made_code_free(struct made_code *m)
{
	while (m && m->n)
		drop(m, m->n - 1);
	free(m);
}

void made_code_forget(struct made_code *m, uint64_t process)
{
	for (uint32_t i = m ? m->n : 0; i-- > 0;)
		if (m->regions[i]->id == process)
			drop(m, i);
}

/* ---- regions ---- */

static struct region *find(const struct made_code *m, uint64_t process, uint64_t addr)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->regions[i]->id == process && addr >= m->regions[i]->lo &&
		    addr < m->regions[i]->hi)
			return m->regions[i];
	return NULL;
}

static uint64_t held(const struct made_code *m)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct region *r = m->regions[i];

		for (uint32_t k = 0; k < KEPT; k++)
			bytes += r->at[k].tables ? r->at[k].tables->bytes : 0;
	}
	return bytes;
}

/* May this process, of this user, have one more? */
static bool has_room(const struct made_code *m, uint64_t process, uint32_t uid)
{
	uint32_t of_process = 0, of_user = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		of_process += m->regions[i]->id == process;
		of_user += m->regions[i]->uid == uid;
	}
	return m->n < MAX_REGIONS && held(m) < MOST_BYTES / 2 && of_process < MAX_OF_PROCESS &&
	       (!uid || of_user < MAX_OF_USER);
}

/* Drops the region that was sampled longest ago, if that is a while. */
static void make_room(struct made_code *m, uint64_t time)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < m->n; i++)
		if (m->regions[i]->sampled < m->regions[oldest]->sampled)
			oldest = i;
	if (m->n == MAX_REGIONS && m->regions[oldest]->sampled + 10 * SECOND_NS < time)
		drop(m, oldest);
}

static struct region *add(struct made_code *m, struct process *p, const struct process_mapping *map,
			  uint64_t time)
{
	struct region *r;
	uid_t uid;

	for (uint32_t i = m->n; i-- > 0;) /* another mapping was there */
		if (m->regions[i]->id == p->id && m->regions[i]->lo < map->hi &&
		    m->regions[i]->hi > map->lo)
			drop(m, i);
	make_room(m, time);
	if (p->ended || p->replaced || procfs_user(p->pid, &uid) || !has_room(m, p->id, uid))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct region){.all = m, .process = p, .id = p->id, .uid = uid, .fd = -1};
	r->lo = map->lo;
	m->regions[m->n++] = r;
	return r;
}

/* Address << 1 | it is a return address. */
static uint64_t start_key(uint64_t addr, bool exact)
{
	return (exact ? addr : addr + 1) << 1 | !exact;
}

void made_code_note(struct made_code *m, struct process *p, const struct process_mapping *map,
		    uint64_t addr, bool exact, uint64_t time)
{
	uint64_t key = start_key(addr, exact);
	struct region *r = find(m, p->id, addr);

	if (!r || r->lo != map->lo)
		r = add(m, p, map, time);
	if (!r)
		return;
	r->hi = map->hi;
	r->bias = map->lo - map->offset;
	if (time > r->sampled)
		r->sampled = time;
	if (r->starts.n == MADE_MAX_STARTS || hashmap_get(&r->starts, key))
		return;
	r->fresh = true;
	hashmap_put(&r->starts, key, (void *)(uintptr_t)(r->readings + 1));
}

const struct inspection_slab *made_code_table(const struct made_code *m, uint64_t process,
					      const struct process_mapping *map, uint32_t unwinder,
					      uint64_t *id)
{
	const struct region *r = m ? find(m, process, map->lo) : NULL;

	if (!r || r->lo != map->lo || !r->at[0].tables || map->since > r->at[0].began)
		return NULL;
	*id = r->table;
	return inspection_slab(r->at[0].tables,
			       m->unwinders->instances[unwinder]->descriptor->name);
}

/* ---- readings ---- */

/* Takes a reference. */
static void keep(struct region *r, struct inspection *tables, uint64_t began)
{
	inspection_unref(r->at[KEPT - 1].tables);
	memmove(&r->at[1], &r->at[0], (KEPT - 1) * sizeof(r->at[0]));
	r->at[0] = (struct reading){tables, began};
	r->done = r->readings;
	r->all->counts.readings++;
	r->all->was_read = true;
}

static void on_inspected(void *arg, int err, const char *text, struct inspection *i)
{
	struct region *r = arg;
	struct made_code *m = r->all;
	uint64_t began = r->began;

	close(r->fd);
	r->began = 0;
	if (!r->process) {
		inspection_unref(i);
		region_free(r);
		return;
	}
	if (!err && (i->bytes > MAX_TABLE || held(m) + i->bytes > MOST_BYTES)) {
		inspection_unref(i);
		err = -EDQUOT;
		text = "its tables are too large";
	}
	if (err)
		log_debug("pid %d: code made at run time: %s", (int)r->process->pid, text);
	r->failures = err ? r->failures + 1 : 0;
	m->counts.failed += !!err;
	m->counts.tables += !err;
	keep(r, err ? NULL : i, began);
	r->table = ++m->tables;
	if (err)
		r->newest.bytes = 0; /* it is tried again */
	m->changed(m->arg, r->process);
}

static void note_start(void *arg, uint64_t key, void *value)
{
	struct made_view *v = arg;

	(void)value;
	v->starts[v->n++] = key;
}

/* Has the worker look at what was read. 0 or -errno. */
static int inspect(struct region *r, const struct buf *image, uint64_t began)
{
	struct worker_requester by = {.uid = r->uid, .pid = r->process->pid};
	int err;

	/* Whose bytes these are: no worker sees those of two users. No device has such a number. */
	by.copy_of = 1ull << 63 | r->uid;
	r->fd = made_image_file(image);
	if (r->fd < 0)
		return r->fd;
	r->began = began;
	err = worker_inspect(r->all->worker, r->fd, "[code made at run time]", &by, on_inspected,
			     r);
	if (!err)
		return 0;
	r->began = 0;
	close(r->fd);
	return err;
}

static bool is_equal(const struct digest *a, const struct digest *b)
{
	return a->bytes == b->bytes && XXH128_isEqual(a->hash, b->hash);
}

/* Has the worker make a table of what was read, unless it was read before. 0 or -errno. */
static int look_at(struct region *r, const struct buf *image, uint64_t began)
{
	struct digest now = {image->len, XXH3_128bits(image->p, image->len)};

	if (is_equal(&now, &r->newest)) {
		if (r->at[0].tables)
			inspection_ref(r->at[0].tables);
		keep(r, r->at[0].tables, began);
		return 0;
	}
	r->newest = now;
	if (held(r->all) > MOST_BYTES)
		return -EDQUOT;
	r->all->counts.changed++;
	return inspect(r, image, began);
}

/* Reads the code of a region. The same code and starts as before need no new table. */
static int read_region(struct region *r)
{
	struct made_view v = {.pid = r->process->pid, .lo = r->lo, .hi = r->hi, .bias = r->bias};
	uint64_t began = clock_now();
	struct buf image = {0};
	int err = -ENOMEM;

	r->fresh = false;
	r->readings++;
	v.starts = calloc(r->starts.n + 1, sizeof(*v.starts));
	if (v.starts) {
		hashmap_each(&r->starts, note_start, &v);
		err = made_image_read(worker_opener(r->all->worker), &v, &image);
	}
	free(v.starts);
	r->all->bytes += image.len;
	if (!err)
		err = look_at(r, &image, began);
	buf_fini(&image);
	return err;
}

/* Nothing is known of the code now: what waits is never known to be right. */
static void fail(struct region *r, uint64_t now)
{
	r->newest.bytes = 0; /* so that a table is made again */
	r->readings++;
	keep(r, NULL, now);
	r->table = ++r->all->tables;
	r->failures++;
	r->all->counts.failed++;
	r->all->changed(r->all->arg, r->process);
}

static bool is_due(const struct region *r, uint64_t now, bool all)
{
	if (r->began || r->ended || (r->sampled <= r->at[0].began && !r->fresh))
		return false;
	if (r->fresh && !r->failures && now >= r->tried + FRESH_NS)
		return true;
	return all || now >= r->tried + (PAUSE_NS << (r->failures < 6 ? r->failures : 6));
}

void made_code_update(struct made_code *m, bool all)
{
	uint64_t now = clock_now();

	if (!m)
		return;
	if (now > m->second + SECOND_NS) {
		m->second = now;
		m->bytes = 0;
	}
	for (uint32_t i = 0; i < m->n; i++) {
		struct region *r = m->regions[i];
		int err;

		if (!is_due(r, now, all) || (!all && m->bytes >= SECOND_BYTES))
			continue;
		r->tried = now;
		err = r->process->ended || r->process->replaced ? -ESRCH : read_region(r);
		if (err == -ESRCH)
			r->ended = m->was_read = true;
		else if (err && !opener_is_temporary(err))
			fail(r, now);
	}
}

/* ---- verdicts ---- */

/* What the unwinders that have a table make of a frame at this place, on a made-up stack. */
struct stepped {
	int next; /* enum fusee_next; FUSEE_PASS: no row */
	uint64_t pc, sp, fp;
	uint32_t flags;
};

static struct stepped step_by(const struct made_code *m, const struct fusee_unwinder_ops *ops,
			      const struct inspection_slab *slab, uint64_t offset)
{
	struct fusee_native n = {
		.u = {.machine = 62, .flags = FUSEE_PC_EXACT, .pc = offset, .offset = offset},
		.stack = (const unsigned char *)m->stack,
		.stack_lo = STACK,
		.stack_hi = STACK + STACK_WORDS * 8,
	};

	n.u.sp = STACK;
	n.u.fp = FRAME;
	n.u.slab_words = slab->n;
	n.slab = slab->words;
	return (struct stepped){.next = ops->native_step(&n.u),
				.pc = n.u.pc,
				.sp = n.u.sp,
				.fp = n.u.fp,
				.flags = n.u.flags};
}

static struct stepped step_in(const struct made_code *m, const struct reading *at, uint64_t offset)
{
	struct stepped s = {.next = FUSEE_PASS};

	for (uint32_t i = 0; at->tables && i < m->unwinders->n && s.next == FUSEE_PASS; i++) {
		const struct fusee_plugin *plugin = m->unwinders->instances[i]->descriptor;
		const struct fusee_unwinder_ops *ops = plugin->ops;
		const struct inspection_slab *slab = inspection_slab(at->tables, plugin->name);

		if (slab && ops->native_step && ops->flags & FUSEE_UNWINDER_NATIVE)
			s = step_by(m, ops, slab, offset);
	}
	return s;
}

static bool is_same(const struct stepped *a, const struct stepped *b)
{
	return a->next == b->next && a->next == FUSEE_NEXT && a->pc == b->pc && a->sp == b->sp &&
	       a->fp == b->fp && a->flags == b->flags;
}

/* May rbp lead to the same caller? It points to the caller's rbp, right below the return address;
 * code that has saved that in another place, or not yet, hands its caller's frame pointer on. */
static bool may_be_by_fp(const struct made_code *m, const struct stepped *s)
{
	uint64_t word = (s->sp - STACK) / 8 - 2;

	return s->next == FUSEE_NEXT && !(s->flags & FUSEE_FP_LOST) && word < STACK_WORDS &&
	       s->fp == m->stack[word];
}

/* By the tables of up to three readings, the newest first: the first after the sample, that before
 * it, and the reading before, which may still have been in use. */
static enum made_verdict compare(const struct made_code *m, const struct reading *at, uint32_t n,
				 uint64_t offset, bool guessed)
{
	struct stepped after = step_in(m, at, offset);
	bool stepped = false; /* by a table that was there already */

	for (uint32_t i = 1; i < n; i++) {
		struct stepped s = step_in(m, at + i, offset);

		if (s.next == FUSEE_PASS)
			continue;
		if (!is_same(&s, &after))
			return MADE_CHANGED;
		stepped = true;
	}
	if (after.next == FUSEE_PASS)
		return MADE_OTHER;
	if (guessed)
		return may_be_by_fp(m, &after) ? MADE_UNSURE : MADE_REFUTED;
	return stepped ? MADE_SAME : MADE_UNSURE;
}

/* Is this place so new that no reading had it as a start? */
static bool is_ahead(const struct region *r, uint64_t addr)
{
	return (uintptr_t)hashmap_get(&r->starts, start_key(addr, false)) > r->done ||
	       (uintptr_t)hashmap_get(&r->starts, start_key(addr, true)) > r->done;
}

/* Of a guess whose place had no row: there may be one now. */
static enum made_verdict look_again(const struct made_code *m, const struct region *r,
				    const struct made_frame *f)
{
	return is_ahead(r, f->addr) ? MADE_LATER : compare(m, r->at, 1, f->addr - r->bias, true);
}

bool made_code_lacks_row(const struct made_code *m, uint64_t process, uint64_t addr, bool exact)
{
	const struct region *r = find(m, process, addr);
	uint64_t reading = r ? (uintptr_t)hashmap_get(&r->starts, start_key(addr, exact)) : 0;

	return reading && reading <= r->done && r->at[0].tables &&
	       step_in(m, r->at, addr - r->bias).next == FUSEE_PASS;
}

enum made_verdict made_code_verdict(const struct made_code *m, const struct made_frame *f,
				    bool late)
{
	const struct region *r = find(m, f->process, f->addr);
	bool is_last = r && (r->ended || late);
	enum made_verdict v;
	uint32_t i = 0, n;

	if (!r)
		return MADE_NONE;
	if (!r->table) /* it was not read yet */
		return is_last ? MADE_OTHER : MADE_LATER;
	if (r->at[0].began <= f->time && is_last) {
		v = compare(m, r->at, 2, f->addr - r->bias, f->guessed);
		return v == MADE_SAME ? MADE_UNSURE : v;
	}
	if (r->at[0].began <= f->time)
		return MADE_LATER;
	while (i + 1 < KEPT && r->at[i + 1].began > f->time)
		i++;
	n = KEPT - i < 3 ? KEPT - i : 3;
	if (n < 3 && r->at[KEPT - 1].began) /* it is too long ago */
		return MADE_CHANGED;
	v = compare(m, &r->at[i], n, f->addr - r->bias, f->guessed);
	return v == MADE_OTHER && f->guessed && !is_last ? look_again(m, r, f) : v;
}

bool made_code_follows(const struct made_code *m, uint64_t process)
{
	for (uint32_t i = 0; m && i < m->n; i++)
		if (m->regions[i]->id == process)
			return true;
	return false;
}

bool made_code_was_read(struct made_code *m)
{
	bool was = m && m->was_read;

	if (m)
		m->was_read = false;
	return was;
}

void made_code_counts(const struct made_code *m, struct made_counts *c)
{
	*c = m->counts;
	c->regions = m->n;
	c->bytes = held(m);
}
