// SPDX-License-Identifier: Apache-2.0
// check: overlaps
/* Every allocation of the agent's side failed in turn: each file is inspected and named all the
 * same, once there is memory again. */
#include "worker_help.h"

#include "lib/faults.h"

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
		CHECK_INT(worker_wait(w), 0);
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
		CHECK_INT(worker_wait(w), 0);
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
	fprintf(stderr, "# %lu allocations\n", rounds);
	close(fd);
}
