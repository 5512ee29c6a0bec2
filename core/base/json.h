/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON (RFC 8259): what needs care, the rest is buf_printf(). */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>

#include "base/buf.h"

/* A string with its quotes: UTF-8, what is none as U+FFFD; also safe inside of an HTML script. */
void json_string(struct buf *, const char *p, size_t len);
void json_text(struct buf *, const char *); /* the same of a terminated one; NULL: "" */
#endif
