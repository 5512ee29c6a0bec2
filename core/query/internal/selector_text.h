/* SPDX-License-Identifier: Apache-2.0 */
/* The texts in quotes of a selector: those of Go, which Prometheus has too. */
#ifndef QUERY_SELECTOR_TEXT_H
#define QUERY_SELECTOR_TEXT_H

#include "base/buf.h"

/* Appends the text that begins with the quote at *p (", ' or `) and advances *p behind its closing
 * quote. NULL, or a static sentence about an error at *p. */
const char *selector_text(const char **p, struct buf *out);
#endif
