/* SPDX-License-Identifier: Apache-2.0 */
/* The options -e and -c of `record` and `top`. Each function returns 0, or an exit code after an
 * error was logged. */
#ifndef RECORD_SESSION_EVENT_H
#define RECORD_SESSION_EVENT_H

#include "console/options.h"
#include "record/session.h"
#include "report/report.h"

/* Sets o->event by its name. */
int session_event_set(struct session_options *o, const char *name);
void session_event_fini(struct session_options *o);
/* Checks options that exclude each other, after all were read, and chooses the size of stack copies
 * if it is the default. */
int session_event_check(const struct cli_command *, struct session_options *o);
/* Logs what is sampled; part: what is said of the kernel's part. */
void session_event_log(const struct session *, const char *part);
/* The table of a sampler's values: where threads wait, if they are times. NULL: of an event. */
render_table *session_table(const struct fusee_sampler_ops *);
#endif
