/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "process/procfs.h"
#include "unwind/internal/claims_state.h"

#define SECOND_NS 1000000000u
#define OFFERS 8u /* of a process's mappings in a second */
/* From the first offer of a mapping to the second, then doubled up to a second: a runtime may run
 * code before it has described it. */
#define OFFER_NS 20000000u
#define OFFERS_OF_ALL 256u
#define MAX_UNWINDERS 32u /* bits of process_code.attached */

static const struct fusee_unwinder_ops *ops_of(const struct claims *c, uint32_t i)
{
	return c->unwinders->instances[i]->descriptor->ops;
}

int claims_new(struct claims **ret, const struct plugin_set *unwinders)
{
	struct claims *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->unwinders = unwinders;
	*ret = c;
	return 0;
}

static uint64_t handle(const struct process_code *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void code_free(struct process_code *p)
{
	for (uint32_t i = 0; i < p->claims->unwinders->n && i < MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

		if (p->attached & 1u << i && ops->detach)
			ops->detach(p->claims->unwinders->instances[i]->ctx, handle(p));
	}
	process_code_add_bytes(p, -(int64_t)p->bytes);
	claim_list_fini(&p->list);
	for (uint32_t i = 0; i < FILES_MAX_UNWINDERS; i++)
		free(p->words[i].at);
	free(p);
}

static void free_code(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	code_free(value);
}

void claims_set_opener(struct claims *c, struct opener *o)
{
	c->opener = o;
}

void claims_set_limit(struct claims *c, uint64_t bytes)
{
	c->budget.most = bytes;
}

uint64_t claims_bytes(const struct claims *c)
{
	return c->budget.bytes;
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	hashmap_each(&c->processes, free_code, NULL);
	hashmap_fini(&c->processes);
	user_budget_fini(&c->budget);
	free(c);
}

void claims_forget(struct claims *c, uint64_t process)
{
	struct process_code *p = hashmap_del(&c->processes, process);

	if (p)
		code_free(p);
}

static void unmark(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	((struct process_code *)value)->marked = false;
}

void claims_unmark(struct claims *c)
{
	hashmap_each(&c->processes, unmark, NULL);
}

void claims_mark(struct claims *c, uint64_t process)
{
	struct process_code *p = hashmap_get(&c->processes, process);

	if (p)
		p->marked = true;
}

bool claims_is_marked(const struct claims *c, uint64_t process)
{
	const struct process_code *p = hashmap_get(&c->processes, process);

	return p && p->marked;
}

/* ---- offering memory ---- */

static struct process_code *code_get(struct claims *c, struct process *process)
{
	struct process_code *p = hashmap_get(&c->processes, process->id);
	uid_t uid = UINT32_MAX;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct process_code){.claims = c, .process = process, .generation = 1};
	if (process->replaced || procfs_identity(process->pid, &p->identity))
		p->identity = 0; /* it has ended */
	else
		procfs_user(process->pid, &uid);
	p->uid = uid;
	if (hashmap_put(&c->processes, process->id, p)) {
		free(p);
		return NULL;
	}
	return p;
}

/* Offers are limited for each mapping and each process. */
static bool may_offer(struct process_code *p, uint64_t lo, uint64_t time)
{
	bool again = lo == p->offered.lo;

	if (!p->offered.since || time > p->offered.since + SECOND_NS) {
		p->offered.since = time;
		p->offered.n = 0;
	}
	if (p->offered.n >= OFFERS || (again && time <= p->offered.last + p->offered.pause))
		return false;
	if (!again)
		p->offered.pause = OFFER_NS;
	else if (p->offered.pause < SECOND_NS)
		p->offered.pause *= 2;
	p->offered.lo = lo;
	p->offered.last = time;
	p->offered.n++;
	return true;
}

static void call_mapped(struct process_code *p, uint32_t i, const struct fusee_mapping_view *view)
{
	const struct fusee_instance *in = p->claims->unwinders->instances[i];
	const struct fusee_unwinder_ops *ops = in->descriptor->ops;
	int r;

	if (!ops->mapped)
		return;
	p->attached |= 1u << i;
	r = ops->mapped(in->ctx, handle(p), view);
	if (r < 0)
		log_debug("%s: pid %d: %s", in->name, (int)p->process->pid, strerror(-r));
}

static void offer(struct process_code *p, const struct process_mapping *m)
{
	struct fusee_mapping_view view = {.size = sizeof(view), .lo = m->lo, .hi = m->hi};

	for (uint32_t i = 0; i < p->claims->unwinders->n && i < MAX_UNWINDERS; i++)
		call_mapped(p, i, &view);
}

void claims_library(struct claims *c, struct process *process, const struct process_mapping *m,
		    uint32_t unwinder)
{
	struct fusee_mapping_view view = {.size = sizeof(view),
					  .flags = FUSEE_VIEW_LIBRARY,
					  .lo = m->lo,
					  .hi = m->hi,
					  .bias = m->bias};
	const struct fusee_unwinder_ops *ops = ops_of(c, unwinder);
	struct process_code *p = ops->mapped ? code_get(c, process) : NULL;
	const struct inspection_slab *slab = m->file->slabs[unwinder];

	if (!p || process->replaced || p->library[unwinder] == m->bias + 1)
		return;
	if (slab && slab->n <= UINT32_MAX)
		view.table = (struct fusee_table){slab->words, (uint32_t)slab->n, 4};
	p->library[unwinder] = m->bias + 1;
	call_mapped(p, unwinder, &view);
}

static void offer_libraries(struct claims *c, struct process *process,
			    const struct process_mapping *m)
{
	for (uint32_t u = 0; u < c->unwinders->n && u < FILES_MAX_UNWINDERS; u++)
		if (m->file->slabs[u])
			claims_library(c, process, m, u);
}

void claims_offer_all(struct claims *c, struct process *process, uint64_t time)
{
	struct process_code *p = code_get(c, process);
	uint32_t n = 0;

	for (uint32_t i = 0; p && i < process->n; i++) {
		struct process_mapping *m = &process->mappings[i];

		if (m->file && m->file->state != FILE_REFUSED) {
			if (files_base(m))
				offer_libraries(c, process, m);
		} else if (n < OFFERS_OF_ALL) {
			offer(p, m);
			n++;
		}
	}
	if (!p)
		return;
	p->offered.since = p->refreshed = time;
	p->offered.n = OFFERS;
}

const uint32_t *claims_words(const struct claims *c, uint64_t process, uint32_t unwinder,
			     uint64_t *n)
{
	const struct process_code *p = c ? hashmap_get(&c->processes, process) : NULL;

	if (!p || unwinder >= FILES_MAX_UNWINDERS || !p->words[unwinder].n)
		return NULL;
	*n = p->words[unwinder].n;
	return p->words[unwinder].at;
}

void claims_set_listener(struct claims *c, void (*changed)(void *arg, struct process *), void *arg)
{
	c->changed = changed;
	c->arg = arg;
}

static void refresh(struct process_code *p)
{
	const struct plugin_set *set = p->claims->unwinders;

	if (p->process->replaced) /* the pid has another program's code now */
		return;
	for (uint32_t i = 0; i < set->n && i < MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

		if (p->attached & 1u << i && ops->refresh)
			ops->refresh(set->instances[i]->ctx, handle(p));
	}
}

/* Refreshes the process if that was not done in the last second. */
static void refresh_if_due(struct process_code *p, uint64_t time)
{
	if (time <= p->refreshed + SECOND_NS)
		return;
	p->refreshed = time;
	refresh(p);
}

static void refresh_code(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	refresh(value);
}

void claims_refresh(struct claims *c)
{
	hashmap_each(&c->processes, refresh_code, NULL);
}

const struct claim *claims_at(struct claims *c, struct process *process,
			      const struct process_mapping *m, uint64_t addr, uint64_t time,
			      uint32_t *generation)
{
	struct process_code *p = code_get(c, process);
	const struct claim *claim;

	*generation = 0;
	if (!p)
		return NULL;
	claim = claim_list_find(&p->list, addr);
	if (!claim && !process->replaced && may_offer(p, m->lo, time)) {
		offer(p, m);
		claim = claim_list_find(&p->list, addr);
	} else if (claim) {
		refresh_if_due(p, time);
		claim = claim_list_find(&p->list, addr);
	}
	*generation = p->generation;
	return claim;
}

bool claims_were_offered(const struct claims *c, uint64_t process)
{
	const struct process_code *p = hashmap_get(&c->processes, process);

	return p && p->attached;
}

void claims_each_step(const struct claims *c, uint64_t process, uint64_t lo, uint64_t hi,
		      void (*each)(void *arg, const struct claim *), void *arg)
{
	const struct process_code *p = c ? hashmap_get(&c->processes, process) : NULL;

	for (uint32_t i = p ? claim_list_above(&p->list, lo) : 0;
	     p && i < p->list.n && p->list.at[i].lo < hi; i++)
		if (p->list.at[i].flags & FUSEE_CLAIM_STEP)
			each(arg, &p->list.at[i]);
}

bool claims_follow(const struct claims *c, uint64_t process)
{
	const struct process_code *p = c ? hashmap_get(&c->processes, process) : NULL;

	return p && p->list.follow;
}

/* ---- frames that were pushed ---- */

void claims_expect_pushed(struct claims *c, struct process *process, uint32_t unwinder,
			  uint64_t time)
{
	struct process_code *p = unwinder < MAX_UNWINDERS ? code_get(c, process) : NULL;

	if (!p)
		return;
	p->attached |= 1u << unwinder;
	refresh_if_due(p, time);
}

int claims_record(struct claims *c, struct process *process, uint32_t unwinder,
		  const struct fusee_emission *e)
{
	const struct fusee_unwinder_ops *ops;
	struct fusee_instance *in;
	struct process_code *p;
	int r;

	if (unwinder >= c->unwinders->n || unwinder >= MAX_UNWINDERS)
		return -EINVAL;
	in = c->unwinders->instances[unwinder];
	ops = in->descriptor->ops;
	p = code_get(c, process);
	if (!p)
		return -ENOMEM;
	p->attached |= 1u << unwinder;
	r = ops->record ? process_code_has_room(p, "emission") : 0;
	p->names.refused |= r != 0;
	if (!r && ops->record)
		r = ops->record(in->ctx, handle(p), e);
	if (r > 0) {
		process_code_add_bytes(p, r);
		p->names.bytes += (uint32_t)r;
	}
	return r < 0 ? r : 0;
}

/* ---- symbolizing ---- */

const char *claims_frame_type(const struct claims *c, uint32_t unwinder)
{
	return ops_of(c, unwinder)->frame_type;
}

static int symbolize_by(struct process_code *p, uint32_t i, const struct fusee_raw_frame *raw,
			struct fusee_frame_out *out, const char **type)
{
	const struct fusee_unwinder_ops *ops = ops_of(p->claims, i);

	*type = ops->frame_type;
	return ops->symbolize ? ops->symbolize(p->claims->unwinders->instances[i]->ctx, raw, out)
			      : 0;
}

int claims_symbolize(struct claims *c, uint64_t process, uint64_t addr, uint32_t generation,
		     struct fusee_frame_out *out, const char **type)
{
	struct process_code *p = hashmap_get(&c->processes, process);
	struct fusee_raw_frame raw = {.size = sizeof(raw), .generation = generation, .addr = addr};
	const struct claim *claim = p ? claim_list_find(&p->list, addr) : NULL;
	int r = 0;

	if (!p)
		return 0;
	raw.process = handle(p);
	if (claim && claim->flags & FUSEE_CLAIM_NAME)
		return symbolize_by(p, claim->unwinder, &raw, out, type);
	for (uint32_t i = 0; !r && i < c->unwinders->n && i < MAX_UNWINDERS; i++)
		if (p->attached & 1u << i)
			r = symbolize_by(p, i, &raw, out, type);
	return r;
}

int claims_symbolize_pushed(struct claims *c, uint64_t process, uint32_t unwinder,
			    const struct fusee_raw_frame *pushed, struct fusee_frame_out *out,
			    const char **type)
{
	struct process_code *p = hashmap_get(&c->processes, process);
	struct fusee_raw_frame raw = *pushed;

	*type = claims_frame_type(c, unwinder);
	if (!p)
		return 0;
	raw.size = sizeof(raw);
	raw.process = handle(p);
	raw.generation = p->generation;
	return symbolize_by(p, unwinder, &raw, out, type);
}
