/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lines of a script begin, by its text in the process. */
#ifndef V8_SOURCE_H
#define V8_SOURCE_H

#include <fusee/helpers.h>

#include "names.h"

/* Reads on in the script's text, until it is read, cannot be read, or it is not the time to wait
 * any longer. true: nothing more is to be done. */
bool v8_source_read(const struct fusee_unwinder_host *, uint64_t process, const uint32_t *words,
		    struct v8_source *);
/* The line of a position, from 1 on; 0: it is not known. */
uint32_t v8_source_line(const struct v8_source *, uint32_t position);
/* May a loop begin there? Then it is no place of a call. */
bool v8_source_is_loop(const struct v8_source *, uint32_t position);

/* Is it an error of a busy machine, after which another try makes sense? */
bool v8_may_pass(int err);

#endif
