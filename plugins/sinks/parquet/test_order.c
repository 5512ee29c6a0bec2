/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* Which rows are together in a row group of a merged file. */
#include "test.h"

#include "merge/order.h"

#define STACKS 1000 /* of a program */
#define LEN 100     /* of a stack's text */

/* Numbers of stacks are hashes. */
static int64_t stack_of(uint32_t program, uint32_t i)
{
	return (int64_t)((program * 100000ull + i + 1) * 0x9e3779b97f4a7c15);
}

/* Services are those of three programs in turns; some stacks are of the service alone. */
static struct fusee_str name_of(uint32_t service, char room[32])
{
	snprintf(room, 32, "service-%02u", service);
	return fusee_text(room);
}

static int64_t number_of(uint32_t service, uint32_t i)
{
	return i % 10 ? stack_of(service % 3, i) : stack_of(100 + service, i);
}

/* Equal for equal numbers; LEN bytes. */
static struct fusee_str text_of(int64_t number, char room[LEN + 1])
{
	snprintf(room, LEN + 1, "%0*llx", LEN, (unsigned long long)number);
	return (struct fusee_str){room, LEN};
}

static void count(struct order *o, uint32_t nservices, uint32_t rows)
{
	char room[32], text[LEN + 1];

	for (uint32_t i = 0; i < nservices; i++) {
		uint32_t s = order_service(o, name_of(i, room));

		CHECK(s < nservices && order_service(o, name_of(i, room)) == s);
		for (uint32_t k = 0; k < STACKS * rows; k++) {
			int64_t number = number_of(i, k % STACKS);

			CHECK_INT(order_row(o, s, 10, number, text_of(number, text)), 0);
		}
	}
	CHECK_INT(o->nservices, nservices);
}

static uint32_t group_of(const struct order *o, uint32_t service, uint32_t i)
{
	char room[32], text[LEN + 1];
	uint32_t s = order_find(o, name_of(service, room));

	CHECK(s != UINT32_MAX);
	return order_group(o, s, text_of(number_of(service, i), text));
}

TEST(services_with_equal_stacks_are_together)
{
	struct order o = {0};

	count(&o, 6, 2);
	/* a family of two has 4,000 rows, 1,100 stacks */
	CHECK_INT(order_finish(&o, 4000 * 10 + 1100 * (LEN + 100), 1 << 20), 0);
	CHECK_INT(o.ngroups, 3);
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < STACKS; k++)
			CHECK_INT(group_of(&o, i, k), i % 3);
	CHECK_INT(order_find(&o, fusee_text("another")), UINT32_MAX);
	order_fini(&o);
}

/* The first that was counted need not be the first by name. */
TEST(names_in_any_order)
{
	struct order o = {0};
	char room[32];

	for (uint32_t i = 6; i--;)
		CHECK(order_service(&o, name_of(i, room)) == 5 - i);
	count(&o, 6, 2);
	CHECK_INT(order_finish(&o, 4000 * 10 + 1100 * (LEN + 100), 1 << 20), 0);
	CHECK_INT(o.ngroups, 3);
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < STACKS; k++)
			CHECK_INT(group_of(&o, i, k), group_of(&o, (i + 3) % 6, k));
	CHECK(group_of(&o, 0, 0) != group_of(&o, 1, 0) && group_of(&o, 0, 0) != group_of(&o, 2, 0));
	order_fini(&o);
}

TEST(what_fits_is_one_row_group)
{
	struct order o = {0};

	count(&o, 6, 2);
	CHECK_INT(order_finish(&o, 10 << 20, 1 << 20), 0);
	CHECK_INT(o.ngroups, 1);
	CHECK_INT(group_of(&o, 5, 7), 0);
	order_fini(&o);
}

/* A family that is too large is divided by its stacks' texts: each is in one row group, and those
 * of a row group are neighbours. */
TEST(a_large_family_is_divided)
{
	char room[LEN + 1], least[8][LEN + 1], most[8][LEN + 1] = {0};
	uint32_t rows[8] = {0};
	struct order o = {0};

	memset(least, 'z', sizeof(least));

	count(&o, 6, 2);
	CHECK_INT(order_finish(&o, 10 << 20, 2000), 0);
	CHECK_INT(o.ngroups, 6);
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < STACKS; k++) {
			uint32_t g = group_of(&o, i, k);

			CHECK(g / 2 == i % 3);
			rows[g] += 2;
			text_of(number_of(i, k), room);
			memcpy(least[g], memcmp(room, least[g], LEN) < 0 ? room : least[g], LEN);
			memcpy(most[g], memcmp(room, most[g], LEN) > 0 ? room : most[g], LEN);
			if (k % 10)
				CHECK_INT(group_of(&o, (i + 3) % 6, k), g);
		}
	for (uint32_t g = 0; g < 6; g++)
		CHECK(rows[g] > 1600 && rows[g] < 2400);
	for (uint32_t g = 0; g < 6; g += 2)
		CHECK(memcmp(most[g], least[g + 1], LEN) < 0);
	order_fini(&o);
}

/* Of many texts those are kept that are needed to divide evenly. */
TEST(many_long_texts)
{
	char text[5001];
	uint32_t rows[16] = {0};
	struct order o = {0};
	uint32_t s = order_service(&o, fusee_text("web"));

	memset(text, 'm', 3000);
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(text + 3000, 100, "%08x", i);
		CHECK_INT(order_row(&o, s, 10, stack_of(1, i), fusee_text(text)), 0);
	}
	CHECK(o.texts_bytes <= 8 << 20 && o.ntexts > 1000);
	CHECK_INT(order_finish(&o, 1ull << 40, 10000), 0);
	CHECK_INT(o.ngroups, 10);
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(text + 3000, 100, "%08x", i);
		rows[order_group(&o, s, fusee_text(text)) % 16]++;
	}
	for (uint32_t g = 0; g < 10; g++)
		CHECK(rows[g] > 8000 && rows[g] < 12000);
	order_fini(&o);
}

TEST(no_rows_no_row_groups)
{
	struct order o = {0};

	CHECK_INT(order_finish(&o, 1 << 20, 1 << 20), 0);
	CHECK_INT(o.ngroups, 0);
	order_fini(&o);
}

TEST(numbers)
{
	struct numbers n = {0};
	uint32_t v;

	CHECK_INT(numbers_get(&n, 0), UINT32_MAX);
	for (uint32_t i = 0; i < 20000; i++) {
		v = i;
		CHECK_INT(numbers_add(&n, i * 3ull, &v), 1);
	}
	v = 7;
	CHECK_INT(numbers_add(&n, 300, &v), 0);
	CHECK_INT(v, 100);
	numbers_set(&n, 300, 8);
	CHECK_INT(numbers_get(&n, 300), 8);
	CHECK_INT(numbers_get(&n, 0), 0);
	CHECK_INT(numbers_get(&n, 301), UINT32_MAX);
	CHECK_INT(n.n, 20000);
	numbers_fini(&n);
}
