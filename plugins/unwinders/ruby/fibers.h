/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUBY_FIBERS_H
#define RUBY_FIBERS_H

#include "code.h"

/* Sets in->fiber to fiber_entry(), the outermost function on the C stack of each fiber, if it can
 * be found. */
void ruby_find_fiber_entry(struct ruby_file *in);

#endif
