/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's files share: agent.c (its life), engine.c (sampling), reload.c (plans and their
 * instances), status.c (what it says of itself). Nobody else includes this. */
#ifndef AGENT_AGENT_STATE_H
#define AGENT_AGENT_STATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "agent/agent.h"
#include "net/control.h"
#include "policy/decisions.h"
#include "policy/discoveries.h"
#include "net/http.h"
#include "net/loop.h"
#include "delivery/sink_window.h"
#include "policy/rates.h"
#include "process/target.h"
#include "events/process_events.h"
#include "bpf/cgroup_moves.h"
#include "sampling/profiler.h"

#define STOP_NS 10000000000u /* so long sinks may take at the end, and when they leave a plan */

/* A discovery instance of the plan. */
struct source {
	const struct plan_instance *plan;
	struct discovery *discovery;
};

/* A sink that has left the plan, and the plan that it was of. */
struct leaving {
	struct leaving *next;
	struct sink_window *window;
	struct plan *plan; /* owned by the last one that names it */
	uint64_t until_ns;
};

struct agent {
	struct agent_options o;
	struct fusee_host host;
	struct plugin_folder folder;
	struct plan *plan;
	struct loop *loop;

	/* sampling */
	struct profiler profiler;
	struct rates *sampler;
	struct process_events *lifecycle;
	struct cgroup_moves *moves; /* NULL: they are not counted */
	int sample_error;           /* the last one that was said */
	bool paused;
	uint32_t ticks;
	uint32_t stirred;         /* so many ticks drain, whatever is known */
	struct loop_watch *lives; /* the lifecycle's descriptor */

	/* who is profiled */
	struct targets *targets;
	struct discoveries *discoveries;
	struct decisions *decisions;

	/* plan->sinks[i]'s and plan->discoveries[i]'s */
	struct sink_window *windows[PLAN_MAX_SINKS];
	struct source *sources;
	uint32_t nsources;
	struct leaving *leaving;

	/* what it says of itself */
	struct control *control;
	struct http *http;
	struct control_command commands[8]; /* ends with {0} */
	struct http_page pages[4];          /* likewise */
	uint64_t start_ns, reload_ns;
	uint32_t generation; /* of plans, from 1 */
	bool reload_failed;  /* the last one */
	char *reload_error;  /* its sentence; NULL: no memory for it, or it went well */
	struct flushing *flushings;
	uint64_t stop_ns; /* when the end was asked for; 0: not yet */
	bool stopped;     /* the sinks were told */
};

/* engine.c. 0 or an exit code; what went wrong was logged */
int agent_sampling_open(struct agent *);
/* What runs already is decided about, and sampling begins. */
int agent_sampling_begin(struct agent *);
void agent_sampling_drain(struct agent *);
void agent_sampling_pause(struct agent *, bool pause);
/* For decisions: a process has another one. */
int agent_sampling_changed(void *arg, pid_t pid, const struct decision *, bool inherited);
/* Is a label set in use by a window? */
void agent_sampling_sweep(struct agent *);
void agent_sampling_close(struct agent *);

/* reload.c. Makes the plan's instances, those that run already kept; on failure nothing has changed
 * and *error is one sentence (a line each). Takes the plan over. 0, or -errno. */
int reload_plan(struct agent *, struct plan *, char **error);
/* Asks for a new plan and takes it. 0 or -errno with *error. */
int reload_run(struct agent *, char **error);
/* Sinks that have left: those that are done are freed; all: wait for them. */
void reload_tidy(struct agent *, bool all);
void reload_close(struct agent *); /* all instances end */

/* status.c */
int status_open(struct agent *); /* control socket and pages; 0 or an exit code */
void status_close(struct agent *);
void status_free(struct agent *); /* after the sinks, which may yet answer what was asked */
#endif
