/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of the processes of a recording, by what discovery plugins found before it. A
 * process's control group is read when its first sample comes, and again every two seconds. One
 * thread. */
#ifndef RECORD_PROCESS_LABELS_H
#define RECORD_PROCESS_LABELS_H

#include <stdint.h>
#include <sys/types.h>

#include "target/target.h"

struct process_labels;

/* pids: the processes that are sampled at first. A process that ends before its control group could
 * be read has the labels that are equal for all of these. targets is borrowed. 0 or -ENOMEM. */
int process_labels_new(struct process_labels **ret, struct targets *, const pid_t *pids,
		       uint32_t npids);
void process_labels_free(struct process_labels *); /* NULL is fine */
/* The number of its label set; 0: no memory for it. */
uint32_t process_labels_of(struct process_labels *, pid_t pid, uint64_t now_ns);
/* The labels of a set, sorted by name. NULL: there are none. Valid until process_labels_free(). */
const struct fusee_label *process_labels_set(const struct process_labels *, uint32_t set,
					     uint32_t *n);
#endif
