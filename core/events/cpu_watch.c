/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/cpu_watch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "events/internal/event.h"

#define LOOK_NS 5000000000u

static int make_room(struct cpu_watch *w, int n)
{
	struct cpu_clock *cpus;

	if (n <= w->n)
		return 0;
	cpus = realloc(w->cpus, (size_t)n * sizeof(*cpus));
	if (!cpus)
		return -1;
	for (int i = w->n; i < n; i++)
		cpus[i] = (struct cpu_clock){.fd = -1};
	w->cpus = cpus;
	w->n = n;
	return 0;
}

static void drop(struct cpu_clock *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct cpu_clock){.fd = -1};
}

/* An event's time grows while the event is on its CPU. The event has ended if its time has not
 * grown.
 */
static bool has_ended(struct cpu_clock *c)
{
	struct {
		uint64_t count, enabled_ns;
	} now;
	bool ended;

	if (c->fd < 0 || read(c->fd, &now, sizeof(now)) != sizeof(now))
		return false;
	ended = now.enabled_ns == c->enabled_ns;
	c->enabled_ns = now.enabled_ns;
	return ended;
}

static void look_at(struct cpu_watch *w, struct cpus *online, int i)
{
	struct cpu_clock *c = &w->cpus[i];

	if (!cpus_has(online, i)) {
		drop(c);
	} else if (has_ended(c)) {
		drop(c);
		cpus_remove(online, i);
	} else if (c->fd < 0) {
		c->fd = event_open_clock(i); /* or -errno */
	}
}

void cpu_watch_look(struct cpu_watch *w, struct cpus *online)
{
	uint64_t now = clock_now();

	if ((w->looked_ns && now - w->looked_ns < LOOK_NS) || make_room(w, cpus_end(online)))
		return;
	w->looked_ns = now;
	for (int i = 0; i < w->n; i++)
		look_at(w, online, i);
}

void cpu_watch_close(struct cpu_watch *w)
{
	for (int i = 0; i < w->n; i++)
		drop(&w->cpus[i]);
	free(w->cpus);
}
