/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t ruby_load(const unsigned char *p, int64_t *offset)
{
	uint32_t mode = p[2] >> 6;

	if ((p[0] & 0xfb) != 0x48 || p[1] != 0x8b || (p[2] & 7) != 0 || mode == 3)
		return 0;
	*offset = mode == 1 ? (signed char)p[3] : mode == 2 ? fusee_code_s32(p + 3) : 0;
	return mode == 1 ? 4 : mode == 2 ? 7 : 3;
}

void ruby_set_address(uint32_t *words, uint64_t vaddr)
{
	words[0] = (uint32_t)vaddr;
	words[1] = (uint32_t)(vaddr >> 32);
}

int ruby_begins(const struct ruby_file *in, uint64_t vaddr, struct fusee_range *at)
{
	return !in->host->file_function(in->file, vaddr, at) && at->lo == vaddr;
}

int ruby_function(const struct ruby_file *in, const char *name, struct fusee_range *at)
{
	struct fusee_range r;

	return !in->host->file_symbol(in->file, name, &r) && ruby_begins(in, r.lo, at) ? 0
										       : -ENOENT;
}

void ruby_search_add(struct ruby_search *s, struct fusee_range r)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->at[i].lo == r.lo)
			return;
	if (s->n < RUBY_SEARCHED)
		s->at[s->n++] = r;
}

void ruby_search_calls(const struct ruby_file *in, const struct fusee_code *c,
		       struct ruby_search *s)
{
	struct fusee_range at;

	for (uint32_t i = 0; i + 5 <= c->n; i++)
		if ((c->at[i] & 0xfe) == 0xe8 && ruby_begins(in, fusee_code_target(c, i + 5), &at))
			ruby_search_add(s, at);
}
