/* SPDX-License-Identifier: Apache-2.0 */
#include "fibers.h"

#include <stdlib.h>
#include <string.h>

#define NEAR 96 /* the most bytes between the instructions of coroutine_initialize() */

/* Is it REX.W `opcode`, with the operand -8(%some_register), at p? Sets *reg to the register in its
 * ModRM byte, which a mov stores. */
static int stores_below(const unsigned char *p, unsigned char opcode, unsigned int *reg)
{
	*reg = (p[0] & 4u) << 1 | (p[2] >> 3 & 7u);
	return (p[0] & 0xfa) == 0x48 && p[1] == opcode && p[2] >> 6 == 1 && (p[2] & 7) != 4 &&
	       p[3] == 0xf8;
}

/* Finds the function whose address code near byte `from` puts into the register: lea F(%rip),%reg.
 * 1: it is found. */
static int function_in(const struct ruby_file *in, const struct fusee_code *c, uint32_t from,
		       unsigned int reg, struct fusee_range *at)
{
	for (uint32_t i = from > NEAR ? from - NEAR : 0; i + 7 <= c->n && i < from + NEAR; i++)
		if ((c->at[i] & 0xfb) == 0x48 && c->at[i + 1] == 0x8d &&
		    (c->at[i + 2] & 0xc7) == 5 &&
		    ((c->at[i] & 4u) << 1 | (c->at[i + 2] >> 3 & 7u)) == reg &&
		    ruby_begins(in, fusee_code_target(c, i + 7), at))
			return 1;
	return 0;
}

/*
 * coroutine_initialize(), which is inlined, puts two words on the new stack: 0, which would be the
 * return address of the first function, and the address of that function.
 *
 *	movq $0,-8(%a); ..; mov %f,-8(%b)
 */
static int find_in(const struct ruby_file *in, const struct fusee_code *c, struct fusee_range *at)
{
	static const unsigned char zero[4];
	unsigned int reg;

	for (uint32_t i = 0; i + 8 + NEAR + 7 <= c->n; i++) {
		if (!stores_below(c->at + i, 0xc7, &reg) || memcmp(c->at + i + 4, zero, 4))
			continue;
		for (uint32_t k = i + 8; k < i + 8 + NEAR; k++)
			if (stores_below(c->at + k, 0x89, &reg) && function_in(in, c, k, reg, at))
				return 1;
	}
	return 0;
}

/* Searches one of these functions, the first that exists, and the functions that it calls. */
static void search(struct ruby_file *in, const char *const *from, struct fusee_range *found)
{
	struct ruby_search s = {.n = 0};
	struct fusee_range at;
	struct fusee_code c;
	int is_found = 0;

	for (; *from; from++)
		if (!ruby_function(in, *from, &at))
			ruby_search_add(&s, at);
	for (uint32_t i = 0; i < s.n && !is_found; i++) {
		if (fusee_read_code(in->host, in->file, s.at[i], &c))
			continue;
		is_found = find_in(in, &c, found);
		ruby_search_calls(in, &c, &s);
		free(c.at);
	}
	if (!is_found)
		*found = (struct fusee_range){0};
}

void ruby_find_coroutines(struct ruby_file *in)
{
	static const char *const fibers[] = {"rb_fiber_resume_kw", "rb_fiber_resume", NULL};
	static const char *const threads[] = {"rb_thread_create", NULL};

	search(in, fibers, &in->coroutine[0]);
	search(in, threads, &in->coroutine[1]);
	if (in->coroutine[1].lo == in->coroutine[0].lo)
		in->coroutine[1] = (struct fusee_range){0};
}
