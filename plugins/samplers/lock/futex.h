/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which futex calls wait for a lock, and which wake. Numbers: linux/futex.h. */
#ifndef LOCK_FUTEX_H
#define LOCK_FUTEX_H

#include <fusee/sampler.bpf.h>

#define FUTEX_COMMAND 127u /* the rest are flags */
#define FUTEX_WAIT 0u
#define FUTEX_WAKE 1u
#define FUTEX_WAKE_OP 5u
#define FUTEX_LOCK_PI 6u
#define FUTEX_UNLOCK_PI 7u
#define FUTEX_WAIT_BITSET 9u
#define FUTEX_WAKE_BITSET 10u
#define FUTEX_LOCK_PI2 13u
#define FUTEX_WAITERS 0x80000000u

/* What a lock's word is while others wait for it. A mutex of glibc, Rust or Go's runtime: 2. A
 * robust mutex, and musl's: the owner's id and a bit. A read-write lock of glibc: 2, or 3 with the
 * phase. Words of condition variables, semaphores and barriers count something. */
FUSEE_FN int futex_is_lock(__u64 op, __u32 expected)
{
	__u32 command = op & FUTEX_COMMAND;

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return 1;
	if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET)
		return 0;
	return expected == 2 || (expected == 3 && command == FUTEX_WAIT_BITSET) ||
	       (expected & FUTEX_WAITERS && command == FUTEX_WAIT);
}

FUSEE_FN int futex_wakes(__u64 op)
{
	__u32 command = op & FUTEX_COMMAND;

	return command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_WAKE_OP ||
	       command == FUTEX_UNLOCK_PI;
}

/* Also those who wait at the call's second address. */
FUSEE_FN int futex_wakes_second(__u64 op)
{
	return (op & FUTEX_COMMAND) == FUTEX_WAKE_OP;
}
#endif
