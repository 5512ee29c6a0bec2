/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd's manager on a D-Bus bus: tells which units run, in which control groups. Nothing here
 * blocks: all calls are asynchronous. Interfaces: org.freedesktop.systemd1(5). On the control
 * thread.
 */
#ifndef SYSTEMD_BUS_H
#define SYSTEMD_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "units.h"

struct bus;

/* address: of D-Bus; "": the system bus. details: descriptions or invocation IDs are needed. All is
 * borrowed until bus_close(). NULL: no memory. */
struct bus *bus_open(const struct fusee_self *, struct units *, const char *address, bool details);
void bus_close(struct bus *); /* NULL is fine */

/* Connects if there is no connection, 1 to 60 s after an earlier failure; sends due requests. To be
 * called once a second, and when the descriptor is ready. 0; -ENOMEM; or -errno after the
 * connection failed: *why is one sentence, valid until the next call, or NULL if the failure was
 * reported before. */
int bus_process(struct bus *, uint64_t now_ns, const char **why);
/* The descriptor and the epoll events to wait for; -1: there is none. */
int bus_fd(struct bus *, uint32_t *events);
/* Whether each running unit was put since the connection began. */
bool bus_is_complete(const struct bus *);
#endif
