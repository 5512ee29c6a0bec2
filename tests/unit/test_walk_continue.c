/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind core/pipeline
#include "test.h"

#include "loss/loss.h"
#include "pipeline/internal/preceding.h"
#include "pipeline/internal/waiting.h"
#include "unwind/internal/walk_continue.h"

static const struct walk_frame frames[] = {
	{.kind = FRAME_PUSHED, .addr = 1, .extra = {2}, .process = 9},
	{.kind = FRAME_FILE, .file = 3, .addr = 4, .guessed = 1},
	{.kind = FRAME_FILE, .file = 3, .addr = 5},
};

static const struct sample_continuation two[] = {
	{.pc = 100, .sp = 1000, .number = 1, .frames = frames, .n = 3},
	{.pc = 200, .sp = 2000, .number = 2, .frames = frames + 1, .n = 2},
};

static const struct sample_continuations both = {.since = 1, .at = two, .n = 2};
static struct walk w;

/* A walk has come to this place. Is it over? */
static bool comes(uint64_t pc, uint64_t sp, uint32_t flags, bool passed)
{
	struct walk_context c = {.continuations = &both};
	struct fusee_native n = {.arg = &c, .u = {.pc = pc, .sp = sp, .flags = flags}};

	walk_clear(&w, WALK_COPY_FRAMES);
	walk_put(&w, &(struct walk_frame){.kind = FRAME_FILE, .file = 8, .addr = 7});
	w.passed = passed;
	return walk_continue(&n, false, &w);
}

TEST(a_walk_goes_on_where_a_continuation_begins)
{
	CHECK(comes(100, 1000, FUSEE_FP_LOST, false));
	CHECK(w.continued && !w.reason);
	CHECK_INT(w.n, 4);
	CHECK_INT(w.guessed, 1);
	CHECK(!memcmp(w.frames + 1, frames, sizeof(frames)));
	CHECK(comes(200, 2000, 0, false));
	CHECK_INT(w.n, 3);
}

/* Another place, an interrupted instruction, or frames of languages are missing before. */
TEST(a_walk_goes_on_nowhere_else)
{
	CHECK(!comes(100, 1008, 0, false));
	CHECK(!comes(101, 1000, 0, false));
	CHECK(!comes(200, 1000, 0, false));
	CHECK(!comes(100, 1000, FUSEE_PC_EXACT, false));
	CHECK(!comes(100, 1000, 0, true));
	CHECK(!w.continued && w.n == 1);
}

TEST(a_guessed_step_marks_the_frame_that_it_found)
{
	struct walk_context c = {.continuations = &both};
	struct fusee_native n = {.arg = &c, .u = {.pc = 200, .sp = 2000}};

	walk_clear(&w, WALK_COPY_FRAMES);
	CHECK(walk_continue(&n, true, &w));
	CHECK(w.frames[0].guessed && !w.frames[1].guessed);
	CHECK_INT(w.guessed, 1);
}

TEST(frames_beyond_the_most_are_a_reason)
{
	struct walk_context c = {.continuations = &both};
	struct fusee_native n = {.arg = &c, .u = {.pc = 100, .sp = 1000}};

	walk_clear(&w, 2);
	w.n = WALK_INNER_FRAMES;
	w.most = 2;
	CHECK(walk_continue(&n, false, &w));
	CHECK_STR(w.reason, loss_text(LOSS_TOO_DEEP));
	CHECK(!w.continued);
}

/* ---- parts ---- */

/* What the kernel has sent of a stack whose walk stopped twice: from the interrupted frame on, from
 * a caller on, and from another; and one from what remains on the stack. */
static const struct sample_continuation parts[] = {
	{1, 10, 300, 3000, 1, 0, frames, 1},
	{310, 3100, 0, 0, 2, 1, frames + 2, 1},
	{320, 3200, 500, 5000, 3, 1, frames + 1, 1},
	{600, 6000, 0, 0, 4, 3, frames, 3},
};
static const struct sample_continuations all_parts = {.since = 1, .at = parts, .n = 4};
static struct walk_context part_context;
static uint32_t shown; /* functions, as `stored` has them for steps */

/* The walk comes to a frame, which is in claimed code. Is it over? */
static bool passes(uint64_t pc, uint64_t sp, bool claimed)
{
	struct fusee_native n = {
		.arg = &part_context,
		.u = {.pc = pc, .sp = sp, .flags = part_context.stepped ? 0 : FUSEE_PC_EXACT}};
	bool over = walk_continue(&n, false, &w);

	shown += n.u.stored;
	if (over)
		return true;
	walk_put(&w, &(struct walk_frame){.kind = FRAME_FILE, .file = 8, .addr = pc});
	w.passed |= claimed;
	walk_skip(&n, false, &w);
	part_context.stepped++;
	return false;
}

static void begin_parts(void)
{
	part_context = (struct walk_context){.continuations = &all_parts};
	walk_clear(&w, WALK_COPY_FRAMES);
	shown = 0;
}

TEST(parts_take_the_place_of_the_frames_between_their_ends)
{
	begin_parts();
	CHECK(!passes(1, 10, false));
	CHECK(!passes(2, 20, true));
	CHECK_INT(shown, 0);
	CHECK(!passes(300, 3000, false));
	CHECK_INT(shown, 1); /* code that was made for this function may be omitted */
	CHECK(!passes(301, 3001, false));
	CHECK(!passes(320, 3200, true));
	CHECK(!passes(330, 3300, true));
	CHECK(!passes(500, 5000, false));
	CHECK(passes(600, 6000, true));
	CHECK_INT(shown, 1); /* the third part shows none */
	CHECK(!w.passed && !w.reason);
	CHECK_INT(w.n, 1 + 2 + 1 + 1 + 3);
	CHECK_INT(w.guessed, 2);
	CHECK(w.frames[0].kind == FRAME_PUSHED && w.frames[1].addr == 300 &&
	      w.frames[2].addr == 301 && w.frames[3].addr == 4 && w.frames[4].addr == 500);
}

/* What a language's step knew in a part that is not used is wrong behind it. */
TEST(a_part_is_used_behind_its_own_only)
{
	begin_parts();
	CHECK(!passes(1, 11, false)); /* the first does not begin there */
	CHECK(!passes(310, 3100, true));
	CHECK(w.passed);
	begin_parts();
	CHECK(!passes(1, 10, false));
	CHECK(!passes(300, 3000, false));
	CHECK(!passes(600, 6000, true)); /* number 3 was not passed */
	CHECK(w.passed);
	begin_parts();
	CHECK(!passes(1, 10, false));
	CHECK(!passes(300, 3000, true)); /* claimed code at its end is in no part */
	CHECK(w.passed);
}

/* A walk that ends before the end of a part is not complete. */
TEST(a_part_without_its_end_is_a_loss)
{
	struct fusee_native n = {.arg = &part_context, .u = {.pc = 2, .sp = 20}};

	begin_parts();
	CHECK(!passes(1, 10, false));
	CHECK(!walk_continue(&n, false, &w));
	walk_skip(&n, true, &w);
	CHECK(w.passed);
	CHECK_INT(w.n, 1);
}

/* ---- from the record to the walk ---- */

static struct preceding p;

static void add(pid_t tid, uint64_t time, uint64_t process, uint64_t pc)
{
	const struct sample_continuation begin = {.pc = pc, .sp = 1, .number = 1};

	walk_clear(&w, WALK_COPY_FRAMES);
	walk_put(&w, &(struct walk_frame){.kind = FRAME_KERNEL, .addr = 1}); /* not kept */
	walk_put(&w, &frames[0]);
	preceding_add(&p, tid, time, process, &begin, &w);
}

/* The sum of the pcs of those of a sample. */
static uint64_t take(pid_t tid, uint64_t since, uint64_t time, uint64_t process)
{
	const struct sample s = {.tid = tid, .time = time, .continuations.since = since};
	struct sample_continuation to[SAMPLE_CONTINUATIONS];
	uint64_t sum = 0;
	uint32_t n;

	preceding_take(&p, &s, process, to, &n);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(to[i].n == 1 && !memcmp(to[i].frames, frames, sizeof(*frames)));
		sum += to[i].pc;
		free((void *)to[i].frames);
	}
	return sum;
}

TEST(a_sample_has_the_continuations_of_its_tick)
{
	add(7, 100, 1, 1);
	add(8, 101, 1, 2);
	add(7, 102, 1, 4);
	CHECK_INT(take(9, 99, 110, 1), 0);
	CHECK_INT(take(7, 99, 110, 1), 5);
	CHECK_INT(take(7, 99, 110, 1), 0);
	CHECK_INT(take(8, 99, 110, 1), 2);
	preceding_fini(&p);
}

/* What was not of this tick is of no later tick. */
TEST(continuations_of_a_lost_copy_are_dropped)
{
	add(7, 100, 1, 1);
	add(7, 200, 1, 2);
	CHECK_INT(take(7, 199, 210, 1), 2);
	add(7, 300, 1, 4);
	CHECK_INT(take(7, 0, 310, 1), 0);
	CHECK_INT(take(7, 299, 310, 1), 0);
	add(7, 400, 1, 8);
	CHECK_INT(take(7, 399, 410, 2), 0); /* another process */
	for (uint64_t i = 0; i < 3 * PRECEDING_MOST; i++)
		add((pid_t)i, 500, 1, i);
	CHECK_INT(take(1, 499, 510, 1), 0);
	CHECK_INT(take(3 * PRECEDING_MOST - 1, 499, 510, 1), 3 * PRECEDING_MOST - 1);
	preceding_fini(&p);
}

static bool look(void *arg, struct waiting *waiting)
{
	const struct sample *s = &waiting->sample;

	CHECK_INT(s->continuations.n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct sample_continuation *c = &s->continuations.at[i];

		CHECK(c->pc == two[i].pc && c->sp == two[i].sp && c->n == two[i].n);
		CHECK(c->frames != two[i].frames);
		CHECK(!memcmp(c->frames, two[i].frames, c->n * sizeof(*c->frames)));
	}
	CHECK(s->stack_len == 8 && !memcmp(s->stack, "the copy", 8));
	++*(int *)arg;
	return true;
}

TEST(a_sample_that_waits_has_them)
{
	const struct sample s = {.stack = "the copy", .stack_len = 8, .continuations = both};
	const struct pipeline_route route = {.slots = 1};
	struct waiting_queue q;
	uint64_t bytes = 0;
	int n = 0;

	waiting_init(&q, 1 << 20, 1 << 17);
	CHECK(waiting_add(&q, NULL, &bytes, &s, &route, "comm", NULL));
	waiting_each(&q, look, &n);
	CHECK_INT(n, 1);
	waiting_fini(&q);
}
