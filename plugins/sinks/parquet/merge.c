/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rows.h"

/* One file must not be more than `fusee query` takes at once. */
#define MAX_ROWS (1u << 20)
#define MAX_STACKS (1u << 18)
#define MAX_PAIRS 3000
#define MAX_VALUES (32ull << 20) /* of all columns: samples may have many labels */
#define MAX_BYTES (64ull << 20)  /* of the windows' files */
#define LOSSES 64
#define WRITER_MEMORY (32ull << 20) /* of a row group */

/* The numbers of stacks that are written. */
struct ids {
	int64_t *slots;
	uint8_t *used;
	uint64_t nslots, n, seed; /* nslots: a power of 2 */
};

struct loss {
	char key[256];
	int64_t n;
};

struct merge {
	const int *at;
	int fds[TABLES];
	struct fusee_parquet *writers[TABLES];
	struct ids ids;
	struct loss losses[LOSSES]; /* of all windows */
	uint32_t nlosses, nwindows, npairs;
	uint64_t rows, values, bytes;
};

/* ---- numbers of stacks ---- */

static uint64_t slot_of(const struct ids *s, int64_t id)
{
	uint64_t h = (uint64_t)id * s->seed, at = (h ^ h >> 32) * s->seed >> 20 & (s->nslots - 1);

	while (s->used[at] && s->slots[at] != id)
		at = (at + 1) & (s->nslots - 1);
	return at;
}

static int grow_ids(struct ids *s)
{
	struct ids more = {.nslots = s->nslots ? 2 * s->nslots : 4096, .n = s->n, .seed = s->seed};
	uint64_t at;

	/* a program may choose numbers that meet */
	if (!more.seed && getrandom(&more.seed, sizeof(more.seed), GRND_NONBLOCK) < 0)
		more.seed = (uintptr_t)s;
	more.seed |= 1;
	more.slots = calloc(more.nslots, sizeof(*more.slots));
	more.used = calloc(more.nslots, 1);
	if (!more.slots || !more.used) {
		free(more.slots);
		free(more.used);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < s->nslots; i++)
		if (s->used[i]) {
			at = slot_of(&more, s->slots[i]);
			more.slots[at] = s->slots[i];
			more.used[at] = 1;
		}
	free(s->slots);
	free(s->used);
	*s = more;
	return 0;
}

/* 1: it is new; 0; -ENOMEM. */
static int add_id(struct ids *s, int64_t id)
{
	uint64_t at;

	if (2 * s->n >= s->nslots && grow_ids(s))
		return -ENOMEM;
	at = slot_of(s, id);
	if (s->used[at])
		return 0;
	s->slots[at] = id;
	s->used[at] = 1;
	s->n++;
	return 1;
}

/* ---- metadata ---- */

static bool begins(struct fusee_str s, const char *with)
{
	return s.len >= strlen(with) && !memcmp(s.p, with, strlen(with));
}

/* What all windows of a merged file have in common. */
static bool is_common(struct fusee_str key)
{
	return begins(key, "fusee.schema") || begins(key, "fusee.type.") ||
	       begins(key, "fusee.default_type");
}

static bool is_loss(struct fusee_str key)
{
	return begins(key, "fusee.lost.") || begins(key, "fusee.truncated.");
}

static uint64_t hash(uint64_t h, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3;
	return (h ^ 0x100) * 0x100000001b3;
}

static void put(struct merge *m, int table, const char *key, const char *value)
{
	fusee_parquet_metadata(m->writers[table], fusee_text(key), fusee_text(value));
	m->npairs += table == SAMPLES;
}

static int add_loss(struct merge *m, struct fusee_str key, struct fusee_str value)
{
	char text[256], number[32], own[300];
	uint32_t i = 0;
	int64_t n;

	if (key.len >= sizeof(text) || value.len >= sizeof(number))
		return -EINVAL;
	snprintf(text, sizeof(text), "%.*s", (int)key.len, key.p);
	snprintf(number, sizeof(number), "%.*s", (int)value.len, value.p);
	while (i < m->nlosses && strcmp(m->losses[i].key, text))
		i++;
	if (i == LOSSES)
		return -E2BIG;
	if (i == m->nlosses)
		memcpy(m->losses[m->nlosses++].key, text, sizeof(text));
	n = strtoll(number, NULL, 10);
	if (__builtin_add_overflow(m->losses[i].n, n, &m->losses[i].n))
		m->losses[i].n = INT64_MAX;
	snprintf(own, sizeof(own), INPUT_WINDOW "%u.%s", m->nwindows, text + strlen("fusee."));
	put(m, SAMPLES, own, number);
	return 0;
}

static int put_pairs(struct merge *m, const struct input *in, int table)
{
	const struct fusee_str *pair;
	int r = 0;

	for (uint32_t i = 0; !r && (pair = fusee_parquet_pair_at(in->file, i)); i++) {
		if (!m->nwindows && is_common(pair[0]))
			fusee_parquet_metadata(m->writers[table], pair[0], pair[1]);
		if (table == SAMPLES && is_loss(pair[0]))
			r = add_loss(m, pair[0], pair[1]);
	}
	return r;
}

/* ---- windows ---- */

/* Long texts are shortened in bounds: then windows may seem to be the same. */
static uint64_t hash_window(const struct fusee_parquet_file *file)
{
	uint64_t h = 0xcbf29ce484222325;
	struct fusee_parquet_bounds b;

	for (uint32_t i = 0; fusee_parquet_groups(file) && i < ROWS_WINDOW; i++)
		if (fusee_parquet_bounds(file, 0, rows_window[i], &b) > 0)
			h = i == ROWS_PROFILE ? hash(h, b.min_text)
					      : hash(h, (struct fusee_str){(const char *)&b.min,
									   sizeof(b.min)});
	return h;
}

int merge_inspect(struct merge_window *w, const int at[TABLES], const char **why)
{
	const struct fusee_str *pair;
	struct input in;
	struct stat st;
	int r = input_open(&in, at[SAMPLES], w->name, SAMPLES);

	*why = in.why;
	w->types = 0xcbf29ce484222325;
	for (uint32_t i = 0; !r && (pair = fusee_parquet_pair_at(in.file, i)); i++)
		if (is_common(pair[0]))
			w->types = hash(hash(w->types, pair[0]), pair[1]);
	if (!r && fstat(in.fd, &st))
		r = -errno;
	if (!r) {
		w->window = hash_window(in.file);
		w->ino = st.st_ino;
		w->bytes = w->samples_bytes = (uint64_t)st.st_size;
	}
	input_close(&in);
	if (!r && fstatat(at[STACKS], w->name, &st, AT_SYMLINK_NOFOLLOW))
		r = -errno;
	w->bytes += r ? 0 : (uint64_t)st.st_size;
	return r;
}

static int write_bytes(void *arg, const void *bytes, uint64_t len)
{
	return fusee_folder_write(*(const int *)arg, bytes, len);
}

int merge_new(struct merge **ret, int dir, const char *name, const int at[TABLES],
	      const struct merge_options *options)
{
	const struct fusee_table columns[TABLES] = {rows_samples, rows_stacks},
				 sort[TABLES] = {rows_samples_sort, rows_stacks_sort};
	struct merge *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	*ret = m;
	if (m)
		*m = (struct merge){.at = at, .fds = {-1, -1}};
	for (int i = 0; !r && i < TABLES; i++) {
		struct fusee_parquet_options o = {.columns = columns[i],
						  .sort = sort[i],
						  .codec = (uint32_t)options->codec,
						  .memory = WRITER_MEMORY,
						  .write = write_bytes,
						  .arg = &m->fds[i]};

		m->fds[i] = folder_create(dir, name, i, options->dir_mode, options->file_mode);
		r = m->fds[i] < 0 ? m->fds[i] : fusee_parquet_new(&m->writers[i], &o);
	}
	return r;
}

/* What a window's samples have in common. */
struct common {
	int64_t ts, duration, period;
	char profile[512];
	bool known;
};

static int several(struct input *in)
{
	in->why = "it has samples of several windows";
	return -EINVAL;
}

static int check_common(struct input *in, struct common *c, uint64_t rows)
{
	int64_t *const own[] = {&c->ts, &c->duration, &c->period};
	const struct fusee_parquet_values *kind = in->values[rows_window[ROWS_PROFILE]];
	struct fusee_str text = kind->texts[0];

	if (kind->ndistinct != 1 || text.len >= sizeof(c->profile) ||
	    (c->known && !fusee_text_is(text, c->profile)))
		return several(in);
	snprintf(c->profile, sizeof(c->profile), "%.*s", (int)text.len, text.p);
	for (uint32_t k = 0; k < 3; k++) {
		if (!c->known)
			*own[k] = input_number(in, rows_window[k], 0);
		for (uint64_t i = 0; i < rows; i++)
			if (input_number(in, rows_window[k], i) != *own[k])
				return several(in);
	}
	c->known = true;
	return 0;
}

static int add_samples(struct merge *m, struct input *in, struct common *c, bool *broken)
{
	int r = 0;

	for (uint32_t g = 0; !r && g < fusee_parquet_groups(in->file); g++) {
		uint64_t rows = fusee_parquet_group_rows(in->file, g);

		r = input_load(in, g);
		if (!r)
			r = check_common(in, c, rows);
		*broken = r;
		for (uint32_t i = 0; !r && i < in->ncolumns; i++)
			m->values += in->values[i]->n;
		for (uint64_t i = 0; !r && i < rows; i++)
			r = input_copy(in, m->writers[SAMPLES], i);
		m->rows += rows;
	}
	return r;
}

static int add_stacks(struct merge *m, struct input *in, bool *broken)
{
	int r = 0;

	for (uint32_t g = 0; r >= 0 && g < fusee_parquet_groups(in->file); g++) {
		uint64_t rows = fusee_parquet_group_rows(in->file, g);

		r = input_load(in, g);
		*broken = r;
		for (uint64_t i = 0; r >= 0 && i < rows; i++) {
			r = add_id(&m->ids, input_number(in, rows_stack_id, i));
			if (r > 0)
				r = input_copy(in, m->writers[STACKS], i);
		}
	}
	return r < 0 ? r : 0;
}

static int add_table(struct merge *m, const struct merge_window *w, int table, struct common *c,
		     const char **why, bool *broken)
{
	struct input in;
	int r = input_open(&in, m->at[table], w->name, table);

	*broken = r;
	if (!r)
		r = table == SAMPLES ? add_samples(m, &in, c, broken) : add_stacks(m, &in, broken);
	if (!r) {
		r = put_pairs(m, &in, table);
		*broken = r;
	}
	*why = in.why;
	input_close(&in);
	return r;
}

int merge_add(struct merge *m, const struct merge_window *w, const char **why, bool *broken)
{
	struct common c = {.ts = -1};
	char key[32], text[NAME_SIZE + sizeof(c.profile) + 128];
	int r = add_table(m, w, STACKS, &c, why, broken);

	if (!r)
		r = add_table(m, w, SAMPLES, &c, why, broken);
	if (r)
		return r;
	snprintf(key, sizeof(key), INPUT_WINDOW "%u", m->nwindows++);
	snprintf(text, sizeof(text), "%s %lld %lld %lld %s", w->name, (long long)c.ts,
		 (long long)c.duration, (long long)c.period, c.profile);
	put(m, SAMPLES, key, text);
	m->bytes += w->bytes;
	return 0;
}

bool merge_is_full(const struct merge *m)
{
	return m->rows >= MAX_ROWS || m->values >= MAX_VALUES || m->ids.n >= MAX_STACKS ||
	       m->bytes >= MAX_BYTES || m->npairs >= MAX_PAIRS;
}

int merge_finish(struct merge *m)
{
	char number[32];
	int r = 0;

	snprintf(number, sizeof(number), "%u", m->nwindows);
	put(m, SAMPLES, "fusee.windows", number);
	for (uint32_t i = 0; i < m->nlosses; i++) {
		snprintf(number, sizeof(number), "%lld", (long long)m->losses[i].n);
		put(m, SAMPLES, m->losses[i].key, number);
		put(m, STACKS, m->losses[i].key, number);
	}
	for (int i = TABLES; !r && i-- > 0;) {
		r = fusee_parquet_finish(m->writers[i]);
		if (!r && fsync(m->fds[i]))
			r = -errno;
	}
	return r;
}

uint64_t merge_bytes(const struct merge *m)
{
	return fusee_parquet_bytes(m->writers[SAMPLES]) + fusee_parquet_bytes(m->writers[STACKS]);
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	for (int i = 0; i < TABLES; i++) {
		fusee_parquet_free(m->writers[i]);
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	}
	free(m->ids.slots);
	free(m->ids.used);
	free(m);
}
