/* SPDX-License-Identifier: Apache-2.0 */
#ifndef V8_INSPECT_H
#define V8_INSPECT_H

#include <fusee/helpers.h>

/* fusee_unwinder_ops.inspect: makes the table of a file that contains V8, and claims its builtins.
 */
int v8_inspect(const struct fusee_self *, uint64_t file);

#endif
