/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/collector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define SHARE 8u        /* a process may use 1 / SHARE of the free bytes */
#define MOST_IDS 65536u /* of a collector */
#define ENTRY 24u       /* bytes of a dictionary's entry besides its key */

static struct {
	uint64_t bytes;  /* of all collectors */
	uint64_t shared; /* of collectors without a limit of their own */
	uint64_t limit;  /* of shared */
} memory;

void collector_set_limit(uint64_t bytes)
{
	memory.limit = bytes;
}

uint64_t collector_bytes(void)
{
	return memory.bytes;
}

void collector_set_own_limit(struct collector *c, uint64_t bytes)
{
	c->own_limit = bytes;
}

int collector_new(struct collector **ret)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c || frame_set_init(&c->frames, &c->arena) || dict_init_in(&c->stacks, &c->arena) ||
	    dict_init_in(&c->comms, &c->arena) || dict_init_in(&c->processes, &c->arena) ||
	    dict_init_in(&c->samples, &c->arena) || dict_init_in(&c->ids, &c->arena) ||
	    dict_init_in(&c->texts, &c->arena)) {
		collector_free(c);
		return -ENOMEM;
	}
	c->start_wall_ns = clock_ns(CLOCK_REALTIME);
	c->start_ns = clock_now();
	*ret = c;
	return 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	arena_fini(&c->arena);
	memory.bytes -= c->bytes;
	memory.shared -= c->own_limit ? 0 : c->bytes;
	buf_fini(&c->times);
	buf_fini(&c->followed.all);
	free(c);
}

/* Grows an array of *n items until index id is in it; new items are zero. NULL: no memory. */
static void *grow(struct collector *c, void *array, uint32_t *n, uint32_t id, size_t size)
{
	uint32_t count = *n ? *n : 64;
	void *grown;

	while (count <= id)
		count *= 2;
	if (count == *n)
		return array;
	grown = arena_grow(&c->arena, array, *n * size, count * size);
	if (grown)
		*n = count;
	return grown;
}

/* The id of the unwound stack, or DICT_NONE. */
static uint32_t stack_id(struct collector *c, const struct walk *w)
{
	uint32_t ids[sizeof(w->frames) / sizeof(w->frames[0])];

	for (uint32_t i = 0; i < w->n; i++) {
		ids[i] = frame_set_add(&c->frames, &w->frames[i]);
		if (ids[i] == FRAME_SET_NONE)
			return DICT_NONE;
	}
	return dict_add(&c->stacks, ids, w->n * sizeof(ids[0]));
}

static uint32_t process_id(struct collector *c, const struct process *p, uint32_t set)
{
	const uint64_t key[2] = {p->id, set};
	uint32_t id = dict_add(&c->processes, key, sizeof(key));
	struct collected_process *at;

	if (id == DICT_NONE)
		return id;
	at = grow(c, c->collected, &c->ncollected, id, sizeof(*at));
	if (!at)
		return DICT_NONE;
	c->collected = at;
	at += id;
	at->pid = p->pid;
	at->set = set;
	/* Program and name may become known after the first samples. */
	at->program = p->program;
	memcpy(at->name, *p->name ? p->name : p->comm,
	       *p->name ? sizeof(at->name) : sizeof(p->comm));
	return id;
}

/* ---- limits ---- */

static uint64_t bytes_of(const struct dict *d)
{
	return d->bytes + (uint64_t)d->n * ENTRY;
}

/* Counts the memory. Returns what has been added since the last call, without followed hits, whose
 * number the BPF sampler limits. */
static uint64_t account(struct collector *c)
{
	uint64_t bytes = frame_set_bytes(&c->frames) + bytes_of(&c->stacks) + bytes_of(&c->comms) +
			 bytes_of(&c->processes) + bytes_of(&c->samples) +
			 c->nsums * sizeof(*c->sums) + c->ncollected * sizeof(*c->collected) +
			 bytes_of(&c->ids) + bytes_of(&c->texts) + c->nof_ids * sizeof(*c->of_ids) +
			 c->times.len;
	uint64_t followed = c->followed.all.len, before = c->bytes,
		 added = bytes - (before - c->followed.bytes);

	c->bytes = bytes + followed;
	c->followed.bytes = followed;
	memory.bytes += c->bytes - before;
	memory.shared += c->own_limit ? 0 : c->bytes - before;
	return added;
}

static void charge(struct collector *c, uint32_t process)
{
	c->collected[process].bytes += account(c);
}

static bool is_full(const struct collector *c, uint32_t process)
{
	uint64_t limit = c->own_limit ? c->own_limit : memory.limit;
	uint64_t used = c->own_limit ? c->bytes : memory.shared;

	return limit && (used >= limit || c->collected[process].bytes > (limit - used) / SHARE);
}

static bool has_stack(const struct collector *c, const struct walk *w)
{
	uint32_t ids[sizeof(w->frames) / sizeof(w->frames[0])];

	for (uint32_t i = 0; i < w->n; i++) {
		ids[i] = frame_set_find(&c->frames, &w->frames[i]);
		if (ids[i] == FRAME_SET_NONE)
			return false;
	}
	return dict_find(&c->stacks, ids, w->n * sizeof(ids[0])) != DICT_NONE;
}

/* Adds a sample of this key. */
static int count(struct collector *c, const struct sample_key *k, uint32_t n, uint64_t weight_ns,
		 const struct collected_at *at)
{
	uint32_t id = dict_add(&c->samples, k, sizeof(*k));
	struct sample_sum *sums;

	if (id == DICT_NONE)
		return -ENOMEM;
	sums = grow(c, c->sums, &c->nsums, id, sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	c->sums = sums;
	sums[id].count += n;
	sums[id].weight += weight_ns;
	c->count += n;
	c->weight_ns += weight_ns;
	c->last.sample[c->last.n] = id;
	c->last.count[c->last.n] = n;
	c->last.weight[c->last.n++] = weight_ns;
	if (!at)
		return 0;
	c->last.timed = true;
	return buf_add(&c->times, &(struct collected_time){at->time_ns, id, 0},
		       sizeof(struct collected_time));
}

/* Finds or makes what the key names. 0; -E2BIG; -ENOMEM. */
static int add_key(struct collector *c, const struct process *p, uint32_t set, const char *comm,
		   const struct walk *w, const struct collected_at *at, struct sample_key *k)
{
	c->last = (struct collected_last){0};
	k->process = process_id(c, p, set);
	if (k->process == DICT_NONE)
		return -ENOMEM;
	if (w && is_full(c, k->process) && (at || !has_stack(c, w)))
		return -E2BIG;
	k->cpu = at ? at->cpu + 1 : 0;
	k->comm = dict_str(&c->comms, comm);
	k->stack = w ? stack_id(c, w) : 0;
	return 0;
}

int collector_add(struct collector *c, const struct process *p, uint32_t set, uint32_t tid,
		  const char *comm, const struct walk *w, uint32_t reason, uint64_t weight_ns,
		  const struct collected_at *at)
{
	struct sample_key k = {.tid = tid, .reason = reason};
	int r = add_key(c, p, set, comm, w, at, &k);

	if (r)
		return r;
	r = k.comm == DICT_NONE || k.stack == DICT_NONE ? -ENOMEM : count(c, &k, 1, weight_ns, at);
	charge(c, k.process);
	return r;
}

int collector_add_hit(struct collector *c, const struct process *p, const struct collected_hit *hit,
		      const char *comm, const struct walk *w, uint32_t reason, uint64_t weight,
		      const struct collected_at *at)
{
	struct sample_key k = {
		.tid = hit->tid, .reason = reason, .sampler = COLLECTED_HIT - hit->hook};
	int r = add_key(c, p, hit->set, comm, w, at, &k);

	if (r)
		return r;
	r = k.comm == DICT_NONE || k.stack == DICT_NONE ? -ENOMEM : count(c, &k, 1, weight, at);
	if (!r && c->last.n) {
		c->last.hits = (uint64_t)((double)weight / (double)hit->value * HIT_PARTS);
		c->sums[c->last.sample[0]].hits += c->last.hits;
		c->last.followed = hit->followed;
		if (hit->followed)
			r = followed_add(&c->followed,
					 &(struct followed_hit){hit->followed, c->last.sample[0], 0,
								0, weight, c->last.hits});
	}
	charge(c, k.process);
	return r;
}

int collector_add_parts(struct collector *c, const struct process *p,
			const struct collected_parts *parts, const char *comm, const struct walk *w,
			uint32_t reason, const struct collected_at *at)
{
	struct sample_key k = {.tid = parts->tid, .reason = reason, .sampler = parts->sampler};
	int r = add_key(c, p, parts->set, comm, w, at, &k);

	if (r)
		return r;
	if (k.comm == DICT_NONE || k.stack == DICT_NONE)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < parts->n; i++) {
		const struct fusee_sampler_part *part = &parts->part[i];

		k.part = part->label < UINT32_MAX ? part->label + 1 : UINT32_MAX;
		r = count(c, &k, part->count, part->weight, i ? NULL : at);
	}
	charge(c, k.process);
	return r;
}

/* The process of another collector, under this label set. DICT_NONE: no memory. */
static uint32_t adopt_process(struct collector *c, const struct collector *from, uint32_t process,
			      uint32_t set)
{
	const uint64_t *theirs = from->processes.entries[process].key, key[2] = {theirs[0], set};
	uint32_t id = dict_add(&c->processes, key, sizeof(key));
	struct collected_process *at;

	if (id == DICT_NONE)
		return id;
	at = grow(c, c->collected, &c->ncollected, id, sizeof(*at));
	if (!at)
		return DICT_NONE;
	c->collected = at;
	if (!at[id].pid) {
		at[id] = from->collected[process];
		at[id].set = set;
		at[id].bytes = 0;
	}
	return id;
}

static uint32_t adopt_stack(struct collector *c, const struct collector *from, uint32_t stack)
{
	const uint32_t *theirs = from->stacks.entries[stack].key;
	uint32_t ids[WALK_MAX_FRAMES], n = from->stacks.entries[stack].len / sizeof(ids[0]);

	for (uint32_t i = 0; i < n && i < WALK_MAX_FRAMES; i++) {
		const struct walk_frame f = frame_set_at(&from->frames, theirs[i]);

		ids[i] = frame_set_add(&c->frames, &f);
		if (ids[i] == FRAME_SET_NONE)
			return DICT_NONE;
	}
	return stack ? dict_add(&c->stacks, ids, n * sizeof(ids[0])) : 0;
}

#define NOT_CARRIED UINT32_MAX

/* Adds a sample's key of another collector. *id: its id in samples; or NOT_CARRIED. 0 or -ENOMEM.
 */
static int adopt(struct collector *c, const struct collector *from,
		 const struct collector_carrying *o, uint32_t sample, uint32_t *id)
{
	struct sample_key k = *(const struct sample_key *)from->samples.entries[sample].key;
	const struct dict_entry *comm = &from->comms.entries[k.comm];
	uint32_t set = from->collected[k.process].set;
	int r;

	*id = NOT_CARRIED;
	if (o->choose && !o->choose(o->arg, &from->collected[k.process], &set))
		return 0;
	k.process = adopt_process(c, from, k.process, set);
	if (k.process == DICT_NONE)
		return -ENOMEM;
	if (is_full(c, k.process)) {
		c->followed.refused++;
		return 0;
	}
	k.comm = dict_add(&c->comms, comm->key, comm->len);
	k.stack = adopt_stack(c, from, k.stack);
	c->last = (struct collected_last){0};
	r = k.comm == DICT_NONE || k.stack == DICT_NONE ? -ENOMEM : count(c, &k, 0, 0, NULL);
	*id = c->last.sample[0];
	c->last.n = 0;
	charge(c, k.process);
	return r;
}

int collector_keep(struct collector *c, const uint32_t *ids, size_t n)
{
	int r = followed_keep(&c->followed, ids, n);

	account(c);
	return r;
}

int collector_carry(struct collector *c, const struct collector *from,
		    const struct collector_carrying *o)
{
	/* by their ids: ours; 0: not adopted yet */
	uint32_t *samples = calloc(from->samples.n, sizeof(*samples));
	size_t *sums = calloc(from->samples.n, sizeof(*sums)); /* likewise: place in ours, and 1 */
	size_t n, nours;
	const struct followed_hit *hits = followed_at(&from->followed, &n);
	int r = samples && sums ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++) {
		struct followed_hit hit = hits[i], *ours = followed_at(&c->followed, &nours);
		size_t *sum = &sums[hit.sample];

		if (!samples[hit.sample])
			r = adopt(c, from, o, hit.sample, &samples[hit.sample]);
		if (r || samples[hit.sample] == NOT_CARRIED)
			continue;
		hit.sample = samples[hit.sample];
		hit.ids = 0;
		if (*sum) {
			ours[*sum - 1].weight += hit.weight;
			ours[*sum - 1].hits += hit.hits;
			continue;
		}
		r = followed_add(&c->followed, &hit);
		*sum = o->sums ? nours + 1 : 0;
	}
	account(c);
	free(samples);
	free(sums);
	return r;
}

/* The id in ids, or DICT_NONE: there is no room for it. */
static uint32_t ids_of(struct collector *c, const struct ids_key *k)
{
	const struct sample_key *sample = c->samples.entries[k->sample].key;
	uint32_t id = dict_find(&c->ids, k, sizeof(*k));
	struct sample_sum *sums;

	if (id != DICT_NONE)
		return id;
	if (c->ids.n > MOST_IDS || is_full(c, sample->process))
		return DICT_NONE;
	/* room for its sum first: an id without one would be found again */
	sums = grow(c, c->of_ids, &c->nof_ids, c->ids.n, sizeof(*sums));
	if (!sums)
		return DICT_NONE;
	c->of_ids = sums;
	id = dict_add(&c->ids, k, sizeof(*k));
	charge(c, sample->process);
	return id;
}

/* The id in texts, or DICT_NONE: there is no room for them. sample: an id in samples. */
static uint32_t texts_of(struct collector *c, uint32_t sample, const struct sample_ids *ids)
{
	uint32_t process = ((const struct sample_key *)c->samples.entries[sample].key)->process;
	uint32_t id = dict_find(&c->texts, ids->texts, ids->texts_len);

	if (id != DICT_NONE || c->texts.n > MOST_IDS || is_full(c, process))
		return id;
	id = dict_add(&c->texts, ids->texts, ids->texts_len);
	charge(c, process);
	return id;
}

void collector_set_ids(struct collector *c, const struct sample_ids *ids)
{
	struct collected_time *times = (struct collected_time *)(void *)c->times.p;
	size_t n;
	struct followed_hit *hits = followed_at(&c->followed, &n);
	uint32_t texts = 0;

	if (ids->texts_len && c->last.n)
		texts = texts_of(c, c->last.sample[0], ids);
	for (uint32_t i = 0; i < c->last.n; i++) {
		const struct ids_key k = {.trace_id = {ids->trace_id[0], ids->trace_id[1]},
					  .span_id = ids->span_id,
					  .sample = c->last.sample[i],
					  .texts = texts};
		uint32_t id = texts == DICT_NONE ? DICT_NONE : ids_of(c, &k);

		if (id == DICT_NONE) {
			c->unkept_ids += c->last.count[i];
			continue;
		}
		c->of_ids[id].count += c->last.count[i];
		c->of_ids[id].weight += c->last.weight[i];
		c->of_ids[id].hits += i ? 0 : c->last.hits;
		if (!i && c->last.timed)
			times[c->times.len / sizeof(*times) - 1].ids = id;
		if (!i && c->last.followed && hits[n - 1].id == c->last.followed)
			hits[n - 1].ids = id;
	}
	c->last.n = 0;
}

int collector_without_ids(const struct collector *c, struct sample_sum **ret)
{
	struct sample_sum *rest;

	*ret = NULL;
	if (c->ids.n <= 1)
		return 0;
	rest = malloc(c->samples.n * sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	memcpy(rest, c->sums, c->samples.n * sizeof(*rest));
	for (uint32_t i = 1; i < c->ids.n; i++) {
		const struct ids_key *k = c->ids.entries[i].key;

		rest[k->sample].count -= c->of_ids[i].count;
		rest[k->sample].weight -= c->of_ids[i].weight;
		rest[k->sample].hits -= c->of_ids[i].hits;
	}
	*ret = rest;
	return 0;
}
