/* SPDX-License-Identifier: Apache-2.0 */
/* The source files that a profile names. */
#ifndef VIEW_SOURCE_TEXT_H
#define VIEW_SOURCE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <fusee/profile.h>

/* The file by its path; else by the end of its path below the current folder, as a source tree that
 * was built in another folder has it. NULL: not found, empty, or no regular file. */
FILE *source_text_open(struct fusee_str path);
/* Reads the next line, without its end, into *text, as getline() does. false: there is none. */
bool source_text_line(FILE *, char **text, size_t *cap, struct fusee_str *line);
#endif
