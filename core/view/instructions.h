/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a function of one ELF file, as objdump prints them, with their source lines.
 */
#ifndef VIEW_INSTRUCTIONS_H
#define VIEW_INSTRUCTIONS_H

#include <stdint.h>

#include "base/buf.h"
#include <fusee/profile.h>

struct instructions;

/* build_id: in hex; empty where the profile has none. 0; -ENOENT and the like: the file can't be
 * opened; -ESTALE: it is another file than the profile's, by its build ID; -ENOEXEC, -EBADMSG: no
 * ELF file. */
int instructions_open(struct instructions **ret, struct fusee_str path, struct fusee_str build_id);
void instructions_close(struct instructions *); /* NULL is fine */

/* line: of the source, 0 unknown; the texts live until each() returns. */
typedef void instructions_each(void *arg, uint64_t address, const char *text, const char *file,
			       uint32_t line);
/* Calls each() for each instruction of the function that has the code at this ELF virtual address,
 * in order of addresses; *end is the address behind the function. 0; -ENOENT: no symbol has the
 * address; -ENOEXEC: objdump is not installed; -EIO, -ENOMEM. */
int instructions_of(struct instructions *, uint64_t address, instructions_each *, void *arg,
		    uint64_t *end);
/* What an error of these functions means. */
const char *instructions_why(int r);
#endif
