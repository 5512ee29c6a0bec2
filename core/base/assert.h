/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions: for invariants of this program, never for input. [any thread]
 *
 * A failed assertion is logged as an error with its file, line and expression. What follows depends
 * on the macro:
 *
 *   fusee_assert(expr);                            aborts in a debug build, else logs once
 *   if (fusee_fails(expr)) return -EINVAL;         the same; true if expr is false
 *   fusee_require(expr);                           aborts in every build
 *
 * A debug build is one with FUSEE_DEBUG_ASSERT defined: make DEBUG=1 or SANITIZER=... In other
 * builds, FUSEE_ASSERT=abort in the environment makes every failed assertion abort; the tests set
 * it. "Once" is once per place in the source. expr is evaluated exactly once in every build.
 */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#include <stdbool.h>

#define fusee_fails(expr)                                                      \
	(__builtin_expect(!(expr), 0) && ({                                    \
		 static bool assert_logged_;                                   \
		 assert_fail_soft(#expr, __FILE__, __LINE__, &assert_logged_); \
		 true;                                                         \
	 }))
#define fusee_assert(expr) ((void)fusee_fails(expr))
#define fusee_require(expr) \
	(__builtin_expect(!(expr), 0) ? assert_fail_hard(#expr, __FILE__, __LINE__) : (void)0)

/* Called by the macros only. `logged` is the place's own flag. */
void assert_fail_soft(const char *expr, const char *file, int line, bool *logged)
	__attribute__((cold));
void assert_fail_hard(const char *expr, const char *file, int line) __attribute__((cold, noreturn));
#endif
