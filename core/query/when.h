/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as people write them. */
#ifndef QUERY_WHEN_H
#define QUERY_WHEN_H

#include <stdint.h>

#define WHEN_FORMS                                                                             \
	"2026-11-21T08:00:00Z, '2026-11-21 08:00', 2026-11-21, 2h or -2h (ago), now, now-2h, " \
	"today, yesterday, or seconds since 1970"

/* Parses ISO 8601, in the local time zone if it has neither Z nor an offset; "now", "today" and
 * "yesterday" (local midnights); a duration before `now`; or 9 or 10 digits, seconds since 1970.
 * The result is in ns of CLOCK_REALTIME. 0 or -EINVAL. */
int when_parse(const char *text, uint64_t now_ns, uint64_t *ns);
#endif
