/* SPDX-License-Identifier: Apache-2.0 */
/* The text in which interpreters are searched that a command may start, before it runs. */
#ifndef RECORD_COMMAND_TEXT_H
#define RECORD_COMMAND_TEXT_H

#include "base/buf.h"

struct command_text {
	/* The words of a command, the text of scripts among them (64 KiB of each), and the #! lines
	 * of the programs that words and scripts name, and their names without links; a string. */
	struct buf text;
	struct buf programs; /* the paths of these programs, without links: strings, then "" */
};

/* What is found may be incomplete: only regular files are read, and only the first 128 words are
 * looked up. */
void command_text_read(struct command_text *, char *const *argv);
void command_text_fini(struct command_text *);
#endif
