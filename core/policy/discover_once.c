/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/discover_once.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "events/probe.h"
#include "net/loop.h"
#include "plugin/instance.h"
#include "policy/discoveries.h"
#include "opener/opener.h"

#define CHECK_NS 20000000u /* between checks whether the discoveries have committed */

struct discover_once {
	const struct plan *plan;
	struct fusee_host host;
	struct loop *loop;
	struct opener *opener; /* NULL: without CAP_SYS_PTRACE only the own processes are read */
	struct discoveries *discoveries;
	struct discovery *found[PLAN_MAX_DISCOVERIES]; /* of plan->discoveries[i]; NULL: failed */
	uint64_t until_ns;
	uint32_t failed;
};

static void log_text(char *text)
{
	log_warning("%s", text ? text : strerror(ENOMEM));
	free(text);
}

static void add_discovery(struct discover_once *d, uint32_t i)
{
	const struct plan_instance *plan = d->plan->discoveries[i];
	const struct instance_options o = {.name = plan->name,
					   .where = plan->where,
					   .options = plan->options,
					   .n = plan->noptions};
	struct fusee_instance *in;
	char *text = NULL;

	if (instance_new(&in, plan->descriptor, &d->host, &o, &text)) {
		log_text(text);
	} else if (discoveries_add(d->discoveries, in, &d->found[i], &text)) {
		d->found[i] = NULL;
		instance_free(in);
		log_text(text);
	}
	d->failed += !d->found[i];
}

static void look(void *arg)
{
	struct discover_once *d = arg;

	discoveries_retry(d->discoveries);
	if (discoveries_synced(d->discoveries) || clock_now() >= d->until_ns)
		loop_stop(d->loop);
}

/* Handles a discovery that has not committed in time. Its targets so far count: it may query
 * several servers, and a server may not answer. */
static void end_early(struct discover_once *d, uint32_t i, uint64_t wait_ns)
{
	const char *name = d->plan->discoveries[i]->name, *error = discovery_error(d->found[i]);
	uint32_t n;

	discovery_publish(d->found[i]);
	n = discovery_targets(d->found[i]);
	if (n)
		log_warning("%s has not found all targets within %g s, but %u%s%s", name,
			    (double)wait_ns / 1e9, n, *error ? ": " : "", error);
	else
		log_warning("%s has found nothing within %g s%s%s", name, (double)wait_ns / 1e9,
			    *error ? ": " : "", error);
	d->failed++;
}

static int run(struct discover_once *d, uint64_t wait_ns)
{
	struct loop_timer *timer;
	int r;

	for (uint32_t i = 0; i < d->plan->ndiscoveries; i++)
		add_discovery(d, i);
	d->until_ns = clock_now() + wait_ns;
	r = loop_every(d->loop, CHECK_NS, look, d, &timer);
	if (!r && !discoveries_synced(d->discoveries))
		r = loop_run(d->loop);
	for (uint32_t i = 0; !r && i < d->plan->ndiscoveries; i++)
		if (d->found[i] && !discovery_synced(d->found[i]))
			end_early(d, i, wait_ns);
	return r;
}

static void on_opener(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	opener_dispatch(arg);
}

static int open_discoveries(struct discover_once *d, struct targets *targets)
{
	struct loop_watch *watch;
	int r = discoveries_new(&d->discoveries, d->loop, targets);

	if (r || !(probe_caps() >> CAP_SYS_PTRACE & 1))
		return r;
	r = opener_new(&d->opener);
	if (!r)
		r = loop_watch(d->loop, opener_fd(d->opener), EPOLLIN, on_opener, d->opener,
			       &watch);
	if (!r)
		discoveries_set_opener(d->discoveries, d->opener);
	return r;
}

int discover_once_new(struct discover_once **ret, const struct plan *plan, struct targets *targets,
		      uint64_t wait_ns)
{
	struct discover_once *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->plan = plan;
	d->host = plugin_host_base;
	d->host.size = sizeof(d->host);
	d->host.discovery = &discovery_host;
	r = loop_new(&d->loop);
	if (!r)
		r = open_discoveries(d, targets);
	if (!r)
		r = run(d, wait_ns);
	if (r) {
		discover_once_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void discover_once_free(struct discover_once *d)
{
	if (!d)
		return;
	discoveries_free(d->discoveries);
	loop_free(d->loop);
	opener_free(d->opener);
	free(d);
}

uint32_t discover_once_failed(const struct discover_once *d)
{
	return d->failed;
}
