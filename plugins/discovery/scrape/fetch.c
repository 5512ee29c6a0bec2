/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "scrape.h"

#define BACKOFF_MAX (10 * FUSEE_MINUTE)
#define FIRST_MAX FUSEE_SECOND /* first requests are spread over so long at most */
#define STACK (512u << 10)

struct scrape {
	struct scrapes *of;
	struct address at;
	struct fusee_http_options http;
	struct fusee_host host; /* of `self`: its calls go to those of the instance */
	struct fusee_self self;
	struct fusee_http *client;
	struct fusee_label labels[SCRAPE_LABELS];
	uint32_t nlabels;
	char why[SCRAPE_WHY]; /* of the last fail() */

	/* of the thread */
	uint32_t failures; /* in a row */
	uint64_t named;    /* the time to wait that the server named, ns; 0: none */
	uint64_t bytes;    /* of the answer, as they are in the sum of the instance */
	bool crowded;      /* the sum has no room for more of them */

	pthread_t thread;
	bool begun;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool cancelled, unsaid;
	char failure[SCRAPE_WHY]; /* of the last request; "": none */
};

/* ---- the host of one scrape, whose thread must not call the instance's fail() ---- */

static struct scrape *scrape_of(struct fusee_instance *in)
{
	return (struct scrape *)(void *)in;
}

/* Whether the client of an earlier address has said this in init(): it is of the options. */
static bool is_said(struct scrapes *of, const char *text)
{
	uint32_t hash = fusee_text_hash(text);

	for (uint32_t i = 0; i < of->nsaid; i++)
		if (of->said[i] == hash)
			return true;
	if (of->nsaid < SCRAPE_SAID)
		of->said[of->nsaid++] = hash;
	return false;
}

static void host_log(struct fusee_instance *in, int level, const char *text)
{
	struct scrape *s = scrape_of(in);
	const struct fusee_self *self = &s->of->self;

	if (s->client || !is_said(s->of, text))
		self->host->log(self->in, level, text);
}

static int host_fail(struct fusee_instance *in, int err, const char *text)
{
	struct scrape *s = scrape_of(in);

	snprintf(s->why, sizeof(s->why), "%s", text);
	return err;
}

static void host_count(struct fusee_instance *in, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	const struct fusee_self *self = &scrape_of(in)->of->self;

	self->host->count(self->in, metric, labels, n, add);
}

static int host_read_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	const struct fusee_self *self = &scrape_of(in)->of->self;

	return self->host->read_secret(self->in, path, buf, cap);
}

static void set_host(struct scrape *s)
{
	s->host = (struct fusee_host){.size = sizeof(s->host),
				      .abi_minor = FUSEE_ABI_MINOR,
				      .log = host_log,
				      .fail = host_fail,
				      .count = host_count,
				      .read_secret = host_read_secret};
	s->self = (struct fusee_self){(struct fusee_instance *)(void *)s, &s->host};
}

/* ---- one request ---- */

static const char *refused(struct scrape *s, const struct fusee_http_answer *a)
{
	char words[FUSEE_HTTP_WORDS];
	const char *shown = fusee_http_shown(s->client);

	if (!a->status) {
		snprintf(s->why, sizeof(s->why), "no answer from '%s': %s", shown, a->error);
		return "no answer";
	}
	fusee_http_words(words, a->body);
	snprintf(s->why, sizeof(s->why), "'%s%s' answered %ld%s%s", shown, s->at.path, a->status,
		 *words ? ": " : "", words);
	return "status";
}

static const char *incomplete(struct scrape *s, const struct fusee_http_answer *a)
{
	bool full = a->body.len == s->of->max_bytes;

	if (s->crowded) {
		snprintf(s->why, sizeof(s->why),
			 "no memory for what '%s%s' sends: the answers of all requests at a time "
			 "may have %llu MiB",
			 fusee_http_shown(s->client), s->at.path, SCRAPES_MEMORY >> 20);
		return "no memory";
	}
	snprintf(s->why, sizeof(s->why),
		 full ? "what '%s%s' sends is larger than 'max_bytes'"
		      : "what '%s%s' sends ends before its end",
		 fusee_http_shown(s->client), s->at.path);
	return full ? "too large" : "incomplete";
}

/* One thread of the instance at a time: whoever ends it waits for one profile to be decoded at
 * most. */
static int hand_over_alone(struct scrapes *of, const struct fusee_pprof *p, char *why, uint32_t cap)
{
	int r = -ECANCELED;

	pthread_mutex_lock(&of->handing);
	if (!atomic_load(&of->ended))
		r = of->self.host->discovery->profile(of->self.in, p, why, cap);
	pthread_mutex_unlock(&of->handing);
	return r;
}

static const char *hand_over(struct scrape *s, const struct fusee_pprof *p)
{
	char why[200];
	int r = hand_over_alone(s->of, p, why, sizeof(why));

	if (!r)
		return NULL;
	if (r == -ECANCELED)
		return "ended";
	snprintf(s->why, sizeof(s->why), "what '%s%s' sends is refused: %s",
		 fusee_http_shown(s->client), s->at.path, why);
	return r == -EINVAL ? "not a profile" : r == -EFBIG ? "too large" : "not delivered";
}

static const char *judge(struct scrape *s, const struct fusee_http_answer *a, struct fusee_pprof *p)
{
	s->named = a->retry_after;
	if (a->status / 100 != 2)
		return refused(s, a);
	if (!a->complete)
		return incomplete(s, a);
	p->bytes = a->body;
	p->took_ns = fusee_now(CLOCK_REALTIME) - p->start_ns;
	return hand_over(s, p);
}

static bool take(void *arg, uint64_t n)
{
	struct scrape *s = arg;

	s->bytes += n;
	s->crowded = atomic_fetch_add(&s->of->bytes, n) + n > SCRAPES_MEMORY;
	return !s->crowded;
}

/* Sends the request; the answer is received into memory of its own, which only takes what comes,
 * and is given back after it. */
static const char *request_into(struct scrape *s, struct fusee_http_request *q,
				struct fusee_pprof *p)
{
	struct fusee_http_answer a;
	const char *why;
	int r;

	q->into = mmap(NULL, q->room, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (q->into == MAP_FAILED) {
		snprintf(s->why, sizeof(s->why), "no memory for a profile");
		return "no memory";
	}
	s->bytes = 0;
	s->crowded = false;
	r = fusee_http_send(s->client, q, &a);
	why = !r ? judge(s, &a, p) : r == -ECANCELED ? "ended" : "not sent";
	munmap(q->into, q->room);
	atomic_fetch_sub(&s->of->bytes, s->bytes);
	return why;
}

/* Returns why it failed, NULL: it did not; "ended": the thread ends. */
static const char *request(struct scrape *s)
{
	struct fusee_pprof p = {
		.size = sizeof(p),
		.kind = fusee_text(s->at.kind),
		.labels = {s->labels, s->nlabels, sizeof(s->labels[0])},
		.max_bytes = s->of->max_bytes,
		.start_ns = fusee_now(CLOCK_REALTIME),
	};
	struct fusee_http_request q = {.flags = FUSEE_HTTP_GET,
				       .path = s->at.path,
				       .query = *s->at.query ? s->at.query : NULL,
				       .room = s->of->max_bytes,
				       .take = take,
				       .take_arg = s};

	s->named = 0;
	*s->why = '\0';
	return request_into(s, &q, &p);
}

/* ---- the thread ---- */

static void count(struct scrape *s, const char *result)
{
	const struct fusee_label labels[] = {fusee_text_label("target", s->at.instance),
					     fusee_text_label("profile", s->at.profile),
					     fusee_text_label("result", result)};

	host_count(s->self.in, "scrapes", labels, 3, 1);
}

/* Counts it. A change, to a failure, to another sentence or back, wakes the instance. */
static void report(struct scrape *s, const char *result)
{
	const struct fusee_self *self = &s->of->self;
	bool ok = !strcmp(result, "ok"), changed;
	const char *why = ok ? "" : *s->why ? s->why : result;

	count(s, result);
	if (ok && s->failures)
		fusee_log(&s->self, FUSEE_INFO, "'%s%s' is scraped again",
			  fusee_http_shown(s->client), s->at.path);
	s->failures = ok ? 0 : s->failures + 1;
	pthread_mutex_lock(&s->lock);
	changed = strcmp(s->failure, why) != 0;
	if (changed) {
		snprintf(s->failure, sizeof(s->failure), "%s", why);
		s->unsaid = !ok;
	}
	pthread_mutex_unlock(&s->lock);
	if (changed)
		self->host->discovery->wake(self->in);
}

bool scrape_failure(struct scrape *s, bool unsaid, char why[SCRAPE_WHY])
{
	bool fails;

	pthread_mutex_lock(&s->lock);
	fails = *s->failure && (s->unsaid || !unsaid);
	if (fails) {
		snprintf(why, SCRAPE_WHY, "%s", s->failure);
		s->unsaid = false;
	}
	pthread_mutex_unlock(&s->lock);
	return fails;
}

uint64_t scrape_pause(uint64_t interval, uint32_t failures, uint64_t named)
{
	uint64_t most = interval > (uint64_t)BACKOFF_MAX ? interval : (uint64_t)BACKOFF_MAX;
	uint64_t ns = interval;

	for (uint32_t i = 1; i < failures && ns < most; i++)
		ns *= 2;
	if (ns > most)
		ns = most;
	return ns > named ? ns : named;
}

/* true: it is that time, CLOCK_MONOTONIC; false: the thread is to end. */
static bool wait_until(struct scrape *s, uint64_t ns)
{
	const struct timespec at = {(time_t)(ns / FUSEE_SECOND), (long)(ns % FUSEE_SECOND)};
	bool cancelled;

	pthread_mutex_lock(&s->lock);
	while (!s->cancelled && fusee_now(CLOCK_MONOTONIC) < ns)
		pthread_cond_timedwait(&s->changed, &s->lock, &at);
	cancelled = s->cancelled;
	pthread_mutex_unlock(&s->lock);
	return !cancelled;
}

/* The same at each start, so that the intervals of many addresses do not begin together. */
static uint64_t first_pause(const struct scrape *s)
{
	uint64_t over = s->of->interval < FIRST_MAX ? s->of->interval : FIRST_MAX;

	return over * ((fusee_text_hash(s->at.base) + fusee_text_hash(s->at.path)) % 1000) / 1000;
}

static void *run(void *arg)
{
	struct scrape *s = arg;
	uint64_t next = fusee_now(CLOCK_MONOTONIC) + first_pause(s);

	while (wait_until(s, next)) {
		uint64_t began = fusee_now(CLOCK_MONOTONIC);
		const char *why = request(s), *result = why ? why : "ok";

		if (!strcmp(result, "ended"))
			break;
		report(s, result);
		next = began + scrape_pause(s->of->interval, s->failures, s->named);
	}
	return NULL;
}

/* ---- the object ---- */

static void add_label(struct scrape *s, const char *key, const char *text)
{
	for (uint32_t i = 0; i < s->nlabels; i++)
		if (fusee_text_is(s->labels[i].key, key))
			return;
	if (*text && s->nlabels < SCRAPE_LABELS)
		s->labels[s->nlabels++] = fusee_text_label(key, text);
}

static void set_labels(struct scrape *s)
{
	FUSEE_FOR_EACH (struct fusee_label, l, s->of->labels)
		add_label(s, l->key.p, l->str.p);
	add_label(s, "job", s->of->job);
	add_label(s, "instance", s->at.instance);
	add_label(s, "profile", s->at.profile);
	add_label(s, "service_name", s->of->job);
}

int scrape_new(struct scrape **ret, struct scrapes *of, const char *target, const char *path)
{
	struct scrape *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (!s)
		return -ENOMEM;
	s->of = of;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s->lock, NULL);
	set_host(s);
	r = address_make(&s->at, of, target, path);
	if (!r) {
		set_labels(s);
		s->http = of->http;
		s->http.url = s->at.base;
		s->http.timeout += s->at.lasts_ns;
		r = fusee_http_open(&s->client, &s->self, &s->http, NULL);
		if (r && *s->why)
			fusee_fail(&of->self, r, "%s", s->why);
	}
	if (r) {
		scrape_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int scrape_begin(struct scrape *s)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	r = -pthread_create(&s->thread, &attr, run, s);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->begun = !r;
	return r;
}

void scrape_cancel(struct scrape *s)
{
	pthread_mutex_lock(&s->lock);
	s->cancelled = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	fusee_http_cancel(s->client);
}

void scrape_join(struct scrape *s)
{
	if (s->begun)
		pthread_join(s->thread, NULL);
	s->begun = false;
}

void scrape_free(struct scrape *s)
{
	if (!s)
		return;
	scrape_join(s);
	fusee_http_close(s->client);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	address_free(&s->at);
	free(s);
}
