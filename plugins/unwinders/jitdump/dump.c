/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>

#include "texts.h"

#define MAGIC 0x4a695444u
#define V8_MARK 0xdeadbeefu /* in a reserved word of V8's headers */
#define V8_FREED 16u        /* bytes of a freed text that allocators write */
#define LINE 16             /* bytes of a line before its file */
#define V8_SHIFT 0x40u      /* V8 adds an ELF header's size to the addresses of its lines */

enum { RECORD_LOAD, RECORD_MOVE, RECORD_LINES };

/* Piece of code that was loaded or moved. Pieces of the map of codes are named by its index. */
struct code {
	uint64_t start, index; /* index: as the file counts it */
	uint32_t size, name;
	uint32_t first, nlines;
	uint32_t next; /* 1 + another code whose index has the same hash; 0: none */
};

struct line {
	uint32_t at, line; /* at: bytes from the code's start */
	uint32_t file;
};

struct dump {
	uint64_t max;
	struct fusee_codemap *map; /* names are the 4 bytes of an index in codes */
	struct texts texts;
	struct code *codes;
	struct line *lines;
	uint32_t *buckets; /* by the hash of a code's index: 1 + the latest such code */
	uint32_t ncodes, nlines, nbuckets;
	uint64_t codes_cap, lines_cap;
	uint64_t faults[DUMP_FAULTS];
	uint8_t *waiting; /* the body of a record with the lines of the code that comes next */
	uint64_t waiting_cap;
	uint32_t nwaiting; /* bytes; 0: there is none */
	uint32_t shift;    /* of V8: that addresses of lines have too much; else 0 */
};

struct dump *dump_new(uint64_t max_bytes)
{
	struct dump *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->map = fusee_codemap_new(0);
	if (!d->map) {
		free(d);
		return NULL;
	}
	dump_limit(d, max_bytes);
	return d;
}

void dump_free(struct dump *d)
{
	if (!d)
		return;
	fusee_codemap_free(d->map);
	texts_fini(&d->texts);
	free(d->codes);
	free(d->lines);
	free(d->buckets);
	free(d->waiting);
	free(d);
}

/* Half of it is the map's. */
void dump_limit(struct dump *d, uint64_t max_bytes)
{
	d->max = max_bytes / 2;
	fusee_codemap_limit(d->map, max_bytes / 2);
}

static uint64_t own_bytes(const struct dump *d)
{
	return sizeof(*d) + texts_bytes(&d->texts) + d->codes_cap * sizeof(*d->codes) +
	       d->lines_cap * sizeof(*d->lines) + d->nbuckets * sizeof(*d->buckets) +
	       d->waiting_cap;
}

uint64_t dump_bytes(const struct dump *d)
{
	return own_bytes(d) + fusee_codemap_bytes(d->map);
}

const uint64_t *dump_faults(const struct dump *d)
{
	return d->faults;
}

uint32_t dump_pending(const struct dump *d)
{
	return fusee_codemap_pending(d->map);
}

bool dump_replaces(struct dump *d)
{
	return fusee_codemap_replaces(d->map);
}

void dump_commit(struct dump *d, uint32_t generation)
{
	d->faults[DUMP_FULL] += fusee_codemap_commit(d->map, generation);
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

enum dump_refusal dump_header(struct dump *d, const uint8_t *p, uint32_t pid, uint32_t *size)
{
	*size = u32_at(p + 8);
	if (u32_at(p) != MAGIC || !u32_at(p + 4) || *size < DUMP_HEADER || *size > 65536)
		return DUMP_NO_DUMP;
	if (u32_at(p + 12) && u32_at(p + 12) != EM_X86_64) /* CPython 3.13 does not say it */
		return DUMP_OTHER_MACHINE;
	if (u32_at(p + 20) != pid)
		return DUMP_OTHER_PROCESS;
	d->shift = u32_at(p + 16) == V8_MARK ? V8_SHIFT : 0;
	return DUMP_ACCEPTED;
}

uint32_t dump_requires(uint32_t id)
{
	switch (id) {
	case RECORD_LOAD:
	case RECORD_MOVE:
		return DUMP_LOAD;
	case RECORD_LINES:
		return DUMP_BODY;
	default:
		return 0;
	}
}

/* ---- room ---- */

/* Arrays grow by doubling, and slots of texts take some more. */
static bool fits(const struct dump *d, uint64_t text, uint64_t lines, uint64_t waiting)
{
	uint64_t texts = d->texts.len + text + 2 + 6ull * (d->texts.n + 1) * sizeof(uint32_t);

	if (waiting < d->waiting_cap / 2)
		waiting = d->waiting_cap / 2;
	return sizeof(*d) + 2 * (texts + waiting + (d->ncodes + 1ull) * (sizeof(struct code) + 8) +
				 (d->nlines + lines) * sizeof(struct line)) <=
	       d->max;
}

static bool add_text(struct dump *d, struct fusee_str text, uint32_t *at)
{
	return fits(d, text.len, 0, 0) && texts_add(&d->texts, text, at);
}

/* ---- codes by their index ---- */

static uint32_t *bucket_of(const struct dump *d, uint64_t index)
{
	return &d->buckets[(index * 0x9e3779b97f4a7c15u >> 32) & (d->nbuckets - 1)];
}

static void put_in_bucket(struct dump *d, uint32_t i)
{
	uint32_t *bucket = bucket_of(d, d->codes[i].index);

	d->codes[i].next = *bucket;
	*bucket = i + 1;
}

static bool make_buckets(struct dump *d)
{
	uint32_t n = d->nbuckets ? 2 * d->nbuckets : 64;
	uint32_t *more;

	if (d->ncodes < d->nbuckets)
		return true;
	more = calloc(n, sizeof(*more));
	if (!more)
		return false;
	free(d->buckets);
	d->buckets = more;
	d->nbuckets = n;
	for (uint32_t i = 0; i < d->ncodes; i++)
		put_in_bucket(d, i);
	return true;
}

/* The latest code of this index; NULL: none. A file may give all its codes one hash: only so many
 * are looked at. */
static const struct code *by_index(const struct dump *d, uint64_t index)
{
	uint32_t i = d->nbuckets ? *bucket_of(d, index) : 0;

	for (uint32_t turns = 0; i && turns < 64; turns++) {
		if (d->codes[i - 1].index == index)
			return &d->codes[i - 1];
		i = d->codes[i - 1].next;
	}
	return NULL;
}

/* ---- records ---- */

static int add_code(struct dump *d, const struct code *c)
{
	uint32_t i = d->ncodes;
	int r;

	if (!fits(d, 0, 0, 0) || !make_buckets(d) ||
	    !fusee_grow(&d->codes, &d->codes_cap, i + 1, sizeof(*c)))
		return -ENOSPC;
	r = fusee_codemap_add(d->map, c->start, c->size, (struct fusee_str){(char *)&i, sizeof(i)});
	if (r)
		return r;
	d->codes[i] = *c;
	d->ncodes++;
	put_in_bucket(d, i);
	return 0;
}

static void count_fault(struct dump *d, int err)
{
	if (err)
		d->faults[err == -EINVAL ? DUMP_BAD_RANGE : DUMP_FULL]++;
}

/* A size that no piece of code can have. */
static uint32_t size_of(uint64_t size)
{
	return size > FUSEE_CODEMAP_LARGEST ? UINT32_MAX : (uint32_t)size;
}

/* ---- lines ---- */

static int by_place(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* What is known of the lines that are read. */
struct reading {
	const uint8_t *p, *end;
	uint64_t start, size;  /* of the code */
	struct fusee_str file; /* V8: of the function, of its name */
	uint32_t same;         /* the text of the last file; UINT32_MAX: none yet */
};

static bool is_place(const struct reading *r, const struct dump *d, const uint8_t *p)
{
	return u64_at(p) - d->shift - r->start < r->size;
}

/* V8 writes file names after it has freed them: their first bytes are others, and the rest tells
 * whether it is the function's own file. Returns the byte behind the name; NULL: it has no end. */
static const uint8_t *skip_v8(struct dump *d, struct reading *r, struct line *l)
{
	const uint8_t *name = r->p + LINE, *p = name + r->file.len;
	uint64_t freed = r->file.len < V8_FREED ? r->file.len : V8_FREED;

	if (r->file.len < (uint64_t)(r->end - name) && !*p &&
	    !memcmp(name + freed, r->file.p + freed, r->file.len - freed)) {
		l->file = r->same;
		return p + 1;
	}
	l->line = 0; /* inlined from another file */
	for (p = name; p < r->end; p++)
		if (!*p && (r->end - p <= LINE || is_place(r, d, p + 1)))
			return p + 1;
	return NULL;
}

/* Sets the file of a line. Returns the byte behind its name; NULL: it has no end, or no room. */
static const uint8_t *take_file(struct dump *d, struct reading *r, struct line *l)
{
	const char *name = (const char *)r->p + LINE;
	const char *stop = memchr(name, 0, (size_t)((const char *)r->end - name));

	if (!stop)
		return NULL;
	if (strcmp(name, "\xff") && /* the same as before */
	    !add_text(d, (struct fusee_str){name, (uint64_t)(stop - name)}, &r->same)) {
		d->faults[DUMP_FULL]++;
		return NULL;
	}
	l->file = r->same;
	return (const uint8_t *)stop + 1;
}

/* Reads the lines that wait: u64 address; u32 line, column; the file, terminated. */
static void add_lines(struct dump *d, struct code *c, struct reading *r)
{
	uint64_t n = u64_at(d->waiting + 8);
	bool sorted = true;

	r->p = d->waiting + 16;
	r->end = d->waiting + d->nwaiting;
	c->first = d->nlines;
	for (; n && r->end - r->p > LINE; n--) {
		struct line l = {.at = (uint32_t)(u64_at(r->p) - d->shift - r->start),
				 .line = u32_at(r->p + 8)};
		bool valid = is_place(r, d, r->p) && l.line <= INT32_MAX;

		r->p = d->shift ? skip_v8(d, r, &l) : take_file(d, r, &l);
		if (!r->p)
			break;
		if (!valid || (!d->shift && r->same == UINT32_MAX))
			continue;
		if (!fits(d, 0, 1, 0) ||
		    !fusee_grow(&d->lines, &d->lines_cap, d->nlines + 1, sizeof(l))) {
			d->faults[DUMP_FULL]++;
			break;
		}
		sorted &= d->nlines == c->first || d->lines[d->nlines - 1].at <= l.at;
		d->lines[d->nlines++] = l;
	}
	d->faults[DUMP_TRUNCATED] += n != 0;
	c->nlines = d->nlines - c->first;
	if (!sorted)
		qsort(&d->lines[c->first], c->nlines, sizeof(*d->lines), by_place);
}

/* Gives the code the lines that came before it, if they are its own. */
static void take_waiting(struct dump *d, struct code *c, struct fusee_str name)
{
	struct reading r = {
		.start = c->start, .size = c->size, .file = {"", 0}, .same = UINT32_MAX};
	struct fusee_source_frame f = {.size = sizeof(f)};

	if (d->nwaiting && u64_at(d->waiting) != c->start) {
		d->faults[DUMP_NO_CODE]++;
	} else if (d->nwaiting && d->shift) {
		fusee_codemap_split(name, &f);
		r.file = f.file.p ? f.file : r.file;
		if (add_text(d, r.file, &r.same))
			add_lines(d, c, &r);
	} else if (d->nwaiting) {
		add_lines(d, c, &r);
	}
	d->nwaiting = 0;
}

/* ---- code ---- */

/* u32 pid, tid; u64 vma, address, size, index; the name, terminated; the code. */
static void take_load(struct dump *d, const uint8_t *p, uint32_t len)
{
	struct code c = {0};
	const char *name = (const char *)p + 40;
	const char *end;
	int r;

	if (len < 41) {
		d->faults[DUMP_SHORT]++;
		return;
	}
	c.start = u64_at(p + 16);
	c.size = size_of(u64_at(p + 24));
	c.index = u64_at(p + 32);
	end = memchr(name, 0, len - 40);
	if (!end) {
		d->faults[DUMP_TRUNCATED]++;
		end = (const char *)p + len;
	}
	take_waiting(d, &c, (struct fusee_str){name, (uint64_t)(end - name)});
	r = add_text(d, (struct fusee_str){name, (uint64_t)(end - name)}, &c.name) ? add_code(d, &c)
										   : -ENOSPC;
	count_fault(d, r);
	if (r)
		d->nlines -= c.nlines;
}

/* u32 pid, tid; u64 vma, old address, new address, size, index. */
static void take_move(struct dump *d, const uint8_t *p, uint32_t len)
{
	const struct code *old = len < 48 ? NULL : by_index(d, u64_at(p + 40));
	struct code c;

	if (!old || old->start != u64_at(p + 16)) {
		d->faults[len < 48 ? DUMP_SHORT : DUMP_NOT_MOVED]++;
		return;
	}
	c = *old;
	c.start = u64_at(p + 24);
	c.size = size_of(u64_at(p + 32));
	count_fault(d, add_code(d, &c));
}

/* u64 address, number of lines; the lines. They are kept until their code comes, which says more of
 * them. */
static void take_lines(struct dump *d, const uint8_t *p, uint32_t len)
{
	d->faults[DUMP_NO_CODE] += d->nwaiting != 0;
	d->nwaiting = 0;
	if (len < 16) {
		d->faults[DUMP_SHORT]++;
		return;
	}
	if (!fits(d, 0, 0, len) || !fusee_grow(&d->waiting, &d->waiting_cap, len, 1)) {
		d->faults[DUMP_FULL]++;
		return;
	}
	memcpy(d->waiting, p, len);
	d->nwaiting = len;
}

void dump_record(struct dump *d, uint32_t id, const uint8_t *p, uint32_t len)
{
	if (id == RECORD_LOAD)
		take_load(d, p, len);
	else if (id == RECORD_MOVE)
		take_move(d, p, len);
	else if (id == RECORD_LINES)
		take_lines(d, p, len);
}

/* ---- looking up ---- */

static const struct code *code_of(const struct dump *d, struct fusee_str name)
{
	return &d->codes[u32_at((const uint8_t *)name.p)];
}

/* The last line that begins at or before the place; NULL: none. */
static const struct line *line_at(const struct dump *d, const struct code *c, uint64_t at)
{
	uint32_t lo = 0, hi = c->nlines;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->lines[c->first + mid].at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &d->lines[c->first + lo - 1] : NULL;
}

bool dump_lookup(const struct dump *d, uint64_t addr, uint32_t generation, struct dump_found *found)
{
	struct fusee_str name;
	const struct code *c;
	const struct line *l;

	if (!fusee_codemap_lookup(d->map, addr, generation, &name))
		return false;
	c = code_of(d, name);
	l = line_at(d, c, addr - c->start);
	*found = (struct dump_found){.name = texts_get(&d->texts, c->name), .file = {"", 0}};
	if (l && l->line) {
		found->file = texts_get(&d->texts, l->file);
		found->line = l->line;
	}
	return true;
}

struct covering {
	const struct dump *dump;
	bool (*each)(void *arg, struct fusee_str name);
	void *arg;
};

static bool call_each(void *arg, struct fusee_str name)
{
	const struct covering *c = arg;

	return c->each(c->arg, texts_get(&c->dump->texts, code_of(c->dump, name)->name));
}

bool dump_covers(const struct dump *d, uint64_t lo, uint64_t hi,
		 bool (*each)(void *arg, struct fusee_str name), void *arg)
{
	struct covering c = {d, each, arg};

	return fusee_codemap_covers(d->map, lo, hi, 16, each ? call_each : NULL, &c);
}
