/* SPDX-License-Identifier: Apache-2.0 */
#include "query/internal/tally.h"

#include "base/saturate.h"

int tally_init(struct tally *t)
{
	*t = (struct tally){0};
	return dict_init(&t->keys);
}

void tally_fini(struct tally *t)
{
	dict_fini(&t->keys);
	buf_fini(&t->sums);
}

uint32_t tally_add(struct tally *t, const void *key, size_t len, int64_t v)
{
	uint32_t id = dict_add(&t->keys, key, len);
	int64_t *sum;

	if (id == DICT_NONE)
		return TALLY_NONE;
	if (id > t->sums.len / sizeof(*sum)) {
		sum = buf_grow(&t->sums, sizeof(*sum));
		if (!sum)
			return TALLY_NONE;
		*sum = 0;
	}
	saturate_add((int64_t *)(void *)t->sums.p + id - 1, v);
	return id;
}

uint32_t tally_size(const struct tally *t)
{
	return (uint32_t)(t->sums.len / sizeof(int64_t));
}

int64_t tally_sum(const struct tally *t, uint32_t i)
{
	return ((const int64_t *)(const void *)t->sums.p)[i];
}

struct fusee_str tally_key(const struct tally *t, uint32_t i)
{
	return (struct fusee_str){t->keys.entries[i + 1].key, t->keys.entries[i + 1].len};
}

uint64_t tally_bytes(const struct tally *t)
{
	return t->keys.bytes + t->keys.cap * sizeof(*t->keys.entries) +
	       t->keys.slots.n * sizeof(*t->keys.slots.at) + t->sums.cap;
}
