/* SPDX-License-Identifier: Apache-2.0 */
#include "fibers.h"

#include <stdlib.h>
#include <string.h>

#define NEAR 96 /* bytes between the instructions of coroutine_initialize() */

/* Is the instruction at p one of REX.W `opcode` with a displacement of -8 to a register? *reg: the
 * register that it stores. */
static int stores_below(const unsigned char *p, unsigned char opcode, unsigned int *reg)
{
	*reg = (p[0] & 4u) << 1 | (p[2] >> 3 & 7u);
	return (p[0] & 0xfa) == 0x48 && p[1] == opcode && p[2] >> 6 == 1 && (p[2] & 7) != 4 &&
	       p[3] == 0xf8;
}

/* The function whose address code near byte `from` puts into this register: lea F(%rip),%reg. */
static int function_in(const struct ruby_file *in, const struct fusee_code *c, uint32_t from,
		       unsigned int reg, struct fusee_range *at)
{
	for (uint32_t i = from > NEAR ? from - NEAR : 0; i + 7 <= c->n && i < from + NEAR; i++)
		if ((c->at[i] & 0xfb) == 0x48 && c->at[i + 1] == 0x8d &&
		    (c->at[i + 2] & 0xc7) == 5 &&
		    ((c->at[i] & 4u) << 1 | (c->at[i + 2] >> 3 & 7u)) == reg &&
		    ruby_begins(in, ruby_target(c, i, 7), at))
			return 1;
	return 0;
}

/*
 * coroutine_initialize(), which is inlined, puts two words on the new stack: 0, which would be the
 * return address of the first function, and the address of that function.
 *
 *	movq $0,-8(%a); ..; mov %f,-8(%b)
 */
static int find_in(struct ruby_file *in, const struct fusee_code *c)
{
	static const unsigned char zero[4];
	unsigned int reg;

	for (uint32_t i = 0; i + 8 + NEAR + 7 <= c->n; i++) {
		if (!stores_below(c->at + i, 0xc7, &reg) || memcmp(c->at + i + 4, zero, 4))
			continue;
		for (uint32_t k = i + 8; k < i + 8 + NEAR; k++)
			if (stores_below(c->at + k, 0x89, &reg) &&
			    function_in(in, c, k, reg, &in->fiber))
				return 1;
	}
	return 0;
}

void ruby_find_fiber_entry(struct ruby_file *in)
{
	static const char *const from[] = {"rb_fiber_resume_kw", "rb_fiber_resume"};
	struct ruby_search s = {.n = 0};
	struct fusee_range at;
	struct fusee_code c;
	int found = 0;

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		if (!ruby_function(in, from[i], &at))
			ruby_search_add(&s, at);
	for (uint32_t i = 0; i < s.n && !found; i++) {
		if (fusee_read_code(in->host, in->file, s.at[i], &c))
			continue;
		found = find_in(in, &c);
		ruby_search_calls(in, &c, &s);
		free(c.at);
	}
	if (!found)
		in->fiber = (struct fusee_range){0};
}
