/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/comment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static enum loss_stage stage_of(struct fusee_str reason)
{
	for (enum loss_reason i = LOSS_NONE + 1; i < LOSS_REASONS; i++)
		if (fusee_text_is(reason, loss_text(i)))
			return loss_stage(i);
	return LOSS_STACK;
}

enum loss_stage loss_stage_of(const struct fusee_label *l)
{
	for (enum loss_stage i = LOSS_TICK; i <= LOSS_DELIVERY; i++)
		if (fusee_text_is(l->str, loss_stage_text(i)))
			return i;
	return stage_of(l->key);
}

void loss_comment_write(struct buf *b, const struct fusee_label *l)
{
	buf_printf(b, "fusee: %s %" PRId64 " samples: ", loss_stage_text(loss_stage_of(l)), l->num);
	buf_add(b, l->key.p, l->key.len);
}

bool loss_comment_read(const char *comment, enum loss_stage *stage, int64_t *n, const char **reason)
{
	static const struct {
		const char *format;
		enum loss_stage stage;
	} forms[] = {
		{"fusee: lost %" SCNd64 " samples: %n", LOSS_TICK},
		{"fusee: truncated %" SCNd64 " samples: %n", LOSS_STACK},
		{"fusee: lost or cut %" SCNd64 " samples: %n", LOSS_NOWHERE},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		int end = 0;

		if (sscanf(comment, forms[i].format, n, &end) != 1 || !end || !comment[end])
			continue;
		*reason = comment + end;
		*stage = forms[i].stage ? forms[i].stage : stage_of(fusee_text(*reason));
		return true;
	}
	return false;
}
