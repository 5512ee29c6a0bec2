/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and what OpenTelemetry's semantic conventions call them. */
#ifndef OTLP_NAMES_H
#define OTLP_NAMES_H

#include <stdbool.h>

#include <fusee/profile.h>

#define NAME_PID "process.pid"
#define NAME_TID "thread.id"
#define NAME_FRAME_TYPE "profile.frame.type"
#define NAME_BUILD_ID "process.executable.build_id.gnu"
#define NAME_COMMENT "pprof.profile.comment"

/* What decides on the names of other labels of the same target. */
struct names {
	bool pod;            /* it is in a pod: its container is a container of Kubernetes */
	struct fusee_str of; /* the kind of its workload: "Deployment"; empty: none */
};

/* Looks at a label of the target. */
void names_see(struct names *, const struct fusee_label *);
/* The name of the label's attribute. A label that the conventions don't have keeps its own name;
 * one with an empty name or text has no attribute, whose name is then empty. */
struct fusee_str names_of(const struct names *, const struct fusee_label *);
/* Does the label describe the sample, as its thread does, and not the process? */
bool names_is_of_sample(const struct fusee_label *);
#endif
