/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
#include "events/internal/missed_ticks.h"

#include "test.h"

TEST(ticks_that_did_not_come)
{
	struct missed_ticks m = {0};

	/* the event of a thread counts 1, 2 and 5 periods */
	missed_ticks_count(&m, 7, 100, 100);
	missed_ticks_count(&m, 7, 201, 100);
	CHECK_INT(m.skipped, 0);
	missed_ticks_count(&m, 7, 505, 100);
	CHECK_INT(m.skipped, 2);
	/* each sample is late by half a period */
	for (uint64_t i = 1; i <= 10; i++)
		missed_ticks_count(&m, 8, i * 150, 100);
	CHECK_INT(m.skipped, 2 + 5);
	/* another thread has the number now */
	missed_ticks_count(&m, 7, 100, 100);
	CHECK_INT(m.skipped, 2 + 5);
	missed_ticks_fini(&m);
}

TEST(by_run_time_of_the_scheduler)
{
	struct missed_ticks m = {0};

	/* a thread that ran before the first tick */
	missed_ticks_runtime(&m, 1, 0, 5000, 100);
	missed_ticks_runtime(&m, 1, 0, 5100, 100);
	CHECK_INT(m.skipped, 0);
	/* a thread that begins: all its run time is counted */
	missed_ticks_begin(&m, 2);
	missed_ticks_runtime(&m, 2, 0, 300, 100);
	CHECK_INT(m.skipped, 2);
	/* two pairs of thread and CPU, and the thread that began */
	CHECK_INT(m.unfinished, 3);
	/* events were disabled until 9000 */
	missed_ticks_restart(&m);
	missed_ticks_runtime(&m, 1, 0, 9000, 100);
	missed_ticks_runtime(&m, 1, 0, 9200, 100);
	CHECK_INT(m.skipped, 2 + 1);
	/* it ended, and another thread has its number */
	missed_ticks_end(&m, 2);
	missed_ticks_runtime(&m, 2, 1, 100000, 100);
	CHECK_INT(m.skipped, 3);
	CHECK(!m.broken);
	missed_ticks_fini(&m);
}

TEST(other_events_with_another_period)
{
	struct missed_ticks m = {0};

	missed_ticks_begin(&m, 1);
	for (uint64_t i = 1; i <= 10; i++)
		missed_ticks_runtime(&m, 1, 0, i * 1000, 1000);
	/* at once, and while nothing counted; what was skipped before stays counted */
	missed_ticks_runtime(&m, 1, 0, 10100, 100);
	missed_ticks_runtime(&m, 1, 0, 10400, 100);
	CHECK_INT(m.skipped, 2);
	missed_ticks_runtime(&m, 1, 0, 500000, 1000);
	missed_ticks_runtime(&m, 1, 0, 501000, 1000);
	CHECK_INT(m.skipped, 2);
	missed_ticks_runtime(&m, 1, 0, 503000, 1000);
	CHECK_INT(m.skipped, 3);
	/* the same period, and meanwhile other events */
	missed_ticks_end(&m, 1);
	missed_ticks_runtime(&m, 1, 0, 900000, 1000);
	missed_ticks_runtime(&m, 1, 0, 901000, 1000);
	CHECK_INT(m.skipped, 3);
	/* another thread has the number now, with all its run time */
	missed_ticks_runtime(&m, 1, 0, 3000, 1000);
	CHECK_INT(m.skipped, 5);
	missed_ticks_runtime(&m, 1, 0, 6000, 2000);
	CHECK_INT(m.skipped, 5);
	CHECK(!m.broken);
	missed_ticks_fini(&m);
}
