/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/base
/* Jobs of a thread of its own. */
#include <stdatomic.h>

#include "base/background.h"
#include "base/clock.h"
#include "lib/faults.h"
#include "test.h"

static struct {
	pthread_t thread;
	unsigned int order[100], n;
} done;

static void note(void *arg)
{
	done.thread = pthread_self();
	done.order[done.n++] = (unsigned int)(uintptr_t)arg;
}

TEST(jobs_run_in_order_in_another_thread)
{
	struct background *b;

	done.n = 0;
	CHECK_INT(background_new(&b), 0);
	for (uintptr_t i = 0; i < 100; i++)
		background_run(b, note, (void *)i);
	background_free(b);
	CHECK_INT(done.n, 100);
	for (unsigned int i = 0; i < 100; i++)
		CHECK_INT(done.order[i], i);
	CHECK(!pthread_equal(done.thread, pthread_self()));
	background_free(NULL);
}

TEST(without_an_object_the_caller_runs_the_job)
{
	done.n = 0;
	background_run(NULL, note, (void *)7);
	CHECK_INT(done.n, 1);
	CHECK_INT(done.order[0], 7);
	CHECK(pthread_equal(done.thread, pthread_self()));
	CHECK_INT(background_waiting(NULL), 0);
}

TEST(without_memory_a_job_that_may_not_run_beside_others_is_not_run)
{
	struct background *b;

	done.n = 0;
	CHECK_INT(background_new(&b), 0);
	faults_from(0);
	CHECK(faults_next());
	CHECK_INT(background_try(b, note, (void *)7), -ENOMEM);
	faults_stop();
	CHECK(faults_happened());
	CHECK_INT(done.n, 0);
	CHECK_INT(background_waiting(b), 0);
	background_free(b);
}

TEST(descriptors_are_closed)
{
	struct background *b;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other = dup(fd);

	CHECK_INT(background_new(&b), 0);
	background_close(b, fd);
	background_close(NULL, other);
	CHECK_INT(fcntl(other, F_GETFD), -1);
	background_free(b);
	CHECK_INT(fcntl(fd, F_GETFD), -1);
}

static void wait_for_writer(void *arg)
{
	int *pipe = arg;
	char c;

	(void)!read(pipe[0], &c, 1);
	close(pipe[0]);
	close(pipe[1]);
	free(pipe);
	atomic_fetch_add((atomic_uint *)&done.n, 1);
}

/* A job that hangs keeps neither who gives jobs waiting, nor, for long, who frees the object. */
TEST(a_job_that_hangs_is_abandoned)
{
	uint64_t began = clock_now(), took;
	int *ends = malloc(2 * sizeof(*ends)), writer;
	struct background *b;

	done.n = 0;
	CHECK(ends && !pipe(ends));
	writer = dup(ends[1]);
	CHECK_INT(background_new(&b), 0);
	background_run(b, wait_for_writer, ends);
	for (int i = 0; i < 1000; i++)
		background_close(b, open("/dev/null", O_RDONLY | O_CLOEXEC));
	CHECK(background_waiting(b) > 1000);
	background_free(b);
	took = clock_now() - began;
	CHECK(took >= 1000000000 && took < test_within(20) * 1000000000ull);
	CHECK_INT(atomic_load((atomic_uint *)&done.n), 0);
	CHECK_INT(write(writer, "x", 1), 1);
	close(writer);
	WAIT_FOR(atomic_load((atomic_uint *)&done.n));
	CHECK_INT(atomic_load((atomic_uint *)&done.n), 1);
}
