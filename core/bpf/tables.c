/* SPDX-License-Identifier: Apache-2.0 */
/* The slabs: memory that the programs read. They hold tables of language unwinders completely, and
 * of native unwinders' tables the places of the pages that are loaded (pages.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/internal/sampler_state.h"

#define MAX_IDS ((1u << 29) - 1) /* the steps' own limit for what they remember by */
#define SOME_COPIED (4u << 20)   /* bytes of copies that are kept in any case */
#define NEW_CLOCK 8u             /* publications for which a table is not unused */
/* Pages of a table for which it is kept what was used: pages near each other are loaded together,
 * so one miss loads all of a smaller table. */
#define REMEMBERED_PAGES 16u

/* One unwinder's table of one file. */
struct slab_table {
	uint32_t at, room; /* words in the slabs */
	uint32_t words, id;
	uint64_t used;             /* slabs.clock of the last publication that named it */
	bool paged;                /* by page: in the slabs are entries */
	struct paged_table pages;  /* .. of this */
	uint32_t unwinder;         /* .. in the set */
	struct inspection *source; /* .. whose words are in memory that this holds .. */
	uint32_t *copy;            /* .. or that are these */
};

/* What a table is made of. */
struct table_source {
	const uint32_t *words;
	uint64_t n;
	bool paged;
	struct inspection *of; /* paged: what holds the words; NULL: they are copied */
	uint32_t unwinder;     /* .. and who has made them */
};

/* ---- tables of files ---- */

static uint64_t table_key(uint32_t file, uint32_t unwinder)
{
	return (uint64_t)file * FILES_MAX_UNWINDERS + unwinder + 1;
}

static uint64_t words_key(uint64_t process, uint32_t unwinder)
{
	return 1ull << 63 | (process * FILES_MAX_UNWINDERS + unwinder);
}

static uint64_t made_key(uint64_t id)
{
	return 1ull << 62 | id;
}

/* Of a table for which the file has another now, while lists of mappings name it. */
static uint64_t replaced_key(uint64_t key)
{
	return 1ull << 61 | key;
}

static void mark(struct bpf_sampler *b, uint64_t key)
{
	struct slab_table *at = hashmap_get(&b->slabs.tables, key);

	if (at)
		at->used = b->slabs.clock;
}

/* Marks the tables that published processes name. */
static void mark_used(struct bpf_sampler *b)
{
	b->slabs.clock++;
	for (uint32_t e = 1; e < b->chunks.n; e++) {
		const struct map_chunk *p = &b->chunks.at[e];

		for (uint32_t t = 0; t < FILES_MAX_UNWINDERS; t++) {
			if (p->process)
				mark(b, words_key(p->process, t));
			for (uint32_t i = 0; i < p->n; i++)
				mark(b, p->mappings[i].file ? table_key(p->mappings[i].file, t)
							    : made_key(p->mappings[i].made));
		}
	}
}

void bpf_publish_mark_files(const struct bpf_sampler *b, bool *used, uint32_t n)
{
	for (uint32_t e = 1; b && e < b->chunks.n; e++) {
		const struct map_chunk *p = &b->chunks.at[e];

		for (uint32_t i = 0; i < p->n; i++)
			if (p->mappings[i].file < n)
				used[p->mappings[i].file] = true;
	}
}

static void table_free(struct bpf_sampler *b, struct slab_table *p)
{
	if (p->copy)
		b->slabs.copied -= 4ull * p->words;
	inspection_unref(p->source);
	free(p->copy);
	free(p);
}

static bool has_remembered(const struct bpf_sampler *b, const struct slab_table *p)
{
	return b->worker && p->paged && p->source && pages_of(p->words) >= REMEMBERED_PAGES;
}

static const char *unwinder_name(const struct bpf_sampler *b, const struct slab_table *p)
{
	return b->set->instances[p->unwinder]->descriptor->name;
}

/* Keeps which of its pages were used; also that none was, since then none need be loaded. */
static void keep_pages(struct bpf_sampler *b, struct slab_table *p)
{
	const uint8_t *seen = has_remembered(b, p) ? pages_seen(b, &p->pages) : NULL;

	if (seen)
		worker_keep_used_pages(b->worker, p->source, unwinder_name(b, p), p->pages.npages,
				       seen);
}

static void drop_table(struct bpf_sampler *b, uint64_t key)
{
	struct slab_table *p = hashmap_del(&b->slabs.tables, key);

	if (!p)
		return;
	keep_pages(b, p);
	if (p->paged)
		pages_remove(b, &p->pages);
	slab_room_give(&b->slabs.room, p->at, p->room);
	table_free(b, p);
}

void bpf_publish_forget_file(struct bpf_sampler *b, uint32_t file)
{
	for (uint32_t i = 0; b && i < FILES_MAX_UNWINDERS; i++) {
		drop_table(b, table_key(file, i));
		drop_table(b, replaced_key(table_key(file, i)));
	}
}

/* ---- tables that are replaced ---- */

static bool is_named(const struct bpf_sampler *b, uint32_t id)
{
	for (uint32_t e = 1; e < b->chunks.n; e++) {
		const struct map_chunk *c = &b->chunks.at[e];

		for (uint32_t i = 0; i < c->n; i++)
			for (uint32_t t = 0; t < SAMPLER_TABLES; t++)
				if (c->mappings[i].table[t].id == id)
					return true;
	}
	return false;
}

struct unnamed {
	const struct bpf_sampler *b;
	uint32_t all, n; /* tables that are replaced; of them, those to be dropped */
	uint64_t keys[16];
};

static void note_unnamed(void *arg, uint64_t key, void *value)
{
	struct unnamed *u = arg;

	if (key >> 61 != 1)
		return;
	u->all++;
	if (u->n < sizeof(u->keys) / sizeof(*u->keys) &&
	    !is_named(u->b, ((struct slab_table *)value)->id))
		u->keys[u->n++] = key;
}

void slabs_drop_replaced(struct bpf_sampler *b)
{
	struct unnamed u = {.b = b};

	if (!b->slabs.nreplaced)
		return;
	hashmap_each(&b->slabs.tables, note_unnamed, &u);
	for (uint32_t i = 0; i < u.n; i++)
		drop_table(b, u.keys[i]);
	b->slabs.nreplaced = u.all - u.n;
}

/* The table of this key, unless the file has another inspection now. Lists of mappings, and so
 * walks, name the earlier table until they have been written again: it keeps its place, under
 * another key. */
static struct slab_table *current(struct bpf_sampler *b, uint64_t key, const struct inspection *of)
{
	struct slab_table *p = hashmap_get(&b->slabs.tables, key);
	uint64_t older = replaced_key(key);

	if (!p || !p->source || !of || p->source == of || hashmap_get(&b->slabs.tables, older) ||
	    hashmap_put(&b->slabs.tables, older, p))
		return p;
	keep_pages(b, p);
	p->used = UINT64_MAX; /* it is not evicted */
	hashmap_del(&b->slabs.tables, key);
	b->slabs.nreplaced++;
	return NULL;
}

struct oldest {
	uint64_t before; /* named at this clock or later: in use, not evicted */
	uint64_t key;
	struct slab_table *table;
};

static void find_oldest(void *arg, uint64_t key, void *value)
{
	struct slab_table *p = value;
	struct oldest *o = arg;

	if (p->used < o->before && (!o->table || p->used < o->table->used)) {
		o->key = key;
		o->table = p;
	}
}

/* Frees the unused table that was named least recently. false: all are in use. */
static bool evict(struct bpf_sampler *b)
{
	struct oldest o = {.before = b->slabs.clock};

	hashmap_each(&b->slabs.tables, find_oldest, &o);
	if (!o.table)
		return false;
	drop_table(b, o.key);
	return true;
}

static int make_room(struct bpf_sampler *b, uint32_t words, uint32_t *at)
{
	int r = slab_room_take(&b->slabs.room, words, at);

	if (r)
		mark_used(b);
	while (r == -ENOSPC && evict(b))
		r = slab_room_take(&b->slabs.room, words, at);
	return r;
}

struct unused_copies {
	uint64_t before; /* clock */
	uint32_t n;
	uint64_t keys[64];
};

static void note_unused_copy(void *arg, uint64_t key, void *value)
{
	const struct slab_table *p = value;
	struct unused_copies *u = arg;

	if (p->copy && p->used < u->before && u->n < sizeof(u->keys) / sizeof(*u->keys))
		u->keys[u->n++] = key;
}

/* Code that is made at run time has new tables again and again, whose entries take little room in
 * the slabs: so their copies have a limit, twice what is in use. */
static void limit_copies(struct bpf_sampler *b, uint64_t bytes)
{
	struct unused_copies u;

	if (b->slabs.copied + bytes <= b->slabs.copied_most)
		return;
	mark_used(b);
	u.before = b->slabs.clock > NEW_CLOCK ? b->slabs.clock - NEW_CLOCK : 0;
	do {
		u.n = 0;
		hashmap_each(&b->slabs.tables, note_unused_copy, &u);
		for (uint32_t i = 0; i < u.n; i++)
			drop_table(b, u.keys[i]);
	} while (u.n);
	b->slabs.copied_most = 2 * (b->slabs.copied + bytes);
	if (b->slabs.copied_most < SOME_COPIED)
		b->slabs.copied_most = SOME_COPIED;
}

/* Keeps the words of a table by page, and begins to load it. earlier: what it replaces, or NULL. */
static int add_pages(struct bpf_sampler *b, struct slab_table *p, const struct table_source *from,
		     struct slab_table *earlier)
{
	struct used_pages *used = NULL;
	int r;

	p->pages = (struct paged_table){.words = from->words, .n = from->n, .at = p->at};
	if (!from->of) {
		p->copy = malloc(from->n * sizeof(*p->copy));
		if (!p->copy)
			return -ENOMEM;
		b->slabs.copied += from->n * sizeof(*p->copy);
		memcpy(p->copy, from->words, from->n * sizeof(*p->copy));
		p->pages.words = p->copy;
	} else {
		inspection_ref(from->of);
		p->source = from->of;
		p->unwinder = from->unwinder;
		if (has_remembered(b, p))
			used = worker_used_pages(b->worker, p->source, unwinder_name(b, p),
						 pages_of(from->n));
		if (!used && earlier)
			used = used_pages_carry(earlier->pages.words, earlier->pages.n,
						pages_seen(b, &earlier->pages), from->words,
						from->n);
	}
	r = pages_add(b, &p->pages, used);
	free(used);
	return r;
}

/* Makes the table of a key. NULL: no room; *r is -errno. */
static struct slab_table *table_new(struct bpf_sampler *b, uint64_t key,
				    const struct table_source *from, int *r)
{
	uint64_t room = from->paged ? pages_of(from->n) : from->n;
	bool fits = from->n <= UINT32_MAX && room <= (uint64_t)b->slabs.n * SLAB_WORDS;
	struct slab_table *p = fits ? calloc(1, sizeof(*p)) : NULL;

	*r = !fits ? -ENOSPC : p ? 0 : -ENOMEM;
	if (*r)
		return NULL;
	p->words = (uint32_t)from->n;
	p->room = (uint32_t)room;
	if (from->paged && !from->of)
		limit_copies(b, 4 * from->n);
	*r = make_room(b, p->room, &p->at);
	if (*r) {
		free(p);
		return NULL;
	}
	p->paged = from->paged;
	*r = p->paged ? add_pages(b, p, from, hashmap_get(&b->slabs.tables, replaced_key(key)))
		      : words_write(b->slabs.fd, p->at, from->words, from->n);
	if (!*r) {
		*r = hashmap_put(&b->slabs.tables, key, p);
		if (*r && p->paged)
			pages_remove(b, &p->pages);
	}
	if (*r) {
		slab_room_give(&b->slabs.room, p->at, p->room);
		table_free(b, p);
		return NULL;
	}
	p->id = b->slabs.ids < MAX_IDS ? ++b->slabs.ids : 0;
	return p;
}

static void use(struct bpf_sampler *b, struct slab_table *p, struct slab_range *ret)
{
	p->used = b->slabs.clock + 1; /* not evicted for the next table of the same process */
	*ret = (struct slab_range){.at = p->at, .words = p->words, .id = p->id};
}

static int place(struct bpf_sampler *b, uint64_t key, const struct table_source *from,
		 struct slab_range *ret)
{
	struct slab_table *p = current(b, key, from->of);
	int r = 0;

	*ret = (struct slab_range){0};
	if (!p)
		p = table_new(b, key, from, &r);
	if (p)
		use(b, p, ret);
	return r;
}

int slabs_place(struct bpf_sampler *b, const struct file *f, int unwinder, struct slab_range *ret)
{
	const struct inspection_slab *slab = unwinder < 0 ? NULL : f->slabs[unwinder];

	*ret = (struct slab_range){0};
	if (!slab || !slab->n)
		return 0;
	return place(b, table_key(f->id, (uint32_t)unwinder),
		     &(struct table_source){.words = slab->words,
					    .n = slab->n,
					    .paged = b->paged >> unwinder & 1,
					    .of = f->inspection,
					    .unwinder = (uint32_t)unwinder},
		     ret);
}

int slabs_place_made(struct bpf_sampler *b, uint64_t id, int unwinder,
		     const struct inspection_slab *slab, struct slab_range *ret)
{
	const struct table_source from = {
		.words = slab->words, .n = slab->n, .paged = b->paged >> unwinder & 1};

	return place(b, made_key(id), &from, ret);
}

int slabs_place_words(struct bpf_sampler *b, uint64_t process, uint32_t unwinder,
		      const uint32_t *words, uint64_t n, struct slab_range *ret)
{
	uint64_t key = words_key(process, unwinder);
	struct slab_table *p = hashmap_get(&b->slabs.tables, key);
	int r;

	*ret = (struct slab_range){0};
	if (p && p->words != n) {
		drop_table(b, key);
		p = NULL;
	}
	/* They are written in place, since no walk that reads them is used: the mappings' version
	 * is odd. */
	r = p ? words_write(b->slabs.fd, p->at, words, n) : 0;
	if (!p)
		p = table_new(b, key, &(struct table_source){.words = words, .n = n}, &r);
	if (!r)
		use(b, p, ret);
	return r;
}

/* ---- pages that walks need ---- */

void bpf_publish_touched(struct bpf_sampler *b, const struct touched_table *t,
			 const uint32_t *pages, uint32_t n)
{
	uint64_t key = t->file ? table_key(t->file, t->unwinder) : made_key(t->made);
	struct slab_table *p = hashmap_get(&b->slabs.tables, key);

	if (p && p->paged)
		pages_load(b, &p->pages, pages, n);
}

/* Places of entries, at which walks in the kernel ended. */
struct required {
	struct bpf_sampler *b;
	uint32_t n, at[REQUIRED_PAGES];
};

static void load_required(void *arg, uint64_t key, void *value)
{
	struct required *w = arg;
	struct slab_table *p = value;

	(void)key;
	for (uint32_t i = 0; p->paged && i < w->n; i++) {
		uint32_t page = w->at[i] - p->at; /* pages beyond the table are ignored */

		pages_load(w->b, &p->pages, &page, 1);
	}
}

void slabs_load_required(struct bpf_sampler *b)
{
	uint32_t now = __atomic_load_n(&b->settings->nrequired, __ATOMIC_ACQUIRE);
	uint32_t first = now - b->frames.nrequired <= REQUIRED_PAGES ? b->frames.nrequired
								     : now - REQUIRED_PAGES;
	struct required w = {.b = b};

	if (now == b->frames.nrequired)
		return;
	for (uint32_t i = first; i != now; i++)
		w.at[w.n++] = __atomic_load_n(&b->settings->required_pages[i % REQUIRED_PAGES],
					      __ATOMIC_RELAXED);
	b->frames.nrequired = now;
	hashmap_each(&b->slabs.tables, load_required, &w);
	slabs_drop_replaced(b);
}

static void keep_table(void *arg, uint64_t key, void *value)
{
	(void)key;
	keep_pages(arg, value);
}

void bpf_sampler_keep_pages(struct bpf_sampler *b)
{
	if (!b)
		return;
	hashmap_each(&b->slabs.tables, keep_table, b);
	b->worker = NULL;
}

/* ---- open and close ---- */

int slabs_init(struct bpf_sampler *b)
{
	/* word 0 is in no table, so that a table's place is never 0 */
	return slab_room_init(&b->slabs.room, SLAB_WORDS, 1, b->slabs.n * SLAB_WORDS - 1);
}

static void free_table(void *arg, uint64_t key, void *value)
{
	struct slab_table *p = value;

	(void)arg;
	(void)key;
	if (p->paged)
		pages_free(&p->pages);
	inspection_unref(p->source);
	free(p->copy);
}

void slabs_fini(struct bpf_sampler *b)
{
	hashmap_each(&b->slabs.tables, free_table, NULL);
	hashmap_fini_free(&b->slabs.tables);
	slab_room_fini(&b->slabs.room);
}
