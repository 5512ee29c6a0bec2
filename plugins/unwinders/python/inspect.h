/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_INSPECT_H
#define PYTHON_INSPECT_H

#include <fusee/helpers.h>

/* What ops->inspect() returns: makes the table of a file that contains CPython, and claims its
 * interpreter. tasks: the step shows what awaits a task of asyncio. In the worker. */
int python_inspect(const struct fusee_self *self, uint64_t file, int tasks);

#endif
