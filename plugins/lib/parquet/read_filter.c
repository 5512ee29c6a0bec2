/* SPDX-License-Identifier: Apache-2.0 */
/* A Bloom filter is read at once: its checksum is of all of it. */
#include <stdlib.h>
#include <zlib.h>

#include "read_internal.h"

#define DIGITS 8

static bool has_checksum(const struct fusee_parquet_file *f, const struct pq_place *p,
			 const uint8_t *filter)
{
	const struct fusee_str *all = fusee_parquet_pair(f, fusee_text(PQ_FILTERS));
	char digits[DIGITS + 1];

	snprintf(digits, sizeof(digits), "%08lx", crc32_z(0, filter, p->filter_len) & 0xffffffff);
	return all && all->len == (uint64_t)f->nfilters * DIGITS &&
	       !memcmp(all->p + (uint64_t)p->filter * DIGITS, digits, DIGITS);
}

/* Takes the header, whose other fields are the choices that filter.c makes. 0: it is bad. */
static uint64_t get_size(struct pq_in *in)
{
	struct pq_field f = {0};
	uint64_t n = 0;

	while (pq_next(in, &f))
		if (f.id == 1)
			n = (uint64_t)pq_get_int(in, &f, PQ_I32, PQ_FILTER_BLOCK, INT32_MAX);
		else
			pq_skip(in, &f);
	return in->bad || n % PQ_FILTER_BLOCK || n != (uint64_t)(in->end - in->at) ? 0 : n;
}

int fusee_parquet_may_have(struct fusee_parquet_file *f, uint32_t group, uint32_t column,
			   struct fusee_str text, uint64_t *bytes, const char **why)
{
	const struct pq_place *p = &f->groups[group].places[column];
	struct pq_in in;
	uint8_t *filter;
	uint64_t n;
	int r;

	if (!p->filter_len)
		return 1;
	if (p->filter_len > f->in.memory) {
		*why = "a filter takes more memory than may be used";
		return -EFBIG;
	}
	filter = malloc(p->filter_len);
	r = filter ? f->in.read(f->in.arg, p->filter_at, filter, p->filter_len) : -ENOMEM;
	in = (struct pq_in){filter, filter + p->filter_len, false};
	if (!r) {
		*bytes += p->filter_len;
		n = has_checksum(f, p, filter) ? get_size(&in) : 0;
		if (n)
			r = pq_filter_has(in.at, n, text);
		else
			r = -EINVAL;
	}
	if (r == -EINVAL)
		*why = "a filter of a column is damaged";
	free(filter);
	return r;
}
