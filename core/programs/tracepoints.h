/* SPDX-License-Identifier: Apache-2.0 */
/* Raw tracepoints of the running kernel, by the types that it describes (BTF). [any thread] */
#ifndef PROGRAMS_TRACEPOINTS_H
#define PROGRAMS_TRACEPOINTS_H

/* How many arguments the tracepoint has. -ENOENT: there is none, with a sentence in *why, malloc'ed
 * or NULL. */
int tracepoint_arguments(const char *name, char **why);
#endif
