/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "stop/internal/take.h"
#include "stop/internal/targets.h"
#include "stop/internal/tracer.h"

struct stop_sampler {
	struct stop_options o;
	struct stop_targets targets;
	struct stop_counts counts;
	struct stop_taker taker;
	struct tracer tracer;
	uint64_t random; /* state of next_pause() */
	int timer;
	bool enabled;
};

/* ---- opening ---- */

int stop_sampler_new(struct stop_sampler **ret, const struct stop_options *o)
{
	struct stop_sampler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	if (getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK) != sizeof(s->random))
		s->random = clock_now();
	s->taker = (struct stop_taker){.o = &s->o, .targets = &s->targets, .counts = &s->counts};
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = s->timer < 0 ? -errno : stop_taker_init(&s->taker);
	if (r)
		stop_sampler_free(s);
	else
		*ret = s;
	return r;
}

void stop_sampler_free(struct stop_sampler *s)
{
	if (!s)
		return;
	stop_sampler_disable(s);
	stop_taker_fini(&s->taker);
	stop_targets_fini(&s->targets);
	if (s->timer >= 0)
		close(s->timer);
	free(s);
}

int stop_sampler_fd(const struct stop_sampler *s)
{
	return s->timer;
}

/* ---- processes ---- */

int stop_sampler_add(struct stop_sampler *s, pid_t pid)
{
	return stop_targets_add(&s->targets, pid, 0);
}

static void on_child(void *arg, pid_t parent, pid_t child)
{
	struct stop_sampler *s = arg;
	const struct perf_stream_handlers *on = pipeline_handlers(s->o.pipeline);

	on->forked(on->arg, child, parent, child, clock_now());
}

void stop_sampler_forked(struct stop_sampler *s, pid_t parent, pid_t child)
{
	if (stop_targets_find(&s->targets, parent))
		stop_targets_add(&s->targets, child, parent);
}

bool stop_sampler_has(const struct stop_sampler *s, pid_t pid, uint64_t time)
{
	const struct stop_process *p = stop_targets_find(&s->targets, pid);

	return p && p->taken_ns && time >= p->taken_ns;
}

/* ---- ticks ---- */

/* Between three and five quarters of a period, so that no program keeps step with the ticks. */
static uint64_t next_pause(struct stop_sampler *s)
{
	uint64_t period = s->o.period_ns;

	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return period - period / 4 + (s->random >> 33) % (period / 2 + 1);
}

static void wind(struct stop_sampler *s)
{
	uint64_t ns = next_pause(s);
	const struct itimerspec at = {
		.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};

	timerfd_settime(s->timer, 0, &at, NULL);
}

int stop_sampler_enable(struct stop_sampler *s)
{
	int r;

	if (s->enabled)
		return 0;
	r = tracer_begin(&s->tracer);
	if (r)
		return r;
	s->enabled = true;
	wind(s);
	return 0;
}

void stop_sampler_disable(struct stop_sampler *s)
{
	tracer_end(&s->tracer);
	if (s->enabled)
		stop_targets_settle(&s->targets);
	s->enabled = false;
}

/* A process is sampled from now on. What ran before sampling began does not count. */
static void begin_process(struct stop_sampler *s, struct stop_process *p, uint64_t now)
{
	if (s->o.beside_events && !pipeline_has_language(s->o.pipeline, p->pid))
		return;
	stop_targets_take(&s->targets, p, p->parent && !s->o.beside_events);
	p->taken_ns = now;
	s->counts.processes++;
}

static void end_process(struct stop_sampler *s, struct stop_process *p, uint64_t now)
{
	const struct perf_stream_handlers *on = pipeline_handlers(s->o.pipeline);
	pid_t pid = p->pid;

	stop_targets_remove(&s->targets, p);
	if (!s->o.beside_events)
		on->exited(on->arg, pid, pid, now);
}

/* Reads the process, as far as it ran. false: it did not, or is not sampled. */
static bool look(struct stop_sampler *s, struct stop_process *p, uint64_t now)
{
	int ran = stop_targets_ran(p);

	if (ran < 0)
		end_process(s, p, now);
	if (ran <= 0)
		return false;
	stop_targets_read(&s->targets, p);
	if (!p->taken_ns && s->o.beside_events && !pipeline_has_language(s->o.pipeline, p->pid))
		return false;
	stop_prepare(&s->taker, p, now);
	if (!p->taken_ns)
		begin_process(s, p, now);
	return p->taken_ns;
}

/* In the tracer. */
static void take_due(void *arg)
{
	struct stop_sampler *s = arg;

	stop_collect(&s->taker);
	for (struct stop_process *p = s->targets.first; p; p = p->next)
		for (uint32_t i = 0; i < p->n; i++)
			if (p->threads[i].due) {
				p->threads[i].due = false;
				stop_take(&s->taker, p, &p->threads[i]);
			}
}

void stop_sampler_tick(struct stop_sampler *s)
{
	uint64_t expired, now = clock_now();
	bool due = s->taker.nrequests;

	if (read(s->timer, &expired, sizeof(expired)) != sizeof(expired) || !s->enabled)
		return;
	for (struct stop_process *p = s->targets.first, *next; p; p = next) {
		next = p->next;
		if (!look(s, p, now))
			continue;
		for (uint32_t i = 0; i < p->n; i++) {
			p->threads[i].due = stop_is_due(&s->taker, p, &p->threads[i], now);
			due |= p->threads[i].due;
		}
	}
	if (!s->o.beside_events)
		stop_targets_find_children(&s->targets, now, on_child, s);
	if (due)
		tracer_run(&s->tracer, take_due, s);
	wind(s);
}

static void collect(void *arg)
{
	stop_collect(arg);
}

void stop_sampler_collect(struct stop_sampler *s)
{
	if (s->enabled && s->taker.nrequests)
		tracer_run(&s->tracer, collect, &s->taker);
}

void stop_sampler_counts(const struct stop_sampler *s, struct stop_counts *c)
{
	*c = s->counts;
	c->cpu_ns = s->targets.times.cpu;
	c->waited_ns = s->targets.times.waited;
	c->unfinished_ns = s->targets.times.unfinished;
}
