// SPDX-License-Identifier: Apache-2.0
#include "agent/internal/relabeling.h"

#include <errno.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "base/str.h"
#include "target/labelset.h"
#include "relabel/relabel.h"

static bool has_rules(const struct plan_instance *sink)
{
	return sink->relabel || sink->relabel_all;
}

/* NULL: no memory. */
static struct relabeled *apply(const struct plan_instance *sink, const struct fusee_label *labels,
			       uint32_t n)
{
	const struct relabel_rules *lists[] = {sink->relabel_all, sink->relabel};
	struct relabeled *r;

	return relabel_apply(lists, 2, labels, n, &r) ? NULL : r;
}

/* Joins the labels: the policy's replace the target's of the same name. Returns their number. */
static uint32_t join(const struct fusee_label *labels, uint32_t n,
		     const struct policy_answer *answer, struct fusee_label all[RELABEL_LABELS])
{
	uint32_t count = n < RELABEL_LABELS ? n : RELABEL_LABELS;

	for (uint32_t i = 0; i < count; i++)
		all[i] = labels[i];
	for (uint32_t i = 0; i < answer->nlabels; i++) {
		uint32_t at = 0;

		while (at < count && !str_equal(all[at].key, answer->labels[i].key))
			at++;
		if (at < RELABEL_LABELS)
			all[at] = answer->labels[i];
		count += at == count && at < RELABEL_LABELS;
	}
	return count;
}

void relabeling_decide(const struct plan *plan, const struct fusee_label *labels, uint32_t n,
		       struct policy_answer *answer, bool counted)
{
	struct fusee_label all[RELABEL_LABELS];
	uint32_t count = join(labels, n, answer, all);

	for (uint32_t i = 0; answer->profile && i < plan->nsinks; i++) {
		const struct plan_instance *sink = plan->sinks[i];
		struct relabeled *r;

		if (!(answer->sinks >> i & 1) || !has_rules(sink))
			continue;
		r = apply(sink, all, count);
		if (r && r->fate != RELABEL_KEPT) { /* without memory the window decides */
			answer->sinks &= ~(1ull << i);
			if (counted)
				metric_add("relabel_dropped_total",
					   "Total number of label sets that rules of relabeling "
					   "kept from a sink.",
					   METRIC_LABELS("instance", sink->name, "reason",
							 relabel_reason(r)),
					   1);
		}
		free(r);
	}
}

static void put_result(struct json *j, const struct plan_instance *sink, const struct relabeled *r)
{
	char rule[256];

	json_open(j, NULL);
	json_text(j, "sink", sink->name);
	if (r->fate != RELABEL_KEPT) {
		relabel_rule_name(r, rule, sizeof(rule));
		json_text(j, "dropped", relabel_reason(r));
		json_text(j, "by", rule);
	} else {
		json_labels(j, "labels", r->labels, r->n);
	}
	json_end(j);
}

void relabeling_json(const struct plan *plan, const struct fusee_label *labels, uint32_t n,
		     struct json *j)
{
	bool any = false;

	for (uint32_t i = 0; i < plan->nsinks; i++) {
		struct relabeled *r;

		if (!has_rules(plan->sinks[i]))
			continue;
		r = apply(plan->sinks[i], labels, n);
		if (!r) {
			j->out->error = -ENOMEM;
			return;
		}
		if (!any)
			json_list(j, "relabel");
		any = true;
		put_result(j, plan->sinks[i], r);
		free(r);
	}
	if (any)
		json_end(j);
}
