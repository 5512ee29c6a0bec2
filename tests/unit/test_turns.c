// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/worker
/* The order of requests: users and their processes take turns, small files are first, and a user
 * who had its share waits for the others. */
#include "worker/internal/turns.h"

#include "test.h"

#define SECOND 1000000000ull

static struct turns_item items[64];

static void add(struct turns *q, int i, uint32_t uid, pid_t pid, uint64_t bytes)
{
	items[i] = (struct turns_item){.uid = uid, .pid = pid, .bytes = bytes};
	CHECK_INT(turns_add(q, &items[i]), 0);
}

/* The number of the next item; -1: none. */
static int next(struct turns *q, uint64_t now, bool over)
{
	struct turns_item *item = turns_take(q, now, over, NULL, NULL, NULL);

	return item ? (int)(item - items) : -1;
}

static void expect(struct turns *q, const int *order, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(next(q, SECOND, true), order[i]);
	CHECK_INT(next(q, SECOND, true), -1);
}

static struct turns turns;

#define TEST_OF_TURNS(id) \
	TEST_WITH(id, struct turns *, q, (turns_init(&turns, 100), &turns), turns_fini(q))

TEST_OF_TURNS(users_and_processes_take_turns)
{
	for (int i = 0; i < 4; i++)
		add(q, i, 1000, 1, 100); /* many requests of a process */
	add(q, 4, 1000, 2, 100);
	add(q, 5, 1001, 3, 100);
	add(q, 6, 1002, 4, 100);
	expect(q, (int[]){0, 5, 6, 4, 1, 2, 3}, 7);
}

TEST_OF_TURNS(small_files_first)
{
	add(q, 0, 1000, 1, 900 << 20);
	add(q, 1, 1000, 1, 20 << 20);
	add(q, 2, 1000, 1, 1000);
	add(q, 3, 1000, 1, 2000);
	expect(q, (int[]){2, 3, 1, 0}, 4);
}

TEST_OF_TURNS(what_is_for_later_comes_last)
{
	add(q, 0, 1000, 1, 900 << 20);
	items[1] = (struct turns_item){
		.uid = 1000, .pid = 1, .bytes = 1000, .urgent = 100, .later = true};
	CHECK_INT(turns_add(q, &items[1]), 0);
	add(q, 2, 1000, 1, 2000);
	expect(q, (int[]){2, 0, 1}, 3);
}

static bool is_item(const struct turns_item *item, const void *arg)
{
	return item == arg;
}

static bool hurry(struct turns *q, int i, uint32_t uid, pid_t pid, uint32_t urgent)
{
	return turns_hurry(q, uid, pid, urgent, is_item, &items[i]) == &items[i];
}

/* Urgent requests go before all others of their process, the most urgent first. */
TEST_OF_TURNS(urgent_first)
{
	for (int i = 0; i < 4; i++)
		add(q, i, 1000, 1, 900 << 20);
	add(q, 4, 1000, 1, 1);
	CHECK(hurry(q, 3, 1000, 1, 8));
	CHECK(hurry(q, 1, 1000, 1, 9));
	CHECK(hurry(q, 2, 1000, 1, 8));
	CHECK(hurry(q, 2, 1000, 1, 10)); /* again, more urgent */
	CHECK(!hurry(q, 0, 1000, 2, 8) && !hurry(q, 0, 1001, 1, 8));
	add(q, 5, 1000, 1, 900 << 20);
	add(q, 6, 1000, 1, 1);
	expect(q, (int[]){2, 1, 3, 4, 6, 0, 5}, 7);
}

/* Above its share a user gets what no other user waits for, and nothing of what is spared. */
TEST_OF_TURNS(a_share_of_the_minute)
{
	uint64_t now = 1000 * SECOND;

	turns_charge(q, 1000, now, TURNS_SHARE_NS + 1, 0);
	turns_charge(q, 1001, now, 0, TURNS_SHARE_BYTES + 1);
	for (int i = 0; i < 2; i++)
		add(q, i, 1000, 1, 1);
	add(q, 2, 1001, 2, 1);
	add(q, 3, 1002, 3, 1);
	CHECK_INT(next(q, now, true), 3);
	CHECK_INT(next(q, now, false), -1);
	CHECK_INT(next(q, now, true), 0);
	CHECK_INT(next(q, now, true), 2);
	/* A minute later the share is new. */
	CHECK_INT(next(q, now + 61 * SECOND, false), 1);
}

static bool is_not(void *arg, uint32_t uid)
{
	return uid != *(uint32_t *)arg;
}

TEST_OF_TURNS(users_that_may_not_now)
{
	uint32_t busy = 1000, goes_on = 1002;

	add(q, 0, 1000, 1, 1);
	add(q, 1, 1001, 2, 1);
	add(q, 2, 1002, 3, 1);
	CHECK(turns_take(q, SECOND, true, &goes_on, is_not, &busy) == &items[2]);
	CHECK(turns_take(q, SECOND, true, &busy, is_not, &busy) == &items[1]);
	CHECK(!turns_take(q, SECOND, true, &busy, is_not, &busy));
	CHECK_INT(next(q, SECOND, false), 0);
}

TEST(a_user_has_so_many)
{
	struct turns_item more = {.uid = 1000, .pid = 9}, other = {.uid = 1001, .pid = 9};
	struct turns q;

	turns_init(&q, 3);
	for (int i = 0; i < 3; i++)
		add(&q, i, 1000, i, 1);
	CHECK_INT(turns_add(&q, &more), -EBUSY);
	CHECK_INT(turns_add(&q, &other), 0);
	CHECK_INT(next(&q, SECOND, true), 0);
	CHECK_INT(turns_add(&q, &more), 0);
	while (turns_take(&q, SECOND, true, NULL, NULL, NULL))
		;
	turns_fini(&q);
}
