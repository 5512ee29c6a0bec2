// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/fde.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/ranges.h"
#include "symbols/frames.h"
#include "symbols/internal/source.h"

#define MAX_BYTES (1u << 30)

static int add(struct fdes *all, uint64_t start, uint64_t len)
{
	struct fde *p;
	uint64_t end;

	if (!len || __builtin_add_overflow(start, len, &end))
		return 0;
	p = ARRAY_ADD(all->p, all->n, all->cap);
	if (!p)
		return -ENOMEM;
	*p = (struct fde){start, end};
	return 0;
}

static int add_section(struct fdes *all, const struct source *src, const char *name, bool debug)
{
	const struct source_section *c = source_find(src, name);
	struct frames_pass pass = {0};
	struct frames_fde fde;
	char *bytes;
	size_t len;
	int r = source_load(src, name, MAX_BYTES, &bytes, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	pass.section = (struct fusee_str){bytes, len};
	pass.vaddr = c->vaddr;
	if (debug && frames_from_debug(bytes, len))
		pass.section.len = 0;
	while (!r && frames_next(&pass, &fde) > 0)
		r = add(all, fde.start, fde.len);
	free(bytes);
	return r;
}

int fdes_add(struct fdes *all, const struct source *src)
{
	int r = add_section(all, src, ".eh_frame", false);

	return r ? r : add_section(all, src, ".debug_frame", true);
}

static int compare(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

void fdes_sort(struct fdes *f)
{
	size_t n = 0;

	if (!f->n)
		return;
	qsort(f->p, f->n, sizeof(*f->p), compare);
	/* removes overlaps: of equal starts the longest is kept, and each ends at the next start */
	for (size_t i = 1; i < f->n; i++) {
		if (f->p[i].start == f->p[n].start) {
			f->p[n] = f->p[i];
			continue;
		}
		if (f->p[n].end > f->p[i].start)
			f->p[n].end = f->p[i].start;
		f->p[++n] = f->p[i];
	}
	f->n = n + 1;
}

void fdes_fini(struct fdes *f)
{
	free(f->p);
	*f = (struct fdes){0};
}

/* Functions that start at or before addr. */
static size_t count_before(const struct fdes *f, uint64_t addr)
{
	return array_count_to(f->p, f->n, sizeof(*f->p), addr);
}

const struct fde *fdes_find(const struct fdes *f, uint64_t addr)
{
	size_t n = count_before(f, addr);

	return n && addr < f->p[n - 1].end ? &f->p[n - 1] : NULL;
}

uint64_t fdes_gap(const struct fdes *f, uint64_t addr)
{
	size_t n = count_before(f, addr);

	return n && f->p[n - 1].end <= addr ? f->p[n - 1].end : 0;
}

void fdes_narrow(const struct fdes *f, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	size_t n = count_before(f, addr);

	for (size_t i = n ? n - 1 : 0; i < f->n && i <= n; i++) {
		ranges_narrow(f->p[i].start, addr, lo, hi);
		ranges_narrow(f->p[i].end, addr, lo, hi);
	}
}
