/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks as a profile: the text that flamegraph.pl reads, and that its stackcollapse-*.pl,
 * py-spy, rbspy, async-profiler and bpftrace's tools write. A line is a stack, the root first, and
 * a number, which may have a fraction:
 *
 *     root;caller;leaf 12
 *
 * If each line has two numbers, the first is that of a base, as difffolded.pl writes it.
 * flamegraph.pl takes a kind of code off the end of a frame: _[k] kernel, _[i] inlined, _[j]
 * compiled at run time,
 * _[w] of the waker; so does this reader (async-profiler adds _[0] and _[1]).
 */
#ifndef IMPORT_FOLDED_H
#define IMPORT_FOLDED_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/builder.h"

/* true: its first lines are stacks with numbers. */
bool folded_is(const char *text, size_t len);

/*
 * Adds all stacks to an empty builder and sets its value types: samples/count, and base/count if
 * there are two numbers. "name (file:12)" and "name - file:12" are functions with a source line; a
 * first frame
 * "[name tid=12]" is the label `thread`.
 * Lines of another form are counted in a comment of the profile. 0, -ENOMEM, or -EFBIG: then
 * *error is a sentence, which is static.
 */
int folded_read(struct builder *, const char *text, size_t len, const char **error);
#endif
