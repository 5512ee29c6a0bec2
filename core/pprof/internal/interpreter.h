/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores FUSEE_LOCATION_INTERPRETER in the comments of a pprof file, as the format has no flags of
 * locations: "fusee: interpreter of cpython: /usr/lib/libx.so" for a file of which all locations
 * have the flag, otherwise "fusee: interpreter of cpython: FUNCTION in /usr/bin/x"; the part " of
 * cpython" is omitted if the language is unknown. Also stores the language of functions whose
 * system names have none (flags.h): "fusee: language: cpython". pprof_decode() reads them back.
 */
#ifndef PPROF_INTERPRETER_H
#define PPROF_INTERPRETER_H

#include <stdbool.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "base/dict.h"

/* The most frequent language of frames of languages, a string. 0: there are no such frames.
 * *several: other languages occur too; may be NULL. */
uint32_t pprof_interpreter_most(const struct fusee_profile *, bool *several);
/* Calls each() for each comment. 0 or -ENOMEM. */
int pprof_interpreter_write(const struct fusee_profile *,
			    void (*each)(void *arg, const char *text, uint64_t len), void *arg);

#define PPROF_INTERPRETER_LANGUAGES 16

/* The content of a file's comments. */
struct pprof_interpreter {
	struct dict texts; /* of comments, without their beginning */
	struct buf text;
	bool used;
	uint32_t nlanguages; /* of interpreters */
	const char
		*languages[PPROF_INTERPRETER_LANGUAGES]; /* parts of the comments, not terminated */
	uint32_t lens[PPROF_INTERPRETER_LANGUAGES];
	const char *language; /* of functions that name none; "": comments differ. NULL: none */
};

/* Reads one comment, which must stay valid. 1: it describes an interpreter or a language; 0: not;
 * -ENOMEM. */
int pprof_interpreter_read(struct pprof_interpreter *, const char *comment);
/* Whether this file's code is an interpreter's. *language: the interpreter's, empty if unknown.
 * function: the outermost of the location, not an inlined one. */
bool pprof_interpreter_has(struct pprof_interpreter *, const char *path, const char *function,
			   struct fusee_str *language);
void pprof_interpreter_fini(struct pprof_interpreter *);
#endif
