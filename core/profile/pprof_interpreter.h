/* SPDX-License-Identifier: Apache-2.0 */
/* The locations with FUSEE_LOCATION_INTERPRETER in the comments of a pprof file, which has no flags
 * of locations: "fusee: interpreter: /usr/lib/libx.so" for a file of which all locations have the
 * flag, otherwise "fusee: interpreter: FUNCTION in /usr/bin/x". pprof_decode() reads them back. */
#ifndef PROFILE_PPROF_INTERPRETER_H
#define PROFILE_PPROF_INTERPRETER_H

#include <stdbool.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/dict.h"

/* Calls each() for each comment. 0 or -ENOMEM. */
int pprof_interpreter_write(const struct fusee_profile *,
			    void (*each)(void *arg, const char *text, uint64_t len), void *arg);

/* What the comments of a file say. */
struct pprof_interpreter {
	struct dict texts; /* of comments, without their beginning */
	struct buf text;
	bool used;
};

/* 1: the comment is about an interpreter; 0: it is not; -ENOMEM. */
int pprof_interpreter_read(struct pprof_interpreter *, const char *comment);
/* Is code of this file the interpreter's? function: of the location, without inlined calls. */
bool pprof_interpreter_has(struct pprof_interpreter *, const char *path, const char *function);
void pprof_interpreter_fini(struct pprof_interpreter *);
#endif
