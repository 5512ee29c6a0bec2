// SPDX-License-Identifier: Apache-2.0
#include "agent/internal/pulls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "base/str.h"
#include "pull/encoder.h"
#include "pull/request.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "config/settings.h"
#include "target/labelset.h"

#define SECOND 1000000000ull
#define COLLECTED_BYTES (8u << 20) /* samples of one pull */
/* The time after the window for tables and symbols: clients wait little longer than the window: go
 * tool pprof 1.5 * seconds + 5 s, Parca 3 s longer. */
#define FINISH_NS (2 * SECOND)
#define POLL_NS 20000000u

/* A pull passes through these states in this order. */
enum pull_state { SAMPLES, WAITS, SYMBOLS, ENCODES, SENDS };

struct pull {
	struct pull *next;
	struct pulls *all; /* NULL: freed meanwhile */
	enum pull_state state;
	struct pull_request what;
	struct http_request *request; /* NULL: released */
	struct loop_timer *timer;
	uint64_t begin_ns, end_ns;     /* of the window; CLOCK_MONOTONIC */
	uint64_t deadline_ns;          /* of tables and symbols */
	uint32_t slot;                 /* SAMPLES, WAITS */
	struct profiler_window window; /* SYMBOLS */
	bool server_names;             /* SYMBOLS; as of struct build_options */
	bool paused;                   /* a pause of sampling ended the window */
	struct pull_encoding encoding; /* from ENCODES on */
};

struct pulls {
	struct instances *instances;
	struct pull_encoder *encoder; /* NULL: nothing was pulled yet */
	struct pull *first;
	uint32_t n;
	bool stopped;
	struct more_windows windows;
};

static struct profiler *profiler_of(const struct pulls *all)
{
	return &all->instances->sampling->profiler;
}

static void count(const char *result)
{
	metric_add("pulls_total", "Total number of requests for profiles over HTTP, by result.",
		   METRIC_LABELS("result", result), 1);
}

/* ---- answers ---- */

/* go tool pprof prints the body of an error with this header. */
#define ERROR_LINES "X-Go-Pprof: 1\r\nX-Content-Type-Options: nosniff\r\n"

/* retry_s: 0: no Retry-After. */
static void refuse(struct http_request *q, int status, uint64_t retry_s, const char *sentence)
{
	char lines[128];

	if (retry_s)
		snprintf(lines, sizeof(lines), ERROR_LINES "Retry-After: %llu\r\n",
			 (unsigned long long)retry_s);
	count(status == 400 || status == 404 ? "wrong" : "refused");
	http_answer(q, &(struct http_answer){.status = status,
					     .type = "text/plain; charset=utf-8",
					     .headers = retry_s ? lines : ERROR_LINES,
					     .body = sentence,
					     .len = strlen(sentence)});
}

static void pull_free(struct pull *p)
{
	struct pull **at = &p->all->first;
	struct profiler_window w = {0};

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->all->n--;
	loop_timer_free(p->timer);
	if (p->state <= WAITS)
		profiler_close_window(profiler_of(p->all), p->slot, false, &w);
	collector_free(w.collector);
	collector_free(p->window.collector);
	pull_encoding_fini(&p->encoding);
	free(p);
}

/* The answer was sent, or the client has disconnected. */
static void on_released(void *arg)
{
	struct pull *p = arg;

	p->request = NULL;
	count(p->state == SENDS ? "answered" : "disconnected");
	if (p->state != SYMBOLS && p->state != ENCODES) /* a callback ends these states */
		pull_free(p);
}

static void fail(struct pull *p, int err)
{
	struct http_request *q = p->request;
	char sentence[128];

	snprintf(sentence, sizeof(sentence), "no profile could be made: %s\n", strerror(-err));
	http_request_on_release(q, NULL, NULL);
	pull_free(p);
	refuse(q, 503, 1, sentence);
}

/* ---- the profile ---- */

/* The process of a lost tick is unknown: only a profile of all processes has lost ticks as
 * samples. */
static void add_losses(struct builder *b, const struct pull *p, uint64_t period_ns)
{
	if (!p->what.nselectors) {
		build_window_losses(
			b, &p->window,
			&(struct build_options){.part = BUILD_CPU, .period_ns = period_ns});
		return;
	}
	builder_losses(b, &p->window.losses);
	if (p->window.losses.lost)
		builder_comment(b, "lost samples are those of all processes: which process a lost "
				   "sample is of is not known");
}

/* The list for struct build_options; the texts belong to the plan. NULL: no memory. */
static const char **omitted_labels(const struct plan *plan)
{
	const struct fusee_table *names = &plan->pulls.omit;
	const char **all = calloc(names->n + 1, sizeof(*all));

	for (uint32_t i = 0; all && i < names->n; i++)
		all[i] = FUSEE_AT(struct fusee_str, *names, i)->p;
	return all;
}

static void add_duration(struct builder *b, const struct pull *p)
{
	uint64_t ns = p->end_ns - p->begin_ns;

	builder_profile(b)->duration_ns = ns;
	if (p->paused)
		builder_comment(b,
				"sampling was paused (fusee ctl pause): the profile is of %.3f s, "
				"not of the %u s that were requested",
				(double)ns / 1e9, p->what.seconds);
}

static int build(struct pull *p, struct builder *b)
{
	const struct instances *is = p->all->instances;
	const char **omit = omitted_labels(is->plan);
	const struct build_options o = {
		.period_ns = profiler_period_ns(is->plan->hz),
		.labels = instances_labels_of,
		.arg = is->sampling,
		.omit = omit,
		.server_names = p->server_names,
	};
	int r = omit ? build_profile(b, profiler_of(p->all), p->window.collector, &o) : -ENOMEM;

	if (!r) {
		add_duration(b, p);
		if (!build_omits(&o, fusee_text("host")))
			build_host(b);
		add_losses(b, p, o.period_ns);
		r = build_end(b, p->window.collector, &p->encoding.profile);
	}
	free(omit);
	return r;
}

static void on_encoded(void *arg)
{
	struct pull *p = arg;
	struct buf bytes = p->encoding.bytes;

	p->encoding.bytes = (struct buf){0};
	p->state = SENDS;
	if (!p->request) {
		pull_free(p);
	} else if (p->encoding.err) {
		fail(p, p->encoding.err);
	} else {
		http_answer(p->request,
			    &(struct http_answer){.status = 200,
						  .type = "application/octet-stream",
						  .headers = "Content-Disposition: attachment; "
							     "filename=\"profile\"\r\n"
							     "X-Content-Type-Options: nosniff\r\n",
						  .body = bytes.p,
						  .len = bytes.len});
	}
	buf_fini(&bytes);
}

/* ---- the window ---- */

static void on_symbolized(void *arg)
{
	struct pull *p = arg;
	int r;

	loop_timer_free(p->timer);
	p->timer = NULL;
	p->state = SENDS;
	if (!p->all) {
		collector_free(p->window.collector);
		free(p);
		return;
	}
	if (!p->request) {
		pull_free(p);
		return;
	}
	r = builder_new(&p->encoding.builder);
	if (!r)
		r = build(p, p->encoding.builder);
	collector_free(p->window.collector);
	p->window.collector = NULL;
	if (r) {
		fail(p, r);
		return;
	}
	p->state = ENCODES;
	p->encoding.done = on_encoded;
	p->encoding.arg = p;
	pull_encoder_add(p->all->encoder, &p->encoding);
}

/* Symbols are late: the profile has addresses in place of missing names. */
static void on_late(void *arg)
{
	struct pull *p = arg;

	p->timer = NULL;
	symbolizer_expire(profiler_of(p->all)->symbolizer, clock_now());
}

static void symbolize(struct pull *p)
{
	struct profiler *profiler = profiler_of(p->all);
	int r = profiler_close_window(profiler, p->slot, false, &p->window);

	p->state = SENDS;
	if (!r)
		r = loop_at(p->all->instances->loop, p->deadline_ns, on_late, p, &p->timer);
	if (!r) {
		p->state = SYMBOLS;
		p->server_names = p->all->instances->plan->pulls.names == NAMES_SERVER;
		r = symbolizer_request(profiler->symbolizer, p->window.collector, p->server_names,
				       p->deadline_ns, on_symbolized, p);
		if (!r) {
			worker_dispatch(profiler->worker);
			return;
		}
		p->state = SENDS;
	}
	fail(p, r);
}

/* Samples whose tables are being made belong to the window. */
static void on_waited(void *arg)
{
	struct pull *p = arg;
	struct profiler *profiler = profiler_of(p->all);

	p->timer = NULL;
	worker_dispatch(profiler->worker);
	if (pipeline_awaits(profiler->pipeline, p->slot) && clock_now() + SECOND < p->deadline_ns &&
	    !loop_at(p->all->instances->loop, clock_now() + POLL_NS, on_waited, p, &p->timer))
		return;
	pipeline_give_up(profiler->pipeline, p->slot);
	symbolize(p);
}

static void on_window_end(void *arg)
{
	struct pull *p = arg;

	p->timer = NULL;
	agent_sampling_drain(p->all->instances->sampling);
	profiler_end_window(profiler_of(p->all), p->slot);
	p->deadline_ns = clock_now() + FINISH_NS;
	p->state = WAITS;
	on_waited(p);
}

/* Whether the window takes the sample: the rings may hold records of before its begin and after its
 * end. */
static bool takes(const struct pull *p, const struct decision *d, uint64_t time)
{
	return p->state <= WAITS && time >= p->begin_ns && time < p->end_ns &&
	       pull_request_selects(&p->what, d->labels, d->nlabels);
}

static uint64_t slots_of(void *arg, const struct decision *d, uint64_t time)
{
	const struct pulls *all = arg;
	uint64_t slots = 0;

	for (const struct pull *p = all->first; p; p = p->next)
		if (takes(p, d, time))
			slots |= 1ull << p->slot;
	return slots;
}

static uint32_t pending(void *arg, const struct collector **c, uint32_t n)
{
	const struct pulls *all = arg;
	uint32_t found = 0;

	for (const struct pull *p = all->first; p && found < n; p = p->next)
		if (p->window.collector)
			c[found++] = p->window.collector;
	return found;
}

/* ---- requests ---- */

/* Seconds until the first running window ends. */
static uint64_t retry_seconds(const struct pulls *all)
{
	uint64_t now = clock_now(), first = UINT64_MAX;

	for (const struct pull *p = all->first; p; p = p->next)
		if (p->state == SAMPLES && p->end_ns < first)
			first = p->end_ns;
	return first == UINT64_MAX || first < now ? 1 : (first - now) / SECOND + 1;
}

/* true: the request was answered. */
static bool refuse_now(const struct pulls *all, struct http_request *q)
{
	const struct plan *plan = all->instances->plan;
	char sentence[160];

	if (!plan->pulls.served) {
		refuse(q, 404, 0,
		       "profiles are not served: metrics { pull = true } of the script "
		       "serves them\n");
	} else if (all->stopped) {
		refuse(q, 503, 1, "the agent is ending\n");
	} else if (all->instances->sampling->paused_ns) {
		refuse(q, 503, 10, "sampling is paused: fusee ctl resume\n");
	} else if (all->n >= plan->pulls.max) {
		snprintf(
			sentence, sizeof(sentence),
			"%u profiles are being pulled, and no more are made at once: try again, or "
			"raise metrics { pulls = %u }\n",
			all->n, (unsigned)plan->pulls.max);
		refuse(q, 503, retry_seconds(all), sentence);
	} else {
		return false;
	}
	return true;
}

/* Finds a selector whose label no process has: it would silently give an empty profile. */
struct missing {
	const struct pull_request *what;
	bool found[PULL_SELECTORS];
};

static void find_names(void *arg, const struct decision *d)
{
	struct missing *m = arg;

	for (uint32_t i = 0; d->profile && d->processes && i < m->what->nselectors; i++) {
		struct fusee_str name = m->what->selectors[i].key;

		for (uint32_t k = 0; k < d->nlabels; k++)
			m->found[i] |= str_equal(d->labels[k].key, name);
	}
}

/* An omitted label must not select either, because the selected profiles would reveal its
 * values. */
static bool is_omitted(const struct pulls *all, struct fusee_str name)
{
	const struct fusee_table *omit = &all->instances->plan->pulls.omit;

	for (uint32_t i = 0; i < omit->n; i++)
		if (str_equal(*FUSEE_AT(struct fusee_str, *omit, i), name))
			return true;
	return false;
}

static bool has_labels(const struct pulls *all, const struct pull_request *what, char sentence[256])
{
	struct missing m = {.what = what};
	uint32_t i = 0;

	for (; i < what->nselectors; i++)
		if (is_omitted(all, what->selectors[i].key)) {
			pull_request_omitted(&what->selectors[i], sentence);
			return false;
		}
	i = 0;
	decisions_each_set(all->instances->sampling->decisions, find_names, &m);
	for (; i < what->nselectors; i++)
		if (!m.found[i] && what->selectors[i].str.len)
			break;
	if (i < what->nselectors)
		pull_request_unknown(&what->selectors[i], sentence);
	return i == what->nselectors;
}

static int open_window(struct pull *p)
{
	struct pulls *all = p->all;
	struct profiler *profiler = profiler_of(all);
	int r = all->encoder ? 0 : pull_encoder_new(&all->encoder, all->instances->loop);

	agent_sampling_drain(all->instances->sampling); /* samples of before the window */
	if (!r)
		r = profiler_open_window(profiler, &p->slot);
	if (r)
		return r;
	collector_set_own_limit(pipeline_collector(profiler->pipeline, p->slot), COLLECTED_BYTES);
	p->begin_ns = clock_now();
	p->end_ns = p->begin_ns + p->what.seconds * SECOND;
	p->state = SAMPLES;
	return loop_at(all->instances->loop, p->end_ns, on_window_end, p, &p->timer);
}

void pulls_begin(struct pulls *all, struct http_request *q, const char *query)
{
	struct pull *p;
	char sentence[256];
	int r;

	if (refuse_now(all, q))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		refuse(q, 503, 1, "no memory\n");
		return;
	}
	r = pull_request_parse(&p->what, query, sentence);
	if (r || !has_labels(all, &p->what, sentence)) {
		free(p);
		refuse(q, r ? 400 : 404, 0, sentence);
		return;
	}
	p->all = all;
	p->request = q;
	p->state = SENDS; /* there is no window yet */
	p->next = all->first;
	all->first = p;
	all->n++;
	r = open_window(p);
	if (r)
		fail(p, r);
	else
		http_request_on_release(q, on_released, p);
}

/* ---- the object ---- */

int pulls_new(struct pulls **ret, struct instances *is)
{
	struct pulls *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->instances = is;
	all->windows = (struct more_windows){slots_of, pending, all};
	is->sampling->more = &all->windows;
	*ret = all;
	return 0;
}

/* Ends the windows by timers, because the end of a window may free other pulls. */
void pulls_paused(struct pulls *all)
{
	uint64_t now = clock_now();

	for (struct pull *p = all->first; p; p = p->next) {
		struct loop_timer *at_once;

		if (p->state != SAMPLES || p->end_ns <= now)
			continue;
		p->end_ns = now;
		p->paused = true;
		if (loop_at(all->instances->loop, now, on_window_end, p, &at_once))
			continue; /* no memory: the window ends at its original time */
		loop_timer_free(p->timer);
		p->timer = at_once;
	}
}

void pulls_stop(struct pulls *all)
{
	struct pull *next;

	if (!all)
		return;
	all->stopped = true;
	for (struct pull *p = all->first; p; p = next) {
		struct http_request *q = p->request;

		next = p->next;
		if (p->state > WAITS)
			continue;
		http_request_on_release(q, NULL, NULL);
		pull_free(p);
		refuse(q, 503, 1, "the agent is ending\n");
	}
}

void pulls_free(struct pulls *all)
{
	if (!all)
		return;
	pull_encoder_free(all->encoder);
	all->instances->sampling->more = NULL;
	while (all->first) {
		struct pull *p = all->first;

		if (p->state != SYMBOLS) {
			pull_free(p);
			continue;
		}
		all->first = p->next;
		p->all = NULL; /* on_symbolized() is still called */
		loop_timer_free(p->timer);
		p->timer = NULL;
	}
	free(all);
}
