/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"

#define MAX_ENTRIES (1u << 20)

int code_entries_add(struct code_entries *e, uint64_t vaddr)
{
	if (e->n == MAX_ENTRIES)
		return 0;
	if (!fusee_grow(&e->p, &e->cap, e->n + 1, sizeof(*e->p)))
		return -ENOMEM;
	e->p[e->n++] = vaddr;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void code_entries_sort(struct code_entries *e)
{
	if (e->n)
		qsort(e->p, e->n, sizeof(*e->p), by_address);
}

size_t code_entries_below(const struct code_entries *e, uint64_t vaddr)
{
	size_t a = 0, b = e->n;

	while (a < b) {
		size_t i = a + (b - a) / 2;

		if (e->p[i] < vaddr)
			a = i + 1;
		else
			b = i;
	}
	return a;
}

int code_entries_copy(struct code_entries *e, const struct code_entries *from, uint64_t lo,
		      uint64_t hi)
{
	int err = 0;

	for (size_t i = code_entries_below(from, lo); i < from->n && from->p[i] < hi && !err; i++)
		if (!e->n || e->p[e->n - 1] != from->p[i])
			err = code_entries_add(e, from->p[i]);
	return err;
}

uint64_t code_entries_last(const struct code_entries *e, uint64_t vaddr)
{
	size_t n = code_entries_below(e, vaddr + 1);

	return n ? e->p[n - 1] : 0;
}

int code_entries_has(const struct code_entries *e, uint64_t vaddr)
{
	return e->n && bsearch(&vaddr, e->p, e->n, sizeof(*e->p), by_address);
}

void code_entries_fini(struct code_entries *e)
{
	free(e->p);
	memset(e, 0, sizeof(*e));
}
