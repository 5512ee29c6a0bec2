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

#define PIECE 65536
#define MAX_LINE 1024
#define MAX_SYMBOLS (4u << 20)
#define NOT_CODE UINT32_MAX /* name of a symbol that only ends the function before it */

struct symbol {
	uint64_t addr; /* first, for array_count_to() */
	uint32_t name; /* offset in names */
	uint16_t module;
	uint16_t rank;
};

struct kallsyms {
	struct symbol *p;
	uint32_t n;
	size_t cap;
	struct buf names; /* texts with their NULs */
	struct dict modules;
	uint64_t text, end; /* _stext and _etext; 0: not seen */
	bool any_address;
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

static int push(struct kallsyms *k, const struct symbol *s)
{
	struct symbol *to = ARRAY_ADD(k->p, k->n, k->cap);

	if (!to)
		return -ENOMEM;
	*to = *s;
	return 0;
}

/* "ffffffff81000000 T name" or "... t name\t[module]"; other lines are ignored. */
static int take_line(struct kallsyms *k, char *line)
{
	struct symbol s = {.name = NOT_CODE};
	char *end, *name, *module = (char *)"", type;
	uint32_t id;

	if (!isxdigit((unsigned char)line[0]))
		return 0;
	s.addr = strtoull(line, &end, 16);
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
	if (!*name || is_padding(name))
		return 0;
	id = dict_add(&k->modules, module, strlen(module) + 1);
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
static int take_lines(struct kallsyms *k, char *bytes, size_t len, size_t *rest)
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

static int read_all(struct kallsyms *k, int fd)
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
	const struct kallsyms *k = arg;

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

/* Keeps the first n symbols and gives back the memory of the others. */
static void shrink(struct kallsyms *k, uint32_t n)
{
	struct symbol *p = realloc(k->p, (n + 1) * sizeof(*p));

	k->n = n;
	if (!p)
		return;
	k->p = p;
	k->cap = n + 1;
}

/* Keeps one symbol for each address, and of other symbols those that end a function. */
static void thin(struct kallsyms *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		if (n && k->p[n - 1].addr == k->p[i].addr)
			continue;
		if (k->p[i].name == NOT_CODE && (!n || k->p[n - 1].name == NOT_CODE))
			continue;
		k->p[n++] = k->p[i];
	}
	shrink(k, n);
}

/* Rebuilds `names` from the names in use, once each. */
static int pack_names(struct kallsyms *k)
{
	struct buf packed = {0};
	struct dict seen;
	uint32_t *at;
	int r = dict_init(&seen);

	at = calloc(k->n + 2, sizeof(*at));
	if (r || !at) {
		r = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < k->n && !r; i++) {
		const char *name = k->names.p + k->p[i].name;
		uint32_t before = seen.n, id;

		if (k->p[i].name == NOT_CODE)
			continue;
		id = dict_str(&seen, name);
		if (id == DICT_NONE ||
		    (id >= before &&
		     (at[id] = (uint32_t)packed.len, buf_add(&packed, name, strlen(name) + 1)))) {
			r = -ENOMEM;
			break;
		}
		k->p[i].name = at[id];
	}
out:
	free(at);
	dict_fini(&seen);
	if (r) {
		buf_fini(&packed);
		return r;
	}
	buf_fini(&k->names);
	k->names = packed;
	return 0;
}

int kallsyms_load(struct kallsyms **ret, const char *path)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int fd = -1, r = -ENOMEM;

	if (!k || dict_init(&k->modules))
		goto out;
	fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		goto out;
	}
	r = read_all(k, fd);
	if (!r && !k->any_address)
		r = -EPERM;
	if (r)
		goto out;
	if (k->n)
		qsort_r(k->p, k->n, sizeof(*k->p), compare, k);
	thin(k);
	r = pack_names(k);
out:
	if (fd >= 0)
		close(fd);
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
	free(k->p);
	buf_fini(&k->names);
	dict_fini(&k->modules);
	free(k);
}

const char *kallsyms_lookup(const struct kallsyms *k, uint64_t addr, uint64_t *start,
			    const char **module)
{
	size_t before = array_count_to(k->p, k->n, sizeof(*k->p), addr);
	const struct symbol *s;

	if (!before || k->p[before - 1].name == NOT_CODE)
		return NULL;
	s = &k->p[before - 1];
	*start = s->addr;
	*module = k->modules.entries[s->module].key;
	return k->names.p + s->name;
}

bool kallsyms_is_text(const struct kallsyms *k, uint64_t addr)
{
	return addr >= k->text && addr < k->end;
}

int kallsyms_drop_text(struct kallsyms *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n; i++)
		if (!kallsyms_is_text(k, k->p[i].addr))
			k->p[n++] = k->p[i];
	shrink(k, n);
	return pack_names(k);
}
