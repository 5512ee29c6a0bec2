/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of allocations. */
#include "base/json.h"
#include "base/metrics.h"
#include "bpf/probes.h"
#include "profiler/allocators.h"
#include "profiler/in_use_ledger.h"

static void count_file(void *arg, const char *path, const char *why)
{
	(void)arg;
	(void)path;
	(void)why;
}

static void add_in_use(const struct in_use_ledger *ledger, struct json *j)
{
	struct in_use_counts c = in_use_ledger_counts(ledger);

	json_open(j, "in_use");
	json_uint(j, "bytes", c.used.bytes);
	json_uint(j, "objects", c.used.objects);
	json_uint(j, "unfollowed", c.used.lost.unfollowed);
	json_uint(j, "unreturned", c.used.lost.unreturned);
	json_uint(j, "unheld", c.unheld);
	json_uint(j, "uncarried", c.uncarried);
	json_uint(j, "failed", c.failed);
	json_end(j);
}

void allocators_json(const struct allocators *a, struct json *j)
{
	uint64_t hits[PROBE_RESULT_COUNT];
	struct allocator_counts c = allocators_counts(a);

	allocators_hits(a, hits);
	json_open(j, "alloc");
	json_uint(j, "probed", c.now);
	json_uint(j, "files", c.files);
	json_uint(j, "unprobed", c.unprobed);
	json_text(j, "error", c.err ? allocators_explain(c.err) : "");
	json_uint(j, "unknown_files", allocators_unknown(a, count_file, NULL));
	json_uint(j, "calls", hits[PROBE_HITS]);
	json_uint(j, "bytes", hits[PROBE_VALUE]);
	if (allocators_in_use(a))
		add_in_use(allocators_in_use(a), j);
	json_end(j);
}

static void set_in_use(const struct in_use_ledger *ledger)
{
	static const char lost[] =
		"Total number of samples of allocations that are not followed to where they are "
		"freed, and of stacks that windows lack, by reason.";
	struct in_use_counts c = in_use_ledger_counts(ledger);
	const struct metric_gauge gauges[] = {
		{"alloc_inuse_bytes",
		 "Size in bytes of what was allocated and not freed when the last window ended.",
		 (double)c.used.bytes},
		{"alloc_inuse_objects", "Number of these allocations.", (double)c.used.objects},
		{"alloc_followed_bytes",
		 "Memory in bytes for samples of allocations that are followed.", (double)c.bytes},
	};
	const struct {
		const char *reason;
		uint64_t n;
	} reasons[] = {
		{"too many at once", c.used.lost.unfollowed},
		{"operator new calls no malloc", c.used.lost.unreturned},
		{"too many stacks", c.unheld},
		{"no room in a window", c.uncarried},
		{"no memory for a window", c.failed},
	};

	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
	for (uint32_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		metric_set("alloc_inuse_lost_total", lost,
			   METRIC_LABELS("reason", reasons[i].reason), (double)reasons[i].n);
}

void allocators_metrics(const struct allocators *a)
{
	uint64_t hits[PROBE_RESULT_COUNT];
	struct allocator_counts c = allocators_counts(a);

	allocators_hits(a, hits);
	const struct metric_gauge gauges[] = {
		{"alloc_calls_total",
		 "Total number of calls of allocators by profiled processes, samples or not.",
		 (double)hits[PROBE_HITS]},
		{"alloc_bytes_total", "Size in bytes of what these calls have requested.",
		 (double)hits[PROBE_VALUE]},
		{"alloc_samples_total", "Total number of these calls that are samples.",
		 (double)hits[PROBE_CHOSEN]},
		{"alloc_samples_busy_total",
		 "Total number of these samples without a stack, as one was read on the CPU.",
		 (double)(hits[PROBE_BUSY] + hits[PROBE_NOT_WALKED])},
		{"alloc_files", "Files that have an allocator.", c.files},
		{"alloc_files_unknown", "Files that could not be searched for an allocator.",
		 allocators_unknown(a, count_file, NULL)},
		{"alloc_probed", "Allocators of profiled processes that have probes.", c.now},
		{"alloc_probed_total", "Total number of allocators that were given probes.",
		 c.processes},
		{"alloc_unprobed_total", "Total number of allocators without probes.", c.unprobed},
	};
	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
	if (allocators_in_use(a))
		set_in_use(allocators_in_use(a));
}
