/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of metrics: counters and gauges as Prometheus text. [any thread] The registry is
 * global. The first use of a metric creates it, and nothing removes it. A metric has at most
 * METRICS_MAX_SERIES distinct label sets; further label sets share the series {overflow="true"}.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdint.h>

#include "base/buf.h"

#define METRICS_MAX_SERIES 4096

/* key, value, key, value ..; a NULL string is "". */
struct metric_labels {
	const char *const *pairs;
	uint32_t n; /* of strings */
};
#define METRIC_LABELS(...)                                           \
	(&(struct metric_labels){(const char *const[]){__VA_ARGS__}, \
				 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})

/* name: without the prefix "fusee_"; a name "x_total" is a counter, any other a gauge. help: one
 * sentence; that of the first call is kept. Labels NULL: none. Without memory the call has no
 * effect. */
void metric_add(const char *name, const char *help, const struct metric_labels *, uint64_t add);
void metric_set(const char *name, const char *help, const struct metric_labels *, double value);

struct metric_gauge {
	const char *name, *help;
	double value;
};
/* metric_set() of each, without labels. */
void metric_set_all(const struct metric_gauge *, size_t n);
/* The current value; 0 if there is none. */
double metric_get(const char *name, const struct metric_labels *);
/* Removes every series with this label, of an instance that was closed. */
void metric_forget(const char *key, const char *value);
/* Appends all metrics in text format 0.0.4, sorted by name and labels. 0 or -ENOMEM. */
int metrics_text(struct buf *);
/* For tests: removes all metrics. */
void metrics_reset(void);
#endif
