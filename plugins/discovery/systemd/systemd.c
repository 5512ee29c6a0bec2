/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "systemd": a target for each unit that runs, with its labels. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include <fusee/helpers.h>

#include "bus.h"
#include "path.h"
#include "units.h"

#define SWEEP_TICKS 5u

struct systemd {
	struct fusee_self self;
	const char *address; /* options, from here to invocation_id */
	struct fusee_table units, exclude;
	uint8_t description, invocation_id;

	struct units_options o;
	struct units *known;
	struct bus *bus; /* NULL: systemd is not this machine's manager */
	int fd;          /* the descriptor that the host watches; -1: none */
	uint32_t events, ticks;
	bool synced;    /* all processes that ran at the start were seen */
	bool committed; /* the host knows that the first list is complete */
	bool no_bus;    /* there is no bus, or its connection failed */
};

static int systemd_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct systemd *s = ctx;

	fusee_self_init(ctx, in, host);
	s->fd = -1;
	s->o = (struct units_options){s->units, s->exclude, s->description, s->invocation_id};
	s->known = units_open(&s->self, &s->o);
	if (!s->known)
		return -ENOMEM;
	s->no_bus = !*s->address && sd_booted() <= 0;
	if (!s->no_bus)
		s->bus = bus_open(&s->self, s->known, s->address,
				  s->description || s->invocation_id);
	return s->no_bus || s->bus ? 0 : -ENOMEM;
}

static void systemd_fini(void *ctx)
{
	struct systemd *s = ctx;

	bus_close(s->bus);
	units_close(s->known);
}

/* The descriptor changes with the connection, its events with each message. */
static int watch(struct systemd *s)
{
	uint32_t events = 0;
	int fd = bus_fd(s->bus, &events), r = 0;

	if (s->fd >= 0 && s->fd != fd)
		s->self.host->discovery->watch_fd(s->self.in, s->fd, 0);
	if (fd >= 0 && (fd != s->fd || events != s->events))
		r = s->self.host->discovery->watch_fd(s->self.in, fd, events);
	s->fd = r ? -1 : fd;
	s->events = events;
	return r;
}

/* The first commit, when the targets are complete. Without a bus there are only units from paths of
 * processes. */
static int commit(struct systemd *s)
{
	if (s->committed || !s->synced || (!s->no_bus && !bus_is_complete(s->bus)))
		return 0;
	s->committed = true;
	return s->self.host->discovery->commit(s->self.in);
}

static int process(struct systemd *s)
{
	const char *why;
	int r;

	if (!s->bus)
		return commit(s);
	r = bus_process(s->bus, fusee_now(CLOCK_MONOTONIC), &why);
	if (r < 0) {
		s->no_bus = true;
		fusee_count(&s->self, "bus_failures", 1);
	}
	if (why)
		fusee_log(&s->self, FUSEE_WARNING,
			  "%s; until it is back, units are known by their control groups alone, "
			  "without descriptions and invocation IDs",
			  why);
	r = watch(s);
	return r ? r : commit(s);
}

static int systemd_start(void *ctx)
{
	struct systemd *s = ctx;
	int r = s->self.host->discovery->begin(s->self.in);

	if (!r)
		r = s->self.host->discovery->timer(s->self.in, FUSEE_SECOND);
	return r ? r : process(s);
}

static int systemd_ready(void *ctx, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	return process(ctx);
}

static int systemd_tick(void *ctx)
{
	struct systemd *s = ctx;

	if (!(++s->ticks % SWEEP_TICKS))
		units_sweep(s->known);
	return process(s);
}

/* Adds the unit of a process by its control group; also a user's unit, which the system's bus does
 * not know. */
static int see(struct systemd *s, uint32_t pid)
{
	char text[8192], cgroup[4096];
	int64_t n = s->self.host->discovery->process_text(s->self.in, pid, "cgroup", 0, text,
							  sizeof(text) - 1);

	if (n <= 0)
		return 0; /* it has ended */
	text[n] = '\0';
	return unit_path_of_process(text, cgroup, sizeof(cgroup)) ? units_see(s->known, cgroup) : 0;
}

static int systemd_process(void *ctx, const struct fusee_process_event *e)
{
	struct systemd *s = ctx;

	switch (e->kind) {
	case FUSEE_PROCESS_RUNNING:
	case FUSEE_PROCESS_EXEC:
		return see(s, e->pid);
	case FUSEE_PROCESS_SYNC:
		s->synced = true;
		return commit(s);
	default: /* a child is in its parent's control group; empty groups are swept */
		return 0;
	}
}

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(
		struct systemd, address, "",
		"The D-Bus address of the bus that systemd is on; empty: the system bus."),
	FUSEE_OPTION_LIST(struct systemd, units, "",
			  "Only units whose name matches one of these globs."),
	FUSEE_OPTION_LIST(struct systemd, exclude, "",
			  "No units whose name matches one of these globs."),
	FUSEE_OPTION_BOOL(struct systemd, description, "false", "Adds the label description."),
	FUSEE_OPTION_BOOL(struct systemd, invocation_id, "false",
			  "Adds the label invocation_id, which differs for each start of a unit."),
};

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_DISCOVERY_PROCESSES,
	.start = systemd_start,
	.ready = systemd_ready,
	.tick = systemd_tick,
	.process = systemd_process,
};

FUSEE_PLUGIN(systemd, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels processes with systemd's unit, slice, type and machine.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct systemd),
	     .init = systemd_init, .fini = systemd_fini, .ops = &ops);
