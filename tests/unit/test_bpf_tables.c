/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/bpf
/* What is published to the BPF sampler: room for tables, lists of map chunks, versions. The memory
 * is the test's; only the maps of pids and slabs are the kernel's, which needs the right to make
 * maps. */
#include <bpf/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bpf/internal/sampler_state.h"
#include "test.h"
#include "unwind/claims.h"

#define SLABS 2u
#define CHUNKS 20u
#define FILES 64u

struct world {
	struct bpf_sampler b;
	struct inspection inspection;
	struct fusee_segment segment;
	struct inspection_slab slabs[FILES];
	struct file files[FILES];
	uint32_t *words;
	struct process_table *processes;
};

static void world_new(struct world *w, uint64_t table_words)
{
	static const struct process_owner owner = {.bytes = sizeof(struct published)};
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);

	*w = (struct world){0};
	w->b.fds.pids = bpf_map_create(BPF_MAP_TYPE_HASH, "pids", 4, sizeof(struct pid_entry), 64,
				       NULL);
	if (w->b.fds.pids < 0)
		SKIP("BPF maps need root, or CAP_BPF");
	w->b.slabs.n = SLABS;
	w->b.chunks.n = CHUNKS;
	w->b.unwinder[1] = -1;
	w->b.slabs.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slabs", 4, SLAB_BYTES, SLABS,
				       &mmapable);
	w->b.chunks.at = calloc(CHUNKS, sizeof(struct map_chunk));
	w->words = calloc(table_words, 4);
	CHECK(w->b.slabs.fd >= 0 && w->b.chunks.at && w->words);
	for (uint64_t i = 0; i < table_words; i++)
		w->words[i] = (uint32_t)i * 2654435761u;
	CHECK_INT(slabs_init(&w->b), 0);
	CHECK_INT(chunks_init(&w->b), 0);
	CHECK_INT(process_table_new(&w->processes, &owner), 0);
	w->segment = (struct fusee_segment){.filesz = 1 << 20, .memsz = 1 << 20, .flags = 5};
	w->inspection = (struct inspection){.nsegments = 1, .segments = &w->segment};
	for (uint32_t i = 0; i < FILES; i++) {
		w->slabs[i] = (struct inspection_slab){.words = w->words, .n = table_words};
		w->files[i] = (struct file){.id = i + 1,
					    .state = FILE_READY,
					    .fd = -1,
					    .inspection = &w->inspection,
					    .slabs = {&w->slabs[i]}};
	}
}

/* What lies there is the file's table, as the kernel sees it. */
static void check_table(struct world *w, const struct slab_range *t)
{
	uint32_t *p = mmap(NULL, SLABS * SLAB_BYTES, PROT_READ, MAP_SHARED, w->b.slabs.fd, 0);

	CHECK(p != MAP_FAILED);
	CHECK(!memcmp(p + t->at, w->words, t->words * 4ull));
	munmap(p, SLABS * SLAB_BYTES);
}

static void world_free(struct world *w)
{
	process_table_free(w->processes);
	chunks_fini(&w->b);
	slabs_fini(&w->b);
	close(w->b.slabs.fd);
	free(w->b.chunks.at);
	free(w->words);
	close(w->b.fds.pids);
}

static struct published *published(struct process *p)
{
	return process_owner(p);
}

static int publish(struct world *w, struct process *p)
{
	return bpf_publish(&w->b, published(p), &(struct publication){.process = p});
}

/* Is this mapping of the process in its chunks? */
static bool is_published(struct world *w, struct process *p, uint32_t mapping)
{
	for (uint32_t e = published(p)->chunk; e; e = w->b.chunks.at[e].next)
		for (uint32_t i = 0; i < w->b.chunks.at[e].n; i++)
			if (w->b.chunks.at[e].mappings[i].lo == p->mappings[mapping].lo)
				return true;
	return false;
}

/* A process that maps n of the files, one after the other. */
static struct process *new_process(struct world *w, pid_t pid, uint32_t first, uint32_t n)
{
	struct process *p = process_get(w->processes, pid);

	for (uint32_t i = first; i < first + n; i++) {
		struct process_mapping m = {.lo = 0x1000000ull * (i + 1),
					    .hi = 0x1000000ull * (i + 1) + 4096,
					    .file = &w->files[i % FILES]};

		CHECK_INT(process_map(p, &m), 0);
	}
	return p;
}

static bool has_entry(struct world *w, pid_t pid, uint64_t *id)
{
	struct pid_entry entry;

	if (bpf_map_lookup_elem(w->b.fds.pids, &pid, &entry))
		return false;
	*id = entry.process;
	return true;
}

/* Looks for a table that is there while the list still has this version. */
struct watcher {
	const struct map_chunk *c;
	const uint32_t *word; /* of the table */
	uint32_t version;
	atomic_bool ready, done, seen;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;

	atomic_store(&w->ready, true);
	while (!atomic_load(&w->done) && !atomic_load(&w->seen))
		if (__atomic_load_n(w->word, __ATOMIC_SEQ_CST))
			atomic_store(&w->seen, __atomic_load_n(&w->c->version, __ATOMIC_SEQ_CST) ==
						       w->version);
	return NULL;
}

/* A process maps another file; true: its table was there before the list was written. */
static bool place_and_watch(struct world *w, const uint32_t *slabs)
{
	struct process *p = new_process(w, 100, 0, 1);
	struct watcher watcher = {0};
	const struct slab_range *t;
	pthread_t thread;

	CHECK_INT(publish(w, p), 0);
	watcher.c = &w->b.chunks.at[published(p)->chunk];
	watcher.version = watcher.c->version;
	t = &watcher.c->mappings[0].table[0];
	watcher.word = slabs + t->at + t->words + 1;
	CHECK(!*watcher.word);
	CHECK_INT(pthread_create(&thread, NULL, watch, &watcher), 0);
	while (!atomic_load(&watcher.ready))
		;
	new_process(w, 100, 1, 1);
	CHECK_INT(publish(w, p), 0);
	CHECK(*watcher.word == w->words[1]);
	atomic_store(&watcher.done, true);
	CHECK_INT(pthread_join(thread, NULL), 0);
	return atomic_load(&watcher.seen);
}

/* A tick is discarded while the list is written, so that tables are placed before. */
TEST(tables_are_placed_before_the_list_is_written)
{
	bool seen = false;

	/* a thread that waits for its CPU is late */
	for (int i = 0; i < 1000 && !seen; i++) {
		struct world w;
		uint32_t *slabs;

		world_new(&w, 100000);
		slabs = mmap(NULL, SLABS * SLAB_BYTES, PROT_READ, MAP_SHARED, w.b.slabs.fd, 0);
		CHECK(slabs != MAP_FAILED);
		seen = place_and_watch(&w, slabs);
		munmap(slabs, SLABS * SLAB_BYTES);
		world_free(&w);
	}
	CHECK(seen);
}

TEST_IN_WORLD(a_process_and_its_tables, 1000)
{
	struct map_chunk *e;
	struct process *p;
	uint32_t version;
	uint64_t id;

	for (uint32_t i = 0; i < 1000; i++)
		w->words[i] = i * 7;
	p = new_process(w, 100, 0, 3);
	CHECK_INT(publish(w, p), 0);
	CHECK(has_entry(w, 100, &id) && id == p->id);
	e = &w->b.chunks.at[published(p)->chunk];
	CHECK_INT(e->n, 3);
	CHECK(!(e->version & 1) && e->version == published(p)->version);
	CHECK(!e->changed && !e->blurred); /* walked at once */
	for (uint32_t i = 0; i < 3; i++) {
		const struct slab_range *at = &e->mappings[i].table[0];

		CHECK_INT(at->words, 1000);
		check_table(w, at);
		CHECK_INT(e->mappings[i].table[1].words, 0);
	}
	/* a file that is not ready any more is skipped; the version moves on */
	w->files[1].state = FILE_PENDING;
	version = e->version;
	CHECK_INT(publish(w, p), 0);
	CHECK_INT(e->n, 2);
	CHECK(e->version > version && !(e->version & 1));
	CHECK(is_published(w, p, 0) && !is_published(w, p, 1));
	bpf_publish_withdraw(&w->b, published(p));
	CHECK(!has_entry(w, 100, &id));
	CHECK(e->version & 1);
	CHECK_INT(published(p)->chunk, 0);
}

/* A language unwinder that is there, and has claimed code of one file, in three ranges of which one
 * lies outside of the mapping. */
static void add_language(struct world *w, struct plugin_set *set)
{
	static const struct fusee_unwinder_ops ops = {.size = sizeof(ops)};
	static const struct fusee_plugin native = {.name = "n", .ops = &ops};
	static struct fusee_instance in = {.descriptor = &native};
	static struct fusee_instance *instances[] = {&in, &in, &in};
	static const struct inspection_claim claims[] = {
		{0x10, 0x20, 1ull << 40, FUSEE_CLAIM_STEP},
		{0x100, 0x200, 5, FUSEE_CLAIM_STEP | FUSEE_CLAIM_READS_NOTHING},
		{0x2000, 0x3000, 6, FUSEE_CLAIM_STEP}};
	static struct inspection_slab language = {.nclaims = 3, .claims = claims, .n = 4};

	*set = (struct plugin_set){instances, 3};
	w->b.set = set;
	w->b.languages[1] = (struct language_program){.state = LANGUAGE_READY};
	language.words = w->words;
	w->files[1].slabs[1] = &language;
	w->files[1].claimed = true;
}

TEST_IN_WORLD(claims_divide_a_mapping, 100)
{
	static const struct inspection_claim others[] = {{0x20, 0x30, 9, 1}, {0x150, 0x160, 8, 1}};
	static const uint32_t two[] = {1, 2};
	static const struct inspection_slab other = {
		.nclaims = 2, .claims = others, .words = two, .n = 2};
	struct map_chunk *e;
	struct plugin_set set;
	struct process *p, *q;
	uint64_t lo = 0x2000000, at = lo;

	add_language(w, &set);
	p = new_process(w, 100, 0, 3);
	q = new_process(w, 101, 0, 1);
	CHECK_INT(publish(w, p), 0);
	CHECK_INT(publish(w, q), 0);
	e = &w->b.chunks.at[published(p)->chunk];
	CHECK_INT(e->program, 2);
	CHECK_INT(w->b.chunks.at[published(q)->chunk].program, 0);
	CHECK_INT(e->n, 2 + 5);
	for (uint32_t i = 1; i <= 5; i++) {
		const struct chunk_mapping *m = &e->mappings[i];

		CHECK(m->lo == at && m->hi > m->lo && m->file == 2);
		CHECK(m->bias == e->mappings[1].bias && m->shift == e->mappings[1].shift);
		CHECK_INT(m->table[0].words, 100);
		at = m->hi;
	}
	CHECK_INT(at, lo + 4096);
	CHECK(!e->mappings[1].unwinder && !e->mappings[3].unwinder && !e->mappings[5].unwinder);
	CHECK(e->mappings[2].unwinder == 2 && e->mappings[4].unwinder == 2);
	CHECK(e->mappings[2].arg == 1ull << 40 && e->mappings[2].lo == lo + 0x10 &&
	      e->mappings[2].hi == lo + 0x20);
	CHECK(e->mappings[4].arg == 5 && e->mappings[4].hi == lo + 0x200);
	CHECK_INT(e->mappings[4].language.words, 4);
	CHECK(!published(p)->awaits_program);
	/* until its program is loaded, and if it cannot be, the machine's frames are stepped, and
	 * the sample says that others are missing; but until it is loaded, user space has the
	 * frames of a step that reads nothing */
	for (enum language_program_state state = LANGUAGE_LOADING; state <= LANGUAGE_NONE;
	     state++) {
		if (state == LANGUAGE_READY)
			continue;
		w->b.languages[1].state = state;
		CHECK_INT(publish(w, p), 0);
		CHECK_INT(publish(w, q), 0);
		CHECK(!e->program && e->n == (state == LANGUAGE_NONE ? 7 : 6));
		CHECK(e->mappings[2].unwinder == NO_PROGRAM && !e->mappings[3].unwinder);
		if (state == LANGUAGE_NONE)
			CHECK_INT(e->mappings[4].unwinder, NO_PROGRAM);
		else
			CHECK(e->mappings[3].hi == lo + 0x100 && e->mappings[4].lo == lo + 0x200 &&
			      !e->mappings[4].unwinder);
		CHECK_INT(published(p)->awaits_program, state != LANGUAGE_NONE);
		CHECK(!published(q)->awaits_program);
	}
	/* another language in the same file; where both claim, one counts */
	w->b.languages[2].state = w->b.languages[1].state = LANGUAGE_READY;
	w->files[1].slabs[2] = &other;
	CHECK_INT(publish(w, p), 0);
	CHECK(e->n == 8 && e->program == 2);
	CHECK(e->mappings[2].unwinder == 2 && e->mappings[3].unwinder == 3);
	CHECK(e->mappings[3].arg == 9 && e->mappings[3].language.words == 2);
	CHECK(e->mappings[5].unwinder == 2 && e->mappings[5].hi == lo + 0x200);
	CHECK(!e->mappings[6].unwinder);
}

/* Claims the memory that it has reserved. */
static int claim_reserved(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	const struct fusee_claim c = {
		.size = sizeof(c), .flags = FUSEE_CLAIM_STEP, .range = {m->lo, m->lo + 0x1800000}};

	return claims_host.unwinder->process_claim(ctx, process, &c);
}

/* Code that is mapped later in what is claimed is there already, but nothing of the next mapping
 * is claimed. */
TEST_IN_WORLD(claims_reach_to_the_next_mapping, 100)
{
	static const struct fusee_unwinder_ops ops = {.size = sizeof(ops),
						      .mapped = claim_reserved};
	static const struct fusee_plugin claiming = {.name = "n", .ops = &ops};
	static struct fusee_instance in = {.descriptor = &claiming, .name = "n", .ctx = &in};
	static struct fusee_instance *instances[] = {&in};
	struct plugin_set set = {instances, 1};
	struct process *p = new_process(w, getpid(), 2, 1); /* at 0x3000000 */
	const struct process_mapping memory[] = {{.lo = 0x2000000, .hi = 0x2010000},
						 {.lo = 0x5000000, .hi = 0x5010000}};
	static const struct {
		uint64_t lo, hi;
		uint32_t unwinder;
	} due[] = {{0x2000000, 0x3000000, 1}, {0x3000000, 0x3001000, 0}, {0x5000000, 0x6800000, 1}};
	const struct map_chunk *e;
	struct claims *c;

	w->b.set = &set;
	w->b.languages[0].state = LANGUAGE_READY;
	CHECK_INT(claims_new(&c, &set), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(process_map(p, &memory[i]), 0);
	claims_offer_all(c, p, 1);
	CHECK_INT(
		bpf_publish(&w->b, published(p), &(struct publication){.process = p, .claims = c}),
		0);
	e = &w->b.chunks.at[published(p)->chunk];
	CHECK_INT(e->n, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_INT(e->mappings[i].lo, due[i].lo);
		CHECK_INT(e->mappings[i].hi, due[i].hi);
		CHECK_INT(e->mappings[i].unwinder, due[i].unwinder);
	}
	claims_free(c);
}

/* Two tables of 150,000 words have no room in one element, and a third evicts the table that no
 * process names. */
TEST_IN_WORLD(room, 150000)
{
	struct process *p[3];

	for (uint32_t i = 0; i < 3; i++)
		p[i] = new_process(w, 100 + (pid_t)i, i, 1);
	CHECK_INT(publish(w, p[0]), 0);
	CHECK_INT(publish(w, p[1]), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const struct slab_range *at =
			&w->b.chunks.at[published(p[i])->chunk].mappings[0].table[0];

		CHECK_INT(at->at / SLAB_WORDS, (at->at + at->words - 1) / SLAB_WORDS);
	}
	/* all are in use: the code of the third is not unwound in the kernel */
	CHECK_INT(publish(w, p[2]), 0);
	CHECK(!is_published(w, p[2], 0));
	CHECK_INT(w->b.chunks.at[published(p[2])->chunk].n, 0);
	bpf_publish_withdraw(&w->b, published(p[0]));
	CHECK_INT(publish(w, p[2]), 0);
	CHECK(is_published(w, p[2], 0));
	CHECK_INT(w->b.slabs.room.used_words, 2 * 150000);
	/* the first one comes back when there is room again */
	bpf_publish_withdraw(&w->b, published(p[1]));
	CHECK_INT(publish(w, p[0]), 0);
	CHECK(is_published(w, p[0], 0));
}

/* Tables of all sizes come and go; what lies in each is its own. */
TEST_IN_WORLD(holes, 200000)
{
	struct process *p[16] = {0};

	srand(1);
	for (uint32_t i = 0; i < FILES; i++)
		w->slabs[i].n = 1 + (uint32_t)rand() % (i % 4 ? 20000 : 200000);
	for (uint32_t round = 0; round < 2000; round++) {
		uint32_t i = (uint32_t)rand() % 16;
		uint32_t used[16][2], n = 0;

		if (p[i] && rand() % 2) {
			bpf_publish_withdraw(&w->b, published(p[i]));
			p[i] = NULL;
		} else if (!p[i]) {
			p[i] = new_process(w, 1000 + (pid_t)round, (uint32_t)rand() % FILES, 1);
			CHECK_INT(publish(w, p[i]), 0);
		}
		for (uint32_t k = 0; k < 16; k++) {
			const struct map_chunk *e = p[k] ? &w->b.chunks.at[published(p[k])->chunk]
							 : NULL;

			if (!e || !e->n)
				continue;
			used[n][0] = e->mappings[0].table[0].at;
			used[n][1] = used[n][0] + e->mappings[0].table[0].words;
			if (!(round % 16))
				check_table(w, &e->mappings[0].table[0]);
			CHECK(used[n][0] >= 1 && used[n][1] <= SLABS * SLAB_WORDS);
			for (uint32_t j = 0; j < n; j++)
				CHECK(used[j][0] == used[n][0] || used[j][1] <= used[n][0] ||
				      used[n][1] <= used[j][0]);
			n++;
		}
	}
}

TEST_IN_WORLD(chains, 4)
{
	const int used = (200 + CHUNK_MAPPINGS - 1) / CHUNK_MAPPINGS; /* chunks */
	struct process *p, *q;
	uint32_t n = 0, e;

	p = new_process(w, 100, 0, 200);
	CHECK_INT(publish(w, p), 0);
	for (e = published(p)->chunk; e; e = w->b.chunks.at[e].next)
		n += w->b.chunks.at[e].n;
	CHECK_INT(n, 200);
	CHECK_INT(w->b.chunks.nfree, CHUNKS - 1 - used);
	/* once more: the chain is made anew, and nothing leaks */
	CHECK_INT(publish(w, p), 0);
	CHECK_INT(w->b.chunks.nfree, CHUNKS - 1 - used);
	/* no room for it all: user space walks that process, and what it took is free again */
	q = new_process(w, 101, 0, MAX_CHUNKS * CHUNK_MAPPINGS);
	CHECK_INT(publish(w, q), -ENOSPC);
	CHECK_INT(published(q)->chunk, 0);
	CHECK_INT(w->b.chunks.nfree, CHUNKS - 1 - used);
	bpf_publish_withdraw(&w->b, published(p));
	CHECK_INT(w->b.chunks.nfree, CHUNKS - 1);
}

/* What a record was unwound over is compared by version: a process that was withdrawn and is
 * published in another chunk has a higher version than before. */
TEST_IN_WORLD(versions_rise, 4)
{
	struct process *p, *q;
	uint32_t before;

	p = new_process(w, 100, 0, 1);
	q = new_process(w, 101, 0, 1);
	for (int i = 0; i < 10; i++)
		CHECK_INT(publish(w, p), 0);
	before = published(p)->version;
	CHECK(bpf_publish_holds(&w->b, published(p)));
	bpf_publish_withdraw(&w->b, published(p));
	CHECK(!bpf_publish_holds(&w->b, published(p)));
	CHECK_INT(publish(w, q), 0); /* takes the chunk */
	CHECK_INT(publish(w, p), 0);
	CHECK(published(q)->version > before && published(p)->version > before);
	CHECK(bpf_publish_holds(&w->b, published(p)) && bpf_publish_holds(&w->b, published(q)));
}

/* Memory without a file is published where it was named, until it is mapped anew. */
TEST_IN_WORLD(anonymous_code, 4)
{
	const struct anonymous_code code = {.lo = 0x1000, .since = 5};
	struct process_mapping m = {.lo = 0x1000, .hi = 0x2000, .since = 5};
	struct publication what = {.anonymous = &code, .nanonymous = 1};
	struct process *p;

	what.process = p = process_get(w->processes, 100);
	CHECK_INT(process_map(p, &m), 0);
	CHECK_INT(publish(w, p), 0);
	CHECK(!is_published(w, p, 0));
	CHECK_INT(bpf_publish(&w->b, published(p), &what), 0);
	CHECK(is_published(w, p, 0));
	m.since = 6;
	CHECK_INT(process_map(p, &m), 0);
	CHECK_INT(bpf_publish(&w->b, published(p), &what), 0);
	CHECK(!is_published(w, p, 0));
}
