/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3) without libsystemd: one datagram to $NOTIFY_SOCKET, nothing where that is not set.
 */
#ifndef NET_NOTIFY_H
#define NET_NOTIFY_H

#include <stdint.h>

/* "READY=1\nSTATUS=..", by printf. 0 or -errno; 0 too where nobody listens. */
int notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* RELOADING=1 with MONOTONIC_USEC, which Type=notify-reload wants. */
int notify_reloading(void);
/* Half of $WATCHDOG_USEC if it is ours ($WATCHDOG_PID), in ns; 0: none. */
uint64_t notify_watchdog_ns(void);
#endif
