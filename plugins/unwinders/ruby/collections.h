/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUBY_COLLECTIONS_H
#define RUBY_COLLECTIONS_H

#include "code.h"

/* Finds where the VM counts garbage collections. Sets RUBY_VM_SPACE, RUBY_COLLECTIONS and
 * RUBY_SPACE_FLAGS, or leaves them 0; and RUBY_VM, if its symbol was not found. */
void ruby_find_collections(struct ruby_file *);

#endif
