/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_chosen.h"

#include <string.h>

#include "plugin/instance.h"
#include "profiler/build_profile.h"
#include "symbolizer/symbolizer.h"

#define MOST_FRAMES 32u /* of the interrupt, of its program and of the sampler's */

const char *build_types(struct builder *b, const struct build_options *o,
			const struct fusee_instance *chooser, const char **unit)
{
	const struct fusee_sampler_ops *ops = chooser ? chooser->descriptor->ops : NULL;
	const char *type = o->event ? o->event : "cpu";

	*unit = o->hits ? "bytes" : o->event ? "count" : "nanoseconds";
	if (o->chosen && ops) {
		type = ops->type;
		*unit = ops->unit;
	}
	builder_type(b, "samples", "count");
	builder_type(b, type, *unit);
	if (o->wall && ops)
		builder_type(b, ops->type, ops->unit);
	if (o->hits)
		builder_type(b, "alloc_objects", "count");
	if (o->in_use) {
		builder_type(b, "inuse_space", "bytes");
		builder_type(b, "inuse_objects", "count");
	}
	return type;
}

static int64_t rounded(uint64_t hits)
{
	return (int64_t)((hits + HIT_PARTS / 2) / HIT_PARTS);
}

void build_values(const struct build_options *o, const struct sample_key *k,
		  const struct sample_sum *sum, const struct followed_sum *used,
		  int64_t values[BUILD_VALUES])
{
	bool apart = k->part && o->wall;
	int64_t weight = (int64_t)sum->weight;

	values[0] = (int64_t)sum->count;
	values[1] = apart ? 0 : weight;
	values[2] = apart ? weight : o->hits ? rounded(sum->hits) : 0;
	values[3] = used ? (int64_t)used->weight : 0;
	values[4] = used ? rounded(used->hits) : 0;
}

bool build_chosen_label(const struct fusee_instance *chooser, uint32_t part,
			struct fusee_label *ret)
{
	const struct fusee_sampler_ops *ops = chooser ? chooser->descriptor->ops : NULL;

	*ret = (struct fusee_label){0};
	return part && ops && ops->label && !ops->label(chooser->ctx, part - 1, ret) &&
	       ret->key.len && ret->str.p;
}

/* A compiler's clone of a function has its name and a suffix. */
static bool is_omitted(const char *const *omit, const char *name)
{
	for (; name && *omit; omit++) {
		size_t len = strlen(*omit);

		if (!strncmp(name, *omit, len) && (!name[len] || name[len] == '.'))
			return true;
	}
	return false;
}

uint32_t build_chosen_begin(const struct fusee_instance *chooser, struct kernel_names *names,
			    const struct collector *c, const struct dict_entry *stack)
{
	const struct fusee_sampler_ops *ops = chooser ? chooser->descriptor->ops : NULL;
	const uint32_t *ids = stack->key;
	uint32_t n = stack->len / sizeof(*ids), begin = 0;
	const char *module;

	for (uint32_t i = 0; ops && ops->omit && i + 1 < n && i < MOST_FRAMES; i++) {
		struct walk_frame f = frame_set_at(&c->frames, ids[i]);

		if (f.kind != FRAME_KERNEL)
			break;
		if (is_omitted(ops->omit, kernel_names_at(names, f.addr, &module)))
			begin = i + 1;
		else if (begin)
			break;
	}
	return begin;
}
