// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/inspection
/* Every allocation of the agent's side failed in turn: each file is inspected and named all the
 * same, once there is memory again. */
#include "worker_help.h"

#include "base/background.h"
#include "lib/faults.h"
#include "inspection/cache_later.h"

static void symbolized(void *arg, int err, const char *text, const struct worker_symbols *s)
{
	int *ret = arg;

	CHECK(err || (s && s->n == 1));
	CHECK(!err || *text);
	*ret = err;
}

static int try_all(struct worker *w, int fd)
{
	struct inspected a = {.err = 1};
	int named = 1, r = worker_inspect(w, fd, "true", NULL, answered, &a);
	uint64_t entry;

	CHECK(!r || (r == -ENOMEM && faults_happened()));
	if (!r)
		CHECK_INT(worker_wait_until(w, 0), 0);
	if (r)
		return r;
	CHECK_INT(a.err, 0);
	entry = a.i->entry;
	r = worker_symbolize(w,
			     &(struct worker_symbolization){.inspection = a.i,
							    .fd = fd,
							    .debug_fd = -1,
							    .alt_fd = -1,
							    .name = "true",
							    .addresses = &entry,
							    .n = 1},
			     NULL, symbolized, &named);
	CHECK(!r || (r == -ENOMEM && faults_happened()));
	if (!r)
		CHECK_INT(worker_wait_until(w, 0), 0);
	inspection_unref(a.i);
	if (!r)
		CHECK_INT(named, 0);
	return r;
}

TEST_FOR(inspected_and_named, 300)
{
	struct worker_options o = {0};
	unsigned long rounds = 0;
	struct worker *w;
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (faults_from(0); faults_next(); rounds++) {
		int r = worker_new(&w, &o);

		CHECK(!r || (r == -ENOMEM && faults_happened()));
		if (r)
			continue;
		r = try_all(w, fd);
		faults_stop();
		if (r)
			CHECK_INT(try_all(w, fd), 0);
		worker_stop(w);
	}
	CHECK(rounds > 5);
	close(fd);
}

/* The caller does not write: the thread may be writing to the cache. */
TEST(without_memory_for_a_job_nothing_is_written)
{
	struct buf line = {0}, text = {0};
	struct background *b;
	struct cache *c;

	CHECK_INT(background_new(&b), 0);
	CHECK_INT(cache_open(&c, test_dir(), 1 << 20), 0);
	buf_add(&line, "a\n", 2);
	faults_from(2); /* the job and its name are there */
	CHECK(faults_next());
	cache_append_later(b, c, "refusals", &line);
	faults_stop();
	CHECK(faults_happened());
	CHECK(!line.p);
	CHECK_INT(background_waiting(b), 0);
	CHECK_INT(cache_text(c, "refusals", &text), -ENOENT);
	buf_fini(&text);
	cache_close_later(b, c);
	background_free(b);
}
