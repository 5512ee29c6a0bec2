/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's parts. For agent.c, which owns them, and commands.c and pages.c, which show them. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/internal/sampling.h"
#include "agent/internal/callbacks.h"
#include "agent/internal/cpu_budget.h"
#include "delivery/scrapes.h"
#include "executables/executables.h"
#include "agent/internal/flushes.h"
#include "agent/internal/instances.h"
#include "agent/internal/pulls.h"
#include "agent/internal/reload.h"
#include "net/control.h"
#include "net/http.h"
#include "net/loop.h"

struct agent {
	struct agent_options o;
	struct plugin_folder folder;
	struct fusee_host host;
	struct loop *loop;
	struct agent_sampling sampling;
	struct file_requests files;
	struct instances instances;
	struct scrapes *scrapes; /* profiles that discoveries hand over */
	struct reload reload;
	struct flushes flushes;
	struct callbacks callbacks;
	struct cpu_budget budget;
	struct control *control; /* NULL: the plan has no control socket */
	struct http *http;       /* NULL: the plan has no address for metrics */
	struct pulls *pulls;     /* NULL: there is no HTTP server */
	uint64_t start_ns;
	uint64_t stop_ns; /* when the end was requested; 0: not yet */
	bool stopped;     /* the sinks were stopped */
};

/* Opens the control socket, if the plan has one. 0 or an exit code after an error was logged. */
int commands_open(struct agent *);
/* Opens the HTTP server, likewise. */
int pages_open(struct agent *);
#endif
