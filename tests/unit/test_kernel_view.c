/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/pipeline core/bpf
/* The states of a process in the kernel's view. The map chunks are the test's memory, where it
 * writes what the kernel would; only the maps of pids and slabs are the kernel's. */
#include <bpf/bpf.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/internal/sampler_state.h"
#include "pipeline/internal/kernel_view.h"
#include "test.h"

#define CHUNKS 40u
#define SECOND 1000000000ull

struct world {
	struct bpf_sampler b;
	struct sampler_settings settings;
	struct files files;
	struct file file;
	struct fusee_segment segment;
	struct inspection inspection;
	struct kernel_views views;
	struct process *p;
	struct kernel_view *v;
	int rereads;
	bool later; /* what is read comes later */
	bool refused;
};

static bool reread(void *arg, struct process *p)
{
	((struct world *)arg)->rereads++;
	return !((struct world *)arg)->later;
}

static bool selected(void *arg, pid_t pid)
{
	return !((struct world *)arg)->refused;
}

static void forked(void *arg, const struct process *parent, struct process *child)
{
	kernel_view_forked(parent, child);
}

static void freed(void *arg, struct process *p)
{
	kernel_view_freed(arg, p);
}

/* A process that maps one file, which is ready. It has been sampled. */
static void world_new(struct world *w)
{
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);
	const struct process_owner owner = {.bytes = sizeof(struct kernel_view),
					    .forked = forked,
					    .freed = freed,
					    .arg = &w->views};
	struct process_mapping m = {.lo = 0x1000, .hi = 0x2000, .file = &w->file};

	*w = (struct world){0};
	w->b.fds.pids = bpf_map_create(BPF_MAP_TYPE_HASH, "pids", 4, sizeof(struct pid_entry), 64,
				       NULL);
	if (w->b.fds.pids < 0)
		SKIP("BPF maps need root, or CAP_BPF");
	w->b.settings = &w->settings;
	w->b.unwinder[0] = w->b.unwinder[1] = -1;
	w->b.slabs.n = 1;
	w->b.slabs.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slabs", 4, SLAB_BYTES, 1, &mmapable);
	w->b.chunks.n = CHUNKS;
	w->b.chunks.at = calloc(CHUNKS, sizeof(struct map_chunk));
	CHECK(w->b.slabs.fd >= 0 && w->b.chunks.at);
	CHECK_INT(slabs_init(&w->b), 0);
	CHECK_INT(chunks_init(&w->b), 0);
	w->segment = (struct fusee_segment){.filesz = 1 << 20, .memsz = 1 << 20, .flags = 5};
	w->inspection = (struct inspection){.nsegments = 1, .segments = &w->segment};
	w->file = (struct file){
		.id = 1, .state = FILE_READY, .fd = -1, .inspection = &w->inspection};
	w->views = (struct kernel_views){
		.bpf = &w->b, .files = &w->files, .selected = selected, .reread = reread, .arg = w};
	CHECK_INT(process_table_new(&w->views.processes, &owner), 0);
	w->p = process_get(w->views.processes, getpid());
	w->v = kernel_view_of(w->p);
	CHECK_INT(process_map(w->p, &m), 0);
	kernel_view_sampled(&w->views, w->p);
}

static void world_free(struct world *w)
{
	process_table_free(w->views.processes);
	CHECK_INT(w->b.chunks.nfree, CHUNKS - 1);
	chunks_fini(&w->b);
	slabs_fini(&w->b);
	close(w->b.slabs.fd);
	close(w->b.fds.pids);
	free(w->b.chunks.at);
}

static void update(struct world *w)
{
	kernel_views_update(&w->views, clock_now());
	CHECK_INT(w->v->state, VIEW_PUBLISHED);
}

static struct map_chunk *chunk_of(const struct world *w)
{
	return &w->b.chunks.at[w->v->published.chunk];
}

/* The mapping of this index in the list. */
static struct chunk_mapping *mapping_at(const struct world *w, uint32_t i)
{
	struct map_chunk *c = chunk_of(w);

	for (; i >= CHUNK_MAPPINGS && c->next; i -= CHUNK_MAPPINGS)
		c = &w->b.chunks.at[c->next];
	CHECK(i < c->n);
	return &c->mappings[i];
}

/* As vm_unmapped_area does in the kernel, over the first mapping. */
static uint64_t give_out(struct world *w)
{
	struct map_chunk *c = chunk_of(w);
	uint64_t now = clock_now();

	c->mappings[0].changed = c->changed = w->b.chunks.at[0].changed = now;
	return now;
}

TEST_IN_WORLD(published)
{
	struct map_chunk *c;

	CHECK(w->v->dirty && w->v->state == VIEW_ABSENT);
	CHECK(kernel_views_are_pending(&w->views));
	kernel_views_update(&w->views, 0);
	CHECK_INT(w->v->state, VIEW_PUBLISHED);
	c = chunk_of(w);
	CHECK(!c->changed && !c->blurred && !c->mappings[0].changed); /* the kernel may unwind */
	/* a sample alone publishes nothing */
	kernel_view_sampled(&w->views, w->p);
	CHECK(!w->v->dirty);
	kernel_view_mark_dirty(&w->views, w->p);
	update(w);
}

TEST_IN_WORLD(a_range_that_changed)
{
	struct process_mapping other = {.lo = 0x4000, .hi = 0x5000};
	uint64_t when;

	other.file = &w->file;
	CHECK_INT(process_map(w->p, &other), 0);
	update(w);
	when = give_out(w);
	kernel_views_update(&w->views, when - 1);
	CHECK_INT(w->v->state, VIEW_CHANGED);
	CHECK(kernel_views_are_pending(&w->views));
	/* published again for another reason: that range is not to be trusted, the other is */
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, when - 1);
	CHECK(chunk_of(w)->mappings[0].changed == when && !chunk_of(w)->mappings[1].changed);
	CHECK(chunk_of(w)->as_of < when);
	/* no record says what is mapped there: /proc is read */
	kernel_views_update(&w->views, when);
	CHECK(w->v->state == VIEW_CHANGED && !w->rereads);
	kernel_views_update(&w->views, when + SECOND);
	CHECK(w->v->state == VIEW_PUBLISHED && w->rereads == 1);
	CHECK(chunk_of(w)->as_of >= when);
}

TEST_IN_WORLD(mappings_that_are_read_later)
{
	uint64_t when;

	update(w);
	w->later = true;
	when = give_out(w);
	kernel_views_update(&w->views, when + SECOND);
	kernel_views_update(&w->views, when + SECOND + 1);
	CHECK(w->v->state == VIEW_CHANGED && w->rereads == 1);
	/* a reading from before the change says nothing */
	kernel_view_was_read(w->p, when - 1);
	kernel_views_update(&w->views, when + SECOND + 2);
	CHECK(w->v->state == VIEW_CHANGED && w->rereads == 1);
	kernel_view_was_read(w->p, when + SECOND);
	kernel_view_mark_dirty(&w->views, w->p);
	for (int i = 3; i < 5; i++)
		kernel_views_update(&w->views, when + SECOND + (uint64_t)i);
	CHECK(w->v->state == VIEW_PUBLISHED && w->rereads == 1 && chunk_of(w)->as_of >= when);
}

TEST_IN_WORLD(a_range_with_other_code)
{
	struct process_mapping next = {.lo = 0x1000, .hi = 0x2000, .offset = 0x3000};
	uint64_t when;

	update(w);
	when = give_out(w);
	/* a record says what is mapped there: it is published at once, and no mark holds for it */
	next.file = &w->file;
	next.since = when + 1;
	kernel_view_covered(&w->views, w->p, &next, 1);
	CHECK_INT(process_map(w->p, &next), 0);
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, when - 1);
	CHECK(chunk_of(w)->n == 1 && !chunk_of(w)->mappings[0].changed);
	kernel_views_update(&w->views, when + 2);
	CHECK(w->v->state == VIEW_PUBLISHED && !w->rereads && chunk_of(w)->as_of >= when);
}

TEST_IN_WORLD(more_ranges_than_are_remembered)
{
	uint64_t when;

	for (uint64_t i = 1; i <= MAX_MARKS; i++) {
		struct process_mapping m = {
			.lo = i << 16, .hi = (i << 16) + 0x1000, .file = &w->file};

		CHECK_INT(process_map(w->p, &m), 0);
	}
	update(w);
	when = give_out(w);
	for (uint32_t i = 0; i < MAX_MARKS; i++)
		mapping_at(w, i)->changed = when;
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, when - 1);
	CHECK(!chunk_of(w)->blurred);
	mapping_at(w, MAX_MARKS)->changed = when;
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, when - 1);
	CHECK(chunk_of(w)->blurred == when);
}

#define TWO_ABOVE (2ull << 16) /* the mapping between two ranges is in neither */

/* Gives out memory in [lo, hi), and two mappings above, while a list is being written. */
struct giver {
	struct map_chunk *c;
	uint64_t lo, hi, when;
	atomic_bool ready, done, hit;
};

static void *give_out_meanwhile(void *arg)
{
	struct giver *g = arg;
	uint32_t version;

	atomic_store(&g->ready, true);
	while (!atomic_load(&g->done)) {
		version = __atomic_load_n(&g->c->version, __ATOMIC_SEQ_CST);
		if (!(version & 1))
			continue;
		g->c->unmarked = (struct unmarked_ranges){
			version, 2, {{g->lo, g->hi}, {g->lo + TWO_ABOVE, g->hi + TWO_ABOVE}}};
		__atomic_store_n(&g->c->blurred, g->when, __ATOMIC_SEQ_CST);
		atomic_store(&g->hit, __atomic_load_n(&g->c->version, __ATOMIC_SEQ_CST) == version);
		break;
	}
	return NULL;
}

/* A list of many mappings is written once more; true: memory was given out meanwhile. */
static bool write_and_give_out(struct world *w, struct giver *g)
{
	pthread_t thread;

	for (uint64_t i = 1; i <= 500; i++) {
		struct process_mapping m = {
			.lo = i << 16, .hi = (i << 16) + 0x1000, .file = &w->file};

		CHECK_INT(process_map(w->p, &m), 0);
	}
	update(w);
	g->c = chunk_of(w);
	g->when = clock_now();
	CHECK_INT(pthread_create(&thread, NULL, give_out_meanwhile, g), 0);
	while (!atomic_load(&g->ready))
		;
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, 0);
	atomic_store(&g->done, true);
	CHECK_INT(pthread_join(thread, NULL), 0);
	return atomic_load(&g->hit);
}

TEST(given_out_while_the_list_is_written)
{
	uint64_t lo = 400ull << 16, marked = 0;
	bool hit = false;

	/* a thread that waits for its CPU is late */
	for (int i = 0; i < 1000 && !hit; i++) {
		struct giver g = {.lo = lo - 1, .hi = lo + 1};
		struct world w;

		world_new(&w);
		hit = write_and_give_out(&w, &g);
		CHECK(!hit || !g.c->blurred); /* the stacks of other mappings count */
		for (const struct map_chunk *c = g.c; hit && c;
		     c = c->next ? &w.b.chunks.at[c->next] : NULL)
			for (uint32_t k = 0; k < c->n; k++)
				if (c->mappings[k].changed) {
					CHECK(c->mappings[k].lo == lo ||
					      c->mappings[k].lo == lo + TWO_ABOVE);
					CHECK(c->mappings[k].changed == g.when);
					marked++;
				}
		world_free(&w);
	}
	CHECK(hit && marked == 2);
}

/* The program that notes it is late: the list is complete by then. */
TEST_IN_WORLD(given_out_when_the_list_was_written)
{
	struct map_chunk *c;
	uint64_t when;

	update(w);
	when = give_out(w);
	c = chunk_of(w);
	c->mappings[0].changed = 0;
	c->unmarked = (struct unmarked_ranges){
		c->version - 1, 1, {{c->mappings[0].lo, c->mappings[0].lo + 1}}};
	c->blurred = when;
	kernel_views_update(&w->views, when - 1);
	CHECK(!c->blurred && c->mappings[0].changed == when);
	/* of an older list it is not known where it was */
	c->unmarked.version -= 2;
	c->blurred = c->changed = w->b.chunks.at[0].changed = when + 1;
	kernel_views_update(&w->views, when);
	CHECK(c->blurred == when + 1 && c->mappings[0].changed == when);
}

TEST_IN_WORLD(outdated_stacks)
{
	struct process_mapping to = {.lo = 0x1000, .hi = 0x2000, .since = 40};
	struct walk *walk = calloc(1, sizeof(*walk));
	struct process *other;
	uint32_t version;

	for (int i = 0; i < 10; i++) {
		kernel_view_mark_dirty(&w->views, w->p);
		update(w);
	}
	version = w->v->published.version;
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	kernel_view_covered(&w->views, w->p, &to, 7);
	/* those with code of the file */
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	walk->frames[walk->n++].file = 7;
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	CHECK(!kernel_view_is_outdated(w->p, 30, w->p->id, version, walk));
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id, version - 1, walk));
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, version + 1, walk));
	walk->n = 0;
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, version - 1, walk));
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id + 1, version + 2,
				      walk)); /* its parent's */
	/* of several files: those with code of one */
	to.since = 45;
	kernel_view_covered(&w->views, w->p, &to, 8);
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	walk->frames[walk->n++].file = 7;
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	walk->frames[0].file = 8;
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	walk->n = 0;
	/* of more than are kept, or not known: any */
	to.since = 46;
	kernel_view_covered(&w->views, w->p, &to, 0);
	CHECK(kernel_view_is_outdated(w->p, 50, w->p->id, version, walk));
	/* withdrawn and published again, in another chunk, it is not for ever */
	kernel_view_withdraw(&w->views, w->p);
	CHECK_INT(w->v->state, VIEW_ABSENT);
	other = process_get(w->views.processes, getpid() + 1);
	kernel_view_sampled(&w->views, other);
	kernel_views_update(&w->views, clock_now());
	kernel_view_sampled(&w->views, w->p);
	update(w);
	CHECK(!kernel_view_is_outdated(w->p, 50, w->p->id, w->v->published.version, walk));
	free(walk);
}

/* Memory is mapped for code, and other code into it before anything there was published. */
TEST_IN_WORLD(code_that_was_not_published)
{
	struct process_mapping memory = {.lo = 0x8000, .hi = 0xa000};
	struct process_mapping to = {.lo = 0x9000, .hi = 0xa000};
	struct walk *walk = calloc(1, sizeof(*walk));
	uint32_t version;

	walk->frames[walk->n++].file = 1;
	memory.since = clock_now();
	CHECK_INT(process_map(w->p, &memory), 0);
	update(w);
	version = w->v->published.version;
	to.since = w->v->written + 1;
	kernel_view_covered(&w->views, w->p, &to, 0);
	CHECK(!kernel_view_is_outdated(w->p, to.since, w->p->id, version, walk));
	CHECK(!kernel_view_is_outdated(w->p, to.since, w->p->id, version - 2, walk));
	/* but for the stack of a child that is not known as such yet */
	CHECK(kernel_view_is_outdated(w->p, to.since, w->p->id + 1, version, walk));
	free(walk);
}

/* Of each case one thing makes it a change of what was published. */
static bool is_discarded(struct world *w, const struct process_mapping *to, uint32_t version)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	bool outdated;

	walk->frames[walk->n++].file = 1;
	w->v->covered = w->v->ncovered = w->v->covered_version = 0;
	kernel_view_covered(&w->views, w->p, to, 1);
	outdated = kernel_view_is_outdated(w->p, to->since + 1, w->p->id, version, walk);
	free(walk);
	return outdated;
}

TEST_IN_WORLD(code_that_was_published)
{
	struct process_mapping memory = {.lo = 0x8000, .hi = 0xa000, .since = 3};
	struct process_mapping to = {.lo = 0x9000, .hi = 0xa000};
	struct process_mapping far = {.lo = 0x7f0000001000, .hi = 0x7f0000002000};
	uint32_t before;

	CHECK_INT(process_map(w->p, &memory), 0);
	update(w);
	/* a walk over an earlier version may have ended after it was mapped */
	before = w->v->published.version;
	to.since = w->v->written;
	CHECK(is_discarded(w, &to, before));
	to.since = 0;
	CHECK(is_discarded(w, &to, before));
	to.since = w->v->written + 1;
	CHECK(!is_discarded(w, &to, before));
	/* its memory was stepped, so it is code */
	kernel_view_stepped(&w->views, w->p, &memory);
	update(w);
	to.since = w->v->written + 1;
	CHECK(is_discarded(w, &to, w->v->published.version));
	/* mapped anew there before anything else was published: the kernel has what it had */
	memory.since = w->v->written + 1;
	CHECK_INT(process_map(w->p, &memory), 0);
	to.since = w->v->written + 2;
	CHECK(is_discarded(w, &to, w->v->published.version));
	/* in a further chunk of a list; a part of it */
	for (uint64_t i = 0; i < 2 * CHUNK_MAPPINGS; i++) {
		far.lo += 0x10000;
		far.hi = far.lo + 0x1000;
		far.file = &w->file;
		CHECK_INT(process_map(w->p, &far), 0);
	}
	kernel_view_mark_dirty(&w->views, w->p);
	update(w);
	CHECK(chunk_of(w)->next);
	to = (struct process_mapping){.since = w->v->written + 1};
	to.lo = far.hi - 1;
	to.hi = far.hi + 1;
	CHECK(is_discarded(w, &to, w->v->published.version));
	to.lo = far.hi;
	CHECK(!is_discarded(w, &to, w->v->published.version));
	/* withdrawn: a walk may have ended just before */
	kernel_view_withdraw(&w->views, w->p);
	to.since = clock_now();
	CHECK(is_discarded(w, &to, before));
}

/* A child runs over its parent's mappings until its own are published. */
TEST_IN_WORLD(code_of_a_parent)
{
	struct process_mapping to = {.lo = 0x1000, .hi = 0x2000};
	struct walk *walk = calloc(1, sizeof(*walk));
	struct process *child;

	update(w);
	child = process_fork(w->views.processes, getpid(), getpid() + 1);
	to.since = clock_now();
	kernel_view_covered(&w->views, child, &to, 1);
	CHECK(kernel_view_is_outdated(child, to.since, w->p->id, w->v->published.version, walk));
	free(walk);
}

TEST_IN_WORLD(no_room)
{
	uint64_t now = clock_now();
	uint32_t nfree = w->b.chunks.nfree;

	w->b.chunks.nfree = 0;
	kernel_views_update(&w->views, now);
	CHECK_INT(w->v->state, VIEW_NO_ROOM);
	w->b.chunks.nfree = nfree;
	kernel_view_sampled(&w->views, w->p);
	kernel_views_update(&w->views, now + SECOND / 2); /* too early */
	CHECK_INT(w->v->state, VIEW_NO_ROOM);
	kernel_view_sampled(&w->views, w->p);
	kernel_views_update(&w->views, now + 2 * SECOND);
	CHECK_INT(w->v->state, VIEW_PUBLISHED);
}

/* A running process, of one mapping, which is sampled. */
static struct process *add_sampled(struct world *w)
{
	struct process_mapping m = {.lo = 0x1000, .hi = 0x2000, .file = &w->file};
	pid_t pid = fork();
	struct process *p;

	CHECK(pid >= 0);
	while (!pid)
		pause();
	p = process_get(w->views.processes, pid);
	CHECK(p && !process_map(p, &m));
	kernel_view_sampled(&w->views, p);
	return p;
}

static void end_child(const struct process *p)
{
	CHECK(!kill(p->pid, SIGKILL) && waitpid(p->pid, NULL, 0) == p->pid);
}

/* Other processes have all chunks: a process that is sampled gets those of the process that had no
 * sample for longest, and none if all of them are sampled. */
TEST_IN_WORLD(room_of_idle_processes)
{
	uint64_t now = clock_now();
	struct process *others[CHUNKS - 1], *last;

	update(w);
	kernel_view_withdraw(&w->views, w->p);
	for (int i = 0; i < (int)CHUNKS - 1; i++) {
		others[i] = add_sampled(w);
		kernel_views_update(&w->views, now + (uint64_t)i * SECOND / 100);
		CHECK_INT(kernel_view_of(others[i])->state, VIEW_PUBLISHED);
	}
	kernel_views_update(&w->views, now + 10 * SECOND);
	kernel_view_sampled(&w->views, w->p);
	kernel_view_sampled(&w->views, others[0]);
	kernel_views_update(&w->views, now + 10 * SECOND + 1);
	CHECK_INT(w->v->state, VIEW_PUBLISHED);
	for (int i = 0; i < (int)CHUNKS - 1; i++) {
		bool longest = i == 1;

		CHECK_INT(kernel_view_of(others[i])->state, longest ? VIEW_ABSENT : VIEW_PUBLISHED);
		if (!longest)
			kernel_view_sampled(&w->views, others[i]);
	}
	last = add_sampled(w);
	kernel_views_update(&w->views, now + 11 * SECOND + 2);
	CHECK_INT(kernel_view_of(last)->state, VIEW_NO_ROOM);
	end_child(last);
	for (int i = 0; i < (int)CHUNKS - 1; i++)
		end_child(others[i]);
}

TEST_IN_WORLD(ended_and_refused)
{
	update(w);
	w->refused = true;
	kernel_view_mark_dirty(&w->views, w->p);
	kernel_views_update(&w->views, clock_now());
	CHECK_INT(w->v->state, VIEW_ABSENT);
	w->refused = false;
	kernel_view_mark_dirty(&w->views, w->p);
	update(w);
	CHECK(process_thread_exited(w->views.processes, w->p, getpid(), clock_now()));
	kernel_view_withdraw(&w->views, w->p);
	kernel_view_sampled(&w->views, w->p);
	CHECK(w->v->state == VIEW_ABSENT && !w->v->dirty);
}

/* A file that becomes ready is published; an answer about another file publishes nothing. */
TEST_IN_WORLD(files_that_become_ready)
{
	uint32_t version;

	w->file.state = FILE_PENDING;
	update(w);
	CHECK_INT(w->b.chunks.at[w->v->published.chunk].n, 0);
	version = w->v->published.version;
	w->files.answers++;
	kernel_views_update(&w->views, clock_now());
	CHECK_INT(w->v->published.version, version);
	w->file.state = FILE_READY;
	w->files.answers++;
	kernel_views_update(&w->views, clock_now());
	CHECK(w->v->published.version > version);
	CHECK_INT(w->b.chunks.at[w->v->published.chunk].n, 1);
	/* renewed: its tables are others */
	version = w->v->published.version;
	w->file.renewed = true;
	w->files.answers++;
	kernel_views_update(&w->views, clock_now());
	CHECK(w->v->published.version > version);
}

TEST_IN_WORLD(code_without_a_file)
{
	struct process_mapping m = {.lo = 0x8000, .hi = 0x9000, .since = 3};
	struct process *child;

	CHECK_INT(process_map(w->p, &m), 0);
	update(w);
	CHECK_INT(w->b.chunks.at[w->v->published.chunk].n, 1);
	kernel_view_stepped(&w->views, w->p, &m);
	CHECK(w->v->dirty);
	update(w);
	CHECK_INT(w->b.chunks.at[w->v->published.chunk].n, 2);
	kernel_view_stepped(&w->views, w->p, &m);
	CHECK(!w->v->dirty);
	child = process_fork(w->views.processes, getpid(), getpid() + 1);
	kernel_view_sampled(&w->views, child);
	kernel_views_update(&w->views, clock_now());
	CHECK_INT(w->b.chunks.at[kernel_view_of(child)->published.chunk].n, 2);
	/* many come and go: those that are no more leave the list */
	for (uint64_t i = 0; i < 100; i++) {
		m.since = 10 + i;
		CHECK_INT(process_map(w->p, &m), 0);
		kernel_view_stepped(&w->views, w->p, &m);
	}
	CHECK(w->v->nanonymous <= 8);
}
