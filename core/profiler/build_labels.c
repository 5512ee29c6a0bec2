/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "profile/builder.h"
#include "profiler/build_profile.h"
#include "profiler/internal/build_chosen.h"
#include "relabel/relabel.h"

/* The labels of the set, process, thread, state and CPU, and the program's own. */
#define MAX_LABELS (RELABEL_LABELS + 12u)
#define KNOWN_BITS 9

int build_labels_init(struct build_labels *l)
{
	l->known = calloc(1u << KNOWN_BITS, sizeof(*l->known));
	return l->known ? 0 : -ENOMEM;
}

void build_labels_fini(struct build_labels *l)
{
	free(l->known);
}

static void put_label(const struct build_labels *l, struct fusee_label *labels, uint32_t *count,
		      const struct fusee_label *label)
{
	if (*count < MAX_LABELS && !build_omits(l->o, label->key))
		labels[(*count)++] = *label;
}

static uint32_t make_labels(struct build_labels *l, const struct sample_key *k, uint64_t samples)
{
	char number[16];
	struct fusee_label cpu = {.key = {"cpu", 3}, .str = {number, 0}};
	const struct collected_process *proc = &l->c->collected[k->process];
	const struct dict_entry *comm = &l->c->comms.entries[k->comm];
	struct fusee_label labels[MAX_LABELS];
	struct fusee_label process = {.key = {"process", 7},
				      .str = {proc->name, strnlen(proc->name, sizeof(proc->name))}};
	struct fusee_label thread = {.key = {"thread", 6}, .str = {comm->key, comm->len}};
	struct fusee_label part;
	uint32_t count = 0, nset = 0;
	const struct fusee_label *set = NULL;

	if (l->o->labels && !l->o->one_set)
		set = l->o->labels(l->o->arg, proc->set, &nset);
	if (!l->o->group)
		put_label(l, labels, &count, &process);
	put_label(l, labels, &count, &thread);
	if (build_chosen_label(l->choosers, k, &part))
		put_label(l, labels, &count, &part);
	if (k->cpu) {
		cpu.str.len = (uint64_t)snprintf(number, sizeof(number), "%u", k->cpu - 1);
		put_label(l, labels, &count, &cpu);
	}
	for (uint32_t i = 0; i < nset; i++)
		if (l->o->group ||
		    (!fusee_text_is(set[i].key, "process") && !fusee_text_is(set[i].key, "host")))
			put_label(l, labels, &count, &set[i]);
	count = build_texts_put(&l->texts, l->o, proc->set, samples, labels, count, MAX_LABELS);
	return builder_labels(l->b, labels, count);
}

static bool is_known(const struct known_labels *known, const struct sample_key *k)
{
	return known->process == k->process && known->comm == k->comm && known->part == k->part &&
	       known->cpu == k->cpu && known->sampler == k->sampler;
}

/* A thread's samples have the same labels: texts are looked up for a few of them only. */
uint32_t build_labels_of(struct build_labels *l, const struct sample_key *k, uint64_t count)
{
	uint32_t hash = ((k->process * 31 + k->comm) * 31 + k->cpu) * 31 + k->part;
	struct known_labels *known = &l->known[hash * 0x9e3779b1u >> (32 - KNOWN_BITS)];

	if (l->texts.of || !k->process)
		return make_labels(l, k, count);
	if (!is_known(known, k))
		*known = (struct known_labels){k->process, k->comm,    k->part,
					       k->cpu,     k->sampler, make_labels(l, k, count)};
	return known->labels;
}
