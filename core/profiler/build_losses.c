/* SPDX-License-Identifier: Apache-2.0 */
/* Losses as samples of a profile. */
#include <stdio.h>
#include <string.h>

#include "profiler/build_profile.h"
#include "profiler/internal/build_chosen.h"

static void add_lost(struct builder *b, const struct loss_count *c, bool is_wait,
		     uint64_t weight_ns)
{
	struct fusee_label label = {.key = {"reason", 6}, .str = {c->text, strlen(c->text)}};
	struct fusee_location loc = {.flags = FUSEE_LOCATION_REASON};
	struct fusee_function fn = {0};
	struct fusee_line line = {0};
	int64_t lost = (int64_t)(c->n * weight_ns);
	bool apart = is_wait && builder_profile(b)->types.n > 2;
	int64_t values[BUILD_VALUES] = {(int64_t)c->n, apart ? 0 : lost, apart ? lost : 0};
	uint32_t at;
	char name[160];

	snprintf(name, sizeof(name), "[%s: %s]", loss_stage_text(c->stage), c->text);
	fn.name = fn.system_name = builder_cstr(b, name);
	line.function = builder_function(b, &fn);
	at = builder_location(b, &loc, &line, 1);
	builder_sample(b, builder_stack(b, &at, 1), &label, 1, 0, 0, values);
}

void build_losses(struct builder *b, const struct loss_account *a, uint64_t weight_ns)
{
	builder_losses(b, a);
	for (uint32_t i = 0; i < a->n; i++)
		if (a->counts[i].n && a->counts[i].stage == LOSS_TICK)
			add_lost(b, &a->counts[i], i == LOSS_WAIT_LATE, weight_ns);
}
