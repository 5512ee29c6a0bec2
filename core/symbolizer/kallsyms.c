// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/internal/kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/dict.h"
#include "symbolizer/internal/word_texts.h"

#define PIECE 65536
#define MAX_LINE 1024
#define MAX_SYMBOLS (4u << 20)
#define NOT_CODE UINT32_MAX /* name of a symbol that only ends the function before it */

/* A line, while the symbols are read. */
struct symbol {
	uint64_t addr;
	uint32_t name; /* offset in names */
	uint16_t module;
	uint16_t rank;
};

struct reading {
	struct symbol *p;
	uint32_t n;
	size_t cap;
	struct buf names; /* texts with their NULs */
	struct dict *modules;
	uint64_t text, end;
	bool any_address;
};

/* Consecutive symbols with less than 4 GiB from the first address to the last. */
struct stretch {
	uint64_t addr; /* of the first; first, for array_count_to() */
	uint32_t first;
};

/* Consecutive symbols of one module; those that only end functions are of any. */
struct module_range {
	uint64_t first; /* first, for array_count_to() */
	uint32_t module;
};

/* Sorted by address. Some 15 bytes a symbol, of which there are 60,000 to 200,000. */
struct kallsyms {
	uint32_t n;
	uint32_t *at; /* addresses, from that of their stretch on */
	struct stretch *stretches;
	struct module_range *ranges;
	size_t nstretches, stretches_cap, nranges, ranges_cap;
	struct word_texts *names; /* by symbol; empty: it only ends the function before it */
	struct dict modules;
	uint64_t text, end;  /* _stext and _etext; 0: not seen */
	char name[MAX_LINE]; /* as last looked up */
};

/* Symbols of the padding before a function. */
static bool is_padding(const char *name)
{
	return !strncmp(name, "__pfx_", 6) || !strncmp(name, "__cfi_", 6);
}

/* Global over local over weak, then fewer leading underscores, then shorter. */
static uint16_t rank_of(char type, const char *name, size_t len)
{
	uint32_t underscores = 0, kind = type == 'T' ? 2 : type == 't';

	while (name[underscores] == '_' && underscores < 15)
		underscores++;
	return (uint16_t)(kind << 12 | (15 - underscores) << 8 | (255 - (len < 255 ? len : 255)));
}

static int push(struct reading *k, const struct symbol *s)
{
	struct symbol *to = ARRAY_ADD(k->p, k->n, k->cap);

	if (!to)
		return -ENOMEM;
	*to = *s;
	return 0;
}

/* strtoull() takes a third of the time of all the reading. */
static uint64_t take_hex(char *at, char **end)
{
	uint64_t n = 0;

	for (; isxdigit((unsigned char)*at); at++)
		n = n << 4 | (uint64_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
	*end = at;
	return n;
}

/* "ffffffff81000000 T name" or "... t name\t[module]"; other lines are ignored. */
static int take_line(struct reading *k, char *line)
{
	struct symbol s = {.name = NOT_CODE};
	char *end, *name, *module = (char *)"", type;
	uint32_t id;

	if (!isxdigit((unsigned char)line[0]))
		return 0;
	s.addr = take_hex(line, &end);
	if (end[0] != ' ' || !end[1] || end[2] != ' ')
		return 0;
	type = end[1];
	k->any_address |= s.addr != 0;
	if (!s.addr || k->n >= MAX_SYMBOLS)
		return 0;
	name = end + 3;
	if (!strcmp(name, "_stext"))
		k->text = s.addr;
	else if (!strcmp(name, "_etext"))
		k->end = s.addr;
	if (!strchr("tTwW", type) || !strcmp(name, "_etext") || !strcmp(name, "_einittext"))
		return push(k, &s);
	end = strchr(name, '\t');
	if (end) {
		*end = 0;
		module = end + 1 + (end[1] == '[');
		module[strcspn(module, "]")] = 0;
	}
	if (!*name || is_padding(name) || strlen(name) >= MAX_LINE)
		return 0;
	id = dict_add(k->modules, module, strlen(module) + 1);
	if (id > UINT16_MAX)
		return id == DICT_NONE ? -ENOMEM : 0;
	s.module = (uint16_t)id;
	s.rank = rank_of(type, name, strlen(name));
	s.name = (uint32_t)k->names.len;
	if (k->names.len > UINT32_MAX - MAX_LINE - 2 || buf_add(&k->names, name, strlen(name) + 1))
		return -ENOMEM;
	return push(k, &s);
}

/* Adds the lines in len bytes; moves the incomplete line at the end, *rest bytes, to the front. */
static int take_lines(struct reading *k, char *bytes, size_t len, size_t *rest)
{
	char *line = bytes, *end;
	int r = 0;

	while (!r && (end = memchr(line, '\n', len - (size_t)(line - bytes)))) {
		*end = 0;
		r = take_line(k, line);
		line = end + 1;
	}
	*rest = len - (size_t)(line - bytes);
	memmove(bytes, line, *rest);
	return r;
}

static int read_all(struct reading *k, int fd)
{
	char *bytes = malloc(PIECE + 1);
	size_t rest = 0;
	int r = 0;

	if (!bytes)
		return -ENOMEM;
	while (!r) {
		ssize_t n = read(fd, bytes + rest, PIECE - rest);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		r = take_lines(k, bytes, rest + (size_t)n, &rest);
		if (rest >= MAX_LINE)
			rest = 0; /* no line of the kernel's is that long */
	}
	if (!r && rest) {
		bytes[rest] = 0;
		r = take_line(k, bytes);
	}
	free(bytes);
	return r;
}

/* By address; code before other symbols, aliases by rank. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct symbol *x = a, *y = b;
	const struct reading *k = arg;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if ((x->name == NOT_CODE) != (y->name == NOT_CODE))
		return x->name == NOT_CODE ? 1 : -1;
	if (x->name == NOT_CODE)
		return 0;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(k->names.p + x->name, k->names.p + y->name);
}

/* Keeps one symbol for each address, and of other symbols those that end a function. */
static void thin(struct reading *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		if (n && k->p[n - 1].addr == k->p[i].addr)
			continue;
		if (k->p[i].name == NOT_CODE && (!n || k->p[n - 1].name == NOT_CODE))
			continue;
		k->p[n++] = k->p[i];
	}
	k->n = n;
}

/* ---- packing ---- */

static const char *name_of(void *arg, uint32_t i)
{
	const struct reading *from = arg;

	return from->p[i].name == NOT_CODE ? "" : from->names.p + from->p[i].name;
}

static int pack_symbol(struct kallsyms *k, const struct symbol *s, uint32_t i)
{
	struct stretch *stretch = k->nstretches ? &k->stretches[k->nstretches - 1] : NULL;
	struct module_range *range = k->nranges ? &k->ranges[k->nranges - 1] : NULL;

	if (!stretch || s->addr - stretch->addr > UINT32_MAX) {
		stretch = ARRAY_ADD(k->stretches, k->nstretches, k->stretches_cap);
		if (!stretch)
			return -ENOMEM;
		*stretch = (struct stretch){s->addr, i};
	}
	k->at[i] = (uint32_t)(s->addr - stretch->addr);
	if (s->name == NOT_CODE || (range && range->module == s->module))
		return 0;
	range = ARRAY_ADD(k->ranges, k->nranges, k->ranges_cap);
	if (!range)
		return -ENOMEM;
	*range = (struct module_range){i, s->module};
	return 0;
}

/* Frees what pack() makes. */
static void unpack(struct kallsyms *k)
{
	free(k->at);
	free(k->stretches);
	free(k->ranges);
	word_texts_free(k->names);
	k->at = NULL;
	k->stretches = NULL;
	k->ranges = NULL;
	k->names = NULL;
	k->nstretches = k->stretches_cap = k->nranges = k->ranges_cap = 0;
}

/* The symbols of `from`, which are sorted. */
static int pack(struct kallsyms *k, struct reading *from)
{
	int r = 0;

	k->n = from->n;
	k->at = calloc((size_t)k->n + 1, sizeof(*k->at));
	if (!k->at)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->n && !r; i++)
		r = pack_symbol(k, &from->p[i], i);
	return r ? r : word_texts_new(&k->names, name_of, from, k->n);
}

static void reading_free(struct reading *from)
{
	free(from->p);
	buf_fini(&from->names);
}

static int load(struct kallsyms *k, int fd)
{
	struct reading from = {.modules = &k->modules};
	int r = read_all(&from, fd);

	if (!r && !from.any_address)
		r = -EPERM;
	if (!r && from.n)
		qsort_r(from.p, from.n, sizeof(*from.p), compare, &from);
	if (!r) {
		thin(&from);
		r = pack(k, &from);
	}
	k->text = from.text;
	k->end = from.end;
	reading_free(&from);
	return r;
}

int kallsyms_load(struct kallsyms **ret, const char *path)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int fd, r = k ? dict_init(&k->modules) : -ENOMEM;

	if (!r) {
		fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : load(k, fd);
		if (fd >= 0)
			close(fd);
	}
	if (r)
		kallsyms_free(k);
	else
		*ret = k;
	return r;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	unpack(k);
	dict_fini(&k->modules);
	free(k);
}

/* ---- looking up ---- */

/* The number of symbols up to addr. */
static uint32_t count_to(const struct kallsyms *k, uint64_t addr)
{
	size_t s = array_count_to(k->stretches, k->nstretches, sizeof(*k->stretches), addr);
	uint64_t to = s ? addr - k->stretches[s - 1].addr : 0;
	uint32_t lo = s ? k->stretches[s - 1].first : 0, hi = s ? k->n : 0;

	if (s && s < k->nstretches)
		hi = k->stretches[s].first;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (k->at[mid] <= to)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t address_of(const struct kallsyms *k, uint32_t i)
{
	size_t s = k->nstretches;

	while (k->stretches[s - 1].first > i)
		s--;
	return k->stretches[s - 1].addr + k->at[i];
}

/* Of a symbol with a name. */
static uint32_t module_of(const struct kallsyms *k, uint32_t i)
{
	return k->ranges[array_count_to(k->ranges, k->nranges, sizeof(*k->ranges), i) - 1].module;
}

const char *kallsyms_lookup(struct kallsyms *k, uint64_t addr, uint64_t *start, const char **module)
{
	uint32_t before = count_to(k, addr);

	if (!before || !word_texts_get(k->names, before - 1, k->name, sizeof(k->name)))
		return NULL;
	*start = address_of(k, before - 1);
	*module = k->modules.entries[module_of(k, before - 1)].key;
	return k->name;
}

bool kallsyms_is_inside_module(const struct kallsyms *k, uint64_t addr)
{
	uint32_t next = count_to(k, addr);
	const char *module;
	char name[2];

	if (!next || next == k->n || !word_texts_get(k->names, next - 1, name, sizeof(name)) ||
	    !word_texts_get(k->names, next, name, sizeof(name)) ||
	    module_of(k, next - 1) != module_of(k, next))
		return false;
	module = k->modules.entries[module_of(k, next)].key;
	return *module && strcmp(module, "bpf") != 0 && strncmp(module, "__builtin_", 10) != 0;
}

bool kallsyms_is_text(const struct kallsyms *k, uint64_t addr)
{
	return addr >= k->text && addr < k->end;
}

/* Appends symbol i. */
static int add_packed(struct reading *to, struct kallsyms *k, uint32_t i)
{
	struct symbol s = {.addr = address_of(k, i), .name = NOT_CODE};
	size_t len = word_texts_get(k->names, i, k->name, sizeof(k->name));

	if (len) {
		s.module = (uint16_t)module_of(k, i);
		s.name = (uint32_t)to->names.len;
		if (buf_add(&to->names, k->name, len + 1))
			return -ENOMEM;
	}
	return push(to, &s);
}

int kallsyms_drop_text(struct kallsyms *k)
{
	struct reading rest = {.modules = &k->modules};
	int r = 0;

	for (uint32_t i = 0; i < k->n && !r; i++)
		if (!kallsyms_is_text(k, address_of(k, i)))
			r = add_packed(&rest, k, i);
	unpack(k);
	if (!r)
		r = pack(k, &rest);
	reading_free(&rest);
	return r;
}
