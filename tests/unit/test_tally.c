/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/tally.h"

#include "test.h"

TEST(ticks_that_did_not_come)
{
	struct tallies a = {0};

	/* a thread's event: 1, 2, 5 periods; late by parts of one, over and over */
	tally_count(&a, 7, 100, 100);
	tally_count(&a, 7, 201, 100);
	CHECK_INT(a.skipped, 0);
	tally_count(&a, 7, 505, 100);
	CHECK_INT(a.skipped, 2);
	for (uint64_t i = 1; i <= 10; i++)
		tally_count(&a, 8, i * 150, 100);
	CHECK_INT(a.skipped, 2 + 5);
	/* the number is another thread's */
	tally_count(&a, 7, 100, 100);
	CHECK_INT(a.skipped, 2 + 5);
	tally_fini(&a);
}

TEST(by_the_schedulers_count)
{
	struct tallies a = {0};

	/* it ran before us */
	tally_runtime(&a, 1, 0, 5000, 100);
	tally_runtime(&a, 1, 0, 5100, 100);
	CHECK_INT(a.skipped, 0);
	/* one that begins: all is ours */
	tally_begin(&a, 2);
	tally_runtime(&a, 2, 0, 300, 100);
	CHECK_INT(a.skipped, 2);
	/* a CPU each, and the one that began */
	CHECK_INT(a.unfinished, 3);
	/* nothing ticked until 9000 */
	tally_anew(&a);
	tally_runtime(&a, 1, 0, 9000, 100);
	tally_runtime(&a, 1, 0, 9200, 100);
	CHECK_INT(a.skipped, 2 + 1);
	/* it ended, and its number is another's */
	tally_end(&a, 2);
	tally_runtime(&a, 2, 1, 100000, 100);
	CHECK_INT(a.skipped, 3);
	CHECK(!a.broken);
	tally_fini(&a);
}
