/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers of plugins that a session uses: -e NAME, -e NAME:hz=N, -e NAME:count=N, --wall. */
#ifndef RECORD_CHOOSERS_H
#define RECORD_CHOOSERS_H

#include "console/options.h"
#include "record/session.h"

/* Adds the sampler that the text of an option names. 0; -ENOENT: there is none of this name;
 * -EINVAL or -ENOMEM with a malloc'ed sentence in *error, or NULL. */
int session_choosers_add(struct session_choosers *, const char *dir, const char *text,
			 char **error);
/* Adds that of --wall as the first. 0, or an exit code after an error was logged. */
int session_choosers_add_wall(struct session_choosers *);
/* Checks the options that go with them, sets their periods and, unless CPU time is sampled too, the
 * session's event. 0, or an exit code after an error was logged. */
int session_choosers_check(const struct cli_command *, struct session_options *);
/* Logs what is sampled. */
void session_choosers_log(const struct session_choosers *);
/* The sampler of this number. */
const struct fusee_sampler_ops *session_chooser_ops(const struct session_choosers *, uint32_t);
#endif
