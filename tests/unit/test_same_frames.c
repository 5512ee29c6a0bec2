/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/claims.h"
#include "unwind/same_frames.h"

/* An unwinder whose frames have a key, which says nothing, and the number of a name. */
static const struct fusee_host *host = &claims_host;
static bool lacks_line, is_builtin;
static uint32_t calls;

static int symbolize(void *ctx, const struct fusee_raw_frame *raw, struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = {.size = sizeof(frame), .line = lacks_line ? 0 : 3};
	char name[32];

	(void)ctx;
	calls++;
	if (raw->v[1] == UINT64_MAX)
		return 0;
	snprintf(name, sizeof(name), "name%llu", (unsigned long long)raw->v[1]);
	frame.function = (struct fusee_str){name, strlen(name)};
	if (is_builtin)
		frame.flags = FUSEE_FRAME_BUILTIN;
	CHECK_INT(host->unwinder->frame(out, &frame), 0);
	return 1;
}

static int record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	(void)ctx;
	(void)process;
	(void)e;
	return 0;
}

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops), .frame_type = "java", .symbolize = symbolize, .record = record};
static const struct fusee_plugin plugin = {.name = "fake", .ops = &ops};
static struct fusee_instance instances[2] = {{.descriptor = &plugin, .name = "fake"},
					     {.descriptor = &plugin, .name = "fake"}};
static struct fusee_instance *list[] = {&instances[0], &instances[1]};
static const struct plugin_set set = {list, 2};
static struct process processes[2] = {{.id = 7}, {.id = 8}};
static struct claims *claims;
static struct same_frames *same;
static struct walk w;

static void begin(void)
{
	const struct fusee_emission e = {.size = sizeof(e)};

	lacks_line = is_builtin = false;
	calls = 0;
	CHECK_INT(claims_new(&claims, &set), 0);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t u = 0; u < 2; u++)
			CHECK_INT(claims_record(claims, &processes[i], u, &e), 0);
}

static void end(void)
{
	same_frames_free(same);
	same = NULL;
	claims_free(claims);
}

/* A stack of one frame. Returns the key that it has then. */
static uint64_t seen(uint64_t key, uint64_t name, uint64_t process, uint32_t unwinder)
{
	walk_clear(&w, WALK_COPY_FRAMES);
	walk_put(&w, &(struct walk_frame){.kind = FRAME_PUSHED,
					  .addr = key,
					  .extra = {name},
					  .process = process,
					  .generation = unwinder});
	same_frames_replace(&same, claims, &w);
	CHECK_INT(w.n, 1);
	CHECK_INT(w.frames[0].extra[0], name);
	return w.frames[0].addr;
}

TEST(a_frame_becomes_the_first_with_its_names)
{
	uint32_t known, names;

	begin();
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_INT(seen(10, 1, 7, 0), 10);
		CHECK_INT(seen(11, 1, 7, 0), 10);
		CHECK_INT(seen(12, 2, 7, 0), 12);
		CHECK_INT(seen(13, 1, 8, 0), 13); /* of another process */
		CHECK_INT(seen(14, 1, 8, 1), 14); /* of another unwinder */
		CHECK_INT(seen(15, 1, 8, 0), 13);
	}
	CHECK_INT(calls, 6); /* each once */
	same_frames_count(same, &known, &names);
	CHECK_INT(known, 6);
	CHECK_INT(names, 4);
	end();
}

/* A line may become known later, and then tell them apart. Stubs have none. */
TEST(frames_whose_names_are_not_complete_stay)
{
	begin();
	CHECK_INT(seen(1, UINT64_MAX, 7, 0), 1);
	CHECK_INT(seen(2, UINT64_MAX, 7, 0), 2);
	lacks_line = true;
	CHECK_INT(seen(3, 1, 7, 0), 3);
	CHECK_INT(seen(4, 1, 7, 0), 4);
	is_builtin = true;
	CHECK_INT(seen(5, 1, 7, 0), 5);
	CHECK_INT(seen(6, 1, 7, 0), 5);
	end();
}

TEST(other_frames_stay)
{
	static const struct walk_frame others[] = {
		{.kind = FRAME_FILE, .file = 3, .addr = 1},
		{.kind = FRAME_ANONYMOUS, .addr = 1, .process = 7},
		{.kind = FRAME_KERNEL, .addr = 1},
	};

	begin();
	walk_clear(&w, WALK_COPY_FRAMES);
	for (uint32_t i = 0; i < 3; i++)
		walk_put(&w, &others[i]);
	same_frames_replace(&same, claims, &w);
	same_frames_replace(&same, NULL, &w);
	CHECK(!memcmp(w.frames, others, sizeof(others)));
	CHECK_INT(calls, 0);
	end();
}

/* A program makes the same names again and again: few frames are kept of them, and what is known
 * has a limit. */
TEST(ever_new_frames_of_the_same_names)
{
	uint32_t known, names;

	begin();
	for (uint32_t i = 0; i < 300000; i++) {
		CHECK_INT(seen(1000 + i, i % 24, 7, 0), 1000 + i % 24);
		same_frames_count(same, &known, &names);
		CHECK(known < 17000 && names <= 24);
	}
	CHECK_INT(calls, 300000);
	end();
}

/* A program makes ever new names: they are forgotten, and the frames of each stay as they are. Then
 * nothing is won by looking at its frames, so most are passed on. */
TEST(ever_new_names)
{
	uint32_t known, names, most = 0;

	begin();
	for (uint32_t i = 0; i < 300000; i++) {
		CHECK_INT(seen(1000 + i, i, 7, 0), 1000 + i);
		same_frames_count(same, &known, &names);
		most = names > most ? names : most;
	}
	CHECK(most > 30000 && most < 33000);
	CHECK(calls < 40000);
	end();
}
