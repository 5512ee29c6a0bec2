/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_chosen.h"

#include <string.h>

#include "plugin/instance.h"
#include "profiler/build_profile.h"
#include "profiler/profiler.h"
#include "symbolizer/symbolizer.h"

#define MOST_FRAMES 32u /* of the interrupt, of its program and of the sampler's */

static void put_type(struct builder *b, const struct fusee_sampler_ops *ops)
{
	builder_type(b, ops->type, ops->unit);
}

const char *build_types(struct builder *b, const struct build_options *o,
			const struct chooser_set *set, const char **unit)
{
	const struct fusee_sampler_ops *one = plugin_chooser_ops(set, o->sampler);
	const char *type = o->event ? o->event : "cpu";
	bool chosen = one && (o->chosen || o->part == BUILD_CHOSEN);
	uint32_t n = o->part == BUILD_ALL && (o->chosen || o->beside) ? set->n : 0;

	*unit = chosen                  ? one->unit
		: o->hits               ? "bytes"
		: o->event && !o->timed ? "count"
					: "nanoseconds";
	if (chosen)
		type = one->type;
	builder_type(b, "samples", "count");
	builder_type(b, type, *unit);
	for (uint32_t i = chosen ? 1 : 0; i < n; i++)
		put_type(b, plugin_chooser_ops(set, i));
	if (o->hits)
		builder_type(b, "alloc_objects", "count");
	if (o->in_use) {
		builder_type(b, "inuse_space", "bytes");
		builder_type(b, "inuse_objects", "count");
	}
	if (o->timed)
		builder_type(b, "calls", "count");
	return type;
}

uint32_t build_column(const struct build_options *o, const struct sample_key *k)
{
	if (!k->part || o->part == BUILD_CHOSEN || (!o->chosen && !o->beside))
		return 1;
	return (o->beside ? 2 : 1) + k->sampler % PLUGIN_MAX_SAMPLERS;
}

struct build_lost build_lost_weights(const struct profiler *p, const struct build_options *o)
{
	struct build_lost lost = {.weight = o->period_ns};

	if (o->part != BUILD_ALL || !p->choosers.n)
		return lost;
	lost.first = o->beside ? 2 : 1;
	lost.weight = o->beside || p->choosers.n == 1 ? o->period_ns : 0;
	return lost;
}

static int64_t rounded(uint64_t hits)
{
	return (int64_t)((hits + HIT_PARTS / 2) / HIT_PARTS);
}

void build_values(const struct build_options *o, const struct sample_key *k,
		  const struct sample_sum *sum, const struct followed_sum *used,
		  int64_t values[BUILD_MAX_TYPES])
{
	memset(values, 0, BUILD_MAX_TYPES * sizeof(*values));
	values[0] = (int64_t)sum->count;
	if (o->hits || o->timed)
		values[2] = rounded(sum->hits);
	if (used) {
		values[3] = (int64_t)used->weight;
		values[4] = rounded(used->hits);
	}
	values[build_column(o, k)] = (int64_t)sum->weight;
}

bool build_chosen_label(const struct chooser_set *set, const struct sample_key *k,
			struct fusee_label *ret)
{
	const struct fusee_sampler_ops *ops = k->part ? plugin_chooser_ops(set, k->sampler) : NULL;

	*ret = (struct fusee_label){0};
	return ops && ops->label && !ops->label(set->at[k->sampler]->ctx, k->part - 1, ret) &&
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

/* Is it a function of the kernel by which a raw tracepoint calls a program? */
static bool is_of_tracepoint(const char *name)
{
	static const char *const begins[] = {"bpf_trace_run", "__bpf_trace_", "__traceiter_"};

	for (size_t i = 0; name && i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

uint32_t build_chosen_begin(const struct fusee_sampler_ops *ops, const char *event,
			    struct kernel_names *names, const struct collector *c,
			    const struct dict_entry *stack)
{
	bool tracepoint = !ops && event && !strcmp(event, "rawtp");
	const char *const *omit = ops ? ops->omit : NULL;
	const uint32_t *ids = stack->key;
	uint32_t n = stack->len / sizeof(*ids), begin = 0;
	const char *module;

	for (uint32_t i = 0; (omit || tracepoint) && i + 1 < n && i < MOST_FRAMES; i++) {
		const char *name;
		struct walk_frame f = frame_set_at(&c->frames, ids[i]);

		if (f.kind != FRAME_KERNEL)
			break;
		name = kernel_names_at(names, f.addr, &module);
		if (omit ? is_omitted(omit, name) : is_of_tracepoint(name))
			begin = i + 1;
		else if (begin)
			break;
	}
	return begin;
}
