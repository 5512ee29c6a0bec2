/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/bpf
/* Tables by page: what is loaded when, what is evicted, and that a reader never takes the words of
 * one page for those of another. The reader follows fusee/unwinder_kernel.h. */
#include <bpf/bpf.h>
#include <stdatomic.h>

#include "bpf/internal/sampler_state.h"
#include "test.h"

#define FRAMES 16u
#define FILES 8u
#define SLABS 1u

struct world {
	struct bpf_sampler b;
	struct sampler_settings settings;
	struct inspection inspection;
	struct inspection_slab slabs[FILES];
	struct file files[FILES];
	struct slab_range at[FILES];
	uint32_t *words[FILES];
	const uint32_t *entries, *frames; /* as the kernel sees them */
};

static int new_map(uint32_t value, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test", 4, value, entries, &mmapable);

	if (fd < 0 && errno == EPERM)
		SKIP("BPF maps need root, or CAP_BPF");
	CHECK(fd >= 0);
	return fd;
}

static const uint32_t *look_at(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Each word of each table is another. */
static uint32_t word_of(uint32_t file, uint64_t i)
{
	return (file + 1) * 0x10000000u + (uint32_t)i;
}

/* n: words of each file's table. */
static void world_new(struct world *w, uint64_t n)
{
	*w = (struct world){0};
	w->b.slabs.n = SLABS;
	w->b.slabs.fd = new_map(SLAB_BYTES, SLABS);
	w->b.frames.n = FRAMES;
	w->b.frames.fd = new_map(FUSEE_PAGE_WORDS * 4, FRAMES);
	w->b.frames.states = calloc(FRAMES, sizeof(*w->b.frames.states));
	w->b.settings = &w->settings;
	w->b.paged = 1;
	w->entries = look_at(w->b.slabs.fd, SLABS * SLAB_BYTES);
	w->frames = look_at(w->b.frames.fd, FRAMES * FUSEE_PAGE_WORDS * 4);
	CHECK(w->b.frames.states);
	CHECK_INT(slabs_init(&w->b), 0);
	CHECK_INT(frames_init(&w->b), 0);
	w->inspection.refs = 1;
	for (uint32_t f = 0; f < FILES; f++) {
		w->words[f] = calloc(n, 4);
		CHECK(w->words[f]);
		for (uint64_t i = 0; i < n; i++)
			w->words[f][i] = word_of(f, i);
		w->slabs[f] = (struct inspection_slab){.words = w->words[f], .n = n};
		w->files[f] = (struct file){.id = f + 1,
					    .state = FILE_READY,
					    .inspection = &w->inspection,
					    .slabs = {&w->slabs[f]}};
	}
}

static void world_free(struct world *w)
{
	slabs_fini(&w->b);
	frames_fini(&w->b);
	CHECK_INT(w->inspection.refs, 1);
	for (uint32_t f = 0; f < FILES; f++)
		free(w->words[f]);
	free(w->b.frames.states);
	close(w->b.slabs.fd);
	close(w->b.frames.fd);
}

static void place(struct world *w, uint32_t file)
{
	w->b.slabs.clock++;
	CHECK_INT(slabs_place(&w->b, &w->files[file], 0, &w->at[file]), 0);
	CHECK_INT(w->at[file].words, w->slabs[file].n);
	CHECK(w->at[file].at && w->at[file].id);
}

static void touch(struct world *w, uint32_t file, uint32_t page)
{
	const struct touched_table t = {.file = file + 1};

	bpf_publish_touched(&w->b, &t, &page, 1);
}

enum found { ABSENT, RIGHT, WRONG };

/* A look-up as a program makes it: the entry .. */
static uint32_t read_entry(struct world *w, uint32_t file, uint32_t i)
{
	return *(const volatile uint32_t *)&w->entries[w->at[file].at + (i >> FUSEE_PAGE_SHIFT)];
}

/* .. then the word. */
static enum found read_word(struct world *w, uint32_t file, uint32_t i, uint32_t entry)
{
	uint32_t frame = entry & ((1u << FUSEE_FRAME_BITS) - 1), word;
	volatile struct fusee_frame_state *state = &w->b.frames.states[frame];

	if (!entry)
		return ABSENT;
	CHECK(frame < FRAMES);
	if (!state->used)
		state->used = 1;
	word = ((const volatile uint32_t *)
			w->frames)[frame * FUSEE_PAGE_WORDS + i % FUSEE_PAGE_WORDS];
	__asm__ volatile("" ::: "memory");
	if (state->filling != entry >> FUSEE_FRAME_BITS)
		return ABSENT;
	return word == word_of(file, i) ? RIGHT : WRONG;
}

static enum found look_up(struct world *w, uint32_t file, uint32_t i)
{
	return read_word(w, file, i, read_entry(w, file, i));
}

static uint32_t count_present(struct world *w, uint32_t file)
{
	uint32_t n = 0;

	for (uint32_t page = 0; page < pages_of(w->slabs[file].n); page++) {
		uint32_t last = (page + 1) * FUSEE_PAGE_WORDS - 1;

		if (last >= w->slabs[file].n)
			last = (uint32_t)w->slabs[file].n - 1;
		switch (look_up(w, file, last)) {
		case RIGHT:
			n++;
			CHECK_INT(look_up(w, file, page * FUSEE_PAGE_WORDS), RIGHT);
			break;
		case WRONG:
			CHECK(!"a word of another page");
			break;
		case ABSENT:
			break;
		}
	}
	return n;
}

/* Three quarters of the frames are for complete tables. */
TEST_IN_WORLD(tables_are_complete_while_there_is_room, 3 * FUSEE_PAGE_WORDS + 5)
{
	for (uint32_t f = 0; f < 4; f++) {
		place(w, f);
		CHECK_INT(count_present(w, f), f < 3 ? 4 : 0);
	}
	touch(w, 3, 3);
	touch(w, 3, 4); /* there is no such page */
	CHECK_INT(count_present(w, 3), 1);
	CHECK_INT(look_up(w, 3, 3 * FUSEE_PAGE_WORDS + 4), RIGHT);
	CHECK_INT(w->b.frames.counts.loaded, 1);
	CHECK_INT(w->b.frames.counts.evicted, 0);
	/* tables that go make room for another */
	bpf_publish_forget_file(&w->b, 1);
	bpf_publish_forget_file(&w->b, 2);
	CHECK_INT(count_present(w, 0), 0);
	CHECK_INT(w->b.frames.nfree, FRAMES - 5);
	place(w, 4);
	CHECK_INT(count_present(w, 4), 4);
	CHECK_INT(count_present(w, 2), 4);
}

/* Pages at which walks in the kernel ended; places that are in no table are ignored. */
TEST_IN_WORLD(pages_that_walks_require, 100 * FUSEE_PAGE_WORDS)
{
	place(w, 0);
	place(w, 1);
	CHECK_INT(count_present(w, 0) + count_present(w, 1), 0);
	for (uint32_t i = 0; i < 5 * REQUIRED_PAGES; i++)
		w->settings.required_pages[i % REQUIRED_PAGES] = 0x70000000 + i;
	w->settings.required_pages[3] = w->at[0].at + 99;
	w->settings.required_pages[4] = w->at[1].at;
	w->settings.required_pages[5] = w->at[1].at + 100;
	w->settings.nrequired = 5 * REQUIRED_PAGES + 6;
	slabs_load_required(&w->b);
	CHECK_INT(look_up(w, 0, 99 * FUSEE_PAGE_WORDS), RIGHT);
	CHECK_INT(look_up(w, 1, 0), RIGHT);
	CHECK_INT(w->b.frames.counts.loaded, 2);
	slabs_load_required(&w->b);
	CHECK_INT(w->b.frames.counts.loaded, 2);
}

/* While many frames are free the pages around one are loaded too, and no page of another table. */
TEST_IN_WORLD(pages_near_are_loaded, 100 * FUSEE_PAGE_WORDS + 1)
{
	place(w, 0);
	place(w, 1);
	touch(w, 0, 20);
	CHECK_INT(count_present(w, 0), 8);
	CHECK_INT(look_up(w, 0, 16 * FUSEE_PAGE_WORDS), RIGHT);
	CHECK_INT(look_up(w, 0, 24 * FUSEE_PAGE_WORDS - 1), RIGHT);
	touch(w, 1, 100); /* the last, of one word */
	CHECK_INT(count_present(w, 1), 5);
	CHECK_INT(w->b.frames.counts.loaded, 2);
	CHECK_INT(w->b.frames.nfree, FRAMES - 13);
	touch(w, 1, 8); /* an eighth of the frames stays free */
	CHECK_INT(count_present(w, 1), 6);
	CHECK_INT(w->b.frames.nfree, FRAMES - 14);
}

/* A table larger than all frames takes pages of its own; what is read stays. */
TEST_IN_WORLD(what_is_evicted, 100 * FUSEE_PAGE_WORDS)
{
	place(w, 0);
	place(w, 1);
	for (uint32_t p = 0; p < 6; p++)
		touch(w, 1, p);
	CHECK_INT(count_present(w, 1), 8);
	for (uint32_t p = 0; p < 90; p++)
		touch(w, 0, p);
	/* up to a half the table takes what nobody reads, also of its neighbour */
	CHECK_INT(count_present(w, 0), FRAMES / 2 + 1);
	CHECK_INT(count_present(w, 1), FRAMES - FRAMES / 2 - 1);
	CHECK_INT(w->b.frames.counts.reloaded, 0);
	/* the hand passes a page that is read each time */
	for (uint32_t f = 0; f < FRAMES; f++)
		w->b.frames.states[f].used = 0;
	for (uint32_t p = 0; p < 8; p++) {
		CHECK_INT(look_up(w, 0, 89 * FUSEE_PAGE_WORDS), RIGHT);
		touch(w, 0, p);
	}
	CHECK_INT(look_up(w, 0, 89 * FUSEE_PAGE_WORDS), RIGHT);
	CHECK_INT(w->b.frames.counts.reloaded, 8);
}

/* Pages that an earlier run has used, of a table of 100: set bits. */
static struct used_pages *remembered(const uint32_t *pages, uint32_t n)
{
	struct used_pages *u = calloc(1, used_pages_bytes(100));
	uint8_t bits[13] = {0};

	CHECK(u);
	for (uint32_t i = 0; i < n; i++)
		bits[pages[i] / 8] |= (uint8_t)(1u << pages[i] % 8);
	used_pages_next(u, 100, bits, NULL);
	return u;
}

static void add_remembered(struct world *w, struct paged_table *t, const struct used_pages *u)
{
	*t = (struct paged_table){.words = w->words[0], .n = w->slabs[0].n, .at = 1000};
	CHECK_INT(pages_add(&w->b, t, u), 0);
	w->at[0].at = 1000;
}

TEST_IN_WORLD(what_an_earlier_run_has_used, 100 * FUSEE_PAGE_WORDS)
{
	static const uint32_t pages[] = {3, 4, 50, 99};
	struct used_pages *u = remembered(pages, 4);
	struct paged_table t;
	const uint8_t *seen;

	add_remembered(w, &t, u);
	/* and those around the first, as long as an eighth of the frames stays free */
	CHECK_INT(count_present(w, 0), FRAMES * 7 / 8);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_INT(look_up(w, 0, pages[i] * FUSEE_PAGE_WORDS), RIGHT);
	for (uint32_t page = 0; page < 8; page++)
		CHECK_INT(look_up(w, 0, page * FUSEE_PAGE_WORDS), RIGHT);
	CHECK_INT(w->b.frames.counts.remembered, 4);
	CHECK_INT(w->b.frames.counts.loaded, 0);
	pages_remove(&w->b, &t);
	CHECK_INT(w->b.frames.nfree, FRAMES);

	/* What is loaded and not read is not seen; what was read and then evicted is. */
	for (uint32_t f = 0; f < FRAMES; f++)
		w->b.frames.states[f].used = 0;
	add_remembered(w, &t, u);
	CHECK_INT(look_up(w, 0, 50 * FUSEE_PAGE_WORDS), RIGHT);
	for (uint32_t page = 60; page < 90; page++)
		pages_load(&w->b, &t, &page, 1);
	CHECK_INT(look_up(w, 0, 50 * FUSEE_PAGE_WORDS), ABSENT);
	seen = pages_seen(&w->b, &t);
	for (uint32_t page = 0; page < 100; page++)
		CHECK_INT(seen[page / 8] >> page % 8 & 1, page == 50 || (page >= 60 && page < 90));
	pages_remove(&w->b, &t);
	free(u);
}

/* A file that says that all was used gets half of the frames, and only those that are free or have
 * guesses. */
TEST_IN_WORLD(remembered_pages_take_no_more_than_half, 100 * FUSEE_PAGE_WORDS)
{
	uint32_t pages[100];
	struct paged_table t, second, third;
	struct used_pages *u;

	for (uint32_t i = 0; i < 100; i++)
		pages[i] = i;
	u = remembered(pages, 100);
	add_remembered(w, &t, u);
	CHECK_INT(t.nresident, FRAMES * 7 / 8);
	second = third = (struct paged_table){.words = w->words[0], .n = w->slabs[0].n};
	second.at = 2000;
	third.at = 3000;
	CHECK_INT(pages_add(&w->b, &second, u), 0);
	CHECK_INT(pages_add(&w->b, &third, u), 0);
	CHECK_INT(w->b.frames.nfree, FRAMES / 8);
	CHECK_INT(third.nresident, 0);
	CHECK_INT(count_present(w, 0), FRAMES / 2);
	CHECK_INT(w->b.frames.counts.evicted, FRAMES * 3 / 8);
	pages_remove(&w->b, &t);
	pages_remove(&w->b, &second);
	pages_remove(&w->b, &third);
	free(u);
}

/* They take the place of complete tables that no walk has read, and of nothing else. */
TEST_IN_WORLD(remembered_pages_instead_of_idle, 100 * FUSEE_PAGE_WORDS)
{
	static const uint32_t pages[] = {1, 20, 40, 60, 80};
	struct used_pages *u = remembered(pages, 5);
	struct paged_table idle = {.words = w->words[1], .n = 12 * FUSEE_PAGE_WORDS, .at = 2000};
	struct paged_table t, another;

	CHECK_INT(pages_add(&w->b, &idle, NULL), 0);
	CHECK_INT(idle.nresident, 12);
	w->b.frames.states[2].used = 1;
	w->b.frames.states[5].used = 1;
	add_remembered(w, &t, u);
	CHECK_INT(count_present(w, 0), 5);
	CHECK_INT(w->b.frames.counts.evicted, 3);
	CHECK_INT(idle.nresident, 9);
	CHECK(w->b.frames.owners[2].table == &idle && w->b.frames.owners[5].table == &idle);
	/* what was loaded so is not idle, though it was not read either */
	for (uint32_t f = 0; f < FRAMES; f++)
		w->b.frames.states[f].used = 0;
	another = (struct paged_table){.words = w->words[2], .n = w->slabs[2].n, .at = 3000};
	CHECK_INT(pages_add(&w->b, &another, u), 0);
	CHECK_INT(another.nresident, 5);
	CHECK_INT(t.nresident, 5);
	CHECK_INT(idle.nresident, 4);
	pages_remove(&w->b, &idle);
	pages_remove(&w->b, &t);
	pages_remove(&w->b, &another);
	free(u);
}

static void add_guessed(struct world *w, struct paged_table *t, uint32_t page, uint32_t at)
{
	struct used_pages *u = remembered(&page, 1);

	*t = (struct paged_table){.words = w->words[0], .n = w->slabs[0].n, .at = at};
	CHECK_INT(pages_add(&w->b, t, u), 0);
	free(u);
}

static bool is_loaded(const struct paged_table *t, uint32_t page)
{
	return t->entries[page] > 1;
}

/* Frames that would be free have pages near those that an earlier run has used. They yield to other
 * tables' pages that are a better guess, unless they were read. */
TEST_IN_WORLD(guesses_yield, 100 * FUSEE_PAGE_WORDS)
{
	struct paged_table t[4], small = {.words = w->words[1], .n = FUSEE_PAGE_WORDS, .at = 6000};
	uint32_t read;

	add_guessed(w, &t[0], 3, 1000); /* near: 8, and of those that are not so near 6 */
	CHECK_INT(t[0].nresident, FRAMES - 2);
	CHECK(is_loaded(&t[0], 7) && is_loaded(&t[0], 13) && !is_loaded(&t[0], 14));
	add_guessed(w, &t[1], 50, 2000);
	CHECK_INT(t[0].nresident, 8);
	CHECK_INT(t[1].nresident, 6);
	for (uint32_t page = 0; page < 8; page++)
		CHECK(is_loaded(&t[0], page));
	CHECK(is_loaded(&t[1], 48) && is_loaded(&t[1], 50) && !is_loaded(&t[1], 54));
	/* the first guess in the order of frames has been read */
	read = t[0].entries[0] & ((1u << FUSEE_FRAME_BITS) - 1);
	w->b.frames.states[read].used = 1;
	for (uint32_t i = 2; i < 4; i++)
		add_guessed(w, &t[i], 20, 1000 + 1000 * i);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(is_loaded(&t[i], (uint32_t[]){3, 50, 20, 20}[i]));
	CHECK_INT(t[2].nresident + t[3].nresident, 2);
	CHECK(is_loaded(&t[0], 0) && !is_loaded(&t[0], 1));
	/* a small table is complete all the same */
	CHECK_INT(pages_add(&w->b, &small, NULL), 0);
	CHECK_INT(small.nresident, 1);
	CHECK_INT(w->b.frames.nfree, 2);
	pages_remove(&w->b, &small);
	for (uint32_t i = 0; i < 4; i++)
		pages_remove(&w->b, &t[i]);
	CHECK_INT(w->b.frames.nfree, FRAMES);
}

/* The pages around a required page take the place of guesses that were not read. */
TEST_IN_WORLD(guesses_yield_to_pages_near_a_required_one, 100 * FUSEE_PAGE_WORDS)
{
	struct paged_table t, other;
	uint32_t page = 68, read;

	add_guessed(w, &other, 3, 1000);
	add_guessed(w, &t, 50, 2000); /* all but an eighth of the frames have what may be used */
	CHECK_INT(w->b.frames.nfree, FRAMES / 8);
	read = other.entries[6] & ((1u << FUSEE_FRAME_BITS) - 1);
	w->b.frames.states[read].used = 1;
	pages_load(&w->b, &t, &page, 1);
	for (page = 64; page < 72; page++)
		CHECK(is_loaded(&t, page));
	CHECK(is_loaded(&other, 3) && is_loaded(&other, 6) && is_loaded(&t, 50));
	CHECK_INT(w->b.frames.nfree, FRAMES / 8);
	/* no page would yield: a single page, into a free frame */
	for (uint32_t f = 0; f < FRAMES; f++)
		w->b.frames.states[f].used = 1;
	page = 90;
	pages_load(&w->b, &t, &page, 1);
	CHECK(is_loaded(&t, 90) && !is_loaded(&t, 89) && !is_loaded(&t, 91));
	CHECK_INT(w->b.frames.nfree, FRAMES / 8 - 1);
	pages_remove(&w->b, &t);
	pages_remove(&w->b, &other);
	CHECK_INT(w->b.frames.nfree, FRAMES);
}

/* Beyond a number of loads in a second the rest is refused, and counted. */
TEST_IN_WORLD(loads_are_limited, 100 * FUSEE_PAGE_WORDS)
{
	uint64_t loaded;

	place(w, 0);
	for (uint32_t i = 0; i < 100000 && !w->b.frames.counts.refused; i++)
		touch(w, 0, i % 100);
	CHECK(w->b.frames.counts.refused);
	loaded = w->b.frames.counts.loaded;
	CHECK(loaded >= 1000 && loaded < 50000);
	WAIT_FOR((touch(w, 0, (uint32_t)(w->b.frames.counts.loaded + 50) % 100),
		  w->b.frames.counts.loaded > loaded));
}

/* Tables come and go in random order while pages are loaded; each frame has one page. */
TEST_IN_WORLD(random_pages, 12 * FUSEE_PAGE_WORDS + 77)
{
	bool placed[FILES] = {0};

	srand(1);
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t f = (uint32_t)rand() % FILES, present = 0;

		w->b.frames.loads = 100;
		w->slabs[f].n = placed[f] ? w->slabs[f].n : 1 + (uint32_t)rand() % 12000;
		if (!placed[f] && rand() % 4 == 0) {
			place(w, f);
			placed[f] = true;
		} else if (placed[f] && rand() % 16 == 0) {
			bpf_publish_forget_file(&w->b, f + 1);
			placed[f] = false;
		} else {
			touch(w, f, (uint32_t)rand() % 14);
		}
		for (uint32_t i = 0; round % 16 == 0 && i < FILES; i++)
			present += placed[i] ? count_present(w, i) : 0;
		if (round % 16 == 0)
			CHECK_INT(present, FRAMES - w->b.frames.nfree);
	}
	CHECK(w->b.frames.counts.reloaded > 100);
	for (uint32_t f = 0; f < FILES; f++)
		bpf_publish_forget_file(&w->b, f + 1);
	CHECK_INT(w->b.frames.nfree, FRAMES);
	CHECK_INT(w->b.slabs.room.used_words, 0);
}

/* ---- readers that run meanwhile ---- */

/* Look-ups that have read the entry, and read the word after any later write. */
#define PENDING 256u

static struct {
	struct world *w; /* NULL: there are none */
	struct {
		uint32_t file, i, entry;
	} at[PENDING];
	uint64_t found[3];
	uint32_t next;
} pending;

static void read_pending(void)
{
	struct world *w = pending.w;
	uint32_t k = pending.next++ % PENDING, file = (uint32_t)rand() % 4;

	for (uint32_t i = 0; i < PENDING; i++)
		pending.found[read_word(w, pending.at[i].file, pending.at[i].i,
					pending.at[i].entry)]++;
	pending.at[k].file = file;
	pending.at[k].i = (uint32_t)rand() % (12 * FUSEE_PAGE_WORDS);
	pending.at[k].entry = read_entry(w, file, pending.at[k].i);
}

/* The core's writes are between these two. */
void *mmap(void *at, size_t len, int rights, int flags, int fd, off_t offset)
{
	if (pending.w)
		read_pending();
	return (void *)syscall(SYS_mmap, at, len, rights, flags, fd, offset);
}

int munmap(void *at, size_t len)
{
	if (pending.w)
		read_pending();
	return (int)syscall(SYS_munmap, at, len);
}

TEST_IN_WORLD(readers_at_every_write, 12 * FUSEE_PAGE_WORDS)
{
	w->b.frames.nfree -= 12; /* the more often each is filled */
	for (uint32_t f = 0; f < 4; f++)
		place(w, f);
	srand(3);
	pending.w = w;
	for (uint32_t i = 0; i < 5000; i++) {
		w->b.frames.loads = 100;
		touch(w, (uint32_t)rand() % 4, (uint32_t)rand() % 12);
		if (i % 1000 == 999) { /* another table at its place */
			bpf_publish_forget_file(&w->b, 1);
			place(w, 0);
		}
	}
	pending.w = NULL;
	CHECK(pending.found[RIGHT] > 10000 && pending.found[ABSENT] > 10000);
	CHECK_INT(pending.found[WRONG], 0);
	CHECK(w->b.frames.counts.evicted > 1000);
}

struct reader {
	struct world *w;
	atomic_bool *over;
	uint32_t seed;
	uint64_t found[3];
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	uint32_t x = r->seed;

	while (!atomic_load(r->over)) {
		uint32_t file, i, entry;

		x = x * 1664525 + 1013904223;
		file = x >> 30;
		i = (x >> 8) % (12 * FUSEE_PAGE_WORDS);
		entry = read_entry(r->w, file, i);
		for (volatile uint32_t k = 0; (x & 3) == 0 && k < (x >> 6) % 20000; k++)
			;
		r->found[read_word(r->w, file, i, entry)]++;
	}
	return NULL;
}

TEST_IN_WORLD(readers_on_other_cpus, 12 * FUSEE_PAGE_WORDS)
{
	struct reader readers[2];
	pthread_t threads[2];
	atomic_bool over = false;

	w->b.frames.nfree -= 12;
	for (uint32_t f = 0; f < 4; f++)
		place(w, f);
	for (uint32_t i = 0; i < 2; i++) {
		readers[i] = (struct reader){.w = w, .over = &over, .seed = i};
		CHECK(!pthread_create(&threads[i], NULL, read_on, &readers[i]));
	}
	srand(2);
	for (uint32_t i = 0; i < 20000; i++) {
		w->b.frames.loads = 100;
		touch(w, (uint32_t)rand() % 4, (uint32_t)rand() % 12);
	}
	atomic_store(&over, true);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		CHECK(readers[i].found[RIGHT] > 1000 && readers[i].found[ABSENT] > 1000);
		CHECK_INT(readers[i].found[WRONG], 0);
	}
}

/* A table of memory without a file is copied: what it was made of may go. */
/* Code that is made anew all the time: copies of tables that no process uses are freed. */
/* A file's table is made again while two lists of mappings name it: where the second says it is,
 * the earlier table stays until that list is written, too. */
TEST_IN_WORLD(tables_that_are_made_again, 3 * FUSEE_PAGE_WORDS)
{
	struct inspection again = {.refs = 1};
	struct map_chunk chunks[3] = {0};
	struct slab_range older;
	uint32_t entry;

	w->b.chunks.at = chunks;
	w->b.chunks.n = 3;
	place(w, 0);
	older = w->at[0];
	for (int e = 1; e < 3; e++) {
		chunks[e].n = 1;
		chunks[e].mappings[0].table[0] = older;
	}
	w->files[0].inspection = &again;
	place(w, 0);
	CHECK(w->at[0].id != older.id && w->at[0].at != older.at);
	CHECK_INT(count_present(w, 0), 3);
	chunks[1].mappings[0].table[0] = w->at[0];
	slabs_drop_replaced(&w->b);
	for (int page = 0; page < 3; page++) { /* the second list's table is complete */
		entry = w->entries[older.at + page];
		CHECK(entry >> FUSEE_FRAME_BITS ==
		      w->b.frames.states[entry & ((1u << FUSEE_FRAME_BITS) - 1)].filling);
	}
	CHECK_INT(again.refs, 2);
	CHECK_INT(w->inspection.refs, 2);
	chunks[2].mappings[0].table[0] = w->at[0];
	slabs_drop_replaced(&w->b);
	CHECK_INT(w->inspection.refs, 1);
	CHECK_INT(w->b.slabs.room.used_words, 3);
	CHECK_INT(w->b.frames.nfree, FRAMES - 3);
	bpf_publish_forget_file(&w->b, 1);
	CHECK_INT(again.refs, 1);
	w->b.chunks.n = 0;
}

/* The page that was read is loaded again, where it is in the new table: behind a page more. */
TEST_IN_WORLD(used_pages_of_a_table_that_is_made_again, 100 * FUSEE_PAGE_WORDS)
{
	const uint64_t n = w->slabs[0].n, more = FUSEE_PAGE_WORDS, at = 10 * FUSEE_PAGE_WORDS;
	struct inspection again = {.refs = 1};
	uint32_t *words = calloc(n + more, 4), *earlier = w->words[0];

	CHECK(words);
	place(w, 0);
	touch(w, 0, 70);
	CHECK_INT(look_up(w, 0, 70 * FUSEE_PAGE_WORDS), RIGHT);
	for (uint64_t i = 0; i < n; i++)
		words[i < at ? i : i + more] = earlier[i];
	w->files[0].inspection = &again;
	w->slabs[0] = (struct inspection_slab){.words = words, .n = n + more};
	place(w, 0);
	CHECK(!read_entry(w, 0, 30 * FUSEE_PAGE_WORDS));
	CHECK(read_entry(w, 0, 71 * FUSEE_PAGE_WORDS));
	CHECK_INT(w->frames[(read_entry(w, 0, 71 * FUSEE_PAGE_WORDS) &
			     ((1u << FUSEE_FRAME_BITS) - 1)) *
			    FUSEE_PAGE_WORDS],
		  word_of(0, 70 * FUSEE_PAGE_WORDS));
	bpf_publish_forget_file(&w->b, 1);
	free(words);
}

TEST_IN_WORLD(copies_of_made_tables, 2 * FUSEE_PAGE_WORDS)
{
	const uint64_t bytes = 4 * w->slabs[0].n, limit = 4 << 20;
	struct slab_range at, again;
	uint64_t most = 0;

	for (uint64_t id = 1; id <= 4 * limit / bytes; id++) {
		w->b.slabs.clock++; /* as a publication does */
		CHECK_INT(slabs_place_made(&w->b, id, 0, &w->slabs[id % FILES], &at), 0);
		most = w->b.slabs.copied > most ? w->b.slabs.copied : most;
		/* the newest is still there */
		CHECK_INT(slabs_place_made(&w->b, id, 0, &w->slabs[id % FILES], &again), 0);
		CHECK_INT(again.id, at.id);
	}
	CHECK(most > limit / 2 && most <= limit);
}

TEST_IN_WORLD(made_tables, 2 * FUSEE_PAGE_WORDS)
{
	struct slab_range at;

	CHECK_INT(slabs_place_made(&w->b, 7, 0, &w->slabs[0], &at), 0);
	memset(w->words[0], 0, 2 * FUSEE_PAGE_WORDS * 4);
	w->at[0] = at;
	CHECK_INT(count_present(w, 0), 2);
	bpf_publish_touched(&w->b, &(struct touched_table){.made = 8}, &(uint32_t){0}, 1);
	CHECK_INT(w->b.frames.counts.loaded, 0);
}
