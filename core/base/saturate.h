/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and absolute values that stay at the limits of int64_t. [any thread] */
#ifndef BASE_SATURATE_H
#define BASE_SATURATE_H

#include <stdint.h>

static inline void saturate_add(int64_t *to, int64_t v)
{
	if (__builtin_add_overflow(*to, v, to))
		*to = v < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t saturate_abs(int64_t v)
{
	return v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v;
}
#endif
