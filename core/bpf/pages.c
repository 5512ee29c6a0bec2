/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of unwind tables in frames: memory of a fixed size that the programs read. A table's pages
 * are loaded when a walk needs them, and evicted for other pages.
 *
 * The programs read while this writes. fusee/unwinder.bpf.h says how a page is found. That no walk
 * takes words of one page for those of another rests on these invariants:
 *
 *   1. states[f].filling is a number that no entry has but that of the page that is in frame f. So
 *      when a page leaves its frame, the number changes at once (retire()), before any word of
 *      the frame does. It is the same while a page is in the frame.
 *   2. An entry is written after all words of its page, with the number that the frame has then.
 *   3. A program reads the entry, then words, then states[f].filling, and uses the words only if
 *      the number is the entry's. If another page's word was read, invariant 1 says that the number
 *      had changed before that word was written, and x86-64 keeps the order of stores and of loads.
 *      The number has not come round again meanwhile: a walk would have to wait for 524,287
 *      fillings of one frame.
 *   4. A program that has read an entry of a page that was evicted since, or an older entry in
 *      memory that another table has now, finds another number, and its walk ends (`absent`). The
 *      stack is then walked over the complete table in user space.
 *   5. What a step remembers of a table (by u->slab_id) stays true when pages are evicted, as the
 *      content of a table never changes.
 *
 * If programs were made to read arbitrary entries, they would read words of wrong frames, but never
 * outside of the frames: each look-up is bounded.
 *
 * Which page is evicted: a hand goes round over all frames, and takes the first whose page no
 * program has read since the hand was there before. A table that has half of the frames evicts its
 * own pages only, so a program with huge tables leaves room for its neighbours. Pages that are only
 * guesses (enum page_reason) fill what would be free, and are the first to go. Rules that steps
 * remember are not read again, so the pages of the hottest functions may be evicted, at no cost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/internal/sampler_state.h"

#define MAX_FILLING ((1u << (32 - FUSEE_FRAME_BITS)) - 1)
#define PAGE_NEVER 0u
#define PAGE_EVICTED 1u /* no entry: those have a filling of 1 at least */
/* A table is loaded completely only if 1 / KEPT_FREE of the frames stays free. */
#define KEPT_FREE 4u
/* Of the rest, pages are loaded one by one only into the last 1 / KEPT_SINGLE. */
#define KEPT_SINGLE 8u
#define NEAR 8u     /* pages that are loaded together */
#define WIDE 32u    /* pages that are loaded together while nothing better needs the frames */
#define LOADS 2048u /* on demand, in a second */

/* Maps the words only while they are written: all that is mapped of a BPF map counts as resident.
 */
int words_write(int fd, uint64_t at, const uint32_t *words, uint64_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t to = at * 4, from = to & ~(uint64_t)(page - 1);
	size_t len = (size_t)(to - from + n * 4 + page - 1) & ~(page - 1);
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(p + (to - from), words, n * 4);
	munmap(p, len);
	return 0;
}

static void set_seen(struct paged_table *t, uint32_t page)
{
	t->seen[page / 8] |= (uint8_t)(1u << page % 8);
}

static bool was_seen(const struct paged_table *t, uint32_t page)
{
	return t->seen[page / 8] >> page % 8 & 1;
}

/* The page in this frame was read. */
static void note_seen(struct frames *fs, uint32_t frame)
{
	const struct frame_owner *o = &fs->owners[frame];

	if (o->table)
		set_seen(o->table, o->page);
}

static uint32_t entry_of(const struct frames *fs, uint32_t frame)
{
	return fs->states[frame].filling << FUSEE_FRAME_BITS | frame;
}

static uint32_t frame_of(uint32_t entry)
{
	return entry & ((1u << FUSEE_FRAME_BITS) - 1);
}

static bool is_resident(uint32_t entry)
{
	return entry > PAGE_EVICTED;
}

uint32_t pages_of(uint64_t words)
{
	return (uint32_t)((words + FUSEE_PAGE_WORDS - 1) >> FUSEE_PAGE_SHIFT);
}

/* The page in the frame is none from now on. */
static void retire(struct frames *fs, uint32_t frame)
{
	struct frame_owner *o = &fs->owners[frame];
	uint32_t next = fs->states[frame].filling % MAX_FILLING + 1;

	__atomic_store_n(&fs->states[frame].filling, next, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (o->table)
		o->table->nresident--;
	o->table = NULL;
}

static void give_back(struct frames *fs, uint32_t frame)
{
	retire(fs, frame);
	fs->free[fs->nfree++] = frame;
}

static void own(struct frames *fs, uint32_t frame, struct paged_table *t, uint32_t page)
{
	fs->owners[frame] = (struct frame_owner){t, page, PAGE_REQUIRED};
	t->entries[page] = entry_of(fs, frame);
	t->nresident++;
}

/* ---- eviction ---- */

/* The next frame whose page was not read lately; only: of this table, unless it is NULL. */
static uint32_t find_victim(struct frames *fs, const struct paged_table *only)
{
	uint32_t last = fs->hand;

	for (uint32_t i = 0; i < 2 * fs->n; i++) {
		uint32_t f = fs->hand;

		fs->hand = f + 1 < fs->n ? f + 1 : 0;
		if (!fs->owners[f].table || (only && fs->owners[f].table != only))
			continue;
		if (!__atomic_load_n(&fs->states[f].used, __ATOMIC_RELAXED))
			return f;
		note_seen(fs, f);
		__atomic_store_n(&fs->states[f].used, 0, __ATOMIC_RELAXED);
		last = f;
	}
	return last; /* all were read while the hand went round */
}

static int evict_page(struct bpf_sampler *b, uint32_t frame, uint32_t entry)
{
	static const uint32_t none;
	struct frames *fs = &b->frames;
	struct frame_owner o = fs->owners[frame];

	if (!o.table)
		return -ENOSPC;
	retire(fs, frame);
	o.table->entries[o.page] = entry;
	fs->counts.evicted++;
	/* If this fails, a walk finds another filling than the entry's. */
	(void)words_write(b->slabs.fd, o.table->at + o.page, &none, 1);
	return 0;
}

static int take_frame(struct bpf_sampler *b, const struct paged_table *t, uint32_t *frame)
{
	struct frames *fs = &b->frames;

	if (fs->nfree) {
		*frame = fs->free[--fs->nfree];
		return 0;
	}
	*frame = find_victim(fs, t->nresident > fs->n / 2 ? t : NULL);
	return evict_page(b, *frame, PAGE_EVICTED);
}

/* Was the page loaded for this reason or a worse one, and has no walk read it? */
static bool is_idle(const struct frames *fs, uint32_t f, enum page_reason reason)
{
	const struct frame_owner *o = &fs->owners[f];

	return o->table && o->reason >= reason && !was_seen(o->table, o->page) &&
	       !__atomic_load_n(&fs->states[f].used, __ATOMIC_RELAXED);
}

static uint32_t count_idle(const struct frames *fs, enum page_reason reason)
{
	uint32_t n = 0;

	for (uint32_t f = 0; f < fs->n; f++)
		n += is_idle(fs, f, reason);
	return n;
}

/* Frees frames of idle pages until so many are free, those with the worst reasons first. */
static void evict_idle(struct bpf_sampler *b, uint32_t n, enum page_reason reason)
{
	struct frames *fs = &b->frames;

	while (fs->nfree < n && reason < fs->none_idle) {
		uint32_t worst = fs->none_idle - 1;

		for (uint32_t f = 0; f < fs->n && fs->nfree < n; f++) {
			if (!is_idle(fs, f, worst))
				continue;
			if (evict_page(b, f, PAGE_NEVER))
				return;
			fs->free[fs->nfree++] = f;
		}
		if (fs->nfree >= n || worst == PAGE_REQUIRED)
			return;
		fs->none_idle = worst;
	}
}

/* ---- loading ---- */

/* Writes `count` pages into frames from `frame` on, then their entries. 0 or -errno. */
static int fill(struct bpf_sampler *b, struct paged_table *t, uint32_t page, uint32_t frame,
		uint32_t count)
{
	uint64_t first = (uint64_t)page << FUSEE_PAGE_SHIFT;
	uint64_t n = (uint64_t)count << FUSEE_PAGE_SHIFT;
	int r;

	if (n > t->n - first)
		n = t->n - first;
	r = words_write(b->frames.fd, (uint64_t)frame << FUSEE_PAGE_SHIFT, t->words + first, n);
	if (r)
		return r;
	for (uint32_t i = 0; i < count; i++)
		own(&b->frames, frame + i, t, page + i);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* If this fails, programs do not find the pages, which are evicted at some time. */
	return words_write(b->slabs.fd, t->at + page, t->entries + page, count);
}

/* How many of the free frames that are taken next follow each other. */
static uint32_t run_of(const struct frames *fs, uint32_t most)
{
	uint32_t n = 1, first = fs->free[fs->nfree - 1];

	while (n < most && n < fs->nfree && fs->free[fs->nfree - 1 - n] == first + n)
		n++;
	return n;
}

/* Loads pages from `page` on, as many as fit into free frames that follow each other; the hand
 * takes those first that nothing reads. Returns how many, or -errno. */
static int load_run(struct bpf_sampler *b, struct paged_table *t, uint32_t page, uint32_t most)
{
	struct frames *fs = &b->frames;
	uint32_t run = run_of(fs, most), first = fs->free[fs->nfree - 1];
	int r;

	fs->nfree -= run;
	r = fill(b, t, page, first, run);
	for (uint32_t i = 0; i < run; i++) {
		fs->states[first + i].used = 0;
		if (!r)
			continue;
		t->entries[page + i] = PAGE_NEVER;
		give_back(fs, first + i);
	}
	return r ? r : (int)run;
}

/* Loads the pages from `first` on that are not loaded, of these only (NULL: of all). So many frames
 * stay free. 0 or -errno. */
static int load_absent(struct bpf_sampler *b, struct paged_table *t, uint32_t first, uint32_t end,
		       const struct used_pages *only, uint32_t kept)
{
	const struct frames *fs = &b->frames;

	for (uint32_t page = first, n; page < end; page += n) {
		int r = 1;

		for (n = 0; page + n < end && kept + n < fs->nfree; n++)
			if (is_resident(t->entries[page + n]) ||
			    (only && !used_pages_have(only, page + n)))
				break;
		if (n)
			r = load_run(b, t, page, n);
		if (r < 0)
			return r;
		n = (uint32_t)r;
	}
	return 0;
}

/* The first page of the group that has this page, and the end of that group. */
static uint32_t group_of(const struct paged_table *t, uint32_t page, uint32_t pages, uint32_t *end)
{
	uint32_t first = page / pages * pages;

	*end = pages < t->npages - first ? first + pages : t->npages;
	return first;
}

/* Why those of [first, end) were loaded that have no other reason yet. */
static void set_reason(struct frames *fs, const struct paged_table *t, uint32_t first, uint32_t end,
		       enum page_reason reason)
{
	for (uint32_t page = first; page < end; page++) {
		struct frame_owner *o = &fs->owners[frame_of(t->entries[page])];

		if (is_resident(t->entries[page]) && o->reason == PAGE_REQUIRED)
			o->reason = reason;
	}
	if (reason >= fs->none_idle)
		fs->none_idle = reason + 1;
}

/* How many pages of [first, end) are not loaded. */
static uint32_t count_absent(const struct paged_table *t, uint32_t first, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t page = first; page < end; page++)
		n += !is_resident(t->entries[page]);
	return n;
}

/* Loads the pages in the groups of those that are loaded, in place of pages that were loaded for a
 * worse reason. */
static int load_around(struct bpf_sampler *b, struct paged_table *t, uint32_t pages,
		       enum page_reason reason)
{
	uint32_t end, absent, kept = b->frames.n / KEPT_SINGLE;
	int r = 0;

	for (uint32_t first = 0; first < t->npages && !r; first = end) {
		group_of(t, first, pages, &end);
		absent = count_absent(t, first, end);
		if (!absent || absent == end - first)
			continue;
		evict_idle(b, absent + kept, reason + 1);
		r = load_absent(b, t, first, end, NULL, kept);
		set_reason(&b->frames, t, first, end, reason);
	}
	return r;
}

/* Loads what earlier runs have used, half of the frames at most, in place of pages that no walk has
 * read. */
static int load_used(struct bpf_sampler *b, struct paged_table *t, const struct used_pages *used)
{
	struct frames *fs = &b->frames;
	uint32_t kept = fs->n / KEPT_SINGLE, n = used_pages_count(used);
	int r;

	if (n > fs->n / 2)
		n = fs->n / 2;
	evict_idle(b, n + kept, PAGE_REQUIRED);
	if (fs->nfree > fs->n / 2 + kept)
		kept = fs->nfree - fs->n / 2;
	r = load_absent(b, t, 0, t->npages, used, kept);
	fs->counts.remembered += t->nresident;
	set_reason(fs, t, 0, t->npages, PAGE_REMEMBERED);
	return r;
}

/* Loads what earlier runs have used; then, into frames that would be free otherwise, what this run
 * may use: the nearer it is to that, the more probable. */
static int load_remembered(struct bpf_sampler *b, struct paged_table *t,
			   const struct used_pages *used)
{
	int r = load_used(b, t, used);

	if (!r)
		r = load_around(b, t, NEAR, PAGE_NEAR);
	if (!r)
		r = load_around(b, t, WIDE, PAGE_WIDE);
	return r ? r : load_around(b, t, t->npages, PAGE_FAR);
}

/* Loads a table completely, or nothing of it if it has too many pages. */
static int load_complete(struct bpf_sampler *b, struct paged_table *t)
{
	const struct frames *fs = &b->frames;

	if (t->npages + fs->n / KEPT_FREE > fs->nfree + count_idle(fs, PAGE_NEAR))
		return 0;
	evict_idle(b, t->npages + fs->n / KEPT_SINGLE, PAGE_NEAR);
	return load_absent(b, t, 0, t->npages, NULL, 0);
}

/* The pages around it too, whose functions are of the same part of the program, in frames that are
 * free and in those of guesses. */
static void load_near(struct bpf_sampler *b, struct paged_table *t, uint32_t page)
{
	uint32_t end, first = group_of(t, page, NEAR, &end);
	uint32_t least = count_absent(t, first, end) + b->frames.n / KEPT_SINGLE;

	evict_idle(b, least, PAGE_NEAR);
	if (b->frames.nfree >= least)
		(void)load_absent(b, t, first, end, NULL, 0);
}

static int load_one(struct bpf_sampler *b, struct paged_table *t, uint32_t page)
{
	struct frames *fs = &b->frames;
	uint32_t frame;
	int r = take_frame(b, t, &frame);

	if (r)
		return r;
	/* for one round of the hand at least */
	__atomic_store_n(&fs->states[frame].used, 1, __ATOMIC_RELAXED);
	fs->counts.loaded++;
	fs->counts.reloaded += t->entries[page] == PAGE_EVICTED;
	r = fill(b, t, page, frame, 1);
	if (r) {
		t->entries[page] = PAGE_EVICTED;
		give_back(fs, frame);
		return r;
	}
	load_near(b, t, page);
	return 0;
}

/* May another page be loaded? A load takes some 5 us, and frames that are too few must not take the
 * time that profiling may take. */
static bool may_load(struct frames *fs)
{
	uint64_t now;

	if (!fs->loads) {
		now = clock_now();
		if (now - fs->loads_ns > 1000000000u)
			fs->loads_ns = now - 1000000000u;
		fs->loads = (now - fs->loads_ns) * LOADS / 1000000000u;
		if (!fs->loads) {
			fs->counts.refused++;
			return false;
		}
		fs->loads_ns = now;
	}
	fs->loads--;
	return true;
}

void pages_load(struct bpf_sampler *b, struct paged_table *t, const uint32_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (pages[i] >= t->npages)
			continue;
		set_seen(t, pages[i]);
		if (!is_resident(t->entries[pages[i]]) &&
		    (!may_load(&b->frames) || load_one(b, t, pages[i])))
			return;
	}
}

/* ---- tables ---- */

const uint8_t *pages_seen(struct bpf_sampler *b, struct paged_table *t)
{
	struct frames *fs = &b->frames;

	for (uint32_t f = 0; f < fs->n; f++)
		if (fs->owners[f].table == t &&
		    __atomic_load_n(&fs->states[f].used, __ATOMIC_RELAXED))
			note_seen(fs, f);
	return t->seen;
}

void pages_free(struct paged_table *t)
{
	free(t->entries);
	free(t->seen);
	t->entries = NULL;
	t->seen = NULL;
}

int pages_add(struct bpf_sampler *b, struct paged_table *t, const struct used_pages *used)
{
	int r;

	t->npages = pages_of(t->n);
	t->nresident = 0;
	t->entries = calloc(t->npages, sizeof(*t->entries));
	t->seen = calloc((t->npages + 7) / 8, 1);
	if (!t->entries || !t->seen) {
		pages_free(t);
		return -ENOMEM;
	}
	r = words_write(b->slabs.fd, t->at, t->entries, t->npages);
	if (!r && !(b->frames.half && b->frames.nfree < b->frames.n / 2))
		r = used ? load_remembered(b, t, used) : load_complete(b, t);
	if (r)
		pages_remove(b, t);
	return r;
}

void pages_remove(struct bpf_sampler *b, struct paged_table *t)
{
	for (uint32_t i = t->npages; i--;)
		if (is_resident(t->entries[i]))
			give_back(&b->frames, frame_of(t->entries[i]));
	pages_free(t);
}

int frames_init(struct bpf_sampler *b)
{
	struct frames *fs = &b->frames;

	fs->owners = calloc(fs->n, sizeof(*fs->owners));
	fs->free = calloc(fs->n, sizeof(*fs->free));
	if (!fs->owners || !fs->free)
		return -ENOMEM;
	for (uint32_t f = fs->n; f--;)
		give_back(fs, f);
	fs->loads = LOADS;
	fs->loads_ns = clock_now();
	fs->none_idle = PAGE_REQUIRED + 1;
	return 0;
}

void frames_fini(struct bpf_sampler *b)
{
	free(b->frames.owners);
	free(b->frames.free);
}
