/* SPDX-License-Identifier: Apache-2.0 */
/*
 * * Finds the calls of an interpreter whose instructions are functions that call each other at
 * their ends, as of 3.14 with --with-tail-call-interp. When it begins to run a Python function, it
 * calls the function of the first instruction through a table. These functions have no names in
 * stripped files, and compilers inline their caller, so the calls through the table are searched.
 */
#ifndef PYTHON_CALLS_H
#define PYTHON_CALLS_H

#include <fusee/code.h>

#define PYTHON_LEAST_CODE 4096u /* bytes of a function that has the code of all instructions */
#define PYTHON_CALLS 64u        /* that are found at most */

struct python_call {
	struct fusee_range at; /* vaddrs of the instruction */
	uint32_t place;        /* as PYTHON_PLACE */
};

struct python_calls {
	uint64_t table; /* vaddr; 0: the interpreter is not of this kind */
	uint32_t n;
	struct python_call call[PYTHON_CALLS];
};

/* eval: the code of _PyEval_EvalFrameDefault; words[]: the table so far. 0, -ENOMEM, -ENOSPC: there
 * are more calls, or what a host's call returned. */
int python_find_calls(const struct fusee_unwinder_host *host, uint64_t file,
		      const struct fusee_code *eval, const uint32_t *words,
		      struct python_calls *found);

#endif
