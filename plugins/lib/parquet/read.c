/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "read_internal.h"

#define MEMORY (512ull << 20)
#define MAX_FOOTER (64ull << 20)
#define TAIL 8                       /* the footer's length, and "PAR1" */
#define READ_MAX ((uint64_t)1 << 30) /* bytes of one pread() */

static int read_at(struct fusee_parquet_file *f, uint64_t at, void *to, uint64_t n)
{
	return f->in.read(f->in.arg, at, to, n);
}

static int no_file(const char **why)
{
	*why = "it is no Parquet file, or not complete";
	return -EINVAL;
}

/* Reads the length of the footer, which follows the footer. */
static int read_ends(struct fusee_parquet_file *f, const char **why)
{
	uint8_t head[4], tail[TAIL];
	struct pq_in in = {tail, tail + 4, false};
	int r;

	if (f->in.size < sizeof(head) + TAIL)
		return no_file(why);
	memcpy(head, "PAR1", sizeof(head));
	r = f->in.far ? 0 : read_at(f, 0, head, sizeof(head));
	if (!r)
		r = read_at(f, f->in.size - TAIL, tail, TAIL);
	if (r)
		return r;
	if (memcmp(head, "PAR1", 4) || memcmp(tail + 4, "PAR1", 4))
		return no_file(why);
	f->footer_len = pq_get_number(&in, 4);
	if (!f->footer_len || f->footer_len > f->in.size - sizeof(head) - TAIL) {
		*why = "the length of its footer is wrong";
		return -EINVAL;
	}
	f->pages_end = f->in.size - TAIL - f->footer_len;
	return 0;
}

static int read_all(struct fusee_parquet_file *f, const char **why)
{
	int r = read_ends(f, why);

	if (r)
		return r;
	if (f->footer_len > f->in.memory || f->footer_len > MAX_FOOTER) {
		*why = "its footer takes more memory than may be used";
		return -EFBIG;
	}
	f->footer = malloc(f->footer_len);
	if (!f->footer)
		return -ENOMEM;
	r = read_at(f, f->pages_end, f->footer, f->footer_len);
	return r ? r : pq_read_footer(f, why);
}

int fusee_parquet_read_fd(void *fd, uint64_t at, void *to, uint64_t n)
{
	char *p = to;

	while (n) {
		ssize_t got = pread(*(const int *)fd, p, n < READ_MAX ? n : READ_MAX, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		p += got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return 0;
}

int fusee_parquet_open(struct fusee_parquet_file **out, const struct fusee_parquet_input *in,
		       const char **why)
{
	struct fusee_parquet_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->in = *in;
	f->in.memory = in->memory ? in->memory : MEMORY;
	r = read_all(f, why);
	if (r) {
		fusee_parquet_close(f);
		return r;
	}
	*out = f;
	return 0;
}

void fusee_parquet_close(struct fusee_parquet_file *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->ngroups; i++)
		free(f->groups[i].places);
	for (uint32_t i = 0; i < f->ncolumns; i++) {
		free((char *)(uintptr_t)f->columns[i].name);
		free((char *)(uintptr_t)f->columns[i].in);
	}
	free(f->groups);
	free(f->pairs);
	free(f->footer);
	free(f);
}

struct fusee_table fusee_parquet_columns(const struct fusee_parquet_file *f)
{
	return (struct fusee_table){f->columns, f->ncolumns, sizeof(*f->columns)};
}

uint32_t fusee_parquet_groups(const struct fusee_parquet_file *f)
{
	return f->ngroups;
}

uint64_t fusee_parquet_group_rows(const struct fusee_parquet_file *f, uint32_t group)
{
	return f->groups[group].rows;
}

static int64_t number_of(struct fusee_str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	struct pq_in in = {p, p + s.len, false};
	uint64_t v = pq_get_number(&in, (unsigned int)s.len);

	return s.len == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
}

int fusee_parquet_bounds(const struct fusee_parquet_file *f, uint32_t group, uint32_t column,
			 struct fusee_parquet_bounds *b)
{
	const struct pq_place *p = &f->groups[group].places[column];

	if (!p->min.p)
		return 0;
	*b = (struct fusee_parquet_bounds){0};
	if (f->columns[column].type == FUSEE_PARQUET_TEXT) {
		b->min_text = p->min;
		b->max_text = p->max;
	} else {
		b->min = number_of(p->min);
		b->max = number_of(p->max);
	}
	return 1;
}
