/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/forgetting.h"

#include "base/metrics.h"
#include "unwind/internal/claims_state.h"

#define LEAST_BYTES (1u << 20) /* fewer are not looked through */
#define REFUSED_BYTES 65536u   /* .. if some were refused */
#define LATE_NS 1000000000u    /* the longest time from a walk to the reading of its stack */
#define STEP_NS 1000000000u    /* between two steps */
#define PASSES 2u

typedef uint64_t forget_fn(void *ctx, uint64_t process, uint32_t what);

static forget_fn *forget_of(const struct process_code *p, uint32_t unwinder)
{
	const struct fusee_unwinder_ops *ops =
		p->claims->unwinders->instances[unwinder]->descriptor->ops;

	return p->attached >> unwinder & 1 && FUSEE_HAS(ops, forget) ? ops->forget : NULL;
}

/* Calls ops->forget() of all unwinders that have it. *n: how many. The sum of what they return. */
static uint64_t forget(struct process_code *p, uint32_t what, uint32_t *n)
{
	const struct plugin_set *set = p->claims->unwinders;
	uint64_t bytes = 0;

	*n = 0;
	for (uint32_t i = 0; i < set->n && i < 32; i++) {
		forget_fn *f = forget_of(p, i);

		if (!f)
			continue;
		bytes += f(set->instances[i]->ctx, (uint64_t)(uintptr_t)p, what);
		++*n;
	}
	return bytes;
}

bool forgetting_is_time(struct claims *c, uint64_t now)
{
	if (now < c->forgot_ns + STEP_NS)
		return false;
	c->forgot_ns = now;
	return true;
}

/* ---- steps 1 and 2 ---- */

static bool is_due(const struct process_code *p)
{
	uint64_t most = p->names.most ? p->names.most : LEAST_BYTES;

	return p->names.bytes > most || (p->names.refused && p->names.bytes > REFUSED_BYTES);
}

static void begin(void *arg, uint64_t key, void *value)
{
	struct process_code *p = value;
	bool *any = arg;
	uint32_t n = p->names.passes;

	(void)key;
	if (p->names.since)
		return;
	if (!n && is_due(p)) {
		forget(p, FUSEE_FORGET_BEGIN, &n);
		if (!n)
			p->names.most = UINT64_MAX; /* its unwinders keep all */
		p->names.refused = false;
	}
	*any |= n > 0;
	p->names.passes += n > 0;
}

bool forgetting_begin(struct claims *c)
{
	bool any = false;

	hashmap_each(&c->processes, begin, &any);
	return any;
}

bool forgetting_of(void *claims, uint64_t process)
{
	const struct process_code *p = hashmap_get(&((struct claims *)claims)->processes, process);

	return p && p->names.passes && !p->names.since;
}

static void passed(void *arg, uint64_t key, void *value)
{
	const uint64_t *time = arg;
	struct process_code *p = value;

	(void)key;
	if (!p->names.passes || p->names.since)
		return;
	if (!*time) {
		p->names.passes = 0;
		p->names.most = UINT64_MAX;
	} else if (p->names.passes == PASSES) {
		p->names.since = *time;
	}
}

void forgetting_passed(struct claims *c, uint64_t time)
{
	hashmap_each(&c->processes, passed, &time);
}

/* ---- step 3 ---- */

static bool may_end(const struct process_code *p, uint64_t as_of)
{
	return p->names.since && as_of > p->names.since + LATE_NS;
}

struct ending {
	uint64_t as_of;
	bool any;
};

static void find_ending(void *arg, uint64_t key, void *value)
{
	struct ending *e = arg;

	(void)key;
	e->any |= may_end(value, e->as_of);
}

bool forgetting_may_end(const struct claims *c, uint64_t as_of)
{
	struct ending e = {as_of, false};

	hashmap_each(&c->processes, find_ending, &e);
	return e.any;
}

static int ignore(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	(void)out;
	(void)f;
	return 0;
}

void forgetting_use(struct claims *c, const struct walk_frame *f)
{
	const struct process_code *p = f->kind == FRAME_PUSHED
					       ? hashmap_get(&c->processes, f->process)
					       : NULL;
	struct fusee_raw_frame raw = {.v = {f->addr, f->extra[0], f->extra[1], f->extra[2]},
				      .flags = f->flags};
	struct fusee_frame_out out = {ignore};
	const char *type;

	if (p && p->names.since)
		(void)claims_symbolize_pushed(c, f->process, f->generation, &raw, &out, &type);
}

static void end(void *arg, uint64_t key, void *value)
{
	const uint64_t *as_of = arg;
	struct process_code *p = value;
	uint64_t bytes;
	uint32_t n;

	(void)key;
	if (!may_end(p, *as_of))
		return;
	bytes = forget(p, FUSEE_FORGET_UNUSED, &n);
	metric_add(
		"code_forgotten_bytes_total",
		"Total number of bytes of names of code made at run time that were freed, as the "
		"code was removed.",
		NULL, bytes);
	process_code_add_bytes(p, -(int64_t)bytes);
	p->names.bytes -= bytes < p->names.bytes ? bytes : p->names.bytes;
	p->names.most = 2 * p->names.bytes > LEAST_BYTES ? 2 * p->names.bytes : LEAST_BYTES;
	p->names.since = p->names.passes = 0;
}

void forgetting_end(struct claims *c, uint64_t as_of)
{
	hashmap_each(&c->processes, end, &as_of);
}
