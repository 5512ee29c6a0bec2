/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables in the kernel: memory that the programs read, given to files as long as it lasts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/sampler_state.h"

#define MAX_IDS ((1u << 29) - 1) /* the steps' own limit for what they remember by */

/* One unwinder's table of one file. */
struct placed {
	uint32_t at, words, id;
	uint64_t used; /* clock of the last put that named it */
};

/* ---- room for tables ---- */

static int add_hole(struct bpf_sampler *b, uint32_t i, struct bpf_hole hole)
{
	if (b->nholes == b->holes_cap) {
		uint32_t cap = b->holes_cap ? b->holes_cap * 2 : 16;
		struct bpf_hole *holes = realloc(b->holes, cap * sizeof(*holes));

		if (!holes)
			return -ENOMEM;
		b->holes = holes;
		b->holes_cap = cap;
	}
	memmove(&b->holes[i + 1], &b->holes[i], (b->nholes - i) * sizeof(hole));
	b->holes[i] = hole;
	b->nholes++;
	return 0;
}

static void remove_hole(struct bpf_sampler *b, uint32_t i)
{
	memmove(&b->holes[i], &b->holes[i + 1], (b->nholes - i - 1) * sizeof(b->holes[0]));
	b->nholes--;
}

/* Where in the hole `words` fit without crossing more chunks than they must; UINT32_MAX: not. */
static uint32_t fit(const struct bpf_hole *h, uint32_t words)
{
	uint32_t at = h->at, room = SLAB_WORDS - at % SLAB_WORDS;

	if (words > room && at % SLAB_WORDS)
		at += room;
	return at - h->at + (uint64_t)words <= h->words ? at : UINT32_MAX;
}

static int take_words(struct bpf_sampler *b, uint32_t words, uint32_t *ret)
{
	for (uint32_t i = 0; i < b->nholes; i++) {
		struct bpf_hole h = b->holes[i], behind;
		uint32_t at = fit(&h, words);

		if (at == UINT32_MAX)
			continue;
		behind = (struct bpf_hole){at + words, h.at + h.words - at - words};
		b->holes[i].words = at - h.at;
		if (behind.words && add_hole(b, i + 1, behind))
			b->used_words += behind.words; /* lost, for want of memory */
		if (!b->holes[i].words)
			remove_hole(b, i);
		b->used_words += words;
		*ret = at;
		return 0;
	}
	return -ENOSPC;
}

static void give_words(struct bpf_sampler *b, uint32_t at, uint32_t words)
{
	uint32_t i = 0;

	while (i < b->nholes && b->holes[i].at < at)
		i++;
	if (add_hole(b, i, (struct bpf_hole){at, words}))
		return;
	b->used_words -= words;
	if (i + 1 < b->nholes && at + words == b->holes[i + 1].at) {
		b->holes[i].words += b->holes[i + 1].words;
		remove_hole(b, i + 1);
	}
	if (i && b->holes[i - 1].at + b->holes[i - 1].words == at) {
		b->holes[i - 1].words += b->holes[i].words;
		remove_hole(b, i);
	}
}

/* ---- tables of files ---- */

static uint64_t table_key(uint32_t file, uint32_t unwinder)
{
	return (uint64_t)file * FILES_MAX_UNWINDERS + unwinder + 1;
}

/* Marks what processes name now. */
static void mark_used(struct bpf_sampler *b)
{
	b->clock++;
	for (uint32_t e = 1; e < b->nchunks; e++) {
		const struct map_chunk *p = &b->chunks[e];

		for (uint32_t i = 0; i < p->n; i++)
			for (uint32_t t = 0; t < FILES_MAX_UNWINDERS; t++) {
				struct placed *at = hashmap_get(&b->placed,
								table_key(p->mappings[i].file, t));

				if (at)
					at->used = b->clock;
			}
	}
}

struct oldest {
	uint64_t before; /* named at this clock or later: in use */
	uint64_t key;
	struct placed *table;
};

static void find_oldest(void *arg, uint64_t key, void *value)
{
	struct placed *p = value;
	struct oldest *o = arg;

	if (p->used < o->before && (!o->table || p->used < o->table->used)) {
		o->key = key;
		o->table = p;
	}
}

/* Gives away the table that was not needed for the longest time. false: all are in use. */
static bool evict(struct bpf_sampler *b)
{
	struct oldest o = {.before = b->clock};

	hashmap_each(&b->placed, find_oldest, &o);
	if (!o.table)
		return false;
	hashmap_del(&b->placed, o.key);
	give_words(b, o.table->at, o.table->words);
	free(o.table);
	return true;
}

static int make_room(struct bpf_sampler *b, uint32_t words, uint32_t *at)
{
	int r = take_words(b, words, at);

	if (r)
		mark_used(b);
	while (r == -ENOSPC && evict(b))
		r = take_words(b, words, at);
	return r;
}

/* Tables are mapped while they are written, and no longer: what is mapped of a BPF map counts as
 * resident, all of it, and it is written once in a table's life. */
static int write_words(const struct bpf_sampler *b, uint32_t at, const uint32_t *words, uint64_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t to = (uint64_t)at * 4, from = to & ~(uint64_t)(page - 1);
	size_t len = (size_t)(to - from + n * 4 + page - 1) & ~(page - 1);
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, b->slabs, (off_t)from);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(p + (to - from), words, n * 4);
	munmap(p, len);
	return 0;
}

/* The file's table of this unwinder (-1: of nobody), put there if it is not. No table: words 0. 0
 * or -errno: there is no room. */
int bpf_tables_place(struct bpf_sampler *b, const struct file *f, int unwinder,
		     struct slab_range *ret)
{
	const struct inspection_slab *slab = unwinder < 0 ? NULL : f->slabs[unwinder];
	uint64_t key = table_key(f->id, (uint32_t)unwinder);
	struct placed *p = hashmap_get(&b->placed, key);
	int r = 0;

	*ret = (struct slab_range){0};
	if (!slab || !slab->n)
		return 0;
	if (!p) {
		if (slab->n > (uint64_t)b->nslabs * SLAB_WORDS)
			return -ENOSPC;
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->words = (uint32_t)slab->n;
		r = make_room(b, p->words, &p->at);
		if (r) {
			free(p);
			return r;
		}
		r = write_words(b, p->at, slab->words, slab->n);
		if (!r)
			r = hashmap_put(&b->placed, key, p);
		if (r) {
			give_words(b, p->at, p->words);
			free(p);
			return r;
		}
		p->id = b->ids < MAX_IDS ? ++b->ids : 0;
	}
	p->used = b->clock + 1; /* not given away for the next of the same process */
	*ret = (struct slab_range){.at = p->at, .words = p->words, .id = p->id};
	return 0;
}

/* ---- life ---- */

int bpf_tables_init(struct bpf_sampler *b)
{
	/* word 0 is nobody's, so that a table never stands at 0 */
	return add_hole(b, 0, (struct bpf_hole){1, b->nslabs * SLAB_WORDS - 1});
}

void bpf_tables_fini(struct bpf_sampler *b)
{
	hashmap_fini_free(&b->placed);
	free(b->holes);
}

void bpf_tables_stats(const struct bpf_sampler *b, struct bpf_sampler_stats *s)
{
	s->table_bytes = b->used_words * 4;
	s->table_cap = (uint64_t)b->nslabs * SLAB_BYTES;
}
