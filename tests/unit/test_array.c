// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/base
/* core/base/array: growth, and the search against a linear one. */
#include "base/array.h"
#include "test.h"

struct pair {
	uint64_t key;
	uint32_t value;
};

TEST(grows_and_is_searched)
{
	struct pair *all = NULL, *p;
	size_t n = 0, cap = 0;

	CHECK_INT(array_count_to(NULL, 0, sizeof(*all), 7), 0);
	for (; n < 1000; n++) {
		p = array_room(all, n, &cap, sizeof(*all));
		CHECK(p && cap > n);
		all = p;
		all[n] = (struct pair){n / 3 * 2, (uint32_t)n};
	}
	for (size_t i = 0; i < n; i++)
		CHECK(all[i].value == i);
	for (uint64_t key = 0; key < 700; key++) {
		size_t expected = 0;

		while (expected < n && all[expected].key <= key)
			expected++;
		CHECK_INT(array_count_to(all, n, sizeof(*all), key), expected);
	}
	CHECK_INT(array_count_to(all, n, sizeof(*all), UINT64_MAX), n);
	free(all);
}
