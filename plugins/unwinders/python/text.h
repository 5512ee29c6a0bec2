/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_TEXT_H
#define PYTHON_TEXT_H

#include "versions.h"

/* The characters of a str, as they are in memory, as UTF-8; characters that UTF-8 does not have
 * become U+FFFD, and "..." follows if the text was shortened. The caller frees it. NULL: no memory.
 */
char *python_text(const unsigned char *bytes, const struct python_text *text);

#endif
