/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the table of a version with the offsets that functions of the library use. */
#ifndef RUBY_FACTS_H
#define RUBY_FACTS_H

#include <fusee/code.h>

/* Finds the first fact of the file that contradicts the table, or is missing. */
struct fusee_doubt ruby_check_facts(const struct fusee_unwinder_host *host, uint64_t file,
				    const uint32_t *words);

#endif
