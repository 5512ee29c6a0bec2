/* SPDX-License-Identifier: Apache-2.0 */
#include "events/missed_ticks.h"

#include "test.h"

TEST(ticks_that_did_not_come)
{
	struct missed_ticks a = {0};

	/* a thread's event: 1, 2, 5 periods; late by parts of one, over and over */
	missed_ticks_count(&a, 7, 100, 100);
	missed_ticks_count(&a, 7, 201, 100);
	CHECK_INT(a.skipped, 0);
	missed_ticks_count(&a, 7, 505, 100);
	CHECK_INT(a.skipped, 2);
	for (uint64_t i = 1; i <= 10; i++)
		missed_ticks_count(&a, 8, i * 150, 100);
	CHECK_INT(a.skipped, 2 + 5);
	/* the number is another thread's */
	missed_ticks_count(&a, 7, 100, 100);
	CHECK_INT(a.skipped, 2 + 5);
	missed_ticks_fini(&a);
}

TEST(by_the_schedulers_count)
{
	struct missed_ticks a = {0};

	/* it ran before us */
	missed_ticks_runtime(&a, 1, 0, 5000, 100);
	missed_ticks_runtime(&a, 1, 0, 5100, 100);
	CHECK_INT(a.skipped, 0);
	/* one that begins: all is ours */
	missed_ticks_begin(&a, 2);
	missed_ticks_runtime(&a, 2, 0, 300, 100);
	CHECK_INT(a.skipped, 2);
	/* a CPU each, and the one that began */
	CHECK_INT(a.unfinished, 3);
	/* nothing ticked until 9000 */
	missed_ticks_restart(&a);
	missed_ticks_runtime(&a, 1, 0, 9000, 100);
	missed_ticks_runtime(&a, 1, 0, 9200, 100);
	CHECK_INT(a.skipped, 2 + 1);
	/* it ended, and its number is another's */
	missed_ticks_end(&a, 2);
	missed_ticks_runtime(&a, 2, 1, 100000, 100);
	CHECK_INT(a.skipped, 3);
	CHECK(!a.broken);
	missed_ticks_fini(&a);
}
