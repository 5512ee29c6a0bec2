/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/discoveries.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "process/procfs.h"

enum { MAX_MISSED = 256, MAX_FORKS = 64 };

struct entry {
	struct entry *next;
	struct discovery *discovery;
	/* The pids of events that the instance had no memory for. */
	uint32_t missed[MAX_MISSED], nmissed;
	bool missed_all;  /* more than fit into `missed`: each process is reported again */
	bool missed_sync; /* SYNC */
};

struct discoveries {
	struct discovery_context context;
	struct entry *first, **last;
	uint32_t sources; /* numbers assigned */
	/* Forks that are not reported yet: most children execute a program at once, or end. */
	struct fusee_process_event forks[MAX_FORKS];
	uint32_t nforks;
};

/* ---- process events ---- */

static void miss(struct entry *e, const struct fusee_process_event *event)
{
	if (event->kind == FUSEE_PROCESS_SYNC)
		e->missed_sync = true;
	else if (e->nmissed == MAX_MISSED)
		e->missed_all = true;
	else
		e->missed[e->nmissed++] = event->pid;
}

static void send_event(struct entry *e, const struct fusee_process_event *event)
{
	if (discovery_process(e->discovery, event) == -ENOMEM)
		miss(e, event);
}

static void send_sync(struct entry *e)
{
	const struct fusee_process_event sync = {.size = sizeof(sync), .kind = FUSEE_PROCESS_SYNC};

	send_event(e, &sync);
}

static int send_running(void *arg, pid_t pid)
{
	const struct fusee_process_event event = {
		.size = sizeof(event), .kind = FUSEE_PROCESS_RUNNING, .pid = (uint32_t)pid};

	send_event(arg, &event);
	return 0;
}

static void send_all(struct entry *e)
{
	int r = procfs_each_process(send_running, e);

	e->missed_all |= r == -ENOMEM;
	if (r)
		discovery_process_failed(e->discovery, r,
					 "the processes in /proc cannot be listed");
	send_sync(e);
}

static void retry(struct entry *e)
{
	uint32_t pids[MAX_MISSED], n = e->nmissed;
	bool all = e->missed_all, sync = e->missed_sync;
	struct fusee_process_event event = {.size = sizeof(event)};

	memcpy(pids, e->missed, n * sizeof(*pids));
	e->nmissed = 0;
	e->missed_all = e->missed_sync = false;
	for (uint32_t i = 0; i < n; i++) {
		bool ended = kill((pid_t)pids[i], 0) && errno == ESRCH;

		event.kind = ended ? FUSEE_PROCESS_EXIT : FUSEE_PROCESS_EXEC;
		event.pid = pids[i];
		send_event(e, &event);
	}
	if (all)
		send_all(e);
	else if (sync)
		send_sync(e);
}

void discoveries_retry(struct discoveries *s)
{
	for (struct entry *e = s->first; e; e = e->next)
		if (e->nmissed || e->missed_all || e->missed_sync)
			retry(e);
}

static void send_each(struct discoveries *s, const struct fusee_process_event *event)
{
	for (struct entry *e = s->first; e; e = e->next)
		if (discovery_has_process(e->discovery))
			send_event(e, event);
}

void discoveries_settle(struct discoveries *s)
{
	uint32_t n = s->nforks;

	s->nforks = 0;
	for (uint32_t i = 0; i < n; i++)
		send_each(s, &s->forks[i]);
}

/* Drops the fork of a process that runs another program now, or has ended. All are reported if it
 * is the parent of one, as its children have what it had until now. */
static void overtake_forks(struct discoveries *s, uint32_t pid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nforks; i++)
		if (s->forks[i].parent == pid) {
			discoveries_settle(s);
			return;
		}
	for (uint32_t i = 0; i < s->nforks; i++)
		if (s->forks[i].pid != pid)
			s->forks[n++] = s->forks[i];
	s->nforks = n;
}

void discoveries_process(struct discoveries *s, const struct fusee_process_event *event)
{
	struct fusee_process_event e = *event;

	overtake_forks(s, e.pid);
	if (e.kind == FUSEE_PROCESS_FORK) {
		if (s->nforks == MAX_FORKS)
			discoveries_settle(s);
		s->forks[s->nforks++] = e;
		return;
	}
	/* of a program that has ended already nothing can be read */
	if (e.kind == FUSEE_PROCESS_EXEC && kill((pid_t)e.pid, 0) && errno == ESRCH)
		e.kind = FUSEE_PROCESS_EXIT;
	send_each(s, &e);
}

void discoveries_find_labels(struct discoveries *s, pid_t pid)
{
	const struct fusee_process_event event = {
		.size = sizeof(event), .kind = FUSEE_PROCESS_LABELS, .pid = (uint32_t)pid};

	for (struct entry *e = s->first; e; e = e->next)
		if (targets_lack_labels(s->context.targets, pid, discovery_source(e->discovery)) &&
		    discovery_has_process(e->discovery))
			discovery_process(e->discovery, &event);
}

void discoveries_set_early(struct discoveries *s, bool early)
{
	s->context.early = early;
}

void discoveries_metrics(const struct discoveries *s)
{
	for (const struct entry *e = s->first; e; e = e->next)
		discovery_count(e->discovery);
}

/* ---- instances ---- */

/* Keeps the metrics if another instance has the same name: a reload creates the new instance before
 * it removes the old instance. */
static void forget_metrics(const struct discoveries *s, const char *name)
{
	for (const struct entry *e = s->first; e; e = e->next)
		if (!strcmp(discovery_instance(e->discovery)->name, name))
			return;
	metric_forget("instance", name);
}

int discoveries_add(struct discoveries *s, struct fusee_instance *in, struct discovery **ret,
		    char **text)
{
	struct entry *e = calloc(1, sizeof(*e));
	int r;

	if (!e) {
		*text = instance_sentence(in, -ENOMEM);
		return -ENOMEM;
	}
	r = discovery_new(&e->discovery, &s->context, in, ++s->sources, text);
	if (r) {
		free(e);
		forget_metrics(s, in->name);
		return r;
	}
	*s->last = e;
	s->last = &e->next;
	if (discovery_has_process(e->discovery))
		send_all(e);
	*ret = e->discovery;
	return 0;
}

void discoveries_remove(struct discoveries *s, struct discovery *d)
{
	struct entry **at = &s->first, *e;
	char *name;

	while (*at && (*at)->discovery != d)
		at = &(*at)->next;
	e = *at;
	if (!e)
		return;
	*at = e->next;
	if (s->last == &e->next)
		s->last = at;
	name = strdup(discovery_instance(d)->name);
	discovery_free(d); /* until then its threads may count */
	if (name)
		forget_metrics(s, name);
	free(name);
	free(e);
}

bool discoveries_synced(const struct discoveries *s)
{
	for (const struct entry *e = s->first; e; e = e->next)
		if (!discovery_synced(e->discovery))
			return false;
	return true;
}

int discoveries_new(struct discoveries **ret, struct loop *loop, struct targets *targets)
{
	struct discoveries *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->context = (struct discovery_context){.loop = loop, .targets = targets};
	s->last = &s->first;
	*ret = s;
	return 0;
}

void discoveries_set_opener(struct discoveries *s, struct opener *o)
{
	s->context.opener = o;
}

void discoveries_on_change(struct discoveries *s, void (*changed)(void *arg), void *arg)
{
	s->context.changed = changed;
	s->context.changed_arg = arg;
}

void discoveries_set_profiles(struct discoveries *s,
			      int (*take)(void *arg, const struct fusee_pprof *, char *why,
					  uint32_t cap),
			      void *arg)
{
	s->context.profile = take;
	s->context.profile_arg = arg;
}

void discoveries_free(struct discoveries *s)
{
	if (!s)
		return;
	while (s->first)
		discoveries_remove(s, s->first->discovery);
	free(s);
}
