/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_SPECIALS 64

static uint64_t time_of(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t table_cpu_ns(void)
{
	return time_of(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t table_wall_ns(void)
{
	return time_of(CLOCK_MONOTONIC);
}

int table_build_init(struct table_build *build)
{
	static const uint32_t unknown[DWARF_PATTERN_WORDS] = {0x01010101, 1};
	struct table_specials *lists[] = {&build->specials, &build->patterns};

	memset(build, 0, sizeof(*build));
	build->began_ns = table_cpu_ns();
	build->began_wall_ns = table_wall_ns();
	for (int i = 0; i < 2; i++) {
		lists[i]->cap = FIRST_SPECIALS;
		lists[i]->p = calloc(FIRST_SPECIALS, sizeof(*lists[i]->p));
		lists[i]->slots = calloc(2 * FIRST_SPECIALS, sizeof(*lists[i]->slots));
		if (!lists[i]->p || !lists[i]->slots)
			return -ENOMEM;
	}
	table_pattern(build, unknown);
	table_special(build, DWARF_EXPRESSION, 0, 0, 0);
	table_special(build, DWARF_END, 0, 0, 0);
	return 0;
}

void table_build_fini(struct table_build *build)
{
	free(build->specials.p);
	free(build->specials.slots);
	free(build->patterns.p);
	free(build->patterns.slots);
	memset(&build->specials, 0, sizeof(build->specials));
	memset(&build->patterns, 0, sizeof(build->patterns));
}

int table_in_text(const struct table_build *build, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < build->n_texts; i++)
		if (lo >= build->text[i].lo && hi <= build->text[i].hi)
			return lo < hi;
	return 0;
}

/* The slot with the index of special w, or the free slot for it. */
static uint32_t *find_slot(const struct table_specials *s, const uint32_t *w)
{
	uint32_t mask = 2 * s->cap - 1, i;
	uint64_t h = 0;

	for (int k = 0; k < DWARF_SPECIAL_WORDS; k++)
		h = (h ^ w[k]) * 0x9e3779b97f4a7c15ull;
	for (i = h >> 48 & mask; s->slots[i]; i = (i + 1) & mask)
		if (!memcmp(s->p[s->slots[i] - 1], w, DWARF_SPECIAL_WORDS * sizeof(*w)))
			break;
	return &s->slots[i];
}

static int grow_specials(struct table_specials *s)
{
	uint32_t cap = 2 * s->cap, *slots = calloc(2 * cap, sizeof(*slots));
	void *p = reallocarray(s->p, cap, sizeof(*s->p));

	if (p)
		s->p = p;
	if (!p || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	for (uint32_t i = 0; i < s->n; i++)
		*find_slot(s, s->p[i]) = i + 1;
	return 0;
}

/* Finds or adds these words, and returns their index; 0 if there is no room. */
static uint32_t intern(struct table_specials *s, const uint32_t w[DWARF_SPECIAL_WORDS])
{
	uint32_t *slot = find_slot(s, w);

	if (*slot)
		return *slot - 1;
	if (s->n == DWARF_MAX_SPECIALS || (s->n == s->cap && grow_specials(s)))
		return 0;
	memcpy(s->p[s->n++], w, sizeof(*s->p));
	*find_slot(s, w) = s->n;
	return s->n - 1;
}

uint32_t table_special(struct table_build *build, uint32_t head, int32_t cfa, int32_t fp,
		       int32_t ra)
{
	uint32_t w[DWARF_SPECIAL_WORDS] = {head, (uint32_t)cfa, (uint32_t)fp, (uint32_t)ra};

	return DWARF_RULE_SPECIAL(intern(&build->specials, w));
}

uint32_t table_pattern(struct table_build *build, const uint32_t words[DWARF_PATTERN_WORDS])
{
	uint32_t w[DWARF_SPECIAL_WORDS] = {words[0], words[1]};

	return DWARF_PATTERN_UNKNOWN + intern(&build->patterns, w);
}

/* ---- lists ---- */

int rows_add_slow(struct rows *rows, uint64_t row)
{
	if (rows->n >= 4 * (size_t)TABLE_MAX_ROWS)
		return -E2BIG;
	if (!fusee_grow(&rows->p, &rows->cap, rows->n + 1, sizeof(*rows->p)))
		return -ENOMEM;
	rows->p[rows->n++] = row;
	return 0;
}

void rows_fini(struct rows *rows)
{
	free(rows->p);
	memset(rows, 0, sizeof(*rows));
}

int functions_add(struct functions *ranges, const struct function_rows *range)
{
	if (ranges->n >= TABLE_MAX_ROWS)
		return -E2BIG;
	if (!fusee_grow(&ranges->p, &ranges->cap, ranges->n + 1, sizeof(*ranges->p)))
		return -ENOMEM;
	ranges->p[ranges->n++] = *range;
	return 0;
}

void functions_fini(struct functions *ranges)
{
	free(ranges->p);
	memset(ranges, 0, sizeof(*ranges));
}

/* Appends a row. A row at the same address replaces the last; a row with the same rule is
 * dropped. */
static int put(struct rows *rows, uint64_t vaddr, uint32_t rule)
{
	if (rows->n && ROW_VADDR(rows->p[rows->n - 1]) == vaddr)
		rows->n--;
	if (rule == (rows->n ? ROW_RULE(rows->p[rows->n - 1]) : DWARF_RULE_NONE))
		return 0;
	return rows_add(rows, vaddr, rule);
}

/* ---- sorting ---- */

#define DIGIT_BITS 11

static void sort_pass(const struct function_rows *from, struct function_rows *to, size_t n,
		      uint64_t base, int shift)
{
	uint32_t at[1 << DIGIT_BITS] = {0};
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		at[(from[i].lo - base) >> shift & ((1 << DIGIT_BITS) - 1)]++;
	for (int d = 0; d < 1 << DIGIT_BITS; d++) {
		uint32_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[(from[i].lo - base) >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
}

/* Sorts by lo, stable. Compilers emit functions nearly in order, so most lists are sorted
 * already. */
static int sort_ranges(struct functions *ranges)
{
	uint64_t min = UINT64_MAX, max = 0;
	struct function_rows *other;
	int sorted = 1;

	for (size_t i = 0; i < ranges->n; i++) {
		if (ranges->p[i].lo < max)
			sorted = 0;
		if (ranges->p[i].lo > max)
			max = ranges->p[i].lo;
		if (ranges->p[i].lo < min)
			min = ranges->p[i].lo;
	}
	if (sorted)
		return 0;
	other = reallocarray(NULL, ranges->n, sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (int shift = 0; (max - min) >> shift; shift += DIGIT_BITS) {
		struct function_rows *p = ranges->p;

		sort_pass(p, other, ranges->n, min, shift);
		ranges->p = other;
		other = p;
	}
	ranges->cap = ranges->n;
	free(other);
	return 0;
}

int rows_arrange(const struct rows *rows, struct functions *ranges, struct rows *ret)
{
	int err = sort_ranges(ranges);

	if (!err && !ret->p && ranges->n) {
		ret->p = reallocarray(NULL, rows->n + ranges->n, sizeof(*ret->p));
		if (!ret->p)
			return -ENOMEM;
		ret->cap = rows->n + ranges->n;
	}
	for (size_t i = 0; !err && i < ranges->n; i++) {
		const struct function_rows *r = &ranges->p[i];
		uint64_t hi = r->hi;

		if (i && ranges->p[i - 1].lo == r->lo)
			continue;
		for (size_t k = i + 1; k < ranges->n; k++) {
			if (ranges->p[k].lo == r->lo)
				continue;
			if (ranges->p[k].lo < hi)
				hi = ranges->p[k].lo;
			break;
		}
		for (uint32_t k = 0; !err && k < r->n; k++) {
			uint64_t row = rows->p[r->first + k];

			if (ROW_VADDR(row) >= hi)
				break;
			err = put(ret, ROW_VADDR(row), ROW_RULE(row));
		}
		if (!err)
			err = put(ret, hi, DWARF_RULE_NONE);
	}
	return err;
}

/* ---- combining lists ---- */

int rows_overlay(const struct rows *over, const struct rows *under, struct rows *ret)
{
	uint32_t a = DWARF_RULE_NONE, b = DWARF_RULE_NONE;
	size_t i = 0, k = 0;
	int err = 0;

	while (!err && (i < over->n || k < under->n)) {
		uint64_t at_a = i < over->n ? ROW_VADDR(over->p[i]) : UINT64_MAX;
		uint64_t at_b = k < under->n ? ROW_VADDR(under->p[k]) : UINT64_MAX;
		uint64_t at = at_a < at_b ? at_a : at_b;

		if (at_a == at)
			a = ROW_RULE(over->p[i++]);
		if (at_b == at)
			b = ROW_RULE(under->p[k++]);
		err = put(ret, at, a != DWARF_RULE_NONE ? a : b);
	}
	return err;
}

/* The index of the first row at vaddr or above. */
static size_t find_at(const struct rows *rows, uint64_t vaddr)
{
	size_t lo = 0, hi = rows->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ROW_VADDR(rows->p[mid]) < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Replaces the rows [from, end) by n others. */
static int replace(struct rows *all, size_t from, size_t end, const uint64_t *by, size_t n)
{
	size_t rest = all->n - end;

	if (from + n + rest >= 4 * (size_t)TABLE_MAX_ROWS)
		return -E2BIG;
	if (!fusee_grow(&all->p, &all->cap, from + n + rest, sizeof(*all->p)))
		return -ENOMEM;
	memmove(all->p + from + n, all->p + end, rest * sizeof(*all->p));
	memcpy(all->p + from, by, n * sizeof(*by));
	all->n = from + n + rest;
	return 0;
}

int rows_fill(struct rows *all, const struct rows *more)
{
	uint64_t lo = more->n ? ROW_VADDR(more->p[0]) : 0;
	size_t from = find_at(all, lo), end = all->n, before = !!from;
	struct rows part = {.p = all->p + from - before}, both = {0};
	int err;

	if (!more->n || !all->n)
		return rows_overlay(&(struct rows){0}, more, all);
	if (ROW_RULE(more->p[more->n - 1]) == DWARF_RULE_NONE)
		end = find_at(all, ROW_VADDR(more->p[more->n - 1]) + 1);
	part.n = end - from + before;
	err = rows_overlay(&part, more, &both);
	if (!err) {
		/* the row that governs `lo` stays, unless it is a gap, which is not put first */
		size_t skip = before && both.n && ROW_VADDR(both.p[0]) < lo;

		err = replace(all, from, end, both.p + skip, both.n - skip);
	}
	rows_fini(&both);
	return err;
}

int rows_force(struct rows *rows, uint64_t lo, uint64_t hi, uint32_t rule)
{
	uint64_t row[2] = {ROW(lo, rule), ROW(hi, DWARF_RULE_NONE)};
	struct rows over = {.p = row, .n = 2}, ret = {0};
	int err = rows_overlay(&over, rows, &ret);

	if (err) {
		rows_fini(&ret);
		return err;
	}
	free(rows->p);
	*rows = ret;
	return 0;
}

/* ---- the table ---- */

#define PAGE 65536u

/* A table, or the part of it about saves. */
struct packer {
	uint32_t *index, *rows;
	uint64_t lo, n, blocks;
	uint64_t in_block, block; /* rows in the newest block, and its number */
	uint32_t shift;           /* a block has 256 << shift bytes */
	uint32_t unknown;         /* the rule "not known" */
};

/* Closes the blocks below `block`. A block without rows points behind the last row. */
static void close_blocks(struct packer *p, uint64_t block)
{
	for (; p->block < block; p->block++) {
		p->index[p->block] = (uint32_t)((p->n - p->in_block) << 8 | p->in_block);
		p->in_block = 0;
	}
}

static void pack_row(struct packer *p, uint64_t vaddr, uint32_t rule)
{
	close_blocks(p, (vaddr - p->lo) >> (DWARF_BLOCK_SHIFT + p->shift));
	if (p->in_block == 255) {
		/* 8 bits cannot count more rows: the last row gets the rule "not known" */
		p->rows[p->n - 1] = (p->rows[p->n - 1] & 0xffff) | p->unknown << 16;
		return;
	}
	p->rows[p->n++] = (uint32_t)(vaddr & 0xffff) | rule << 16;
	p->in_block++;
}

static void pack_rows(struct packer *p, const struct rows *rows)
{
	uint64_t page = p->lo, before = DWARF_RULE_NONE;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t at = ROW_VADDR(rows->p[i]);

		for (; page <= at; page += PAGE)
			if (page < at)
				pack_row(p, page, (uint32_t)before);
		before = ROW_RULE(rows->p[i]);
		pack_row(p, at, (uint32_t)before);
	}
	close_blocks(p, p->blocks);
}

/* Prepares the packer for text [lo, hi), and adds the size of its table to *words. 0 or -E2BIG. */
static int measure(struct packer *p, const struct rows *rows, const struct table_specials *specials,
		   uint64_t hi, uint64_t *words)
{
	uint64_t max_rows = rows->n + (hi - p->lo) / PAGE + 1;

	if (max_rows >= TABLE_MAX_ROWS)
		return -E2BIG;
	p->blocks = ((hi - p->lo - 1) >> (DWARF_BLOCK_SHIFT + p->shift)) + 1;
	*words += DWARF_HEADER_WORDS + p->blocks + max_rows +
		  (uint64_t)specials->n * DWARF_SPECIAL_WORDS;
	return 0;
}

/* Writes header, index, rows, and special_words words of each special. Returns the end. */
static uint32_t *pack(struct packer *p, const struct rows *rows,
		      const struct table_specials *specials, uint32_t special_words, uint32_t *w)
{
	uint32_t *to;

	p->index = w + DWARF_HEADER_WORDS;
	p->rows = p->index + p->blocks;
	pack_rows(p, rows);
	w[DWARF_MAGIC] = DWARF_TABLE_MAGIC;
	w[DWARF_LO] = (uint32_t)p->lo;
	w[DWARF_LO_HIGH] = (uint32_t)(p->lo >> 32);
	w[DWARF_BLOCKS] = (uint32_t)p->blocks;
	w[DWARF_INDEX_AT] = DWARF_HEADER_WORDS;
	w[DWARF_ROWS_AT] = (uint32_t)(DWARF_HEADER_WORDS + p->blocks);
	w[DWARF_ROWS] = (uint32_t)p->n;
	w[DWARF_SHIFT] = p->shift;
	w[DWARF_SPECIALS_AT] = (uint32_t)(w[DWARF_ROWS_AT] + p->n);
	w[DWARF_SPECIALS] = specials->n;
	to = w + w[DWARF_SPECIALS_AT];
	for (uint32_t i = 0; i < specials->n; i++, to += special_words)
		memcpy(to, specials->p[i], special_words * sizeof(*to));
	return to;
}

/* Prepares `saves` for packing: drops rows without a pattern, rows outside of the rules' addresses,
 * and rows that repeat the pattern before them. */
static void compact(struct sheet *s)
{
	const struct rows *rules = &s->rules;
	uint64_t lo = rules->n ? ROW_VADDR(rules->p[0]) : 0;
	uint64_t hi = rules->n ? ROW_VADDR(rules->p[rules->n - 1]) : 0;
	uint32_t last = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->saves.n; i++) {
		uint64_t at = ROW_VADDR(s->saves.p[i]);
		uint32_t pattern = ROW_RULE(s->saves.p[i]);

		if (!pattern || pattern == last || at < lo || at > hi)
			continue;
		s->saves.p[n++] = s->saves.p[i];
		last = pattern;
	}
	s->saves.n = n;
}

int table_pack(const struct table_build *build, struct sheet *from, uint32_t machine,
	       uint32_t **words, uint64_t *n)
{
	struct packer rules = {.unknown = DWARF_RULE_EXPRESSION};
	struct packer saves = {.shift = DWARF_SAVES_SHIFT, .unknown = DWARF_PATTERN_UNKNOWN};
	uint32_t *w, *end;
	uint64_t hi, all = 0;
	int err;

	if (!from->rules.n)
		return -ENOENT;
	compact(from);
	rules.lo = saves.lo = ROW_VADDR(from->rules.p[0]) & ~(uint64_t)(PAGE - 1);
	hi = ROW_VADDR(from->rules.p[from->rules.n - 1]) + 1;
	err = hi - rules.lo > TABLE_MAX_SPAN ? -E2BIG : 0;
	if (!err)
		err = measure(&rules, &from->rules, &build->specials, hi, &all);
	if (!err)
		err = measure(&saves, &from->saves, &build->patterns, hi, &all);
	if (err)
		return err;
	w = calloc(all + DWARF_HEADER_WORDS, sizeof(*w));
	if (!w)
		return -ENOMEM;
	end = pack(&rules, &from->rules, &build->specials, DWARF_SPECIAL_WORDS, w);
	w[DWARF_MACHINE] = machine;
	if (from->saves.n) {
		while ((end - w) % DWARF_HEADER_WORDS)
			end++;
		w[DWARF_SAVES_AT] = (uint32_t)(end - w);
		end = pack(&saves, &from->saves, &build->patterns, DWARF_PATTERN_WORDS, end);
	}
	*words = w;
	*n = (uint64_t)(end - w);
	return 0;
}

/* The index of the block's last row at or below `low`, or of the row before the block. */
static uint32_t find_row(const uint32_t *rows, uint32_t first, uint32_t count, uint32_t low)
{
	uint32_t a = 0, b = count;

	while (a < b) {
		uint32_t mid = (a + b) / 2;

		if ((rows[first + mid] & 0xffff) <= low)
			a = mid + 1;
		else
			b = mid;
	}
	return first + a - 1;
}

/* The rule, or the pattern, for vaddr. */
static uint32_t look_up(const uint32_t *words, uint64_t vaddr)
{
	uint64_t lo = words[DWARF_LO] | (uint64_t)words[DWARF_LO_HIGH] << 32;
	uint64_t block = (vaddr - lo) >> (DWARF_BLOCK_SHIFT + words[DWARF_SHIFT]);
	uint32_t entry, row;

	if (vaddr < lo || block >= words[DWARF_BLOCKS])
		return DWARF_RULE_NONE;
	entry = words[words[DWARF_INDEX_AT] + block];
	row = find_row(words + words[DWARF_ROWS_AT], entry >> 8, entry & 0xff, vaddr & 0xffff);
	return row < words[DWARF_ROWS] ? words[words[DWARF_ROWS_AT] + row] >> 16 : DWARF_RULE_NONE;
}

uint32_t table_lookup(const uint32_t *words, uint64_t n, uint64_t vaddr, const uint32_t **special)
{
	uint32_t rule = look_up(words, vaddr);

	*special = NULL;
	if (rule >= DWARF_RULE_SPECIAL(0)) {
		uint64_t at = words[DWARF_SPECIALS_AT] + (uint64_t)(rule & 0x3fff) * 4;

		if (at + 4 > n)
			return DWARF_RULE_NONE;
		*special = words + at;
	}
	return rule;
}

const uint32_t *table_saves(const uint32_t *words, uint64_t n, uint64_t vaddr)
{
	const uint32_t *saves = words + words[DWARF_SAVES_AT];
	uint32_t pattern = saves == words ? 0 : look_up(saves, vaddr);
	uint64_t at;

	if (!pattern)
		return NULL;
	at = saves[DWARF_SPECIALS_AT] + (uint64_t)(pattern - 1) * DWARF_PATTERN_WORDS;
	return words[DWARF_SAVES_AT] + at + DWARF_PATTERN_WORDS <= n ? saves + at : NULL;
}
