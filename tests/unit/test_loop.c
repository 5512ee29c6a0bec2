// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/net
/* core/net/loop: descriptors, timers, signals and calls from other threads. */
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "lib/pause.h"
#include "net/loop.h"
#include "test.h"

#define MS 1000000ull

static struct loop *new_loop(void)
{
	struct loop *l;

	CHECK_INT(loop_new(&l), 0);
	return l;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void run(struct loop *l)
{
	CHECK_INT(loop_run(l), 0);
}

static void run_for(struct loop *l, uint64_t ns)
{
	CHECK_INT(loop_at(l, clock_now() + ns, stop, l, NULL), 0);
	run(l);
}

/* ---- descriptors ---- */

struct pipe_end {
	struct loop *loop;
	struct loop_watch *watch;
	struct pipe_end *other;
	int fds[2], calls, read;
	uint32_t events;
};

static void readable(void *arg, int fd, uint32_t events)
{
	struct pipe_end *p = arg;
	char c;

	CHECK_INT(fd, p->fds[0]);
	p->calls++;
	p->events |= events;
	if (events & EPOLLIN && read(fd, &c, 1) == 1 && ++p->read == 3)
		loop_stop(p->loop);
	if (events & EPOLLHUP) {
		loop_unwatch(p->watch);
		p->watch = NULL;
		loop_stop(p->loop);
	}
}

static void open_pipe(struct pipe_end *p, struct loop *l, loop_ready *ready)
{
	p->loop = l;
	CHECK(!pipe2(p->fds, O_CLOEXEC | O_NONBLOCK));
	CHECK_INT(loop_watch(l, p->fds[0], EPOLLIN, ready, p, &p->watch), 0);
}

TEST(descriptors)
{
	struct loop *l = new_loop();
	struct pipe_end p = {0};
	struct loop_watch *w;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	open_pipe(&p, l, readable);
	CHECK(write(p.fds[1], "abcdef", 6) == 6);
	run(l);
	CHECK_INT(p.read, 3);
	CHECK_INT(loop_watch_events(p.watch, 0), 0);
	run_for(l, 5 * MS);
	CHECK_INT(p.calls, 3);
	CHECK_INT(loop_watch_events(p.watch, EPOLLIN), 0);
	close(p.fds[1]);
	run(l);
	CHECK(p.events & EPOLLHUP && !p.watch);
	CHECK_INT(loop_watch(l, -1, EPOLLIN, readable, &p, &w), -EBADF);
	CHECK_INT(loop_watch(l, file, EPOLLIN, readable, &p, &w), -EPERM);
	loop_unwatch(NULL);
	CHECK_INT(loop_watch(l, p.fds[0], EPOLLIN, readable, &p, &w), 0);
	loop_free(l); /* with what is still watched */
	loop_free(NULL);
	close(p.fds[0]);
	close(file);
}

/* Takes itself and the other away while both are ready, and lets their numbers be used again. */
static void takes_both(void *arg, int fd, uint32_t events)
{
	struct pipe_end *p = arg;

	CHECK_INT(fd, p->fds[0]);
	p->calls++;
	for (int i = 0; i < 2; i++) {
		struct pipe_end *x = i ? p->other : p;

		loop_unwatch(x->watch);
		x->watch = NULL;
		close(x->fds[0]);
		close(x->fds[1]);
		open_pipe(x, x->loop, readable);
	}
}

#define TEST_OF_LOOP(id) TEST_WITH(id, struct loop *, l, new_loop(), loop_free(l))

TEST_OF_LOOP(taken_away_while_ready)
{
	struct pipe_end a = {0}, b = {0};

	a.other = &b;
	b.other = &a;
	open_pipe(&a, l, takes_both);
	open_pipe(&b, l, takes_both);
	CHECK(write(a.fds[1], "x", 1) == 1 && write(b.fds[1], "x", 1) == 1);
	WAIT_FOR((run_for(l, MS), a.calls + b.calls));
	CHECK_INT(a.calls + b.calls, 1);
	CHECK(!a.read && !b.read);
	CHECK(write(b.fds[1], "xyz", 3) == 3);
	run(l);
	CHECK_INT(b.read, 3);
}

/* ---- timers ---- */

struct ticks {
	struct loop *loop;
	struct loop_timer *timer, *other;
	int n, until;
	char order[64];
	uint64_t first, last;
};

static void tick(void *arg)
{
	struct ticks *t = arg;

	t->last = clock_now();
	if (!t->n)
		t->first = t->last;
	if (++t->n == t->until) {
		loop_timer_free(t->timer);
		loop_timer_free(t->other);
		t->timer = t->other = NULL;
		loop_stop(t->loop);
	}
}

TEST_OF_LOOP(every)
{
	struct ticks t = {.loop = l, .until = 5}, other = {.loop = l};
	uint64_t began = clock_now();

	CHECK_INT(loop_every(l, 4 * MS, tick, &t, &t.timer), 0);
	CHECK_INT(loop_every(l, 3600000 * MS, tick, &other, &t.other), 0);
	run(l);
	run_for(l, 20 * MS);
	CHECK_INT(t.n, 5); /* took itself and the other away */
	CHECK_INT(other.n, 0);
	CHECK(t.first >= began + 4 * MS && t.last >= began + 20 * MS);
}

TEST_OF_LOOP(every_from_a_time_on)
{
	struct ticks t = {.loop = l, .until = 3};
	uint64_t began = clock_now();

	CHECK_INT(loop_every_from(l, began + 30 * MS, 4 * MS, tick, &t, &t.timer), 0);
	run(l);
	CHECK(t.first >= began + 30 * MS && t.last >= began + 38 * MS);
}

static void sleeps(void *arg)
{
	struct ticks *t = arg;

	if (!t->n++) {
		pause_us(60000, "a slow callback");
		t->first = clock_now();
	}
	t->last = clock_now();
	if (t->n == 5)
		loop_stop(t->loop);
}

TEST_OF_LOOP(late_calls_are_not_made_up_for)
{
	struct ticks t = {.loop = l};

	CHECK_INT(loop_every(l, 20 * MS, sleeps, &t, &t.timer), 0);
	run(l);
	/* behind the first call: a late call, and the moments of the row since then */
	CHECK((uint64_t)t.n - 1 <= (t.last - t.first) / (20 * MS) + 2);
	CHECK(metric_get("loop_slow_calls_total", METRIC_LABELS("what", "timer")) >= 1);
}

struct mark {
	struct ticks *t;
	char c;
};

static void mark(void *arg)
{
	struct mark *m = arg;

	m->t->order[m->t->n++] = m->c;
}

TEST_OF_LOOP(in_order_of_time)
{
	struct ticks t = {.loop = l};
	struct mark m[26];
	struct loop_timer *timers[26];
	uint64_t now = clock_now();

	for (int i = 0; i < 26; i++) {
		int k = i * 7 % 26; /* all of them, mixed */

		m[k] = (struct mark){&t, (char)('a' + k)};
		CHECK_INT(loop_at(l, now + (uint64_t)(k / 2) * 200000, mark, &m[k], &timers[k]), 0);
	}
	for (int k = 2; k < 26; k += 5)
		loop_timer_free(timers[k]);
	run_for(l, 20 * MS);
	CHECK_INT(t.n, 21);
	for (int i = 1; i < t.n; i++)
		CHECK((t.order[i] - 'a') / 2 >= (t.order[i - 1] - 'a') / 2);
	CHECK(!strpbrk(t.order, "chmrw"));
}

static void once_more(void *arg)
{
	struct ticks *t = arg;

	t->n++;
	CHECK_INT(loop_at(t->loop, 0, once_more, t, NULL), 0);
}

/* A timer that is always due keeps nobody else waiting. */
TEST_OF_LOOP(always_due)
{
	struct ticks t = {.loop = l};
	struct pipe_end p = {0};

	CHECK_INT(loop_at(l, 0, once_more, &t, NULL), 0);
	open_pipe(&p, l, readable);
	CHECK(write(p.fds[1], "abc", 3) == 3);
	run(l);
	CHECK_INT(p.read, 3);
	CHECK(t.n > 0);
}

/* ---- signals ---- */

static void count(void *arg)
{
	++*(int *)arg;
}

TEST(signals)
{
	struct loop *l = new_loop();
	int usr1 = 0, usr2 = 0, again = 0;

	CHECK_INT(loop_signal(l, SIGUSR1, count, &usr1), 0);
	CHECK_INT(loop_signal(l, SIGUSR2, count, &usr2), 0);
	CHECK_INT(loop_signal(l, SIGTERM, stop, l), 0);
	CHECK_INT(loop_signal(l, 4711, count, &usr1), -EINVAL);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR2);
	WAIT_FOR((run_for(l, MS), usr1 && usr2));
	CHECK(usr1 == 1 && usr2 == 1);
	CHECK_INT(loop_signal(l, SIGUSR1, count, &again), 0);
	raise(SIGUSR1);
	kill(getpid(), SIGTERM);
	run(l);
	WAIT_FOR((run_for(l, MS), again));
	CHECK(usr1 == 1 && again == 1);
	loop_free(l);
	raise(SIGTERM); /* still blocked: a second signal at the end does not kill */
}

/* ---- posts ---- */

enum { POSTERS = 4, POSTS = 2000 };

struct poster {
	struct loop *loop;
	int sent;
	int *sum; /* the loop's thread's */
};

static void received(void *arg)
{
	struct poster *p = arg;

	if (++*p->sum == POSTERS * POSTS)
		loop_stop(p->loop);
}

static void *post(void *arg)
{
	struct poster *p = arg;

	for (; p->sent < POSTS; p->sent++)
		if (loop_post(p->loop, received, p))
			break;
	return NULL;
}

TEST_OF_LOOP(posts_from_many_threads)
{
	struct poster p[POSTERS];
	pthread_t t[POSTERS];
	int sum = 0;

	for (int i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){l, 0, &sum};
		CHECK(!pthread_create(&t[i], NULL, post, &p[i]));
	}
	run(l);
	CHECK_INT(sum, POSTERS * POSTS);
	for (int i = 0; i < POSTERS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK_INT(loop_post(l, received, &p[0]), 0); /* never run, not leaked */
}

static void reposts(void *arg)
{
	struct ticks *t = arg;

	if (++t->n < 100)
		CHECK_INT(loop_post(t->loop, reposts, t), 0);
	else
		loop_stop(t->loop);
}

TEST_OF_LOOP(posts_from_a_post)
{
	struct ticks t = {.loop = l};

	CHECK_INT(loop_post(l, reposts, &t), 0);
	run(l);
	CHECK_INT(t.n, 100);
}
