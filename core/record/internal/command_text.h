/* SPDX-License-Identifier: Apache-2.0 */
/* What a command's words and files say before it runs: which interpreters it may need at once. */
#ifndef RECORD_COMMAND_TEXT_H
#define RECORD_COMMAND_TEXT_H

#include "base/buf.h"

/* Appends the words of a command, the text of scripts among them (64 KiB of each), and the #! lines
 * of the programs that words and scripts name. A hint, which may be incomplete: only regular files
 * are read, and of many words the first. */
void command_text(char *const *argv, struct buf *);
#endif
