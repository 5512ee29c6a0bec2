// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/spool
/* core/delivery/spool: profiles on disk, in order and equal to what was put, whatever becomes of
 * the files, the disk and the process. */
#include <sys/mount.h>
#include <sys/resource.h>

#include "spool/spool.h"
#include "spool/internal/position.h"
#include "lib/pause.h"
#include "profile/builder.h"
#include "pprof/pprof.h"
#include "test.h"
#include "lib/profiles.h"

#define DAY 86400000000000ull

static const struct spool_limits wide = {64 << 20, DAY};

static int64_t clock_shift_s; /* of CLOCK_REALTIME */

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_REALTIME)
		t->tv_sec += clock_shift_s;
	return r;
}

/* ---- profiles ---- */

static uint32_t add_stack(struct builder *b, int i)
{
	struct fusee_mapping m = {.flags = FUSEE_MAPPING_MAIN | FUSEE_MAPPING_LINES,
				  .limit = ~0ull};
	struct fusee_location at = {.flags = FUSEE_LOCATION_GUESSED,
				    .address = 0x1000u + (uint64_t)i};
	struct fusee_function f = {.start_line = 7, .flags = FUSEE_FRAME_ASYNC};
	struct fusee_line line = {.line = (uint32_t)i, .column = 3};
	char name[32];
	uint32_t location;

	snprintf(name, sizeof(name), "function%d", i);
	m.path = builder_cstr(b, "/usr/bin/program");
	m.build_id = builder_cstr(b, "0123456789abcdef");
	at.mapping = builder_mapping(b, &m);
	at.frame_type = builder_cstr(b, "python");
	f.name = builder_cstr(b, name);
	f.system_name = builder_cstr(b, "_Zfunction");
	f.file = builder_cstr(b, "program.cc");
	line.function = builder_function(b, &f);
	location = builder_location(b, &at, &line, 1);
	return builder_stack(b, &location, 1);
}

/* A profile with something in every table; so many samples of 2 each. */
static struct builder *profile_of(uint32_t id, int samples, const struct fusee_profile **p)
{
	const struct fusee_label labels[] = {
		{.key = {"team", 4}, .str = {"db", 2}},
		{.key = {"empty", 5}, .str = {"", 0}},
		{.key = {"size", 4}, .unit = {"bytes", 5}, .num = -5},
	};
	struct builder *b = new_builder();
	uint32_t cpu = builder_cstr(b, "cpu");

	*builder_profile(b) = (struct fusee_profile){.size = sizeof(**p),
						     .kind = cpu,
						     .default_type = 1,
						     .period_type = cpu,
						     .period = 52631578,
						     .start_ns = 1700000000000000000 + id,
						     .duration_ns = 60000000000};
	memcpy(builder_profile(b)->id, &id, sizeof(id));
	for (int i = 0; i < samples; i++)
		CHECK_INT(builder_sample(b, add_stack(b, i), labels, 3, 1, (uint32_t)i,
					 (int64_t[]){2, 2000}),
			  0);
	builder_resource(b, "host", "there");
	builder_comment(b, "fusee %d", 1);
	builder_loss(b, LOSS_TICK, "ring full", 12);
	CHECK_INT(builder_finish(b, p), 0);
	return b;
}

static void check_str(struct fusee_str a, struct fusee_str b)
{
	CHECK(a.len == b.len && !a.p == !b.p && (!a.len || !memcmp(a.p, b.p, a.len)));
}

static void check_bytes(const struct fusee_table *a, const struct fusee_table *b)
{
	CHECK(a->n == b->n && a->stride == b->stride);
	CHECK(!a->n || !memcmp(a->at, b->at, (size_t)a->n * a->stride));
}

static void check_strings(const struct fusee_table *a, const struct fusee_table *b)
{
	CHECK_INT(a->n, b->n);
	for (uint32_t i = 0; i < a->n; i++)
		check_str(*FUSEE_AT(struct fusee_str, *a, i), *FUSEE_AT(struct fusee_str, *b, i));
}

static void check_labels(const struct fusee_table *a, const struct fusee_table *b)
{
	CHECK_INT(a->n, b->n);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct fusee_label *x = FUSEE_AT(struct fusee_label, *a, i);
		const struct fusee_label *y = FUSEE_AT(struct fusee_label, *b, i);

		check_str(x->key, y->key);
		check_str(x->str, y->str);
		check_str(x->unit, y->unit);
		CHECK_INT(x->num, y->num);
	}
}

/* Every member and every element; and both are the same pprof file. */
static void check_equal(const struct fusee_profile *a, const struct fusee_profile *b)
{
	struct buf x = {0}, y = {0};

	CHECK(!memcmp(a, b, offsetof(struct fusee_profile, strings)));
	check_strings(&a->strings, &b->strings);
	check_bytes(&a->functions, &b->functions);
	check_bytes(&a->mappings, &b->mappings);
	check_bytes(&a->lines, &b->lines);
	check_bytes(&a->locations, &b->locations);
	check_bytes(&a->stack_locations, &b->stack_locations);
	check_bytes(&a->stacks, &b->stacks);
	check_bytes(&a->types, &b->types);
	check_bytes(&a->samples, &b->samples);
	check_labels(&a->labels, &b->labels);
	if (a->times.n || b->times.n)
		check_bytes(&a->times, &b->times);
	check_bytes(&a->values, &b->values);
	check_labels(&a->resource, &b->resource);
	check_labels(&a->losses, &b->losses);
	check_strings(&a->comments, &b->comments);
	CHECK_INT(pprof_encode(a, false, &x), 0);
	CHECK_INT(pprof_encode(b, false, &y), 0);
	CHECK(x.len == y.len && !memcmp(x.p, y.p, x.len));
	buf_fini(&x);
	buf_fini(&y);
}

static struct spool_profile *decode(const struct buf *bytes)
{
	struct spool_profile *sp;
	char *copy = malloc(bytes->len + 1);

	CHECK(copy);
	memcpy(copy, bytes->p, bytes->len);
	CHECK_INT(spool_profile_decode(copy, bytes->len, &sp), 0);
	return sp;
}

TEST(a_profile_comes_back_equal)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(7, 50, &p);
	struct buf bytes = {0};
	struct spool_profile *sp;

	CHECK_INT(spool_profile_encode(p, &bytes), 0);
	sp = decode(&bytes);
	check_equal(p, spool_profile_get(sp));
	spool_profile_free(sp);
	buf_fini(&bytes);
	builder_free(b);
}

TEST(times_and_traces_too)
{
	const uint64_t times[] = {1, 1700000000000000001, 3};
	const struct fusee_profile *p;
	struct builder *b = profile_of(7, 3, &p);
	struct fusee_sample samples[3];
	struct fusee_profile with = *p;
	struct buf bytes = {0};
	struct spool_profile *sp;

	for (uint32_t i = 0; i < 3; i++) {
		samples[i] = *FUSEE_AT(struct fusee_sample, p->samples, i);
		samples[i].ntimes = 1;
		samples[i].first_time = i;
		samples[i].trace_id[0] = 11 + i;
		samples[i].span_id = 13 + i;
	}
	with.samples.at = samples;
	with.times = (struct fusee_table){times, 3, sizeof(*times)};
	CHECK_INT(spool_profile_encode(&with, &bytes), 0);
	sp = decode(&bytes);
	check_equal(&with, spool_profile_get(sp));
	spool_profile_free(sp);
	buf_fini(&bytes);
	builder_free(b);
}

/* The functions of an earlier fusee, which had no flags. */
TEST(smaller_elements_are_read)
{
	const uint32_t stride = offsetof(struct fusee_function, flags);
	const struct fusee_profile *p;
	struct builder *b = profile_of(7, 2, &p);
	struct fusee_table functions;
	struct buf bytes = {0}, old = {0};
	struct spool_profile *sp;
	size_t at, end;

	CHECK_INT(spool_profile_encode(p, &bytes), 0);
	at = 8 + offsetof(struct fusee_profile, strings) + 8 + 16ul * p->strings.n;
	end = at + 8 + ((20ul * p->functions.n + 7) & ~7ul);
	buf_add(&old, bytes.p, at + 4);
	buf_add(&old, &stride, 4);
	for (uint32_t i = 0; i < p->functions.n; i++)
		buf_add(&old, FUSEE_AT(char, p->functions, i), stride);
	while (old.len % 8)
		buf_add(&old, "", 1);
	buf_add(&old, bytes.p + end, bytes.len - end);
	sp = decode(&old);
	functions = spool_profile_get(sp)->functions;
	CHECK(functions.n == p->functions.n && functions.stride == sizeof(struct fusee_function));
	CHECK_INT(FUSEE_AT(struct fusee_function, functions, 2)->start_line, 7);
	CHECK_INT(FUSEE_AT(struct fusee_function, functions, 2)->flags, 0);
	spool_profile_free(sp);
	buf_fini(&old);
	buf_fini(&bytes);
	builder_free(b);
}

/* ---- segments ---- */

enum { RECORDS = 4 };

struct seen {
	const struct buf *segment;
	uint32_t n, ids[RECORDS];
	uint64_t stored[RECORDS];
};

static uint32_t id_of(const struct spool_profile *sp)
{
	uint32_t id;

	memcpy(&id, spool_profile_get(sp)->id, sizeof(id));
	return id;
}

static int see(void *arg, const struct spool_record *r)
{
	struct seen *s = arg;
	struct spool_profile *sp;

	CHECK(s->n < RECORDS);
	CHECK_INT(spool_record_decode(s->segment->p + r->offset, r->bytes, &sp), 0);
	s->stored[s->n] = r->stored_ns;
	s->ids[s->n++] = id_of(sp);
	spool_profile_free(sp);
	return 0;
}

/* Records 0 .. RECORDS - 1; ends[i]: where record i ends. */
static void make_segment(struct buf *segment, size_t ends[RECORDS])
{
	const struct fusee_profile *p;

	*segment = (struct buf){0};
	for (uint32_t i = 0; i < RECORDS; i++) {
		struct builder *b = profile_of(i, 3, &p);

		CHECK_INT(spool_record_encode(p, 1000 + i, 6, segment), 0);
		ends[i] = segment->len;
		builder_free(b);
	}
}

static struct seen scan(const struct buf *segment, uint64_t *damaged)
{
	struct seen s = {.segment = segment};

	CHECK_INT(spool_segment_scan(segment->p, segment->len, 0, see, &s, damaged), 0);
	return s;
}

TEST(a_segment_that_ends_at_every_byte)
{
	size_t ends[RECORDS], len;
	uint64_t damaged;
	struct buf segment;

	make_segment(&segment, ends);
	len = segment.len;
	for (segment.len = 0; segment.len <= len; segment.len++) {
		struct seen s = scan(&segment, &damaged);
		uint32_t n = 0;

		while (n < RECORDS && ends[n] <= segment.len)
			n++;
		CHECK_INT(s.n, n);
		for (uint32_t i = 0; i < n; i++)
			CHECK(s.ids[i] == i && s.stored[i] == 1000 + i);
		CHECK_INT(damaged, segment.len != (n ? ends[n - 1] : 0));
	}
	buf_fini(&segment);
}

TEST(bits_flipped_at_random)
{
	uint64_t random = 88172645463325252, damaged;
	size_t ends[RECORDS];
	struct buf segment;

	make_segment(&segment, ends);
	for (int i = 0; i < 2000; i++) {
		uint32_t hit = 0, k = 0;
		struct seen s;
		size_t at;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		at = random % segment.len;
		while (ends[hit] <= at)
			hit++;
		segment.p[at] ^= (char)(1 << (random >> 61));
		s = scan(&segment, &damaged);
		CHECK(s.n == RECORDS - 1 && damaged == 1);
		for (uint32_t id = 0; id < RECORDS; id++)
			CHECK(id == hit || s.ids[k++] == id);
		segment.p[at] ^= (char)(1 << (random >> 61));
	}
	buf_fini(&segment);
}

/* ---- the folder ---- */

static const char *folder(void)
{
	return getenv("TMPDIR");
}

static struct spool *open_limited(const struct spool_limits *limits)
{
	struct spool *s;
	char *text;
	int r = spool_open(&s, folder(), "sink.test", limits, &text);

	if (r)
		test_fail(__FILE__, __LINE__, "spool_open: %s", text);
	return s;
}

static int append(struct spool *s, uint32_t id, int samples)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(id, samples, &p);
	int r = spool_append(s, p, 2ull * (uint64_t)samples);

	builder_free(b);
	return r;
}

/* Those with the ids from first on, up to end. */
static void append_all(struct spool *s, uint32_t first, uint32_t end, int samples)
{
	for (; first < end; first++)
		CHECK_INT(append(s, first, samples), 0);
}

static struct spool *reopened(struct spool *s, const struct spool_limits *limits)
{
	spool_close(s);
	return open_limited(limits);
}

static struct spool_counts counts(struct spool *s)
{
	struct spool_counts c;

	spool_take_counts(s, &c);
	return c;
}

/* The id of the oldest; UINT32_MAX: there is none. */
static uint32_t oldest(struct spool *s)
{
	struct spool_item it;
	uint32_t id;
	int r = spool_first(s, &it);

	if (r == -ENOENT)
		return UINT32_MAX;
	CHECK_INT(r, 0);
	id = id_of(it.profile);
	spool_profile_free(it.profile);
	return id;
}

static void check_next(struct spool *s, uint32_t id)
{
	CHECK_INT(oldest(s), id);
	spool_done(s);
}

static uint64_t disk_bytes(void)
{
	char command[200], number[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "cat %s/sink.test/*.segment 2>/dev/null | wc -c",
		 folder());
	f = popen(command, "r");
	CHECK(f && fgets(number, sizeof(number), f));
	pclose(f);
	return strtoull(number, NULL, 10);
}

TEST(in_order_and_equal)
{
	struct spool *s = open_limited(&wide);
	const struct fusee_profile *p;
	struct builder *b = profile_of(1, 20, &p);
	struct spool_item it;

	CHECK_INT(oldest(s), UINT32_MAX);
	CHECK_INT(spool_append(s, p, 40), 0);
	CHECK_INT(append(s, 2, 3), 0);
	CHECK_INT(spool_sync(s), 0);
	CHECK(counts(s).profiles == 2 && counts(s).bytes == disk_bytes() && counts(s).oldest_ns);
	CHECK_INT(spool_first(s, &it), 0);
	CHECK(it.samples == 40 && it.attempt == 0);
	check_equal(p, spool_profile_get(it.profile));
	spool_profile_free(it.profile);
	spool_keep(s, 30);
	CHECK_INT(spool_first(s, &it), 0);
	CHECK(id_of(it.profile) == 1 && it.attempt == 1 && it.samples == 30);
	spool_profile_free(it.profile);
	spool_done(s);
	CHECK_INT(spool_first(s, &it), 0);
	CHECK(id_of(it.profile) == 2 && it.attempt == 0);
	spool_profile_free(it.profile);
	spool_done(s);
	CHECK_INT(oldest(s), UINT32_MAX);
	CHECK(!counts(s).profiles && !counts(s).bytes && !counts(s).oldest_ns);
	spool_close(s);
	CHECK_INT(disk_bytes(), 0);
	builder_free(b);
}

TEST(a_restart_goes_on)
{
	struct spool *s = open_limited(&wide);

	append_all(s, 0, 5, 3);
	check_next(s, 0);
	check_next(s, 1);
	s = reopened(s, &wide);
	CHECK_INT(counts(s).profiles, 3);
	CHECK_INT(append(s, 5, 3), 0);
	check_next(s, 2);
	CHECK_INT(oldest(s), 3); /* without an answer */
	s = reopened(s, &wide);
	for (uint32_t i = 3; i < 6; i++)
		check_next(s, i);
	CHECK_INT(oldest(s), UINT32_MAX);
	CHECK_INT(counts(s).damaged.profiles, 0);
	spool_close(s);
}

/* Without a position all is read again: twice rather than never. */
TEST(a_damaged_position)
{
	char path[200];
	struct spool *s = open_limited(&wide);

	append_all(s, 0, 3, 3);
	check_next(s, 0);
	check_next(s, 1);
	spool_close(s);
	snprintf(path, sizeof(path), "%s/sink.test/position", folder());
	CHECK_INT(truncate(path, 33), 0); /* the second turn's place remains */
	s = open_limited(&wide);
	CHECK_INT(oldest(s), 2);
	spool_close(s);
	CHECK_INT(truncate(path, 5), 0);
	s = open_limited(&wide);
	CHECK_INT(oldest(s), 0);
	spool_close(s);
}

TEST(bounded_by_bytes)
{
	const struct spool_limits limits = {256 << 10, DAY};
	struct spool *s = open_limited(&limits);
	struct spool_counts c;
	uint32_t n = 600, next;

	for (uint32_t i = 0; i < n; i++) {
		CHECK_INT(append(s, i, 40), 0);
		if (i % 50 == 0)
			CHECK(disk_bytes() <= limits.bytes);
	}
	c = counts(s);
	CHECK(c.profiles > 50 && c.profiles < n && disk_bytes() <= limits.bytes);
	CHECK(c.bytes >= limits.bytes / 2);
	CHECK_INT(c.full.profiles, n - c.profiles);
	CHECK_INT(c.full.samples, 80 * c.full.profiles);
	for (next = (uint32_t)c.full.profiles; next < n; next++)
		check_next(s, next);
	spool_close(s);
}

#define TEST_OF_SPOOL(id, limits) \
	TEST_WITH(id, struct spool *, s, open_limited(limits), spool_close(s))

TEST_OF_SPOOL(larger_than_the_limit, (&(struct spool_limits){64 << 10, DAY}))
{
	CHECK_INT(append(s, 1, 3), 0);
	CHECK_INT(append(s, 2, 40000), -EMSGSIZE);
	check_next(s, 1);
}

TEST(another_limit_drops_the_oldest)
{
	struct spool *s = open_limited(&(struct spool_limits){2 << 20, DAY});
	struct spool_counts c;

	append_all(s, 0, 20, 3000); /* segments of one record, or a few */
	spool_limit(s, &(struct spool_limits){counts(s).bytes / 2, DAY});
	c = counts(s);
	s = reopened(s, &(struct spool_limits){64 << 10, DAY});
	CHECK(c.full.profiles && counts(s).full.profiles);
	CHECK(disk_bytes() <= 64 << 10);
	spool_close(s);
}

/* As a full disk leaves it. */
TEST(an_empty_segment_between_others)
{
	struct spool *s = open_limited(&(struct spool_limits){2 << 20, DAY});
	char command[300];

	append_all(s, 0, 3, 3000); /* a segment each */
	spool_close(s);
	snprintf(command, sizeof(command), "cd %s/sink.test && : >$(ls *.segment | sed -n 2p)",
		 folder());
	CHECK_INT(system(command), 0);
	s = open_limited(&(struct spool_limits){2 << 20, DAY});
	spool_limit(s, &(struct spool_limits){counts(s).bytes - 1, DAY});
	CHECK_INT(counts(s).profiles, 1);
	check_next(s, 2);
	spool_close(s);
}

TEST_OF_SPOOL(bounded_by_age, &wide)
{
	struct spool_counts c;

	append_all(s, 0, 3, 3);
	clock_shift_s = 7200;
	spool_limit(s, &(struct spool_limits){wide.bytes, DAY / 24});
	CHECK_INT(append(s, 3, 3), 0);
	spool_limit(s, &wide);
	c = counts(s);
	CHECK(c.old.profiles == 3 && c.old.samples == 18 && c.profiles == 1);
	check_next(s, 3);
}

TEST(a_clock_that_jumps)
{
	struct spool *s = open_limited(&wide);
	struct spool_counts c;

	CHECK_INT(append(s, 0, 3), 0);
	clock_shift_s = -3600;
	CHECK_INT(append(s, 1, 3), 0);
	CHECK(counts(s).profiles == 2 && !counts(s).old.profiles);
	s = reopened(s, &wide); /* both are kept, in the order in which they were written */
	check_next(s, 0);
	clock_shift_s = 86400 - 3600 + 60;
	CHECK_INT(oldest(s), UINT32_MAX);
	c = counts(s);
	CHECK(c.old.profiles == 1 && !c.profiles);
	spool_close(s);
}

/* What the reader has is not counted while it may still be delivered. */
TEST(the_room_of_what_is_tried)
{
	const struct spool_limits limits = {64 << 10, DAY};
	struct spool *s = open_limited(&limits);
	struct spool_counts c;
	uint32_t i, n = 0;

	CHECK_INT(append(s, n++, 40), 0);
	CHECK_INT(oldest(s), 0);
	while (!(c = counts(s)).full.profiles)
		CHECK_INT(append(s, n++, 40), 0);
	for (i = 0; i < 200; i++)
		CHECK_INT(append(s, n++, 40), 0);
	c.full.profiles += counts(s).full.profiles;
	CHECK_INT(c.full.profiles + counts(s).profiles + 1, n);
	spool_keep(s, 80);
	CHECK_INT(counts(s).full.profiles, 1);
	i = oldest(s);
	CHECK(i > 0);
	while (counts(s).full.profiles < 2)
		CHECK_INT(append(s, n++, 40), 0);
	spool_done(s); /* it was delivered, and drops no other */
	CHECK(oldest(s) > i + 1);
	spool_keep(s, 1);
	spool_close(s);
}

/* Samples of parts that were lost in an attempt are counted where they were lost, and once. */
TEST(parts_that_are_counted)
{
	const struct spool_limits limits = {64 << 10, DAY};
	const struct spool_limits none = {0, DAY};

	for (int dropped_meanwhile = 0; dropped_meanwhile < 2; dropped_meanwhile++) {
		struct spool *s = open_limited(&limits);
		struct spool_counts c;

		CHECK_INT(append(s, 0, 40), 0);
		CHECK_INT(oldest(s), 0);
		if (dropped_meanwhile)
			spool_limit(s, &none);
		spool_keep(s, 10);
		spool_limit(s, &none);
		c = counts(s);
		CHECK(c.full.profiles == 1 && c.full.samples == 10);
		spool_close(s);
	}
}

/* RLIMIT_FSIZE as a disk that is full in the middle of a record. */
TEST_OF_SPOOL(a_full_disk, &wide)
{
	struct rlimit limit = {0, RLIM_INFINITY};
	uint64_t before;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(append(s, 0, 100), 0);
	before = disk_bytes();
	for (limit.rlim_cur = before; limit.rlim_cur < before + 200; limit.rlim_cur += 50) {
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
		CHECK_INT(append(s, 1, 100), -EFBIG);
		CHECK_INT(disk_bytes(), before);
	}
	limit.rlim_cur = RLIM_INFINITY;
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_INT(append(s, 2, 100), 0);
	check_next(s, 0);
	check_next(s, 2);
	CHECK_INT(counts(s).damaged.profiles, 0);
}

static void damage(uint64_t at)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/sink.test/0000000000000001.segment", folder());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "damage", 6, (off_t)at) == 6);
	close(fd);
}

TEST(damage_is_counted_and_passed)
{
	struct spool *s = open_limited(&wide);
	struct spool_counts c;

	append_all(s, 0, 4, 3);
	damage(60); /* while it is open: found when it is read */
	CHECK_INT(oldest(s), 1);
	c = counts(s);
	CHECK(c.damaged.profiles == 1 && c.damaged.samples == 6 && c.profiles == 3);
	spool_keep(s, 1);
	spool_close(s);
	damage(disk_bytes() / 2 + 60); /* found when it is opened */
	s = open_limited(&wide);
	CHECK_INT(counts(s).damaged.profiles, 1);
	check_next(s, 1);
	check_next(s, 3);
	spool_close(s);
}

/* ---- whose folder ---- */

static void refused(const char *dir, const char *why)
{
	struct spool *s;
	char *text;

	CHECK(spool_open(&s, dir, "sink.test", &wide, &text));
	if (!text || !strstr(text, why))
		test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", text, why);
	free(text);
}

TEST(one_at_a_time)
{
	struct spool *s = open_limited(&wide), *other;
	char *text;

	CHECK_INT(spool_open(&other, folder(), "sink.test", &wide, &text), -EWOULDBLOCK);
	CHECK(text && strstr(text, "another agent has it"));
	free(text);
	CHECK_INT(spool_open(&other, folder(), "sink.other", &wide, &text), 0);
	spool_close(other);
	spool_close(s);
	spool_close(open_limited(&wide));
}

TEST(folders_that_others_could_change)
{
	char dir[200], link[200], own[220];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s/deep/er", folder());
	snprintf(link, sizeof(link), "%s/link", folder());
	snprintf(own, sizeof(own), "%s/deep/er/sink.test", folder());
	CHECK_INT(setenv("TMPDIR", dir, 1), 0);
	spool_close(open_limited(&wide));
	CHECK(!stat(own, &st) && (st.st_mode & 07777) == 0700);
	CHECK_INT(chmod(own, 0770), 0);
	refused(dir, "other users can write to 'sink.test'");
	CHECK_INT(chmod(own, 0700), 0);
	CHECK_INT(symlink(dir, link), 0);
	refused(link, "'link' is a symbolic link");
	CHECK_INT(rename(own, "/nonexistent/x"), -1);
	CHECK(!unlink(link) && !symlink("/etc/passwd", link));
	refused(link, "'link' is a symbolic link");
	refused("/etc/passwd/x", "'passwd' is no folder");
	refused("/dev/null/../x", "no folder");
	if (geteuid())
		SKIP("the rest needs root");
	CHECK_INT(chmod(dir, 0777), 0);
	refused(dir, "other users can write to 'er'");
	CHECK_INT(chmod(dir, 01777), 0);
	spool_close(open_limited(&wide));
	CHECK_INT(chown(own, 12345, 12345), 0);
	refused(dir, "'sink.test' belongs to another user");
	CHECK_INT(chown(dir, 12345, 12345), 0);
	refused(dir, "'er' belongs to another user");
}

TEST(a_disk_that_cannot_be_written)
{
	char dir[200];

	snprintf(dir, sizeof(dir), "%s/read-only", folder());
	CHECK_INT(mkdir(dir, 0755), 0);
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", MS_RDONLY, NULL))
		SKIP("needs namespaces and root");
	refused(dir, "read-only cannot be used: 'sink.test' cannot be made: Read-only file system");
}

/* ---- a process that is killed ---- */

/* Appends from id on, and takes what waits now and then; reports what it did. */
static void work(int to, uint32_t id)
{
	struct spool *s = open_limited(&wide);

	for (;; id++) {
		uint32_t report[2] = {id, UINT32_MAX};

		CHECK_INT(append(s, id, 30), 0);
		if (id % 3 == 2)
			report[1] = oldest(s);
		if (report[1] != UINT32_MAX)
			spool_done(s);
		if (write(to, report, sizeof(report)) != sizeof(report))
			exit(1);
	}
}

/* *put, *got: the last ids that were reported. */
static void run_and_kill(uint32_t id, long after, uint32_t *put, uint32_t *got)
{
	uint32_t report[2];
	int pipes[2];
	pid_t pid;

	CHECK(!pipe(pipes));
	pid = fork();
	if (!pid) {
		close(pipes[0]);
		work(pipes[1], id);
	}
	close(pipes[1]);
	CHECK(read(pipes[0], report, sizeof(report)) == sizeof(report)); /* it works */
	do {
		*put = report[0];
		*got = report[1] == UINT32_MAX ? *got : report[1];
		if (after)
			pause_us(after, "until some moment");
		if (after)
			kill(pid, SIGKILL);
		after = 0;
	} while (read(pipes[0], report, sizeof(report)) == sizeof(report));
	close(pipes[0]);
	waitpid(pid, NULL, 0);
}

/* What was appended is there, in order, and what was taken is not; but what was being done at the
 * moment may be done or not. */
TEST_FOR(sigkill_at_any_moment, 600)
{
	int times = getenv("FUSEE_TEST_LONG") ? 200 : 10;
	uint32_t put = 0, got = UINT32_MAX, id = 0;
	uint64_t damaged = 0;

	srand(5);
	for (int i = 0; i < times; i++) {
		struct spool *s;
		uint32_t first_id, last;

		run_and_kill(id, rand() % 20000 + 1, &put, &got);
		s = open_limited(&wide);
		damaged += counts(s).damaged.profiles;
		first_id = oldest(s);
		CHECK(first_id == got + 1 || first_id == got + 2);
		for (last = first_id; counts(s).profiles; last++)
			check_next(s, last);
		CHECK(last > put && last <= put + 2);
		spool_close(s);
		id = (last + 2) / 3 * 3; /* so that it never takes all that waits */
		got = id - 1;
	}
	CHECK(damaged <= (uint64_t)times); /* the record that was being written */
	fprintf(stderr, "# %d kills, %u profiles, %d damaged\n", times, id, (int)damaged);
}
