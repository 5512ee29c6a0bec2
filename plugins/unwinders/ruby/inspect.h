/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUBY_INSPECT_H
#define RUBY_INSPECT_H

#include <fusee/helpers.h>

/* What ops->inspect() returns: makes the table of a file that contains CRuby, and claims its
 * interpreter. In the worker. */
int ruby_inspect(const struct fusee_self *self, uint64_t file);

#endif
