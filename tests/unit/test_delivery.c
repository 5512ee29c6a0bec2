// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/delivery
/* core/delivery/delivery: a sink at work, whatever it does; every profile is delivered, waits, or
 * is counted as lost. */
#include <inttypes.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/metrics.h"
#include "delivery/delivery.h"
#include "plugin/plugin.h"
#include "lib/pause.h"
#include "pprof/pprof.h"
#include "test.h"
#include "lib/profiles.h"

#define MS 1000000ull
#define SECOND 1000000000ull

/* ---- a sink that the test controls ---- */

struct call {
	uint8_t id;
	uint32_t attempt;
	uint64_t at;
	const struct fusee_profile *profile;
};

static struct stage {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct fusee_host *host;
	struct fusee_instance *in;
	int answers[64]; /* the n-th call's; 0 beyond */
	struct call calls[4096];
	int n;
	bool hang, ignore_cancel, cancelled, hang_flush, hang_disk;
	int writes; /* that hang, or did */
	int flushes, flush_answer, finis;
	uint64_t flush_deadline;
	int (*also)(const struct fusee_delivery *); /* called outside the lock */
	bool signals_blocked;
	char thread[16];
} stage = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int sink_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	stage.in = in;
	stage.host = host;
	return 0;
}

static void sink_fini(void *ctx)
{
	pthread_mutex_lock(&stage.lock);
	stage.finis++;
	pthread_cond_broadcast(&stage.changed);
	pthread_mutex_unlock(&stage.lock);
}

/* Under the lock. -ECANCELED, or 0 when it is let go. */
static int hang_if(const bool *hang)
{
	while (*hang && (stage.ignore_cancel || !stage.cancelled))
		pthread_cond_wait(&stage.changed, &stage.lock);
	return *hang || stage.cancelled ? -ECANCELED : 0;
}

static int sink_consume(void *ctx, const struct fusee_delivery *d)
{
	struct timespec t;
	sigset_t set;
	int r, also;

	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	pthread_mutex_lock(&stage.lock);
	stage.signals_blocked = sigismember(&set, SIGTERM) && sigismember(&set, SIGINT);
	pthread_getname_np(pthread_self(), stage.thread, sizeof(stage.thread));
	stage.calls[stage.n] = (struct call){d->profile->id[0], d->attempt,
					     (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec,
					     d->profile};
	r = stage.n < 64 ? stage.answers[stage.n] : 0;
	stage.n++;
	pthread_cond_broadcast(&stage.changed);
	if (hang_if(&stage.hang))
		r = -ECANCELED;
	pthread_mutex_unlock(&stage.lock);
	also = stage.also ? stage.also(d) : 0; /* once: a file that it reads may change */
	r = also ? also : r;
	if (r && r != -ECANCELED)
		stage.host->fail(stage.in, r, "the backend is away");
	return r;
}

static int sink_flush(void *ctx, uint64_t deadline)
{
	int r;

	pthread_mutex_lock(&stage.lock);
	stage.flushes++;
	stage.flush_deadline = deadline;
	pthread_cond_broadcast(&stage.changed);
	r = hang_if(&stage.hang_flush);
	r = r ? r : stage.flush_answer;
	pthread_mutex_unlock(&stage.lock);
	return r;
}

static void sink_cancel(void *ctx)
{
	pthread_mutex_lock(&stage.lock);
	stage.cancelled = true;
	pthread_cond_broadcast(&stage.changed);
	pthread_mutex_unlock(&stage.lock);
}

static const struct fusee_sink_ops sink_ops = {.size = sizeof(sink_ops),
					       .consume = sink_consume,
					       .flush = sink_flush,
					       .cancel = sink_cancel};

#define FUSEE_STATIC
#undef FUSEE_PLUGIN_SYMBOL
#define FUSEE_PLUGIN_SYMBOL(n) fusee_plugin_##n
FUSEE_PLUGIN(stage, FUSEE_SINK, .version = "1", .doc = "A sink.", .init = sink_init,
	     .fini = sink_fini, .ops = &sink_ops);

static void set(bool *what, bool value)
{
	pthread_mutex_lock(&stage.lock);
	*what = value;
	pthread_cond_broadcast(&stage.changed);
	pthread_mutex_unlock(&stage.lock);
}

static int get(const int *what)
{
	int v;

	pthread_mutex_lock(&stage.lock);
	v = *what;
	pthread_mutex_unlock(&stage.lock);
	return v;
}

static void wait_for(const int *what, int value)
{
	pthread_mutex_lock(&stage.lock);
	while (*what < value)
		pthread_cond_wait(&stage.changed, &stage.lock);
	pthread_mutex_unlock(&stage.lock);
}

/* ---- the delivery ---- */

static struct delivery *new_by(const struct delivery_options *o)
{
	static struct fusee_host host;
	const struct instance_options in = {.name = "sink.stage", .where = "fusee.lua:3"};
	struct fusee_instance *i;
	struct delivery *d;
	char *text;

	log_set_level(LOG_ERROR);
	host = plugin_host_base;
	host.sink = &delivery_host;
	CHECK_INT(instance_new(&i, &fusee_plugin_stage, &host, &in, &text), 0);
	CHECK_INT(delivery_new(&d, i, o), 0);
	CHECK(i->owner == d);
	return d;
}

static struct delivery *new_with(uint64_t queue_bytes, uint64_t first, uint64_t most)
{
	return new_by(&(struct delivery_options){
		.queue_bytes = queue_bytes, .backoff_first_ns = first, .backoff_max_ns = most});
}

static struct delivery *new_delivery(void)
{
	return new_with(64 << 20, 10 * MS, 40 * MS);
}

/* A finished profile of so many stacks, one sample of 2 each. */
static struct builder *profile_of(uint8_t id, int stacks, const struct fusee_profile **p)
{
	struct builder *b = new_builder();
	uint32_t cpu = builder_cstr(b, "cpu");

	builder_profile(b)->kind = cpu;
	builder_profile(b)->default_type = 1;
	builder_profile(b)->id[0] = id;
	for (int i = 0; i < stacks; i++) {
		struct fusee_line line = {.line = (uint32_t)i};
		struct fusee_location at = {.address = (uint64_t)i};
		struct fusee_function f = {0};
		char name[32];
		uint32_t location, stack;

		snprintf(name, sizeof(name), "function%d", i);
		f.name = f.system_name = builder_cstr(b, name);
		line.function = builder_function(b, &f);
		location = builder_location(b, &at, &line, 1);
		stack = builder_stack(b, &location, 1);
		CHECK_INT(builder_sample(b, stack, NULL, 0, 1, 1, (int64_t[]){2, 2000}), 0);
	}
	CHECK_INT(builder_finish(b, p), 0);
	return b;
}

static uint64_t put_some(struct delivery *d, uint8_t id, int stacks)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(id, stacks, &p);
	uint64_t bytes = builder_bytes(b);

	delivery_put(d, b, p);
	return bytes;
}

static void put(struct delivery *d, uint8_t id)
{
	put_some(d, id, 10);
}

/* Those with the ids from 0 on. */
static void put_all(struct delivery *d, uint8_t n)
{
	for (uint8_t i = 0; i < n; i++)
		put(d, i);
}

/* The first calls were for those with the ids from 0 on. */
static void check_ids(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(stage.calls[i].id, i);
}

static struct delivery_stats stats(struct delivery *d)
{
	struct delivery_stats s;

	delivery_stats(d, &s);
	return s;
}

/* Until it has settled so many, one way or another. */
static struct delivery_stats settled(struct delivery *d, uint64_t n)
{
	struct delivery_stats s;

	WAIT_FOR((s = stats(d), s.delivered + s.losses.counts[LOSS_QUEUE_FULL].n +
						s.losses.counts[LOSS_REFUSED].n +
						s.losses.counts[LOSS_ENDED].n >=
					n));
	return s;
}

static double metric(const char *name)
{
	return metric_get(name, METRIC_LABELS("instance", "sink.stage"));
}

static double lost(const char *name, const char *reason)
{
	return metric_get(name, METRIC_LABELS("reason", reason, "instance", "sink.stage"));
}

struct answer {
	int n, err;
};

static void answered(void *arg, int err)
{
	struct answer *a = arg;

	pthread_mutex_lock(&stage.lock);
	a->n++;
	a->err = err;
	pthread_cond_broadcast(&stage.changed);
	pthread_mutex_unlock(&stage.lock);
}

static int was_stderr, log_pipe[2];

static void catch_log(void)
{
	was_stderr = dup(2);
	CHECK(!pipe(log_pipe) && dup2(log_pipe[1], 2) == 2);
	log_set_level(LOG_INFO);
}

static void check_log(const char *expected)
{
	char text[4096];
	ssize_t n;

	dup2(was_stderr, 2);
	close(log_pipe[1]);
	n = read(log_pipe[0], text, sizeof(text) - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	CHECK_STR(text, expected);
}

/* ---- tests ---- */

TEST(delivers_in_order)
{
	struct delivery *d = new_delivery();
	struct delivery_stats s;
	uint64_t began = test_now_ns();

	CHECK(metric("sink_delivered_total") == 0);
	put_all(d, 20);
	s = settled(d, 20);
	CHECK_INT(s.delivered, 20);
	CHECK(!s.retried && !s.queued && !s.queued_bytes && !s.samples_lost && !*s.last_error);
	CHECK(s.last_ok_ns >= began && s.last_ok_ns <= test_now_ns());
	for (int i = 0; i < 20; i++) {
		CHECK_INT(stage.calls[i].id, i);
		CHECK_INT(stage.calls[i].attempt, 0);
	}
	CHECK(stage.signals_blocked);
	CHECK_STR(stage.thread, "sink.stage");
	CHECK(metric("sink_delivered_total") == 20);
	CHECK(metric("sink_queue_bytes") == 0 && metric("sink_queue_profiles") == 0);
	delivery_free(d);
	CHECK_INT(stage.finis, 1);
	CHECK_INT(stage.flushes, 1);
	delivery_free(NULL);
}

static struct fusee_str first_bytes;
static int encodes;

/* The bytes of all attempts are the same; they are what pprof tools read. */
static int encode_all(const struct fusee_delivery *d)
{
	const struct fusee_sink_host *h = stage.host->sink;
	struct fusee_str gz, plain, folded, again;
	struct pprof_file *f;
	const char *text;

	CHECK_INT(h->encode(d->out, d->profile, FUSEE_PPROF_GZ, &gz), 0);
	CHECK_INT(h->encode(d->out, d->profile, FUSEE_PPROF, &plain), 0);
	CHECK_INT(h->encode(d->out, d->profile, FUSEE_FOLDED, &folded), 0);
	CHECK_INT(h->encode(d->out, d->profile, FUSEE_PPROF_GZ, &again), 0);
	CHECK_INT(h->encode(d->out, d->profile, 0, &again), -EINVAL);
	CHECK_INT(h->encode(d->out, d->profile, 4, &again), -EINVAL);
	CHECK(gz.p == again.p && gz.len == again.len && gz.len && plain.len > gz.len);
	CHECK(folded.len > 10 && memmem(folded.p, folded.len, "function9 2000\n", 15));
	CHECK_INT(pprof_decode(gz.p, gz.len, &f, &text), 0);
	CHECK_INT(pprof_profile(f)->samples.n, 10);
	pprof_free(f);
	if (encodes++)
		CHECK(first_bytes.p == gz.p && first_bytes.len == gz.len);
	first_bytes = gz;
	return 0;
}

#define TEST_OF_DELIVERY(id) TEST_WITH(id, struct delivery *, d, new_delivery(), delivery_free(d))

TEST_OF_DELIVERY(tries_again_and_the_queue_waits)
{
	struct delivery_stats s;

	stage.also = encode_all;
	for (int i = 0; i < 4; i++)
		stage.answers[i] = -EAGAIN;
	put(d, 1);
	s = settled(d, 1);
	CHECK_INT(s.retried, 4);
	CHECK_INT(get(&stage.n), 5);
	CHECK_STR(s.last_error, "");
	for (int i = 0; i < 5; i++) {
		CHECK_INT(stage.calls[i].id, 1);
		CHECK_INT(stage.calls[i].attempt, i);
		CHECK(stage.calls[i].profile == stage.calls[0].profile);
	}
	/* backoff: 10, 20, 40, 40 ms, at least half of it */
	CHECK(stage.calls[1].at - stage.calls[0].at >= 5 * MS);
	CHECK(stage.calls[2].at - stage.calls[1].at >= 10 * MS);
	CHECK(stage.calls[3].at - stage.calls[2].at >= 20 * MS);
	CHECK(stage.calls[4].at - stage.calls[3].at >= 20 * MS);
	CHECK(metric("sink_retried_total") == 4);
	stage.also = NULL;
	pthread_mutex_lock(&stage.lock);
	stage.answers[5] = stage.answers[6] = -EAGAIN;
	pthread_mutex_unlock(&stage.lock);
	put(d, 2);
	put(d, 3);
	settled(d, 3);
	CHECK_INT(stage.calls[7].id, 2);
	CHECK_INT(stage.calls[8].id, 3);
	CHECK_INT(stage.n, 9);
}

static int wait_100ms(const struct fusee_delivery *d)
{
	stage.host->sink->retry_after(d->out, 100 * MS);
	return 0;
}

TEST_OF_DELIVERY(not_before_the_sink_says)
{
	struct delivery_stats s;

	stage.also = wait_100ms;
	stage.answers[0] = -EAGAIN;
	put(d, 1);
	wait_for(&stage.n, 1);
	do
		s = stats(d);
	while (!s.retry_at && !s.delivered);
	CHECK_INT(s.queued + s.delivered, 1); /* delivered: this thread slept so long */
	settled(d, 1);
	CHECK(stage.calls[1].at - stage.calls[0].at >= 100 * MS);
	CHECK_INT(stats(d).retry_at, 0);
}

/* Once at the beginning and once at the end of trouble, not at each attempt. */
TEST(what_is_said)
{
	struct delivery *d = new_delivery();

	catch_log();
	stage.also = wait_100ms;
	stage.answers[0] = stage.answers[1] = -EAGAIN;
	stage.answers[2] = -EINVAL;
	put(d, 1);
	put(d, 2);
	settled(d, 2);
	delivery_free(d);
	check_log("fusee: fusee.lua:3: sink.stage: the backend is away, trying again in 0.1 s\n"
		  "fusee: sink.stage: takes profiles again\n");
}

static int denied(const struct fusee_delivery *d)
{
	stage.host->sink->denied(d->out);
	return 0;
}

/* Said once, however often it is tried; reported until something else is answered. */
TEST(a_sink_that_is_denied)
{
	struct delivery *d = new_delivery();
	struct delivery_stats s;

	CHECK(metric("sink_denied") == 0);
	catch_log();
	stage.also = denied;
	for (int i = 0; i < 64; i++)
		stage.answers[i] = -EAGAIN;
	put(d, 1);
	put(d, 2);
	wait_for(&stage.n, 4);
	s = stats(d);
	CHECK(s.denied_since && s.denied_since <= test_now_ns());
	CHECK(metric("sink_denied") == 1);
	CHECK_STR(s.last_error, "the backend is away");
	pthread_mutex_lock(&stage.lock);
	memset(stage.answers, 0, sizeof(stage.answers));
	stage.also = NULL;
	pthread_mutex_unlock(&stage.lock);
	s = settled(d, 2);
	CHECK_INT(s.delivered, 2);
	CHECK_INT(s.retried, get(&stage.n) - 2);
	CHECK(!s.denied_since && metric("sink_denied") == 0);
	delivery_free(d);
	check_log(
		"fusee: fusee.lua:3: sink.stage: the backend is away, profiles wait until that is "
		"mended\n"
		"fusee: sink.stage: takes profiles again\n");
}

/* Nothing waits any more: nor does anybody look whether a secret has changed. */
ASIDE(what_was_denied_is_dropped)
TEST_WITH(what_was_denied_is_dropped, struct delivery *, d,
	  new_with(64 << 20, 3600 * SECOND, 3600 * SECOND), delivery_free(d))
{
	struct timespec before, after;

	stage.also = denied;
	stage.answers[0] = -EAGAIN;
	put(d, 1);
	WAIT_FOR(stats(d).retried);
	delivery_set_queue_bytes(d, 1);
	CHECK_INT(stats(d).queued, 0);
	pause_us(2200000, "until a file would be looked at");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	pause_us(300000, "in which nothing is to use a CPU");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 <
	      100);
}

/* It is tried once more, and would be denied again. */
TEST(stop_while_denied)
{
	struct delivery *d = new_with(64 << 20, SECOND, SECOND);

	stage.also = denied;
	for (int i = 0; i < 64; i++)
		stage.answers[i] = -EAGAIN;
	put(d, 1);
	WAIT_FOR(stats(d).retried);
	delivery_stop(d, test_now_ns() + 300 * SECOND);
	delivery_free(d);
	CHECK(get(&stage.n) <= 3);
	CHECK(lost("sink_lost_total", "ended") == 1);
}

static char secret_file[256];

static void write_secret(const char *text)
{
	char made[264];
	FILE *f;

	snprintf(secret_file, sizeof(secret_file), "%s/secret", getenv("TMPDIR"));
	snprintf(made, sizeof(made), "%s.new", secret_file);
	f = fopen(made, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
	CHECK_INT(rename(made, secret_file), 0); /* never seen half written */
}

/* As a token that expires: denied until the file has another. */
static int reads_secret(const struct fusee_delivery *d)
{
	char text[16];

	CHECK(stage.host->read_secret(stage.in, secret_file, text, sizeof(text)) >= 0);
	if (!strcmp(text, "new"))
		return 0;
	stage.host->sink->denied(d->out);
	stage.host->sink->retry_after(d->out, 3600 * SECOND);
	return -EAGAIN;
}

ASIDE(a_secret_that_changes_is_tried_soon)
TEST_WITH(a_secret_that_changes_is_tried_soon, struct delivery *, d,
	  new_with(64 << 20, 3600 * SECOND, 3600 * SECOND), delivery_free(d))
{
	struct delivery_stats s;
	uint64_t began;

	write_secret("old");
	stage.also = reads_secret;
	put(d, 1);
	put(d, 2);
	wait_for(&stage.n, 1);
	pause_us(2500000, "it is looked at, and is the same");
	CHECK_INT(get(&stage.n), 1);
	CHECK(stats(d).retry_at > test_now_ns() + 3000 * SECOND);
	write_secret("not yet");
	wait_for(&stage.n, 2);
	began = test_now_ns();
	write_secret("new");
	s = settled(d, 2);
	CHECK_INT(s.delivered, 2);
	CHECK(test_now_ns() - began < test_within(30) * SECOND); /* of an hour */
}

TEST_OF_DELIVERY(what_is_refused_is_counted)
{
	struct delivery_stats s;

	stage.answers[0] = -EINVAL;
	stage.answers[2] = -ENOSPC;
	put_all(d, 3);
	s = settled(d, 3);
	CHECK_INT(s.losses.counts[LOSS_REFUSED].n, 2);
	CHECK_INT(s.delivered, 1);
	CHECK_INT(s.samples_lost, 40);
	CHECK_STR(s.last_error, "the backend is away");
	CHECK(lost("sink_lost_total", "refused") == 2);
	CHECK(lost("sink_samples_lost_total", "refused") == 40);
	CHECK(lost("sink_lost_total", "ended") == 0);
}

static int parts_seen;

static int second_is_lost(void *arg, const struct fusee_profile *part)
{
	const struct fusee_delivery *d = arg;

	if (parts_seen++ == 1)
		stage.host->sink->lost(d->out, part);
	return 0;
}

/* Of ten stacks of two samples each the second four are lost, in the first attempt. */
static int loses_a_part(const struct fusee_delivery *d)
{
	parts_seen = d->attempt ? 2 : 0;
	CHECK_INT(stage.host->sink->split(d->out, d->profile, 4, 0, second_is_lost,
					  (void *)(uintptr_t)d),
		  0);
	return 0;
}

TEST(a_part_that_is_lost)
{
	static const struct {
		int answers[2];
		uint64_t refused, samples;
	} all[] = {{{-EBADMSG}, 1, 8},
		   {{0}, 0, 8},
		   {{-EAGAIN, 0}, 0, 8},
		   {{-EAGAIN, -EBADMSG}, 1, 20}};
	uint64_t sum = 0;

	stage.also = loses_a_part;
	for (size_t i = 0; i < 2 * sizeof(all) / sizeof(*all); i++) {
		const struct delivery_options o = {.queue_bytes = 64 << 20,
						   .backoff_first_ns = MS,
						   .backoff_max_ns = MS,
						   .spool = i % 2 ? getenv("TMPDIR") : NULL,
						   .spool_limits = {1 << 20, 3600 * SECOND},
						   .spool_sync_ns = SECOND};
		struct delivery *d = new_by(&o);
		struct delivery_stats s;

		pthread_mutex_lock(&stage.lock);
		stage.n = 0;
		stage.cancelled = false;
		memcpy(stage.answers, all[i / 2].answers, sizeof(all[0].answers));
		pthread_mutex_unlock(&stage.lock);
		put(d, (uint8_t)(i + 1));
		s = settled(d, 1);
		CHECK_INT(s.losses.counts[LOSS_REFUSED].n, all[i / 2].refused);
		CHECK_INT(s.delivered, 1 - all[i / 2].refused);
		CHECK_INT(s.samples_lost, all[i / 2].samples);
		sum += s.samples_lost;
		CHECK(lost("sink_samples_lost_total", "refused") == (double)sum);
		delivery_free(d);
	}
}

/* A call that hangs keeps nobody waiting; the oldest go; what is held stays within the limit. */
TEST(hangs_with_a_full_queue)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(0, 10, &p);
	uint64_t one = builder_bytes(b), limit = 5 * one + one / 2;
	struct delivery *d = new_with(limit, 0, 0);
	struct delivery_stats s;

	set(&stage.hang, true);
	delivery_put(d, b, p);
	wait_for(&stage.n, 1);
	for (uint8_t i = 1; i < 50; i++) {
		put(d, i);
		s = stats(d);
		CHECK(s.queued_bytes <= limit);
		CHECK_INT(s.queued + s.losses.counts[LOSS_QUEUE_FULL].n, i + 1);
	}
	CHECK_INT(s.queued, 5);
	CHECK(s.blocked_since && s.blocked_since <= test_now_ns());
	CHECK_INT(s.samples_lost, 45 * 20);
	CHECK(metric("sink_queue_profiles") == 5);
	CHECK(metric("sink_queue_bytes") == (double)s.queued_bytes);
	CHECK(lost("sink_lost_total", "queue full") == 45);
	put_some(d, 50, 1000); /* larger than all of it: nobody else goes */
	s = stats(d);
	CHECK_INT(s.losses.counts[LOSS_QUEUE_FULL].n, 46);
	CHECK_INT(s.queued, 5);
	set(&stage.hang, false);
	s = settled(d, 51);
	CHECK_INT(s.delivered, 5);
	CHECK_INT(stats(d).blocked_since, 0);
	CHECK_INT(stage.n, 5);
	for (int i = 1; i < 5; i++)
		CHECK_INT(stage.calls[i].id, 45 + i);
	delivery_free(d);
}

TEST(a_queue_of_another_size)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(0, 10, &p);
	uint64_t one = builder_bytes(b);
	struct delivery *d = new_with(20 * one, 0, 0);

	set(&stage.hang, true);
	delivery_put(d, b, p);
	wait_for(&stage.n, 1);
	for (uint8_t i = 1; i < 10; i++)
		put(d, i);
	CHECK_INT(stats(d).queued, 10);
	delivery_set_queue_bytes(d, 3 * one + one / 2);
	CHECK_INT(stats(d).queued, 3);
	CHECK_INT(stats(d).losses.counts[LOSS_QUEUE_FULL].n, 7);
	CHECK(stats(d).queued_bytes <= 3 * one + one / 2);
	CHECK(lost("sink_lost_total", "queue full") == 7);
	CHECK(metric("sink_queue_profiles") == 3);
	delivery_set_queue_bytes(d, 20 * one);
	put(d, 10);
	CHECK_INT(stats(d).queued, 4);
	set(&stage.hang, false);
	settled(d, 11);
	CHECK_INT(stats(d).delivered, 4);
	delivery_free(d);
}

/* The profile in consume() is removed last, and only if the sink does not take it. */
TEST(room_of_the_one_in_hand)
{
	for (int taken = 0; taken < 2; taken++) {
		const struct fusee_profile *p;
		struct builder *b = profile_of(1, 100, &p);
		struct delivery *d = new_with(builder_bytes(b) + 100, 0, 0);
		struct delivery_stats s;
		struct answer a = {0};

		stage.n = 0;
		stage.cancelled = false;
		stage.answers[0] = taken ? 0 : -EAGAIN;
		set(&stage.hang, true);
		delivery_put(d, b, p);
		wait_for(&stage.n, 1);
		put_some(d, 2, 90);
		s = stats(d);
		CHECK_INT(s.queued, 2);
		CHECK_INT(s.losses.counts[LOSS_QUEUE_FULL].n, 0);
		put_some(d, 3, 90);
		s = stats(d);
		CHECK_INT(s.queued, 2);
		CHECK_INT(s.losses.counts[LOSS_QUEUE_FULL].n, 1);
		stage.also = NULL;
		set(&stage.hang, false);
		if (!taken) /* it does not wait for the backoff of the first one */
			delivery_flush(d, test_now_ns() + 30 * SECOND, answered, &a);
		s = settled(d, 3);
		CHECK_INT(s.delivered, 1 + taken);
		CHECK_INT(s.losses.counts[LOSS_QUEUE_FULL].n, 2 - taken);
		CHECK_INT(s.queued, 0);
		CHECK_INT(s.queued_bytes, 0);
		CHECK_INT(s.retried, 0);
		delivery_free(d);
	}
}

static int wait_an_hour(const struct fusee_delivery *d)
{
	stage.host->sink->retry_after(d->out, 3600 * SECOND);
	return 0;
}

/* A profile that waits to be tried again is the oldest: it makes room too. */
TEST(room_of_the_one_to_be_tried_again)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(1, 100, &p);
	struct delivery *d = new_with(builder_bytes(b) + 100, 0, 0);
	struct delivery_stats s;

	stage.also = wait_an_hour;
	stage.answers[0] = -EAGAIN;
	delivery_put(d, b, p);
	WAIT_FOR(stats(d).retried);
	put_some(d, 2, 90);
	s = stats(d);
	CHECK_INT(s.losses.counts[LOSS_QUEUE_FULL].n, 1);
	CHECK_INT(s.queued, 1);
	CHECK(s.retry_at > test_now_ns()); /* the backend is still away */
	CHECK_INT(s.samples_lost, 200);
	delivery_stop(d, test_now_ns() + 30 * SECOND);
	s = settled(d, 2);
	CHECK_INT(s.delivered, 1);
	delivery_free(d);
}

/* ---- the end ---- */

TEST(stop_tries_what_waits)
{
	struct delivery *d = new_delivery();
	struct delivery_stats s;

	stage.also = wait_an_hour;
	stage.answers[0] = -EAGAIN;
	put_all(d, 3);
	WAIT_FOR(stats(d).retried);
	delivery_stop(d, test_now_ns() + 30 * SECOND);
	put(d, 3);
	s = settled(d, 4);
	CHECK_INT(s.delivered, 3);
	CHECK_INT(s.losses.counts[LOSS_ENDED].n, 1);
	CHECK_INT(s.samples_lost, 20);
	delivery_free(d);
	CHECK(!stage.cancelled);
	CHECK_INT(stage.flushes, 1);
}

TEST_OF_DELIVERY(profiles_that_were_not_built_are_counted)
{
	delivery_not_built(d, 7);
	CHECK_INT(stats(d).losses.counts[LOSS_NOT_BUILT].n, 1);
	CHECK_INT(stats(d).samples_lost, 7);
	CHECK(lost("sink_lost_total", "not built") == 1);
}

/* What could not be tried before the deadline is not waited for. */
TEST(stop_with_a_dead_backend)
{
	struct delivery *d = new_delivery();
	uint64_t began = test_now_ns();

	stage.also = wait_an_hour;
	stage.answers[0] = stage.answers[1] = -EAGAIN;
	put_all(d, 2);
	WAIT_FOR(stats(d).retried);
	delivery_stop(d, test_now_ns() + 300 * SECOND);
	delivery_free(d);
	CHECK(test_now_ns() - began < 300 * SECOND);
	CHECK(lost("sink_lost_total", "ended") == 2);
	CHECK(lost("sink_samples_lost_total", "ended") == 40);
	CHECK(!stage.cancelled);
}

TEST(cancel_ends_a_blocked_call)
{
	struct delivery *d = new_delivery();
	uint64_t began;

	set(&stage.hang, true);
	put_all(d, 2);
	wait_for(&stage.n, 1);
	began = test_now_ns();
	delivery_stop(d, test_now_ns() + 300 * SECOND);
	CHECK_INT(stats(d).queued, 2);
	delivery_stop(d, test_now_ns() + 50 * MS); /* the earlier one counts */
	delivery_free(d);
	CHECK(stage.cancelled);
	CHECK(test_now_ns() - began >= 50 * MS);
	CHECK(lost("sink_lost_total", "ended") == 2);
	CHECK(lost("sink_lost_total", "refused") == 0);
	CHECK_INT(stage.finis, 1);
	CHECK_INT(stage.n, 1);
}

TEST(cancel_ends_a_blocked_flush)
{
	struct delivery *d = new_delivery();

	set(&stage.hang_flush, true);
	put(d, 0);
	settled(d, 1);
	delivery_stop(d, test_now_ns() + 300 * SECOND);
	wait_for(&stage.flushes, 1);
	delivery_stop(d, test_now_ns()); /* the earlier one counts */
	delivery_free(d);
	CHECK(stage.cancelled);
	CHECK_INT(stage.flushes, 1);
	CHECK(metric("sink_delivered_total") == 1);
	CHECK_INT(stage.finis, 1);
}

/* ... and is abandoned, which is logged; the queue is counted; it cleans up when it comes back. */
ASIDE(ignores_cancel)
TEST(ignores_cancel)
{
	struct delivery *d = new_delivery();
	uint64_t began = test_now_ns();

	set(&stage.hang, true);
	set(&stage.ignore_cancel, true);
	put_all(d, 3);
	wait_for(&stage.n, 1);
	catch_log();
	delivery_free(d);
	CHECK(test_now_ns() - began >= 5 * SECOND);
	check_log("fusee: sink.stage: does not end, although it was cancelled: its thread is "
		  "abandoned\n");
	CHECK(lost("sink_lost_total", "ended") == 3);
	CHECK(lost("sink_samples_lost_total", "ended") == 60);
	CHECK_INT(get(&stage.finis), 0);
	set(&stage.hang, false);
	wait_for(&stage.finis, 1);
	CHECK(lost("sink_lost_total", "ended") == 3);
	CHECK(metric("sink_delivered_total") == 0);
	pause_us(20000, "what it held is freed, for a search for leaks");
}

/* ---- flush ---- */

TEST_OF_DELIVERY(flush_without_backoff)
{
	struct answer a = {0};
	uint64_t deadline = test_now_ns() + 30 * SECOND;

	stage.also = wait_an_hour;
	stage.answers[0] = stage.answers[1] = -EAGAIN;
	put_all(d, 2);
	WAIT_FOR(stats(d).retried);
	delivery_flush(d, deadline, answered, &a);
	wait_for(&a.n, 1);
	CHECK_INT(a.err, -EAGAIN); /* and what is behind it waits */
	CHECK_INT(get(&stage.n), 2);
	CHECK_INT(get(&stage.flushes), 1);
	CHECK(stage.flush_deadline == deadline);
	delivery_flush(d, deadline, answered, &a);
	wait_for(&a.n, 2);
	CHECK_INT(a.err, 0);
	CHECK_INT(stats(d).delivered, 2);
	pthread_mutex_lock(&stage.lock);
	stage.flush_answer = -EIO;
	pthread_mutex_unlock(&stage.lock);
	delivery_flush(d, deadline, answered, &a);
	wait_for(&a.n, 3);
	CHECK_INT(a.err, -EIO);
	CHECK_STR(stats(d).last_error, "Input/output error");
}

TEST(flush_of_a_sink_that_hangs)
{
	struct delivery *d = new_delivery();
	struct answer a[20] = {{0}};
	int busy = 0;

	set(&stage.hang, true);
	put(d, 0);
	wait_for(&stage.n, 1);
	delivery_flush(d, test_now_ns() + 30 * MS, answered, &a[0]);
	wait_for(&a[0].n, 1);
	CHECK_INT(a[0].err, -ETIMEDOUT);
	delivery_flush(d, 0, answered, &a[0]);
	wait_for(&a[0].n, 2);
	CHECK_INT(a[0].err, -ETIMEDOUT);
	for (int i = 1; i < 20; i++)
		delivery_flush(d, test_now_ns() + 30 * SECOND, answered, &a[i]);
	for (int i = 1; i < 20; i++)
		busy += get(&a[i].n) && a[i].err == -EBUSY;
	CHECK_INT(busy, 3);
	delivery_stop(d, test_now_ns() + 10 * MS);
	delivery_free(d);
	for (int i = 1; i < 20; i++) {
		CHECK_INT(a[i].n, 1);
		CHECK(a[i].err == -ECANCELED || a[i].err == -EBUSY);
	}
}

/* The flush that is under way: answered at its deadline too, once. */
TEST(flush_that_hangs_itself)
{
	struct delivery *d = new_delivery();
	struct answer a = {0};

	set(&stage.hang_flush, true);
	delivery_flush(d, test_now_ns() + 30 * MS, answered, &a);
	wait_for(&a.n, 1);
	CHECK_INT(a.err, -ETIMEDOUT);
	set(&stage.hang_flush, false);
	put(d, 1);
	settled(d, 1);
	delivery_flush(d, test_now_ns() + 30 * SECOND, answered, &a);
	wait_for(&a.n, 2);
	CHECK_INT(a.err, 0);
	delivery_free(d);
	CHECK_INT(a.n, 2);
}

/* ---- parts ---- */

static struct parts {
	int n, attempts;
	uint8_t ids[64][16];
	struct fusee_str bytes[64];
	struct fusee_sink_out *out;
} parts;

static int on_part(void *arg, const struct fusee_profile *part)
{
	const struct fusee_sink_host *h = stage.host->sink;
	struct parts *x = arg;

	CHECK(part->samples.n <= 3);
	if (x->attempts)
		CHECK(!memcmp(x->ids[x->n], part->id, 16));
	memcpy(x->ids[x->n], part->id, 16);
	CHECK_INT(h->encode(x->out, part, FUSEE_FOLDED, &x->bytes[x->n]), 0);
	x->n++;
	return 0;
}

static int by_parts(const struct fusee_delivery *d)
{
	char name[32];

	parts.n = 0;
	parts.out = d->out;
	CHECK_INT(stage.host->sink->split(d->out, d->profile, 3, 0, on_part, &parts), 0);
	CHECK_INT(parts.n, 4);
	/* the bytes of all of them are still there */
	for (int i = 0; i < 10; i++) {
		const struct fusee_str *s = &parts.bytes[i / 3];

		snprintf(name, sizeof(name), "function%d 2000\n", i);
		CHECK(memmem(s->p, s->len, name, strlen(name)));
	}
	parts.attempts++;
	return 0;
}

TEST_OF_DELIVERY(parts_are_the_same_at_each_attempt)
{
	stage.also = by_parts;
	stage.answers[0] = -EAGAIN;
	put(d, 7);
	settled(d, 1);
	CHECK(parts.attempts >= 2);
}

/* ---- all at once ---- */

static int moody(const struct fusee_delivery *d)
{
	static unsigned int seed = 1; /* of one thread */
	int r = rand_r(&seed) % 8;

	if (r == 1)
		stage.host->sink->retry_after(d->out, 100000);
	return r < 3 ? -EAGAIN : r == 3 ? -EINVAL : 0;
}

/* ---- with a spool ---- */

/* In place of libc's. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	pthread_mutex_lock(&stage.lock);
	stage.writes += stage.hang_disk;
	pthread_cond_broadcast(&stage.changed);
	while (stage.hang_disk)
		pthread_cond_wait(&stage.changed, &stage.lock);
	pthread_mutex_unlock(&stage.lock);
	return syscall(SYS_pwrite64, fd, p, n, at);
}

static struct delivery *new_spooled(uint64_t queue_bytes)
{
	return new_by(&(struct delivery_options){.queue_bytes = queue_bytes,
						 .backoff_first_ns = 10 * MS,
						 .backoff_max_ns = 40 * MS,
						 .spool = getenv("TMPDIR"),
						 .spool_limits = {1 << 20, 86400 * SECOND}});
}

static struct delivery_stats spooled(struct delivery *d, uint64_t n)
{
	struct delivery_stats s;

	WAIT_FOR((s = stats(d),
		  s.spooled == n && !s.queued && metric("sink_spool_profiles") == (double)n));
	return s;
}

#define TEST_OF_SPOOLED(id) \
	TEST_WITH(id, struct delivery *, d, new_spooled(64 << 20), delivery_free(d))

TEST_OF_SPOOLED(a_spool_keeps_the_order)
{
	struct delivery_stats s;

	stage.answers[0] = stage.answers[1] = stage.answers[4] = -EAGAIN;
	put_all(d, 10);
	s = settled(d, 10);
	CHECK(s.delivered == 10 && s.retried == 3 && !*s.last_error);
	s = spooled(d, 0);
	CHECK(s.has_spool && !s.spooled_bytes && !s.spooled_oldest_ns && !*s.spool_error);
	for (int i = 0, id = 0; i < 13; i++) {
		CHECK_INT(stage.calls[i].id, id);
		CHECK_INT(stage.calls[i].attempt, i == 5 ? 1 : i < 3 ? i : 0);
		id += i > 1 && i != 4;
	}
	CHECK(metric("sink_delivered_total") == 10 && metric("sink_spool_profiles") == 0);
}

/* All that waits is on disk at once, also behind a call that hangs. */
TEST(a_hanging_call_delays_no_write)
{
	struct delivery *d = new_spooled(64 << 20);
	struct delivery_stats s;

	set(&stage.hang, true);
	put_all(d, 6);
	wait_for(&stage.n, 1);
	s = spooled(d, 6);
	CHECK(s.spooled_bytes && s.spooled_oldest_ns && metric("sink_spool_profiles") == 6);
	delivery_free(d); /* cancels it */
	set(&stage.hang, false);
	set(&stage.cancelled, false);
	stage.n = 0;
	d = new_spooled(64 << 20);
	s = settled(d, 6);
	CHECK_INT(s.delivered, 6);
	check_ids(6);
	CHECK(lost("sink_lost_total", "ended") == 0);
	delivery_free(d);
}

TEST_OF_SPOOLED(refused_by_the_sink_is_not_kept)
{
	struct delivery_stats s;

	stage.answers[1] = -EINVAL;
	put_all(d, 3);
	s = settled(d, 3);
	CHECK(s.delivered == 2 && s.losses.counts[LOSS_REFUSED].n == 1 && s.samples_lost == 20);
	spooled(d, 0);
}

/* More than the spool holds: the oldest are lost, and all are counted. */
TEST_OF_SPOOLED(a_full_spool)
{
	struct delivery_stats s;
	uint64_t n = 0;

	set(&stage.hang, true);
	do {
		put_some(d, (uint8_t)n++, 3000);
		WAIT_FOR(!(s = stats(d)).queued);
	} while (!s.losses.counts[LOSS_SPOOL_FULL].n && n < 1000);
	CHECK(s.losses.counts[LOSS_SPOOL_FULL].n && s.spooled_bytes <= 1 << 20);
	set(&stage.hang, false);
	WAIT_FOR((s = stats(d), s.delivered + s.losses.counts[LOSS_SPOOL_FULL].n >= n));
	for (int i = 2; i < stage.n; i++)
		CHECK_INT(stage.calls[i].id, (uint8_t)(stage.calls[i - 1].id + 1));
	CHECK_INT(stage.calls[stage.n - 1].id, (uint8_t)(n - 1));
	CHECK_INT(s.samples_lost, 6000 * s.losses.counts[LOSS_SPOOL_FULL].n);
}

static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};

	CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Nothing can be written: the sink has its profiles from memory, after those of the disk. */
TEST_OF_SPOOLED(a_disk_that_fails)
{
	struct delivery_stats s;

	set(&stage.hang, true);
	put_all(d, 2);
	spooled(d, 2);
	set_file_limit(100);
	put(d, 2);
	put(d, 3);
	WAIT_FOR(*(s = stats(d)).spool_error);
	CHECK(strstr(s.spool_error, "cannot be written: File too large"));
	CHECK(s.spooled == 2 && s.queued == 2 && metric("sink_spool_errors_total") == 1);
	set(&stage.hang, false);
	s = settled(d, 4);
	CHECK_INT(s.delivered, 4);
	check_ids(4);
	set_file_limit(RLIM_INFINITY);
}

/* Its calls are made by threads of the delivery: no call of the control thread waits. */
ASIDE(a_disk_that_hangs)
TEST(a_disk_that_hangs)
{
	struct delivery *d = new_spooled(64 << 20);
	struct delivery_stats s;
	struct answer a = {0, 0};

	spooled(d, 0);
	set(&stage.hang_disk, true);
	put_all(d, 5);
	wait_for(&stage.writes, 1);
	s = stats(d);
	CHECK(s.queued == 5 && !s.spooled && !stage.n);
	delivery_flush(d, test_now_ns() + 50 * MS, answered, &a);
	wait_for(&a.n, 1);
	CHECK_INT(a.err, -ETIMEDOUT);
	set(&stage.hang_disk, false);
	CHECK_INT(settled(d, 5).delivered, 5);
	check_ids(5);
	set(&stage.hang_disk, true); /* also at the end, as a sink that ignores cancel() */
	stage.writes = 0;
	put(d, 5);
	wait_for(&stage.writes, 1);
	delivery_free(d);
	CHECK(lost("sink_lost_total", "ended") == 1);
	set(&stage.hang_disk, false);
	wait_for(&stage.finis, 1);
}

TEST(a_folder_that_cannot_be)
{
	struct delivery *d = new_by(&(struct delivery_options){
		.queue_bytes = 64 << 20, .spool = "/dev/null", .spool_limits = {1 << 20, SECOND}});
	struct delivery_stats s;

	for (int i = 0; i < 5; i++) {
		put(d, (uint8_t)i);
		s = settled(d, (uint64_t)i + 1);
	}
	CHECK_STR(s.spool_error, "the spool /dev/null cannot be used: 'null' is no folder");
	CHECK_INT(metric("sink_spool_errors_total"), 1); /* not tried again for each profile */
	delivery_free(d);
}

/* The delivery of a new plan takes over from that of the plan before, when it has ended. */
TEST(another_delivery_of_the_name)
{
	struct delivery *before = new_spooled(64 << 20), *d;

	set(&stage.hang, true);
	put_all(before, 2);
	spooled(before, 2);
	d = new_spooled(64 << 20);
	put(d, 2);
	CHECK(stats(d).queued == 1 && !stats(d).spooled);
	set(&stage.ignore_cancel, true);
	delivery_stop(before, test_now_ns() + 300 * SECOND);
	set(&stage.hang, false); /* delivers both */
	WAIT_FOR(delivery_ended(before));
	CHECK_INT(stats(before).delivered, 2);
	CHECK_INT(settled(d, 1).delivered, 1);
	check_ids(3);
	delivery_free(before);
	delivery_free(d);
}

TEST_OF_SPOOLED(flush_of_a_spool)
{
	struct answer a = {0, 1};

	put_all(d, 8);
	delivery_flush(d, test_now_ns() + 20 * SECOND, answered, &a);
	wait_for(&a.n, 1);
	CHECK_INT(a.err, 0);
	CHECK(stage.n == 8 && stage.flushes == 1 && stats(d).delivered == 8);
}

TEST(nothing_is_lost_without_being_counted)
{
	const struct fusee_profile *p;
	struct builder *b = profile_of(0, 10, &p);
	struct delivery *d = new_with(8 * builder_bytes(b), 1000, 100000);
	struct delivery_stats s;
	struct answer a = {0};
	int flushes = 0;
	double sum;

	stage.also = moody;
	delivery_put(d, b, p);
	for (int i = 1; i < 1000; i++) {
		put(d, (uint8_t)i);
		if (i % 100 == 0) {
			delivery_flush(d, test_now_ns() + (i % 200 ? 1 : 20000) * MS, answered, &a);
			flushes++;
		}
		s = stats(d);
		CHECK_INT(s.delivered + s.losses.counts[LOSS_QUEUE_FULL].n +
				  s.losses.counts[LOSS_REFUSED].n + s.queued,
			  i + 1);
		wait_for(&stage.n, i / 8); /* the sink has its turn */
	}
	delivery_stop(d, test_now_ns() + 2 * MS);
	delivery_free(d);
	CHECK_INT(a.n, flushes);
	sum = metric("sink_delivered_total") + lost("sink_lost_total", "queue full") +
	      lost("sink_lost_total", "refused") + lost("sink_lost_total", "ended");
	CHECK(sum == 1000);
	CHECK(metric("sink_queue_profiles") == 0 && metric("sink_queue_bytes") == 0);
	CHECK(metric("sink_delivered_total") > 10 && metric("sink_retried_total") > 10);
}
