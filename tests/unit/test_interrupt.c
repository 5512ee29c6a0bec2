// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/console/interrupt.c core/console/tool.c
/* core/console: a signal while a call waits. */
#include <semaphore.h>
#include <signal.h>

#include "console/interrupt.h"
#include "console/tool.h"
#include "test.h"

static void post(void *arg)
{
	sem_post(arg);
}

static bool is_pending(int number)
{
	sigset_t set;

	CHECK_INT(sigpending(&set), 0);
	return sigismember(&set, number) == 1;
}

/* Takes a pending signal. */
static void take(int number)
{
	int got = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	CHECK(!sigwait(&set, &got) && got == number);
}

TEST(interrupts_only_of_blocked_signals)
{
	struct interrupt *i;
	sem_t called;

	sem_init(&called, 0, 0);
	interrupt_begin(&i, post, &called);
	CHECK(!i && !interrupt_end(i));
	interrupt_block();
	interrupt_begin(&i, post, &called);
	CHECK(i);
	CHECK(!interrupt_end(i)); /* none came */
	interrupt_begin(&i, post, &called);
	CHECK_INT(kill(getpid(), SIGHUP), 0);
	while (sem_wait(&called) && errno == EINTR)
		continue;
	CHECK_INT(kill(getpid(), SIGINT), 0); /* the first is taken */
	CHECK_INT(interrupt_end(i), SIGHUP);
	CHECK(!is_pending(SIGHUP) && is_pending(SIGINT));
	take(SIGINT);
	sem_destroy(&called);
}

/* One begins and ends after the other, whether or not the thread waits already; each takes one
 * signal that the test sends, and none is lost. */
TEST(no_signal_is_lost)
{
	struct interrupt *i;
	uint32_t sent = 0, came = 0;
	sem_t called;

	sem_init(&called, 0, 0);
	interrupt_block();
	for (uint32_t n = 0; n < 300; n++) {
		interrupt_begin(&i, post, &called);
		CHECK(i);
		if (!is_pending(SIGTERM)) {
			CHECK_INT(kill(getpid(), SIGTERM), 0);
			sent++;
		}
		came += interrupt_end(i) == SIGTERM;
	}
	if (is_pending(SIGTERM)) {
		take(SIGTERM);
		came++;
	}
	CHECK_INT(came, sent);
	CHECK(!is_pending(SIGINT) && !is_pending(SIGHUP));
	sem_destroy(&called);
}

/* What comes before the program counts, too. */
TEST(a_program_that_waits_is_ended)
{
	char *const waits[] = {"tail", "-f", "/dev/null", NULL};
	char *const says[] = {"sh", "-c", "grep SigBlk /proc/self/status", NULL};
	struct buf out = {0};

	interrupt_block();
	CHECK_INT(kill(getpid(), SIGINT), 0);
	CHECK_INT(tool_run(waits, NULL, &out), -EIO);
	CHECK(is_pending(SIGTERM)); /* for who called */
	take(SIGTERM);
	CHECK_INT(tool_run(says, NULL, &out), 0);
	buf_add(&out, "", 1);
	CHECK_STR(out.p, "SigBlk:\t0000000000000000\n");
	buf_fini(&out);
}
