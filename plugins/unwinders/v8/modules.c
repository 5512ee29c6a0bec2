/* SPDX-License-Identifier: Apache-2.0 */
#include "modules.h"

#include <stdio.h>

#include <fusee/helpers.h>

#include "source.h"

#define ALIGNMENT 64u
#define MOST_CODE (8u << 20) /* bytes of a function */
#define NEAR (1u << 30)      /* how far a function is from the jump table */
#define UNKNOWN UINT32_MAX
#define MOST_TRIES 8u /* to read a module, whose memory may be paged out */

/* Where the code of a function begins, or has begun. */
struct start {
	uint64_t at;
	uint32_t function; /* of those that are declared */
	uint32_t age;  /* of the look at the table that has shown it: the number of looks since */
	uint32_t size; /* so far the function's code was seen to reach */
};

struct module {
	uint64_t key;
	struct v8_module emitted;
	struct v8_functions f;
	uint32_t tries;
	uint64_t table; /* address of the jump table; 0: not known yet */
	uint32_t slot, in_line;
	struct start *starts; /* sorted, owned */
	uint32_t nstarts;
	uint64_t next_ns; /* when the table may be looked at again */
};

struct place {
	uint64_t key, start;
	struct v8_wasm emitted;
	uint32_t function; /* of those that are declared, or UNKNOWN */
	uint32_t tries;
};

static bool read_at(struct v8_memory *m, uint64_t at, void *to, uint32_t n)
{
	int err = m->host->process_read(m->process, at, to, n);

	m->is_busy = m->is_busy || v8_may_pass(err);
	return !err;
}

/* ---- the module's bytes ---- */

struct wire {
	struct v8_memory *m;
	uint64_t at, size;
};

static bool read_wire(void *arg, uint64_t at, void *to, uint32_t n)
{
	const struct wire *w = arg;

	return at <= w->size && n <= w->size - at && read_at(w->m, w->at + at, to, n);
}

#define LOWEST 65536u /* no memory is below it */
#define MANAGED_WORDS 8u
#define NATIVE_WORDS 128u
#define PIECE 16u /* words that are read at once: memory may end behind the object */

/* Does this address have that of a module's bytes, and their number? */
static bool is_wire(struct wire *w, uint64_t at)
{
	uint64_t words[2];
	char magic[4];

	if (at < LOWEST || at & 7 || at >> 47 || !read_at(w->m, at, words, sizeof(words)) ||
	    words[1] < 8 || words[1] > NEAR || !read_at(w->m, words[0], magic, sizeof(magic)) ||
	    memcmp(magic, "\0asm", sizeof(magic)) != 0)
		return false;
	w->at = words[0];
	w->size = words[1];
	return true;
}

/* As find_wire(), in the object of C++ of the module. */
static bool find_in_native(struct wire *w, uint64_t native)
{
	uint64_t in[PIECE];

	for (uint32_t i = 0; i < NATIVE_WORDS; i += PIECE) {
		if (!read_at(w->m, native + 8ull * i, in, sizeof(in)))
			return false;
		for (uint32_t k = 0; k < PIECE; k++)
			if (is_wire(w, in[k]))
				return true;
	}
	return false;
}

/* Finds the bytes of the module from what the script has: an object of C++ with the address of a
 * shared pointer to the module, in which is the address of a shared pointer to the bytes. */
static bool find_wire(struct wire *w, uint64_t managed)
{
	uint64_t words[MANAGED_WORDS], native;

	if (!read_at(w->m, managed, words, sizeof(words)))
		return false;
	for (uint32_t i = 0; i < MANAGED_WORDS; i++)
		if (words[i] && !(words[i] & 7) &&
		    read_at(w->m, words[i], &native, sizeof(native)) && native && !(native & 7) &&
		    find_in_native(w, native))
			return true;
	return false;
}

/* ---- the jump table ---- */

static uint64_t slot_offset(uint32_t slot, uint32_t in_line, uint32_t function)
{
	return (uint64_t)function / in_line * ALIGNMENT + (uint64_t)function % in_line * slot;
}

/* Where the jump in the slot at this offset leads, 0: it has none. */
static uint64_t slot_target(const unsigned char *bytes, uint64_t table, uint64_t offset)
{
	int32_t distance;

	if (bytes[offset] != 0xe9)
		return 0;
	memcpy(&distance, bytes + offset + 1, sizeof(distance));
	if ((uint32_t)(distance + (int32_t)NEAR / 2) > NEAR)
		return 0;
	return table + offset + 5 + (uint64_t)(int64_t)distance;
}

#define PROBED 24u /* slots */

/* Is this address that of a jump table with slots of this size? */
static bool is_table(const struct module *m, const unsigned char *bytes, uint64_t n, uint32_t slot,
		     uint32_t in_line)
{
	for (uint32_t i = 0; i < PROBED && i < m->f.declared; i++) {
		uint64_t at = slot_offset(slot, in_line, i);

		if (at + slot > n || !slot_target(bytes, NEAR, at))
			return false;
	}
	return true;
}

static bool find_table(struct module *m, struct v8_memory *memory)
{
	unsigned char bytes[PROBED / 8 * ALIGNMENT];

	for (uint32_t i = 0; i < V8_INSTANCE_WORDS && !m->table; i++) {
		uint64_t at = m->emitted.instance[i];

		if (!at || at & (ALIGNMENT - 1) || !read_at(memory, at, bytes, sizeof(bytes)))
			continue;
		if (is_table(m, bytes, sizeof(bytes), 8, 8))
			m->slot = m->in_line = 8;
		else if (is_table(m, bytes, sizeof(bytes), 5, 12))
			m->slot = 5, m->in_line = 12;
		else
			continue;
		m->table = at;
	}
	return m->table;
}

static int order(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->age > y->age) - (x->age < y->age);
}

static uint64_t table_bytes(const struct module *m)
{
	return slot_offset(m->slot, m->in_line, m->f.declared) + ALIGNMENT;
}

/* Adds what the table's slots lead to, before which room for them is. */
static uint32_t add_starts(const struct module *m, const unsigned char *bytes, struct start *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->f.declared; i++) {
		uint64_t at = slot_target(bytes, m->table, slot_offset(m->slot, m->in_line, i));

		if (at && !(at & (ALIGNMENT - 1)))
			to[n++] = (struct start){at, i, 0, ALIGNMENT};
	}
	return n;
}

/* Of these that begin at one address the youngest stays, which knows the size that was seen before
 * if it is the same function. Returns how many stay, `most` at most. */
static uint32_t without_old(struct start *starts, uint32_t n, uint32_t most)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct start *last = kept ? &starts[kept - 1] : NULL;

		if (!last || last->at != starts[i].at) {
			if (kept == most)
				break;
			starts[kept++] = starts[i];
		} else if (last->function == starts[i].function && last->size < starts[i].size) {
			last->size = starts[i].size;
		}
	}
	return kept;
}

#define MOST_LOOKS 4u /* so many times the functions of a module are kept */

#define CHEAP_NS 200000u /* a look that takes longer is made a fifth of the time at most */

/* Looks at the jump table. What it has led to before is kept, up to a limit. false: it cannot be
 * read, or was a short time ago. */
static bool look(struct module *m, struct v8_memory *memory)
{
	uint64_t began = fusee_now(CLOCK_MONOTONIC), size = table_bytes(m);
	uint32_t most = MOST_LOOKS * (m->f.declared + 16), n = 0, kept;
	bool looked = false;
	unsigned char *bytes = malloc(size);
	struct start *starts = malloc(sizeof(*starts) * (m->nstarts + (uint64_t)m->f.declared + 1));

	if (bytes && starts && began >= m->next_ns &&
	    read_at(memory, m->table, bytes, (uint32_t)(size - ALIGNMENT))) {
		for (uint32_t i = 0; i < m->nstarts; i++)
			if (m->starts[i].age < MOST_LOOKS || m->nstarts < most)
				starts[n] = m->starts[i], starts[n++].age++;
		n += add_starts(m, bytes, starts + n);
		qsort(starts, n, sizeof(*starts), order);
		kept = without_old(starts, n, most);
		free(m->starts);
		m->starts = starts;
		m->nstarts = kept;
		starts = NULL;
		m->next_ns = fusee_now(CLOCK_MONOTONIC);
		m->next_ns += m->next_ns - began > CHEAP_NS ? 4 * (m->next_ns - began) : 0;
		looked = true;
	}
	free(starts);
	free(bytes);
	return looked;
}

/* The last of those that begin at this address or before it, NULL: there is none. */
static struct start *start_before(const struct module *m, uint64_t at)
{
	uint32_t lo = 0, hi = m->nstarts;

	while (lo < hi) {
		uint32_t middle = lo + (hi - lo) / 2;

		if (m->starts[middle].at <= at)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo ? &m->starts[lo - 1] : NULL;
}

static uint32_t function_of(const struct module *m, uint64_t start)
{
	const struct start *s = start_before(m, start);

	return s && s->at == start ? s->function : UNKNOWN;
}

/* Does the slot of this function lead there now? */
static bool leads_to(const struct module *m, struct v8_memory *memory, uint32_t function,
		     uint64_t start)
{
	uint64_t at = m->table + slot_offset(m->slot, m->in_line, function);
	unsigned char bytes[5];

	return function < m->f.declared && read_at(memory, at, bytes, sizeof(bytes)) &&
	       slot_target(bytes, at, 0) == start;
}

/* The function whose slot has this address, or UNKNOWN. Behind the last slot of a line are bytes
 * of none. */
static uint32_t function_of_slot(const struct module *m, uint64_t at)
{
	uint64_t offset = at - m->table;
	uint32_t in_line, function;

	if (!m->table || offset >= table_bytes(m))
		return UNKNOWN;
	in_line = (uint32_t)(offset % ALIGNMENT / m->slot);
	function = (uint32_t)(offset / ALIGNMENT) * m->in_line + in_line;
	return in_line < m->in_line && function < m->f.declared ? function : UNKNOWN;
}

/* The function that the call before this address calls, or UNKNOWN. */
static uint32_t called_before(const struct module *m, struct v8_memory *memory, uint64_t at)
{
	unsigned char bytes[5];
	int32_t distance;
	uint64_t slot;
	uint32_t function;

	if (!read_at(memory, at - sizeof(bytes), bytes, sizeof(bytes)) || bytes[0] != 0xe8)
		return UNKNOWN;
	memcpy(&distance, bytes + 1, sizeof(distance));
	slot = at + (uint64_t)(int64_t)distance;
	function = function_of_slot(m, slot);
	return function != UNKNOWN && m->table + slot_offset(m->slot, m->in_line, function) == slot
		       ? function
		       : UNKNOWN;
}

/* ---- where a function begins ---- */

#define BEGINNING 16u
#define WRAPPER 2u /* the marker of a wrapper that calls JavaScript is the next */

/* Does the code of a function begin so? *function becomes which, if it says so. */
static bool is_beginning(const unsigned char *b, uint32_t marker, uint32_t *function)
{
	static const unsigned char frame[] = {0x55, 0x48, 0x89, 0xe5, 0x6a},
				   none[] = {0x45, 0x31, 0xe4, 0xe8};

	*function = UNKNOWN;
	if (!memcmp(b, frame, sizeof(frame)))
		return b[5] == marker;
	/* in V8 13, Liftoff's code has its number for the builtin that makes the frame */
	if (!memcmp(b, none, sizeof(none)))
		*function = 0;
	else if (b[0] == 0x41 && b[1] == 0xbc && b[6] == 0xe8)
		memcpy(function, b + 2, sizeof(*function));
	return *function != UNKNOWN;
}

bool v8_modules_is_code(const unsigned char *b, uint32_t n, uint32_t marker)
{
	uint32_t unused;

	/* a slot has 5 bytes or 8, and another follows, or nothing */
	if (n >= BEGINNING && b[0] == 0xe9 &&
	    (b[5] == 0xe9 || b[8] == 0xe9 || !memcmp(b + 8, b + 9, 7)))
		return true;
	for (uint32_t i = 0; i + BEGINNING <= n; i += ALIGNMENT)
		if (is_beginning(b + i, marker, &unused) ||
		    is_beginning(b + i, marker + WRAPPER, &unused))
			return true;
	return false;
}

/* The beginning of the function with the code at this address, 0: it is not found. */
static uint64_t find_start(struct v8_memory *memory, uint64_t at, uint32_t *function)
{
	unsigned char page[4096 + BEGINNING];
	uint64_t begin = at & ~(uint64_t)(ALIGNMENT - 1), last = begin;

	while (at - begin < MOST_CODE) {
		uint32_t n = (uint32_t)(last - (begin & ~4095ull)); /* to the page's beginning */

		begin &= ~4095ull;
		if (!read_at(memory, begin, page, n + BEGINNING))
			return 0;
		for (int64_t i = n; i >= 0; i -= ALIGNMENT)
			if (is_beginning(page + i, memory->marker, function))
				return begin + (uint64_t)i;
		last = begin - ALIGNMENT;
		begin = last;
	}
	return 0;
}

/* The function with the code that begins there, or UNKNOWN. `said`: as that code says. */
static uint32_t find_by_start(struct module *m, struct v8_memory *memory, const struct place *p,
			      uint32_t said)
{
	uint32_t function = function_of(m, p->start);

	if (leads_to(m, memory, function, p->start))
		return function;
	if (!look(m, memory))
		return UNKNOWN;
	function = said < m->f.declared ? said : function_of(m, p->start);
	return function != UNKNOWN ? function : called_before(m, memory, p->emitted.caller);
}

/* Finds which function is at the address. */
static void find_function(struct module *m, struct v8_memory *memory, struct place *p)
{
	struct start *s;
	uint32_t said;

	p->start = find_start(memory, p->emitted.at, &said);
	if (!p->start)
		return;
	p->function = find_by_start(m, memory, p, said);
	s = start_before(m, p->start);
	if (s && s->at == p->start && s->function == p->function &&
	    s->size <= p->emitted.at - s->at)
		s->size = (uint32_t)(p->emitted.at - s->at) + 1;
}

/* ---- emissions ---- */

static void free_module(void *element)
{
	struct module *m = element;

	v8_bytes_free(&m->f);
	free(m->starts);
	free(m);
}

/* Reads the module, if that is not done. */
static bool read_module(struct v8_modules *all, struct module *m, struct v8_memory *memory)
{
	struct wire w = {.m = memory};
	uint64_t bytes;

	if (m->table)
		return true;
	if (m->tries >= MOST_TRIES || memory->is_busy)
		return false;
	m->tries++;
	if (!find_wire(&w, m->emitted.managed) || !v8_bytes_read(read_wire, &w, w.size, &m->f))
		return false;
	bytes = (uint64_t)m->f.declared * MOST_LOOKS * sizeof(*m->starts) + m->f.ntexts +
		((uint64_t)m->f.declared + m->f.imported) * sizeof(*m->f.names);
	if (all->kept.bytes + bytes <= FUSEE_EMITTED_BYTES && find_table(m, memory)) {
		all->kept.bytes += bytes;
		look(m, memory);
		return true;
	}
	v8_bytes_free(&m->f);
	return false;
}

int v8_modules_add(struct v8_modules *all, struct v8_memory *memory, uint64_t key,
		   const void *bytes, uint64_t n)
{
	struct module *m;
	int r;

	if (n != sizeof(m->emitted))
		return -EBADMSG;
	r = fusee_emitted_new(&all->kept, &all->modules, key, sizeof(*m), &m);
	if (r <= 0)
		return r;
	memcpy(&m->emitted, bytes, n);
	read_module(all, m, memory);
	return fusee_emitted_keep(&all->kept, &all->modules, m, sizeof(*m), free_module);
}

static void try_place(struct v8_modules *all, struct v8_memory *memory, struct place *p)
{
	struct module *m = fusee_emitted_find(&all->modules, p->emitted.module);

	if (!m || memory->is_busy)
		return;
	if (read_module(all, m, memory))
		find_function(m, memory, p);
	/* where the machine is busy, the next try may succeed */
	p->tries += !memory->is_busy;
	m->tries -= memory->is_busy && !m->table;
}

int v8_modules_add_place(struct v8_modules *all, struct v8_memory *memory, uint64_t key,
			 const void *bytes, uint64_t n)
{
	struct place *p;
	int r;

	if (n != sizeof(p->emitted))
		return -EBADMSG;
	r = fusee_emitted_new(&all->kept, &all->places, key, sizeof(*p), &p);
	if (r <= 0)
		return r;
	memcpy(&p->emitted, bytes, n);
	p->function = UNKNOWN;
	try_place(all, memory, p);
	return fusee_emitted_keep(&all->kept, &all->places, p, sizeof(*p), free);
}

struct again {
	struct v8_modules *all;
	struct v8_memory *memory;
	uint32_t rest; /* places that may be tried */
};

static void visit(const void *node, VISIT which, void *arg)
{
	struct place *p = *(struct place *const *)node;
	struct again *a = arg;

	if ((which != postorder && which != leaf) || p->function != UNKNOWN ||
	    p->tries >= MOST_TRIES || !a->rest)
		return;
	a->rest--;
	try_place(a->all, a->memory, p);
}

void v8_modules_refresh(struct v8_modules *all, struct v8_memory *memory)
{
	struct again a = {all, memory, 1000};

	twalk_r(all->places, visit, &a);
}

bool v8_modules_has(const struct v8_modules *all, uint64_t script)
{
	return fusee_emitted_find(&all->modules, script);
}

static void write_name(const struct module *m, uint32_t function, char name[V8_FUNCTION_NAME])
{
	uint32_t n = 0, k = 0;
	const unsigned char *text = v8_bytes_name(&m->f, function + m->f.imported, &n);

	for (uint32_t i = 0; i < n && k + 1 < V8_FUNCTION_NAME; i++)
		if (text[i])
			name[k++] = (char)text[i];
	name[k] = '\0';
	if (!k)
		snprintf(name, V8_FUNCTION_NAME, "wasm-function[%u]", function + m->f.imported);
}

bool v8_modules_name(const struct v8_modules *all, uint64_t key, char name[V8_FUNCTION_NAME],
		     uint64_t *script)
{
	const struct place *p = fusee_emitted_find(&all->places, key);
	const struct module *m = p ? fusee_emitted_find(&all->modules, p->emitted.module) : NULL;

	*script = p ? p->emitted.module : 0;
	if (!m || p->function >= m->f.declared)
		return false;
	write_name(m, p->function, name);
	return true;
}

struct address {
	uint64_t at;
	const struct module *in;
	uint32_t function;
};

static void look_in(const void *node, VISIT which, void *arg)
{
	const struct module *m = *(struct module *const *)node;
	struct address *w = arg;
	const struct start *s;
	uint32_t function;

	if ((which != postorder && which != leaf) || w->in)
		return;
	function = function_of_slot(m, w->at);
	s = function == UNKNOWN ? start_before(m, w->at) : NULL;
	if (s && w->at - s->at < s->size)
		function = s->function;
	if (function < m->f.declared)
		*w = (struct address){w->at, m, function};
}

bool v8_modules_name_at(const struct v8_modules *all, uint64_t at, char name[V8_FUNCTION_NAME],
			uint64_t *script)
{
	struct address w = {.at = at};

	twalk_r(all->modules, look_in, &w);
	if (!w.in)
		return false;
	*script = w.in->key;
	write_name(w.in, w.function, name);
	return true;
}

void v8_modules_free(struct v8_modules *all)
{
	tdestroy(all->modules, free_module);
	tdestroy(all->places, free);
}
