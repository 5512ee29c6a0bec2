/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds. [any thread] */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t);
uint64_t clock_now(void); /* of CLOCK_MONOTONIC */
struct timespec clock_spec(uint64_t ns);
#endif
