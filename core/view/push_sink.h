/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers one profile by a sink plugin at once: for `push` and `record -o URL`. */
#ifndef VIEW_PUSH_SINK_H
#define VIEW_PUSH_SINK_H

#include <stdbool.h>

#include <fusee/profile.h>

struct push_sink;

/* "http://..", "https://..": an address that profiles are sent to. */
bool push_is_address(const char *path);
/* Both on standard error, without passwords and keys of the address. */
void push_print(const char *before, const char *address);
/* spec: a sink as `run --sink` has it, or an address, which is sink.http with this url. 0, or an
 * exit code after errors were logged. */
int push_sink_open(struct push_sink **ret, const char *spec);
void push_sink_close(struct push_sink *); /* NULL is fine */
/* The plugin's name, "http". */
const char *push_sink_name(const struct push_sink *);
/* Checks that sink.http accepts the address, before a recording begins. 0 or an exit code, as
 * above. */
int push_check(const char *address);
/* Sends the profile. While the sink reports that a later try may succeed, tries again, `tries`
 * times in all, and prints each retry on standard error. 0, or -errno with a sentence in *error
 * that the caller frees (NULL: no memory); -EAGAIN: a later try may succeed; -EACCES: the server
 * denies it, so no further try is made: a person must correct the cause. */
int push_sink_send(struct push_sink *, const struct fusee_profile *, uint32_t tries, char **error);
#endif
