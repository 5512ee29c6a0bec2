/* SPDX-License-Identifier: Apache-2.0 */
/* FileMetaData, as footer.c writes it. */
#include <stdlib.h>
#include <zlib.h>

#include "read_internal.h"

#define WRITER "fusee version "
#define MAX_ROWS (1 << 24)
#define MAX_ALL_ROWS (1 << 27)
#define MAX_GROUPS (1 << 14)
#define MAX_PAIRS (1 << 12)
#define CRC_DIGITS 8

struct reading {
	struct fusee_parquet_file *f;
	struct pq_in in;
	int error; /* -ENOMEM; -EFBIG and `why` */
	const char *why;
	uint64_t rows;         /* of all row groups */
	uint64_t end;          /* of the previous column's pages: columns must not overlap */
	struct fusee_str made; /* the program that made the file */
};

static bool no_memory(struct reading *r)
{
	r->error = -ENOMEM;
	r->in.bad = true;
	return false;
}

static void too_many(struct reading *r, const char *why)
{
	r->error = -EFBIG;
	r->why = why;
	r->in.bad = true;
}

/* ---- columns of row groups ---- */

static void get_statistics(struct reading *r, struct pq_place *p)
{
	struct pq_field f = {0};

	while (pq_next(&r->in, &f))
		if (f.id == 5)
			p->max = pq_get_binary(&r->in, &f);
		else if (f.id == 6)
			p->min = pq_get_binary(&r->in, &f);
		else
			pq_skip(&r->in, &f);
}

/* Bytes of a bound; 0: any number. */
static uint64_t bound_size(uint32_t type)
{
	return type == FUSEE_PARQUET_TEXT ? 0 : type == FUSEE_PARQUET_INT32 ? 4 : 8;
}

static bool is_possible(const struct reading *r, const struct pq_place *p,
			const struct fusee_parquet_column *c, uint64_t bytes, uint64_t rows)
{
	uint64_t size = bound_size(c->type);

	if (!p->min.p != !p->max.p ||
	    (p->min.p && size && (p->min.len != size || p->max.len != size)))
		return false;
	if (!p->filter_at != !p->filter_len || p->filter_len > r->f->pages_end ||
	    p->filter_at > r->f->pages_end - p->filter_len)
		return false;
	if (p->at < 4 || p->at < r->end || p->at > p->data_at || bytes > r->f->pages_end ||
	    p->at > r->f->pages_end - bytes || p->data_at >= p->at + bytes)
		return false;
	return c->group == FUSEE_PARQUET_FLAT ? p->levels == rows : p->levels >= rows;
}

static void get_metadata(struct reading *r, struct pq_place *p,
			 const struct fusee_parquet_column *c, uint64_t *bytes)
{
	struct pq_field f = {0};
	struct pq_in *in = &r->in;
	int physical = pq_physical_type(c->type);

	p->codec = -1;
	while (pq_next(in, &f))
		if (f.id == 1)
			pq_get_int(in, &f, PQ_I32, physical, physical);
		else if (f.id == 4)
			p->codec = (int)pq_get_int(in, &f, PQ_I32, 0, 7);
		else if (f.id == 5)
			p->levels = (uint64_t)pq_get_int(in, &f, PQ_I64, 1, UINT32_MAX);
		else if (f.id == 7)
			*bytes = (uint64_t)pq_get_int(in, &f, PQ_I64, 1, INT64_MAX);
		else if (f.id == 9)
			p->data_at = (uint64_t)pq_get_int(in, &f, PQ_I64, 4, INT64_MAX);
		else if (f.id == 11)
			p->at = (uint64_t)pq_get_int(in, &f, PQ_I64, 4, INT64_MAX);
		else if (f.id == 12 && f.type == PQ_STRUCT)
			get_statistics(r, p);
		else if (f.id == 14)
			p->filter_at = (uint64_t)pq_get_int(in, &f, PQ_I64, 4, INT64_MAX);
		else if (f.id == 15)
			p->filter_len = (uint64_t)pq_get_int(in, &f, PQ_I32, 1, INT32_MAX);
		else
			pq_skip(in, &f);
	if (!p->at)
		p->at = p->data_at;
}

/* The number of rows of the group follows its columns in the file, so it is checked later. */
static void get_place(struct reading *r, struct pq_place *p, const struct fusee_parquet_column *c,
		      uint64_t *bytes)
{
	struct pq_field f = {0};

	while (pq_next(&r->in, &f))
		if (f.id == 3 && f.type == PQ_STRUCT)
			get_metadata(r, p, c, bytes);
		else
			pq_skip(&r->in, &f);
}

static void get_places(struct reading *r, const struct pq_field *f, struct pq_read_group *g)
{
	uint64_t bytes;

	if (pq_get_list(&r->in, f, PQ_STRUCT) != r->f->ncolumns)
		r->in.bad = true;
	g->places = calloc(r->f->ncolumns + 1, sizeof(*g->places));
	if (!g->places && !no_memory(r))
		return;
	for (uint32_t i = 0; !r->in.bad && i < r->f->ncolumns; i++) {
		bytes = 0;
		get_place(r, &g->places[i], &r->f->columns[i], &bytes);
		g->places[i].end = bytes; /* the length, for now */
	}
}

static void get_group(struct reading *r, struct pq_read_group *g)
{
	struct pq_field f = {0};

	while (pq_next(&r->in, &f))
		if (f.id == 1)
			get_places(r, &f, g);
		else if (f.id == 3)
			g->rows = (uint64_t)pq_get_int(&r->in, &f, PQ_I64, 1, MAX_ROWS);
		else
			pq_skip(&r->in, &f);
	if (!g->places || !g->rows)
		r->in.bad = true;
	for (uint32_t i = 0; !r->in.bad && i < r->f->ncolumns; i++) {
		struct pq_place *p = &g->places[i];

		if (!pq_codec_known(p->codec) ||
		    !is_possible(r, p, &r->f->columns[i], p->end, g->rows))
			r->in.bad = true;
		r->end = p->end += p->at;
		if (p->filter_len)
			p->filter = r->f->nfilters++;
	}
	r->rows += g->rows;
	if (!r->in.bad && r->rows > MAX_ALL_ROWS)
		too_many(r, "it has more rows than may be read");
}

static void get_groups(struct reading *r, const struct pq_field *f)
{
	uint32_t n = pq_get_list(&r->in, f, PQ_STRUCT);

	if (n > MAX_GROUPS)
		too_many(r, "it has more row groups than may be read");
	if (!n || r->in.bad)
		return;
	r->f->groups = calloc(n, sizeof(*r->f->groups));
	if (!r->f->groups && !no_memory(r))
		return;
	while (!r->in.bad && r->f->ngroups < n)
		get_group(r, &r->f->groups[r->f->ngroups++]);
}

/* ---- pairs ---- */

static void get_pairs(struct reading *r, const struct pq_field *list)
{
	uint32_t n = pq_get_list(&r->in, list, PQ_STRUCT);

	if (n > MAX_PAIRS)
		too_many(r, "its footer has more pairs than may be read");
	if (r->in.bad)
		return;
	r->f->pairs = calloc(n + 1ull, sizeof(*r->f->pairs));
	if (!r->f->pairs && !no_memory(r))
		return;
	while (!r->in.bad && r->f->npairs < n) {
		struct fusee_str *pair = r->f->pairs[r->f->npairs++];
		struct pq_field f = {0};

		pair[0] = pair[1] = (struct fusee_str){"", 0};
		while (pq_next(&r->in, &f))
			if (f.id == 1 || f.id == 2)
				pair[f.id - 1] = pq_get_binary(&r->in, &f);
			else
				pq_skip(&r->in, &f);
	}
}

const struct fusee_str *fusee_parquet_pair_at(const struct fusee_parquet_file *f, uint32_t i)
{
	return i < f->npairs ? f->pairs[i] : NULL;
}

const struct fusee_str *fusee_parquet_pair(const struct fusee_parquet_file *f, struct fusee_str key)
{
	for (uint32_t i = f->npairs; i-- > 0;)
		if (fusee_text_same(f->pairs[i][0], key))
			return &f->pairs[i][1];
	return NULL;
}

/* ---- the footer ---- */

static void get_footer(struct reading *r)
{
	struct pq_field f = {0};
	struct pq_in *in = &r->in;
	int64_t rows = -1;
	int error;

	while (pq_next(in, &f))
		if (f.id == 1) {
			pq_get_int(in, &f, PQ_I32, 1, 1);
		} else if (f.id == 2) {
			error = pq_read_schema(r->f, in, pq_get_list(in, &f, PQ_STRUCT));
			r->error = error == -ENOMEM ? error : r->error;
			in->bad |= error != 0;
		} else if (f.id == 3) {
			rows = pq_get_int(in, &f, PQ_I64, 0, INT64_MAX);
		} else if (f.id == 4) {
			get_groups(r, &f);
		} else if (f.id == 5) {
			get_pairs(r, &f);
		} else if (f.id == 6) {
			r->made = pq_get_binary(in, &f);
		} else {
			pq_skip(in, &f);
		}
	if (in->at != in->end || rows < 0 || (uint64_t)rows != r->rows || !r->f->ncolumns)
		in->bad = true;
}

/* Reads only the name of the program that made the file, of any footer. */
static bool is_ours(const struct fusee_parquet_file *file)
{
	struct pq_in in = {file->footer, file->footer + file->footer_len, false};
	struct fusee_str made = {"", 0};
	struct pq_field f = {0};

	while (pq_next(&in, &f))
		if (f.id == 6)
			made = pq_get_binary(&in, &f);
		else
			pq_skip(&in, &f);
	return in.bad || (made.len > strlen(WRITER) && !memcmp(made.p, WRITER, strlen(WRITER)));
}

/* The pair with the CRC-32 is computed with zeros in its place. */
static bool has_checksum(const struct fusee_parquet_file *f)
{
	const struct fusee_str *pair = fusee_parquet_pair(f, fusee_text(PQ_CHECKSUM));
	char digits[CRC_DIGITS + 1];
	uint64_t at;
	uLong crc;

	if (!pair || pair->len != CRC_DIGITS)
		return false;
	at = (uint64_t)((const uint8_t *)pair->p - f->footer);
	crc = crc32_z(0, f->footer, at);
	crc = crc32_z(crc, (const uint8_t *)"00000000", CRC_DIGITS);
	crc = crc32_z(crc, f->footer + at + CRC_DIGITS, f->footer_len - at - CRC_DIGITS);
	snprintf(digits, sizeof(digits), "%08lx", crc & 0xffffffff);
	return !memcmp(digits, pair->p, CRC_DIGITS);
}

int pq_read_footer(struct fusee_parquet_file *f, const char **why)
{
	struct reading r = {.f = f, .in = {f->footer, f->footer + f->footer_len, false}};

	if (!is_ours(f)) {
		*why = "it is a Parquet file of another program, not of fusee";
		return -EINVAL;
	}
	get_footer(&r);
	if (r.error) {
		*why = r.why;
		return r.error;
	}
	if (!r.in.bad && has_checksum(f))
		return 0;
	*why = r.in.bad ? "its footer is damaged"
	       : fusee_parquet_pair(f, fusee_text(PQ_CHECKSUM))
		       ? "the checksum of its footer is wrong"
		       : "it is of an earlier version of fusee";
	return -EINVAL;
}
