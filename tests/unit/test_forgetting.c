/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind include/fusee/emitted.h
#include "test.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/emitted.h>

#include "unwind/claims.h"
#include "unwind/forgetting.h"

#define SECOND 1000000000ull

/* An unwinder that keeps names of a process as plugins do. A frame has the key of a name. */
struct named {
	struct fusee_emitted_element head;
	char bytes[4096];
};

static struct fusee_emitted kept;
static void *names; /* a tree */
static const struct fusee_host *host = &claims_host;

static int record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct named *n;

	(void)ctx;
	(void)process;
	if (fusee_emitted_has(&kept, &names, e->key))
		return 0;
	CHECK_INT(fusee_emitted_new(&kept, &names, e->key, sizeof(*n), &n), 1);
	return fusee_emitted_keep_used(&kept, &names, n, sizeof(*n), free);
}

static int symbolize(void *ctx, const struct fusee_raw_frame *raw, struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = {.size = sizeof(frame), .function = {"f", 1}};

	(void)ctx;
	if (!fusee_emitted_use(&kept, &names, raw->v[0]))
		return 0;
	CHECK_INT(host->unwinder->frame(out, &frame), 0);
	return 1;
}

static uint64_t forget(void *ctx, uint64_t process, uint32_t what)
{
	(void)ctx;
	(void)process;
	if (what == FUSEE_FORGET_BEGIN)
		fusee_emitted_forget_begin(&kept);
	if (what != FUSEE_FORGET_UNUSED)
		return 0;
	return fusee_emitted_forget_unused(&kept, &names, fusee_emitted_order, free);
}

static const struct fusee_unwinder_ops ops = {.size = sizeof(ops),
					      .frame_type = "js",
					      .record = record,
					      .symbolize = symbolize,
					      .forget = forget};
/* As a plugin that was built before there was forget(). */
static const struct fusee_unwinder_ops before = {
	.size = offsetof(struct fusee_unwinder_ops, forget),
	.frame_type = "js",
	.record = record,
	.symbolize = symbolize,
	.forget = forget};
static struct fusee_plugin plugin = {.name = "fake"};
static struct fusee_instance instance = {.descriptor = &plugin, .name = "fake"};
static struct fusee_instance *list[] = {&instance};
static const struct plugin_set set = {list, 1};
static struct process process = {.id = 7};
static struct claims *claims;

static void begin(const struct fusee_unwinder_ops *o)
{
	plugin.ops = o;
	CHECK_INT(claims_new(&claims, &set), 0);
}

static void end(void)
{
	claims_free(claims);
	tdestroy(names, free);
	names = NULL;
	memset(&kept, 0, sizeof(kept));
}

static void emit(uint64_t key)
{
	const struct fusee_emission e = {.size = sizeof(e), .key = key};

	CHECK_INT(claims_record(claims, &process, 0, &e), 0);
}

static void emit_all(uint64_t from, uint64_t to)
{
	for (uint64_t key = from; key < to; key++)
		emit(key);
}

static bool has(uint64_t key)
{
	return fusee_emitted_find(&names, key) != NULL;
}

static void use(uint64_t key)
{
	const struct walk_frame f = {.kind = FRAME_PUSHED, .addr = key, .process = 7};

	forgetting_use(claims, &f);
}

/* Steps 1 and 2, the second at this time. */
static void pass_twice(uint64_t time)
{
	CHECK(forgetting_begin(claims));
	CHECK(forgetting_of(claims, 7));
	CHECK(!forgetting_of(claims, 8));
	forgetting_passed(claims, time - SECOND);
	CHECK(!forgetting_may_end(claims,
				  UINT64_MAX)); /* a walk may rely on what was sent before */
	CHECK(forgetting_begin(claims));
	forgetting_passed(claims, time);
	CHECK(!forgetting_begin(claims));
	CHECK(!forgetting_of(claims, 7));
}

TEST(names_that_nothing_uses_are_freed)
{
	begin(&ops);
	emit_all(1, 200);
	CHECK(!forgetting_begin(claims)); /* few */
	emit_all(200, 1001);
	pass_twice(10 * SECOND);
	emit(3); /* again */
	emit(2000);
	use(4);                                          /* a frame of a collector */
	CHECK(!forgetting_may_end(claims, 11 * SECOND)); /* stacks of before may be unread */
	CHECK(forgetting_may_end(claims, 12 * SECOND));
	use(5);
	forgetting_end(claims, 12 * SECOND);
	for (uint64_t key = 1; key <= 2000; key++)
		CHECK_INT(has(key), key == 3 || key == 4 || key == 5 || key == 2000);
	CHECK_INT(kept.bytes, 4 * sizeof(struct named));
	CHECK_INT(claims_bytes(claims), 4 * sizeof(struct named));
	CHECK(!forgetting_begin(claims)); /* few again */
	emit(1);
	CHECK(has(1));
	end();
}

TEST(what_remains_raises_the_limit)
{
	begin(&ops);
	emit_all(1, 1001);
	pass_twice(10 * SECOND);
	emit_all(1, 1001);
	forgetting_end(claims, 20 * SECOND);
	CHECK(has(1) && has(1000));
	emit_all(1001, 2001); /* twice as many */
	CHECK(!forgetting_begin(claims));
	emit(2001);
	pass_twice(30 * SECOND);
	use(7);
	forgetting_end(claims, 40 * SECOND);
	CHECK(has(7) && !has(8) && !has(2001));
	end();
}

/* The limit of the agent comes first: what nothing needs makes room. */
TEST(a_refusal_makes_it_begin)
{
	const struct fusee_emission e = {.size = sizeof(e), .key = 1000};
	uint64_t key = 1;

	begin(&ops);
	claims_set_limit(claims, 1u << 20);
	while (!claims_record(claims, &process, 0,
			      &(struct fusee_emission){.size = sizeof(e), .key = key}))
		key++;
	CHECK(key < 256 && !has(key));
	pass_twice(10 * SECOND);
	forgetting_end(claims, 20 * SECOND);
	CHECK(!has(1));
	CHECK_INT(claims_record(claims, &process, 0, &e), 0);
	end();
}

TEST(a_kernel_that_cannot_forget_lets_all_be_kept)
{
	begin(&ops);
	emit_all(1, 1001);
	CHECK(forgetting_begin(claims));
	forgetting_passed(claims, 0);
	CHECK(!forgetting_begin(claims));
	CHECK(!forgetting_may_end(claims, UINT64_MAX));
	forgetting_end(claims, UINT64_MAX);
	CHECK(has(1) && has(1000));
	end();
}

TEST(an_older_plugin_keeps_all)
{
	begin(&before);
	emit_all(1, 1001);
	CHECK(!forgetting_begin(claims));
	CHECK(!forgetting_of(claims, 7));
	CHECK(has(1) && has(1000));
	end();
}

TEST(a_step_a_second)
{
	begin(&ops);
	CHECK(forgetting_is_time(claims, 5 * SECOND));
	CHECK(!forgetting_is_time(claims, 5 * SECOND + SECOND / 2));
	CHECK(forgetting_is_time(claims, 6 * SECOND));
	end();
}
