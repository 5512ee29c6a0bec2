/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/loss
#include "loss/loss.h"

#include <fusee/helpers.h>

#include "loss/comment.h"
#include "test.h"

static void check_sums(const struct loss_account *a)
{
	uint64_t sums[LOSS_DELIVERY + 1] = {0};

	for (uint32_t i = 0; i < a->n; i++)
		sums[a->counts[i].stage] += a->counts[i].n;
	CHECK_INT(a->complete, sums[LOSS_NOWHERE]);
	CHECK_INT(a->lost, sums[LOSS_TICK]);
	CHECK_INT(a->truncated, sums[LOSS_STACK]);
	CHECK_INT(a->due, a->complete + a->truncated + a->lost);
}

static enum loss_stage stage_of(const char *reason)
{
	return loss_stage_of(&(struct fusee_label){.key = fusee_text(reason)});
}

TEST(each_reason_is_described)
{
	for (uint32_t i = LOSS_NONE + 1; i < LOSS_REASONS; i++) {
		CHECK(*loss_text(i) && loss_stage(i) != LOSS_NOWHERE);
		CHECK_INT(stage_of(loss_text(i)), loss_stage(i));
		for (uint32_t k = LOSS_NONE; k < i; k++)
			CHECK(strcmp(loss_text(k), loss_text(i)));
	}
	CHECK_INT(stage_of("a plugin's"), LOSS_STACK);
	CHECK_STR(loss_stage_text(LOSS_TICK), "lost");
	CHECK_STR(loss_stage_text(LOSS_STACK), "truncated");
}

TEST(what_was_due_is_complete_truncated_or_lost)
{
	struct loss_account a;
	uint32_t mine;

	loss_account_init(&a);
	check_sums(&a);
	loss_account_add(&a, LOSS_NONE, 10);
	loss_account_add(&a, LOSS_RING_FULL, 3);
	loss_account_add(&a, LOSS_TOO_DEEP, 2);
	loss_account_add(&a, LOSS_REFUSED, 7); /* profiles: no samples */
	check_sums(&a);
	CHECK_INT(a.due, 15);
	mine = loss_account_reason(&a, "a plugin's");
	CHECK_INT(mine, LOSS_REASONS);
	CHECK_INT(loss_account_reason(&a, "too deep"), LOSS_TOO_DEEP);
	loss_account_add(&a, mine, 1);
	loss_account_add(&a, LOSS_NONE, 1);
	CHECK_INT(a.due, 17);
	check_sums(&a);
	loss_account_move(&a, LOSS_RING_FULL, LOSS_TIMER_SKIPPED, 1);
	loss_account_move(&a, LOSS_RING_FULL, LOSS_KERNEL_NOT_ALLOWED, 100);
	CHECK_INT(a.counts[LOSS_RING_FULL].n, 0);
	CHECK_INT(a.counts[LOSS_KERNEL_NOT_ALLOWED].n, 2);
	CHECK_INT(a.due, 17);
	check_sums(&a);
	loss_account_clear(&a);
	check_sums(&a);
	CHECK_INT(a.due, 0);
	CHECK_STR(a.counts[mine].text, "a plugin's");
	CHECK_INT(a.counts[mine].n, 0);
}

TEST(too_many_reasons)
{
	static char texts[LOSS_MAX][16];
	struct loss_account a;

	loss_account_init(&a);
	for (uint32_t i = 0; i < LOSS_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "reason %u", i);
		loss_account_add(&a, loss_account_reason(&a, texts[i]), 1);
	}
	CHECK_INT(a.n, LOSS_MAX);
	CHECK_INT(a.counts[LOSS_UNNAMED].n, LOSS_REASONS);
	CHECK_INT(a.truncated, LOSS_MAX);
	check_sums(&a);
}

TEST(lists)
{
	struct loss_account a;
	struct buf b = {0};

	loss_account_init(&a);
	loss_account_add(&a, LOSS_TOO_DEEP, 1234);
	loss_account_add(&a, loss_account_reason(&a, "a plugin's \"own\""), 1);
	loss_account_add(&a, LOSS_RING_FULL, 3);
	loss_account_list(&a, LOSS_STACK, &b);
	buf_add(&b, "", 1);
	CHECK_STR(b.p, "1,234 too deep, 1 a plugin's \"own\"");
	buf_reset(&b);
	loss_account_json(&a, LOSS_STACK, NULL, &(struct json){.out = &b, .spaced = true});
	buf_add(&b, "", 1);
	CHECK_STR(b.p, "{\"too deep\": 1234, \"a plugin's \\\"own\\\"\": 1}");
	buf_reset(&b);
	loss_account_json(&a, LOSS_TICK, NULL, &(struct json){.out = &b, .spaced = true});
	buf_add(&b, "", 1);
	CHECK_STR(b.p, "{\"ring full\": 3, \"timer skipped\": 0, "
		       "\"period not finished\": 0, \"kernel not allowed\": 0, \"throttled\": 0, "
		       "\"traced already\": 0, \"stop not allowed\": 0, \"wait over before its "
		       "stack was read\": 0, \"probe hit while another was read\": 0, \"ring full "
		       "at a probe\": 0, \"hit of a script's probe without a stack\": 0}");
	buf_fini(&b);
}

TEST(comments_of_pprof_files)
{
	static const struct {
		const char *comment, *reason;
		enum loss_stage stage;
		int64_t n;
	} all[] = {
		{"fusee: lost 12 samples: ring full", "ring full", LOSS_TICK, 12},
		{"fusee: truncated 3 samples: x y", "x y", LOSS_STACK, 3},
		{"fusee: lost 1 samples: of a newer fusee", "of a newer fusee", LOSS_TICK, 1},
		/* of earlier versions */
		{"fusee: lost or cut 12 samples: timer skipped", "timer skipped", LOSS_TICK, 12},
		{"fusee: lost or cut 4 samples: too deep", "too deep", LOSS_STACK, 4},
	};
	static const char *const others[] = {"", "fusee: lost 12 samples: ", "lost 12 samples: x",
					     "fusee: lost many samples: x"};
	enum loss_stage stage;
	const char *reason;
	int64_t n;

	for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		CHECK(loss_comment_read(all[i].comment, &stage, &n, &reason));
		CHECK_STR(reason, all[i].reason);
		CHECK_INT(stage, all[i].stage);
		CHECK_INT(n, all[i].n);
	}
	for (uint32_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		CHECK(!loss_comment_read(others[i], &stage, &n, &reason));
}
