/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases of a minor version usually have the same layouts. Before 3.13 a file does not describe
 * its layouts, so the table of a minor version is compared with the offsets that exported functions
 * of the file use.
 */
#ifndef PYTHON_FACTS_H
#define PYTHON_FACTS_H

#include <fusee/code.h>

/* Finds the first fact of the file that contradicts the table, or is missing. runtime: vaddr of
 * _PyRuntime. */
struct fusee_doubt python_check_facts(const struct fusee_unwinder_host *host, uint64_t file,
				      uint64_t runtime, const uint32_t *words);

#endif
