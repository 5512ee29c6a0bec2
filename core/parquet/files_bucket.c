/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request costs a round trip, and money. So only the partitions that the range of time needs
 * are listed; one request reads the end of a file with its footer, or all of a small file; and a
 * request for a column also reads some of the bytes that follow it.
 */
#include "parquet/files_bucket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define HOUR (3600 * 1000000000ull)
#define DAY (24 * HOUR)
#define TAIL (16u << 10)  /* bytes of a file's end that are read at once */
#define AHEAD (64u << 10) /* bytes: sending them takes about as long as a round trip */
#define PIECES 4u         /* kept of each file, because columns are not read in their order */
#define MOST 2000000u     /* objects in a list: their names take about 250 MiB */

struct bucket {
	struct files files;
	struct fusee_instance *instance;
	const struct fusee_sink_ops *ops;
};

/* A range of a file that was read. */
struct piece {
	uint64_t at, n;
	char *bytes;
};

struct object {
	struct bucket *bucket;
	char *name;
	struct piece tail, pieces[PIECES];
	uint32_t next; /* the piece that is replaced next */
};

/* Nothing can be read any more. */
static int fail(struct bucket *b, int err)
{
	if (!b->files.failure)
		b->files.failure = instance_sentence(b->instance, err);
	return b->files.failure ? err : -ENOMEM;
}

static void show(const struct bucket *b)
{
	if (b->files.progress)
		b->files.progress(b->files.arg);
}

/* ---- objects ---- */

static int64_t fetch(struct object *o, uint64_t at, void *to, uint64_t n, uint64_t *all)
{
	struct bucket *b = o->bucket;
	int64_t got = b->ops->read(b->instance->ctx, o->name, at, to, n, all);

	b->files.requests++;
	show(b);
	if (got >= 0 && (uint64_t)got > n) /* a fault of the plugin */
		got = -EPROTO;
	if (got < 0 && got != -ENOENT && got != -ESTALE)
		return fail(b, (int)got);
	b->files.fetched += got > 0 ? (uint64_t)got : 0;
	return got;
}

static bool copy(const struct piece *p, uint64_t at, void *to, uint64_t n)
{
	if (at < p->at || at - p->at > p->n || n > p->n - (at - p->at))
		return false;
	memcpy(to, p->bytes + (at - p->at), n);
	return true;
}

/* A range of at most AHEAD bytes from `at` on that is not read yet; of a short file all of it. */
static void choose(const struct object *o, uint64_t at, uint64_t *from, uint64_t *n)
{
	uint64_t end = o->tail.at;

	*from = end <= AHEAD ? 0 : at;
	if (end > *from + AHEAD)
		end = *from + AHEAD;
	for (uint32_t i = 0; i < PIECES; i++)
		if (o->pieces[i].n && o->pieces[i].at > at && o->pieces[i].at < end)
			end = o->pieces[i].at;
	*n = end - *from;
}

static int read_piece(struct object *o, uint64_t at, void *to, uint64_t n)
{
	struct piece *p = &o->pieces[o->next];
	uint64_t from, len, all;
	int64_t got;

	choose(o, at, &from, &len);
	if (from + len < at + n) { /* a part of it is in another piece */
		got = fetch(o, at, to, n, &all);
		return got < 0 ? (int)got : (uint64_t)got == n ? 0 : -ESTALE;
	}
	if (!p->bytes && !(p->bytes = malloc(AHEAD)))
		return -ENOMEM;
	p->n = 0;
	got = fetch(o, from, p->bytes, len, &all);
	if (got < 0)
		return (int)got;
	p->at = from;
	p->n = (uint64_t)got;
	o->next = (o->next + 1) % PIECES;
	return copy(p, at, to, n) ? 0 : -ESTALE;
}

static int read_object(void *arg, uint64_t at, void *to, uint64_t n)
{
	struct object *o = arg;

	if (copy(&o->tail, at, to, n))
		return 0;
	for (uint32_t i = 0; i < PIECES; i++)
		if (copy(&o->pieces[i], at, to, n))
			return 0;
	return read_piece(o, at, to, n);
}

static void free_object(struct object *o)
{
	if (!o)
		return;
	free(o->name);
	free(o->tail.bytes);
	for (uint32_t i = 0; i < PIECES; i++)
		free(o->pieces[i].bytes);
	free(o);
}

static int open_object(struct files *f, enum files_table table, const char *path,
		       struct fusee_parquet_input *in, const char **why)
{
	static const char *const tables[] = {"samples", "stacks"};
	struct object *o = calloc(1, sizeof(*o));
	int64_t got = -ENOMEM;

	(void)why;
	if (o) {
		o->bucket = (struct bucket *)(void *)f;
		o->tail.bytes = malloc(TAIL);
		if (asprintf(&o->name, "%s/%s", tables[table], path) < 0)
			o->name = NULL;
	}
	if (o && o->tail.bytes && o->name)
		got = fetch(o, UINT64_MAX, o->tail.bytes, TAIL, &in->size);
	if (got >= 0 && (uint64_t)got > in->size)
		got = -EPROTO;
	if (got < 0) {
		free_object(o);
		return (int)got;
	}
	o->tail.n = (uint64_t)got;
	o->tail.at = in->size - o->tail.n;
	in->read = read_object;
	in->arg = o;
	in->far = 1;
	return 0;
}

static void shut_object(struct files *f, struct fusee_parquet_input *in)
{
	(void)f;
	free_object(in->arg);
}

/* ---- lists ---- */

#define SAMPLES "samples/"

struct listing {
	struct bucket *bucket;
	struct parquet_list *list;
	uint64_t from_ns, to_ns;
	uint64_t *days; /* ns at which they begin; owned */
	size_t n, cap;
};

static int list_names(struct bucket *b, const char *prefix, uint32_t flags, struct listing *l,
		      int (*each)(void *arg, struct fusee_str))
{
	const struct fusee_listing q = {
		.size = sizeof(q), .flags = flags, .prefix = prefix, .each = each, .arg = l};
	int r = b->ops->list(b->instance->ctx, &q);

	b->files.requests++;
	return r && r != -ENOMEM && r != -EFBIG ? fail(b, r) : r;
}

/* A name with control characters is refused: it is printed if its file cannot be read. */
static bool is_clean(struct fusee_str name)
{
	for (uint64_t i = 0; i < name.len; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
			return false;
	return true;
}

static int take_file(void *arg, struct fusee_str name)
{
	const struct listing *l = arg;
	char path[512];

	if (l->list->n % 1000 == 0)
		show(l->bucket);
	if (name.len - strlen(SAMPLES) >= sizeof(path) || !is_clean(name)) /* foreign */
		return 0;
	memcpy(path, name.p + strlen(SAMPLES), name.len - strlen(SAMPLES));
	path[name.len - strlen(SAMPLES)] = '\0';
	return l->list->n < MOST ? parquet_list_take(l->list, path) : -EFBIG;
}

/* "samples/date=2026-11-22/" */
static int take_day(void *arg, struct fusee_str name)
{
	struct listing *l = arg;
	char text[32];
	uint64_t ns;

	if (name.len - strlen(SAMPLES) >= sizeof(text))
		return 0;
	memcpy(text, name.p + strlen(SAMPLES), name.len - strlen(SAMPLES));
	text[name.len - strlen(SAMPLES)] = '\0';
	text[strcspn(text, "/")] = '\0';
	if (!parquet_list_is_day(text, &ns))
		return 0;
	if (ns >= l->to_ns || ns + DAY <= l->from_ns) {
		l->list->omitted++;
		return 0;
	}
	if (!ARRAY_ROOM(l->days, l->n, l->cap))
		return -ENOMEM;
	l->days[l->n++] = ns;
	return 0;
}

static int list_hour(struct bucket *b, struct listing *l, uint64_t ns, bool day)
{
	char prefix[64];

	parquet_list_partition(prefix, sizeof(prefix), SAMPLES, ns, day);
	return list_names(b, prefix, 0, l, take_file);
}

static int list_day(struct bucket *b, struct listing *l, uint64_t day)
{
	int r = 0;

	if (day >= l->from_ns && l->to_ns - day >= DAY)
		return list_hour(b, l, day, true);
	l->list->omitted++; /* not all of its hours are listed */
	for (uint64_t hour = day; !r && hour < day + DAY; hour += HOUR)
		if (hour < l->to_ns && hour + HOUR > l->from_ns)
			r = list_hour(b, l, hour, false);
	return r;
}

static int list_bucket(struct files *f, struct parquet_list *list, uint64_t from_ns, uint64_t to_ns)
{
	struct bucket *b = (struct bucket *)(void *)f;
	struct listing l = {.bucket = b, .list = list, .from_ns = from_ns, .to_ns = to_ns};
	int r;

	if (!from_ns && to_ns == UINT64_MAX) {
		r = list_names(b, SAMPLES, 0, &l, take_file);
	} else {
		r = list_names(b, SAMPLES, FUSEE_LISTING_FOLDERS, &l, take_day);
		for (size_t i = 0; !r && i < l.n; i++)
			r = list_day(b, &l, l.days[i]);
	}
	free(l.days);
	if (r == -EFBIG && asprintf(&f->failure,
				    "more than %u objects are in the range of time: "
				    "give a shorter range, --from and --to",
				    MOST) < 0)
		f->failure = NULL;
	parquet_list_sort(list);
	return r;
}

static bool has_object(struct files *f, const char *path)
{
	struct fusee_parquet_input in = {0};
	const char *why;
	int r = open_object(f, FILES_SAMPLES, path, &in, &why);

	if (!r)
		shut_object(f, &in);
	return r != -ENOENT;
}

static void close_bucket(struct files *f)
{
	instance_free(((struct bucket *)(void *)f)->instance);
	free(f->failure);
	free(f);
}

int files_bucket_new(struct files **ret, struct fusee_instance *instance)
{
	static const struct files_ops ops = {
		.list = list_bucket,
		.open = open_object,
		.shut = shut_object,
		.has = has_object,
		.close = close_bucket,
		.lacks = "no object in samples/date=../hour=../ ends with .parquet"};
	struct bucket *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->files.ops = &ops;
	b->instance = instance;
	b->ops = instance->descriptor->ops;
	*ret = &b->files;
	return 0;
}
