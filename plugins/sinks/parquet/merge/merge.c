/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "order.h"
#include "../rows.h"

/* What `fusee query` reads at once. */
#define MAX_ROWS (1u << 20)
#define MAX_STACKS (1u << 18)
#define MAX_PAIRS 3000
#define MAX_VALUES (32ull << 20) /* of all columns: samples may have many labels */
#define MAX_BYTES (64ull << 20)  /* of the windows' files */
#define LOSSES 64
#define WRITER_MEMORY (64ull << 20) /* of a row group; tables are written one by one */
/* The planned size of a row group: not all texts are counted, and parts are not equal. */
#define GROUP_BYTES (WRITER_MEMORY / 4 * 3)
#define GROUP_ROWS (1 << 17)
#define GROUP_STACKS (1u << 16)
#define LEVEL 12 /* of zstd: a merged file is written once, and kept */

#define UNNUMBERED (UINT32_MAX - 2) /* a stack whose samples are not written yet */
#define WRITTEN (UINT32_MAX - 3)    /* a stack that is already written */

struct loss {
	char key[256];
	int64_t n;
};

struct output {
	struct merge *m;
	int fd;
};

struct merge {
	const int *at;
	struct output outputs[TABLES];
	struct fusee_parquet *writers[TABLES];
	struct order order;
	struct loss losses[LOSSES]; /* sums over all windows */
	uint32_t nlosses, nwindows, npairs;
	uint64_t rows, values, bytes;
	/* while rows are copied: the row group, first of samples and then of stacks; windows copied
	 * into it; rows of samples and of stacks */
	uint32_t group, next;
	uint64_t copied, copied_stacks;
	/* By a stack's number in the windows and the row group: its number in the merged file, less
	 * `base`. Numbers follow the sorted samples, so they ascend by 1. */
	struct numbers stacks;
	uint32_t nnumbered;
	int64_t base;
};

/* ---- metadata ---- */

static bool begins(struct fusee_str s, const char *with)
{
	return s.len >= strlen(with) && !memcmp(s.p, with, strlen(with));
}

/* Whether the key's value is common to all windows of a merged file. */
static bool is_common(struct fusee_str key)
{
	return begins(key, "fusee.schema") || begins(key, "fusee.type.") ||
	       begins(key, "fusee.default_type");
}

static bool is_loss(struct fusee_str key)
{
	return begins(key, "fusee.lost.") || begins(key, "fusee.truncated.");
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

/* Bounds shorten long texts: different windows may have equal hashes. */
static uint64_t hash_window(const struct fusee_parquet_file *file)
{
	uint64_t h = NUMBERS_OF_NONE;
	struct fusee_parquet_bounds b;

	for (uint32_t i = 0; fusee_parquet_groups(file) && i < ROWS_WINDOW; i++)
		if (fusee_parquet_bounds(file, 0, rows_window[i], &b) > 0)
			h = numbers_of_text(h, i == ROWS_PROFILE
						       ? b.min_text
						       : (struct fusee_str){(const char *)&b.min,
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
	w->types = NUMBERS_OF_NONE;
	for (uint32_t i = 0; !r && (pair = fusee_parquet_pair_at(in.file, i)); i++)
		if (is_common(pair[0]))
			w->types = numbers_of_text(numbers_of_text(w->types, pair[0]), pair[1]);
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
	return fusee_folder_write(((const struct output *)arg)->fd, bytes, len);
}

/* The key of a stack's number in windows and a row group. */
static uint64_t key_of(int64_t number, uint32_t group)
{
	uint64_t h = ((uint64_t)number ^ (uint64_t)number >> 32) * 0x9e3779b97f4a7c15;

	return h + group * 0xbf58476d1ce4e5b9;
}

static int renumber(void *arg, int64_t number, int64_t *to)
{
	struct merge *m = ((const struct output *)arg)->m;
	uint64_t key = key_of(number, m->group);
	uint32_t n = numbers_get(&m->stacks, key);

	if (n == UINT32_MAX)
		return -EINVAL;
	if (n == UNNUMBERED) {
		n = m->nnumbered++;
		numbers_set(&m->stacks, key, n);
	}
	*to = m->base + n;
	return 0;
}

/* A file's first number of a stack, by its name: numbers of different files must not collide. */
static int64_t base_of(const char *name)
{
	uint64_t h = numbers_of_text(NUMBERS_OF_NONE, fusee_text(name));

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15;
	return (int64_t)((h ^ h >> 29) % (uint64_t)(INT64_MAX - UINT32_MAX)) + 1;
}

int merge_new(struct merge **ret, int dir, const char *name, const int at[TABLES],
	      const struct merge_options *options)
{
	const struct fusee_table columns[TABLES] = {rows_samples, rows_stacks},
				 sort[TABLES] = {rows_samples_merged_sort, rows_stacks_merged_sort};
	struct merge *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	*ret = m;
	if (m)
		*m = (struct merge){.at = at, .outputs = {{m, -1}, {m, -1}}, .base = base_of(name)};
	for (int i = 0; !r && i < TABLES; i++) {
		struct fusee_parquet_options o = {.columns = columns[i],
						  .sort = sort[i],
						  .codec = (uint32_t)options->codec,
						  .filtered = rows_filtered[i],
						  .memory = WRITER_MEMORY,
						  .level = LEVEL,
						  .renumbered = rows_sample_stack_id,
						  .renumber = i == SAMPLES ? renumber : NULL,
						  .write = write_bytes,
						  .arg = &m->outputs[i]};
		int fd = folder_create(dir, name, i, options->dir_mode, options->file_mode);

		m->outputs[i].fd = fd;
		r = fd < 0 ? fd : fusee_parquet_new(&m->writers[i], &o);
	}
	return r;
}

/* The values common to a window's samples, and the numbers of its stacks. */
struct common {
	int64_t ts, duration, period;
	char profile[512];
	bool known;
	struct numbers stacks;
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

/* ---- counting rows ---- */

/* services[code]: the number of the service. */
static int find_services(struct merge *m, const struct input *in, uint32_t *services)
{
	const struct fusee_parquet_values *v = in->values[rows_service];

	for (uint32_t i = 0; i < v->ndistinct; i++) {
		services[i] = order_service(&m->order, v->texts[i]);
		if (services[i] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

static int count_rows(struct merge *m, const struct input *in, uint64_t rows)
{
	const struct fusee_parquet_values *service = in->values[rows_service],
					  *key = in->values[rows_label_key],
					  *stack = in->values[rows_sample_stack];
	uint32_t *services = calloc(service->ndistinct + 1ull, sizeof(*services));
	int r = services ? find_services(m, in, services) : -ENOMEM;

	for (uint64_t i = 0; !r && i < rows; i++) {
		uint64_t labels = key->ends[i] - (i ? key->ends[i - 1] : 0),
			 bytes = sizeof(*key->ends) +
				 (in->ncolumns - 2 + 2 * labels) * sizeof(*key->codes);

		r = order_row(&m->order, services[service->codes[i]], bytes,
			      input_number(in, rows_sample_stack_id, i),
			      stack->texts[stack->codes[i]]);
	}
	free(services);
	m->rows += rows;
	m->values += rows * (in->ncolumns - 2) + 2 * key->n;
	return r;
}

/* Keeps the numbers of its stacks. */
static int count_stacks(struct input *in, struct common *c, bool *broken)
{
	int r = 0;

	for (uint32_t g = 0; r >= 0 && g < fusee_parquet_groups(in->file); g++) {
		uint64_t rows = fusee_parquet_group_rows(in->file, g);
		uint32_t none = 0;

		r = input_load(in, g, &rows_stack_id, 1);
		*broken = r;
		for (uint64_t i = 0; r >= 0 && i < rows; i++)
			r = numbers_add(&c->stacks, (uint64_t)input_number(in, rows_stack_id, i),
					&none);
	}
	return r < 0 ? r : 0;
}

/* Checks that each sample's stack is in the file of stacks. */
static int check_stacks(struct input *in, const struct common *c, uint64_t rows)
{
	for (uint64_t i = 0; i < rows; i++)
		if (numbers_get(&c->stacks, (uint64_t)input_number(in, rows_sample_stack_id, i))) {
			in->why = "it lacks stacks that its samples have";
			return -EINVAL;
		}
	return 0;
}

static int count_samples(struct merge *m, struct input *in, struct common *c, bool *broken)
{
	int r = 0;

	for (uint32_t g = 0; !r && g < fusee_parquet_groups(in->file); g++) {
		uint64_t rows = fusee_parquet_group_rows(in->file, g);

		r = input_load(in, g, rows_counted, ROWS_COUNTED);
		if (!r)
			r = check_common(in, c, rows);
		if (!r)
			r = check_stacks(in, c, rows);
		*broken = r;
		if (!r)
			r = count_rows(m, in, rows);
	}
	return r;
}

static int add_table(struct merge *m, const struct merge_window *w, int table, struct common *c,
		     const char **why, bool *broken)
{
	struct input in;
	int r = input_open(&in, m->at[table], w->name, table);

	*broken = r;
	if (!r)
		r = table == SAMPLES ? count_samples(m, &in, c, broken)
				     : count_stacks(&in, c, broken);
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
	numbers_fini(&c.stacks);
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
	return m->rows >= MAX_ROWS || m->values >= MAX_VALUES || m->order.nstacks >= MAX_STACKS ||
	       m->bytes >= MAX_BYTES || m->npairs >= MAX_PAIRS;
}

/* ---- copying rows ---- */

int merge_order(struct merge *m)
{
	return order_finish(&m->order, GROUP_BYTES, GROUP_ROWS);
}

bool merge_is_copied(const struct merge *m)
{
	return m->group >= m->order.ngroups && m->copied_stacks == m->nnumbered;
}

/* The file has changed since its rows were counted. */
static int changed(struct input *in)
{
	in->why = "it was changed meanwhile";
	return -ESTALE;
}

/* takes[row]: whether the row belongs to the row group that is written. 1: some do; 0; -errno. */
static int choose_rows(const struct merge *m, struct input *in, uint64_t rows, uint8_t *takes)
{
	const struct fusee_parquet_values *v = in->values[rows_service],
					  *stack = in->values[rows_sample_stack];
	uint32_t *services = calloc(v->ndistinct + 1ull, sizeof(*services));
	int any = services ? 0 : -ENOMEM;

	for (uint32_t i = 0; any >= 0 && i < v->ndistinct; i++) {
		services[i] = order_find(&m->order, v->texts[i]);
		if (services[i] == UINT32_MAX)
			any = changed(in);
	}
	for (uint64_t i = 0; any >= 0 && i < rows; i++) {
		takes[i] = order_group(&m->order, services[v->codes[i]],
				       stack->texts[stack->codes[i]]) == m->group;
		any |= takes[i];
	}
	free(services);
	return any;
}

static int copy_row(struct merge *m, const struct input *in, uint64_t row)
{
	uint32_t number = UNNUMBERED;
	uint64_t key = key_of(input_number(in, rows_sample_stack_id, row), m->group);
	int r = numbers_add(&m->stacks, key, &number);

	m->copied += r >= 0;
	return r < 0 ? r : input_copy(in, m->writers[SAMPLES], row);
}

static int copy_samples_of(struct merge *m, struct input *in, uint32_t group, bool *broken)
{
	const uint32_t first[] = {rows_service, rows_sample_stack};
	uint64_t rows = fusee_parquet_group_rows(in->file, group);
	uint8_t *takes = malloc(rows);
	int r = takes ? input_load(in, group, first, 2) : -ENOMEM;

	*broken = r;
	if (!r)
		r = choose_rows(m, in, rows, takes);
	if (r > 0) {
		r = input_load_rest(in, group);
		*broken = r;
		for (uint64_t i = 0; !r && i < rows; i++)
			if (takes[i])
				r = copy_row(m, in, i);
	}
	free(takes);
	return r;
}

/* Copies a stack for each row group of samples that has it, if it is of this pass. */
static int copy_stack(struct merge *m, const struct input *in, uint64_t row)
{
	int64_t number = input_number(in, rows_stack_id, row);
	int r = 0;

	for (uint32_t g = 0; !r && g < m->order.ngroups; g++) {
		uint64_t key = key_of(number, g);
		uint32_t n = numbers_get(&m->stacks, key);

		if (n >= m->nnumbered || n / GROUP_STACKS != m->group - m->order.ngroups)
			continue;
		fusee_parquet_int(m->writers[STACKS], rows_stack_id, m->base + n);
		input_copy_column(in, m->writers[STACKS], rows_stack_frames, row);
		numbers_set(&m->stacks, key, WRITTEN);
		m->copied_stacks++;
		r = fusee_parquet_row(m->writers[STACKS]);
	}
	return r;
}

static int copy_stacks_of(struct merge *m, struct input *in, uint32_t group, bool *broken)
{
	uint64_t rows = fusee_parquet_group_rows(in->file, group);
	int r = input_load(in, group, &rows_stack_id, 1);

	if (!r)
		r = input_load_rest(in, group);
	*broken = r;
	for (uint64_t row = 0; !r && row < rows; row++)
		r = copy_stack(m, in, row);
	return r;
}

static int copy_table(struct merge *m, const struct merge_window *w, int table, const char **why,
		      bool *broken)
{
	struct input in;
	int r = input_open(&in, m->at[table], w->name, table);

	*broken = r;
	for (uint32_t g = 0; !r && g < fusee_parquet_groups(in.file); g++)
		r = table == SAMPLES ? copy_samples_of(m, &in, g, broken)
				     : copy_stacks_of(m, &in, g, broken);
	*why = in.why;
	input_close(&in);
	return r;
}

/* The sums of all windows follow the pairs of each window. */
static int finish(struct merge *m, int table)
{
	char number[32];

	for (uint32_t i = 0; i < m->nlosses; i++) {
		snprintf(number, sizeof(number), "%lld", (long long)m->losses[i].n);
		put(m, table, m->losses[i].key, number);
	}
	return fusee_parquet_finish(m->writers[table]);
}

/* Frees the memory of its rows, before that of stacks is needed. */
static int finish_samples(struct merge *m)
{
	char number[32];

	if (m->copied != m->rows)
		return -ESTALE;
	snprintf(number, sizeof(number), "%u", m->nwindows);
	put(m, SAMPLES, "fusee.windows", number);
	return finish(m, SAMPLES);
}

/* Ends a row group after the last window. The stacks follow when all samples are numbered. */
static int end_group(struct merge *m, const char **why)
{
	uint32_t before = m->order.ngroups;
	bool samples = m->group < before;
	int r = fusee_parquet_end_group(m->writers[samples ? SAMPLES : STACKS]);

	m->next = 0;
	m->group++;
	if (samples)
		return r || m->group < before ? r : finish_samples(m);
	if (!r && m->copied_stacks < m->nnumbered &&
	    m->copied_stacks < (uint64_t)(m->group - before) * GROUP_STACKS) {
		*why = "its stacks were changed meanwhile";
		r = -ESTALE;
	}
	return r;
}

int merge_copy(struct merge *m, const struct merge_window *w, const char **why, bool *broken)
{
	int table = m->group < m->order.ngroups ? SAMPLES : STACKS,
	    r = copy_table(m, w, table, why, broken);

	return r || ++m->next < m->nwindows ? r : end_group(m, why);
}

/* ---- the end ---- */

int merge_finish(struct merge *m)
{
	int r = m->order.ngroups ? 0 : finish_samples(m);

	if (!r)
		r = finish(m, STACKS);
	for (int i = TABLES; !r && i-- > 0;)
		if (fsync(m->outputs[i].fd))
			r = -errno;
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
		if (m->outputs[i].fd >= 0)
			close(m->outputs[i].fd);
	}
	order_fini(&m->order);
	numbers_fini(&m->stacks);
	free(m);
}
