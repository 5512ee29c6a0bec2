/* SPDX-License-Identifier: Apache-2.0 */
/* Losses as samples of a profile. */
#include <stdio.h>
#include <string.h>

#include "profiler/build_profile.h"
#include "profiler/internal/build_chosen.h"

static void add_lost(struct builder *b, const struct loss_count *c, const int64_t *values)
{
	struct fusee_label label = {.key = {"reason", 6}, .str = {c->text, strlen(c->text)}};
	struct fusee_location loc = {.flags = FUSEE_LOCATION_REASON};
	struct fusee_function fn = {0};
	struct fusee_line line = {0};
	uint32_t at;
	char name[160];

	snprintf(name, sizeof(name), "[%s: %s]", loss_stage_text(c->stage), c->text);
	fn.name = fn.system_name = builder_cstr(b, name);
	line.function = builder_function(b, &fn);
	at = builder_location(b, &loc, &line, 1);
	builder_sample(b, builder_stack(b, &at, 1), &label, 1, 0, 0, values);
}

void build_losses(struct builder *b, const struct loss_account *a, const struct build_lost *lost)
{
	builder_losses(b, a);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct loss_count *c = &a->counts[i];
		int64_t values[BUILD_MAX_TYPES] = {(int64_t)c->n};
		bool late = i == LOSS_WAIT_LATE && lost->first;

		if (!c->n || c->stage != LOSS_TICK)
			continue;
		if (!late)
			values[1] = (int64_t)(c->n * lost->weight);
		for (uint32_t s = 0; late && s < PLUGIN_MAX_SAMPLERS; s++)
			values[lost->first + s] = (int64_t)a->late_weight[s];
		add_lost(b, c, values);
	}
}
