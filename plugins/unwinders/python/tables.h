/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of the versions of CPython. */
#ifndef PYTHON_TABLES_H
#define PYTHON_TABLES_H

#include <stdint.h>

#include "versions.h"

/*
 * _Py_DebugOffsets of 3.13 and later, at the beginning of _PyRuntime: bytes of it that hold an
 * offset each.
 */
#define PYTHON_DEBUG_OFFSETS 768 /* bytes that are read of it, at most */

/* Fills words[] for a version without _Py_DebugOffsets. version: PY_VERSION_HEX. 0, or -ENOTSUP:
 * the version is not known. */
int python_version_words(uint32_t version, uint32_t words[PYTHON_WORDS]);

/* Fills words[] from _Py_DebugOffsets. 0; -ENOTSUP: its version is not known; -EBADMSG: it
 * contradicts what is known of that version. */
int python_debug_words(const unsigned char *offsets, uint32_t n, uint32_t words[PYTHON_WORDS]);

/* PYTHON_TASKS for a table that these functions filled; 0: tasks of that version are not known. */
uint32_t python_task_word(const uint32_t words[PYTHON_WORDS]);

/* Releases that the tests have run. */
extern const char python_tested[];

#endif
