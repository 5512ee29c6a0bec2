/* SPDX-License-Identifier: Apache-2.0 */
/* The names of labels in OpenTelemetry's semantic conventions. */
#ifndef OTLP_NAMES_H
#define OTLP_NAMES_H

#include <stdbool.h>

#include <fusee/profile.h>

#define NAME_PID "process.pid"
#define NAME_TID "thread.id"
#define NAME_FRAME_TYPE "profile.frame.type"
#define NAME_BUILD_ID "process.executable.build_id.gnu"
#define NAME_COMMENT "pprof.profile.comment"

/* Properties of a target that decide the names of its labels. */
struct names {
	bool pod;            /* it is in a pod: its container is a container of Kubernetes */
	struct fusee_str of; /* the kind of its workload: "Deployment"; empty: none */
};

/* Looks at a label of the target. */
void names_see(struct names *, const struct fusee_label *);
/* The name of the label's attribute. A label that the conventions don't have keeps its own name;
 * one with an empty name or text has no attribute, whose name is then empty. */
struct fusee_str names_of(const struct names *, const struct fusee_label *);
/* Whether the label describes the sample, as `thread` does, and not the process. */
bool names_is_of_sample(const struct fusee_label *);
#endif
