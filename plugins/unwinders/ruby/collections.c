/* SPDX-License-Identifier: Apache-2.0 */
#include "collections.h"

#include <stdlib.h>

/* A chain of loads: of a word at an address relative to rip, then each of a word at an offset from
 * what was loaded before. */
#define LOADS 4
struct loads {
	uint64_t from; /* vaddr of the word at rip */
	int64_t at[LOADS];
	uint32_t n, end; /* end: the byte behind the loads */
	int is_own;      /* the first word is the variable itself, not its address in the GOT */
};

/* Reads the loads at the function's beginning: mov D(%rip),%rax or lea D(%rip),%rax; then mov
 * D(%rax),%rax, each with or without test %rax,%rax; je behind it. */
static void read_loads(const struct fusee_code *c, struct loads *l)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint32_t i = c->n >= 4 && !memcmp(c->at, endbr64, 4) ? 4 : 0, size;

	l->n = 0;
	if (i + 7 > c->n ||
	    (memcmp(c->at + i, "\x48\x8b\x05", 3) && memcmp(c->at + i, "\x48\x8d\x05", 3)))
		return;
	l->from = fusee_code_target(c, i + 7);
	l->is_own = c->at[i + 1] == 0x8d;
	for (i += 7; l->n < LOADS && i + 7 <= c->n; i += size) {
		if (!memcmp(c->at + i, "\x48\x85\xc0\x74", 4)) {
			size = 5;
			continue;
		}
		size = ruby_load(c->at + i, &l->at[l->n]);
		if (!size || (c->at[i + 2] & 0x38)) /* to another register */
			break;
		l->n++;
	}
	l->end = i;
}

/* Reads the code of the function with this name, which the caller frees, and its loads. 0 or -1. */
static int loads_of(const struct ruby_file *in, const char *name, struct fusee_code *c,
		    struct loads *l)
{
	struct fusee_range at;

	if (ruby_function(in, name, &at) || fusee_read_code(in->host, in->file, at, c))
		return -1;
	read_loads(c, l);
	return 0;
}

/* Returns the offset of the flags in rb_during_gc(), which returns their bit 5: movzbl D(%rax),%eax
 * or mov D(%rax),%eax; shr $5. 0: the code is another. */
static uint32_t flags_in(const struct fusee_code *c, uint32_t i)
{
	const unsigned char *p = c->at + i;

	if (i + 7 > c->n)
		return 0;
	if (!memcmp(p, "\x0f\xb6\x40", 3) && !memcmp(p + 4, "\xc0\xe8\x05", 3))
		return p[3];
	if (!memcmp(p, "\x8b\x40", 2) && !memcmp(p + 3, "\xc1\xe8\x05", 3))
		return p[2];
	return 0;
}

static int is_offset(int64_t v)
{
	return v > 0 && v < 1 << 16;
}

void ruby_find_collections(struct ruby_file *in)
{
	struct loads count, flags;
	struct fusee_code c;
	uint32_t first, at;

	if (loads_of(in, "rb_gc_count", &c, &count))
		return;
	at = count.end < c.n && c.at[count.end] == 0xc3; /* ret */
	free(c.at);
	/* the loads: in libraries the variable's address from the GOT; the VM's address; objspace;
	 * the number of collections */
	first = count.n == 3 && !count.at[0];
	if (!at || count.n != 2 + first || !is_offset(count.at[first]) ||
	    !is_offset(count.at[first + 1]) || loads_of(in, "rb_during_gc", &c, &flags))
		return;
	at = flags_in(&c, flags.end);
	free(c.at);
	if (!at || flags.n != 1 + first || flags.at[first] != count.at[first])
		return;
	if (count.is_own || !first)
		ruby_set_address(in->words + RUBY_VM, count.from);
	if (!(in->words[RUBY_VM] | in->words[RUBY_VM + 1]))
		return; /* neither the code nor a symbol says where the variable is */
	in->words[RUBY_VM_SPACE] = (uint32_t)count.at[first];
	in->words[RUBY_COLLECTIONS] = (uint32_t)count.at[first + 1];
	in->words[RUBY_SPACE_FLAGS] = at;
}
