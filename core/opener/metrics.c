/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"
#include "opener/opener.h"

void opener_metrics(const struct opener *o)
{
	struct opener_counts c;

	opener_counts(o, &c);
	const struct metric_gauge gauges[] = {
		{"opener_queries_total",
		 "Total number of files and pieces of memory of targets that the opener was to "
		 "open or "
		 "read.",
		 (double)c.queries},
		{"opener_processes", "Opener processes that run.", c.processes},
		{"opener_processes_stuck",
		 "Opener processes that wait for a file system that does not answer.", c.stuck},
		{"opener_copied_bytes",
		 "Memory in bytes of copies of files on such file systems as can keep readers "
		 "waiting.",
		 (double)c.copied},
	};
	static const char help[] = "Total number of queries without an answer, by reason.";

	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
	metric_set("opener_queries_failed_total", help, METRIC_LABELS("reason", "timed out"),
		   (double)c.timed_out);
	metric_set("opener_queries_failed_total", help,
		   METRIC_LABELS("reason", "others of its process or user timed out"),
		   (double)c.refused);
	metric_set("opener_queries_failed_total", help,
		   METRIC_LABELS("reason", "others waited in that second"), (double)c.postponed);
}
