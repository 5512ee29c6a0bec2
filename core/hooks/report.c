/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of hooks: in the log, for `fusee ctl status`, and as metrics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "hooks/internal/state.h"

void hooks_failed(struct hook *h, char *why)
{
	if (!why)
		why = strdup(strerror(ENOMEM));
	if (why && (!h->state.error || strcmp(h->state.error, why) != 0))
		log_warning("%s: %s: %s", h->where, h->name, why);
	free(h->state.error);
	h->state.error = why;
}

static void read_counts(const struct hooks *h, const struct hook *hook,
			uint64_t counts[PROBE_RESULT_COUNT])
{
	bpf_hooks_counts(h->profiler->bpf, !hook_is_of_file(hook), hook->number, counts);
	for (uint32_t i = 0; i < PROBE_RESULT_COUNT; i++)
		counts[i] -= hook->before[i];
}

static uint32_t attached(const struct hooks *h, const struct hook *hook)
{
	uint32_t n = hook->state.now;

	for (uint32_t i = 0; i < TRACEPOINTS; i++)
		n += h->tracepoints[i].hook == hook && h->tracepoints[i].links.n;
	return n;
}

static uint64_t lost(const uint64_t counts[PROBE_RESULT_COUNT])
{
	return counts[PROBE_BUSY] + counts[PROBE_NOT_WALKED] + counts[PROBE_RING_FULL];
}

static void add_hook(const struct hooks *h, const struct hook *hook, struct json *j)
{
	uint64_t counts[PROBE_RESULT_COUNT];

	read_counts(h, hook, counts);
	json_open(j, NULL);
	json_text(j, "name", hook->name);
	json_text(j, "probe", hook->text);
	json_text(j, "where", hook->where);
	json_uint(j, "probed", attached(h, hook));
	json_uint(j, "files", hook->state.files);
	json_uint(j, "files_without", hook->state.without);
	json_uint(j, "unprobed", hook->state.unprobed);
	json_uint(j, "hits", counts[PROBE_HITS]);
	json_uint(j, "value", counts[PROBE_VALUE]);
	json_uint(j, "filtered", counts[PROBE_FILTERED]);
	json_uint(j, "unread", counts[PROBE_UNREAD]);
	json_uint(j, "lost", lost(counts));
	json_text(j, "error", hook->state.error ? hook->state.error : "");
	json_end(j);
}

void hooks_json(const struct hooks *h, struct json *j)
{
	if (!h)
		return;
	json_list(j, "probes");
	for (uint32_t i = 1; i <= MOST_HOOKS; i++)
		if (h->at[i] && !h->at[i]->retired_ns)
			add_hook(h, h->at[i], j);
	json_end(j);
}

static void set(const char *name, const char *help, const struct hook *hook, const char *result,
		uint64_t n)
{
	if (result)
		metric_set(name, help, METRIC_LABELS("probe", hook->name, "result", result),
			   (double)n);
	else
		metric_set(name, help, METRIC_LABELS("probe", hook->name), (double)n);
}

void hooks_metrics(const struct hooks *h)
{
	static const char hits[] = "Total number of hits of probes of the script, by what became "
				   "of them.";

	for (uint32_t i = 1; h && i <= MOST_HOOKS; i++) {
		const struct hook *hook = h->at[i];
		uint64_t counts[PROBE_RESULT_COUNT];

		if (!hook || hook->retired_ns)
			continue;
		read_counts(h, hook, counts);
		set("probe_hits_total", hits, hook, "counted", counts[PROBE_HITS]);
		set("probe_hits_total", hits, hook, "filtered", counts[PROBE_FILTERED]);
		set("probe_hits_total", hits, hook, "argument not read", counts[PROBE_UNREAD]);
		set("probe_hits_total", hits, hook, "without stack", lost(counts));
		set("probe_attached", "Processes, or tracepoints, with this probe of the script.",
		    hook, NULL, attached(h, hook));
		set("probe_refused", "Processes without this probe, at first or to their end.",
		    hook, NULL, hook->state.unprobed);
		set("probe_files_without",
		    "Files by this probe's path that have no such place, or could not be read.",
		    hook, NULL, hook->state.without);
	}
}
