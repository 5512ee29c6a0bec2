/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static bool must_abort(void)
{
#ifdef FUSEE_DEBUG_ASSERT
	return true;
#else
	const char *value = getenv("FUSEE_ASSERT");

	return value && !strcmp(value, "abort");
#endif
}

void assert_fail_hard(const char *expr, const char *file, int line)
{
	log_error("%s:%d: assertion failed: %s", file, line, expr);
	abort();
}

void assert_fail_soft(const char *expr, const char *file, int line, bool *logged)
{
	if (must_abort())
		assert_fail_hard(expr, file, line);
	if (!__atomic_exchange_n(logged, true, __ATOMIC_RELAXED))
		log_error("%s:%d: assertion failed: %s", file, line, expr);
}
