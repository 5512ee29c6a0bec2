/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications for the service manager, as sd_notify(3), without libsystemd: a datagram to
 * $NOTIFY_SOCKET. Without this variable the functions do nothing. */
#ifndef NET_NOTIFY_H
#define NET_NOTIFY_H

#include <stdint.h>

/* Sends "READY=1\nSTATUS=..", formatted as by printf(). 0 or -errno; 0 without $NOTIFY_SOCKET. */
int notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sends RELOADING=1 with MONOTONIC_USEC, as Type=notify-reload requires. */
int notify_reloading(void);
/* Half of $WATCHDOG_USEC in ns, if $WATCHDOG_PID is this process or not set; 0: no watchdog. */
uint64_t notify_watchdog_ns(void);
#endif
