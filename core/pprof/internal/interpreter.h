/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations with FUSEE_LOCATION_INTERPRETER in the comments of a pprof file, which has no flags
 * of locations: "fusee: interpreter of cpython: /usr/lib/libx.so" for a file of which all locations
 * have the flag, otherwise "fusee: interpreter of cpython: FUNCTION in /usr/bin/x"; without
 * " of cpython" where the language is not known. And the language of functions that do not tell
 * (pprof_flags.h): "fusee: language: cpython". pprof_decode() reads them back.
 */
#ifndef PPROF_INTERPRETER_H
#define PPROF_INTERPRETER_H

#include <stdbool.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/dict.h"

/* The language, a string, that most of the frames of languages have. 0: there are none. *several:
 * there are other languages; may be NULL. */
uint32_t pprof_interpreter_most(const struct fusee_profile *, bool *several);
/* Calls each() for each comment. 0 or -ENOMEM. */
int pprof_interpreter_write(const struct fusee_profile *,
			    void (*each)(void *arg, const char *text, uint64_t len), void *arg);

#define PPROF_INTERPRETER_LANGUAGES 16

/* What the comments of a file say. */
struct pprof_interpreter {
	struct dict texts; /* of comments, without their beginning */
	struct buf text;
	bool used;
	uint32_t nlanguages; /* of interpreters */
	const char
		*languages[PPROF_INTERPRETER_LANGUAGES]; /* parts of the comments, not terminated */
	uint32_t lens[PPROF_INTERPRETER_LANGUAGES];
	const char *language; /* of functions that do not tell; "": comments differ. NULL: none */
};

/* The comment, which must remain, is about an interpreter or a language: 1; 0: it is not;
 * -ENOMEM. */
int pprof_interpreter_read(struct pprof_interpreter *, const char *comment);
/* Is code of this file an interpreter's? *language: of which, empty: not known. function: of the
 * location, without inlined calls. */
bool pprof_interpreter_has(struct pprof_interpreter *, const char *path, const char *function,
			   struct fusee_str *language);
void pprof_interpreter_fini(struct pprof_interpreter *);
#endif
