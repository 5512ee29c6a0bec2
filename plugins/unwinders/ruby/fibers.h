/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUBY_FIBERS_H
#define RUBY_FIBERS_H

#include "code.h"

/* Sets in->coroutine to fiber_entry(), the outermost function on the C stack of each fiber, and
 * from 3.3 on co_start(), that of threads of ractors, as far as they are found. */
void ruby_find_coroutines(struct ruby_file *in);

#endif
