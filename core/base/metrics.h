/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metric registry: counters and gauges, shown as Prometheus text. [any thread] One of the two
 * things that are global. A metric is made at its first use and stays; the number of distinct label
 * sets of one name is bounded (METRICS_MAX_SERIES): what comes beyond is added to the series
 * {overflow="true"}.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdint.h>

#include "base/buf.h"

#define METRICS_MAX_SERIES 4096

/* key, value, key, value ..; NULL: none. */
struct metric_labels {
	const char *const *pairs;
	uint32_t n; /* of strings */
};
#define METRIC_LABELS(...)                                           \
	(&(struct metric_labels){(const char *const[]){__VA_ARGS__}, \
				 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})

/* name: "samples_total", without the prefix "fusee_"; help: one sentence, kept by the first call.
 * No memory: nothing happens. */
void metric_add(const char *name, const char *help, const struct metric_labels *, uint64_t add);
void metric_set(const char *name, const char *help, const struct metric_labels *, double value);
/* The current value, 0 if there is none. */
double metric_get(const char *name, const struct metric_labels *);
/* Takes away every series that carries this label: of an instance that is gone. */
void metric_forget(const char *key, const char *value);
/* Prometheus text format 0.0.4, sorted by name and labels. */
int metrics_text(struct buf *);
/* For tests: forgets everything. */
void metrics_reset(void);
#endif
