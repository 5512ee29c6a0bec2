/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RELOCS (1u << 22)

int code_data_add(struct code_data *d, uint64_t at, uint64_t to)
{
	if (d->n == MAX_RELOCS)
		return 0;
	if (!fusee_grow(&d->relocs, &d->cap, d->n + 1, sizeof(*d->relocs)))
		return -ENOMEM;
	d->relocs[d->n++] = (struct code_reloc){at, to};
	return 0;
}

void code_data_add_part(struct code_data *d, const struct code_bytes *part)
{
	if (d->n_parts < CODE_DATA_PARTS)
		d->parts[d->n_parts++] = *part;
}

static int by_place(const void *a, const void *b)
{
	const struct code_reloc *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

void code_data_sort(struct code_data *d)
{
	if (d->n)
		qsort(d->relocs, d->n, sizeof(*d->relocs), by_place);
}

int code_data_word(const struct code_data *d, uint64_t vaddr, uint64_t *value)
{
	const struct code_reloc key = {vaddr, 0}, *r;

	r = d->n ? bsearch(&key, d->relocs, d->n, sizeof(key), by_place) : NULL;
	if (r) {
		*value = r->to;
		return 0;
	}
	for (size_t i = 0; i < d->n_parts; i++) {
		const struct code_bytes *p = &d->parts[i];

		if (vaddr < p->vaddr || vaddr - p->vaddr > p->len ||
		    p->len - (vaddr - p->vaddr) < 8)
			continue;
		memcpy(value, p->p + (vaddr - p->vaddr), 8);
		return 0;
	}
	return -1;
}

void code_data_fini(struct code_data *d)
{
	free(d->relocs);
	memset(d, 0, sizeof(*d));
}
