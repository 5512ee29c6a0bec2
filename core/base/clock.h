/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds. [any thread] */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t);
struct timespec clock_spec(uint64_t ns);

/* CLOCK_MONOTONIC as the kernel has it in perf's records and in BPF. In a time namespace that
 * differs from what clock_gettime() says, by an offset that clock_find_offset() reads. */
uint64_t clock_now(void);
/* clock_own(): a time of clock_now() as clock_gettime() says it here (1 .. UINT64_MAX), for
 * absolute timers and for plugins. clock_until(): the same for waits until that time. */
uint64_t clock_own(uint64_t now);
struct timespec clock_until(uint64_t now);
/* Once, before other threads and before a sandbox. [main thread] */
void clock_find_offset(void);
#endif
