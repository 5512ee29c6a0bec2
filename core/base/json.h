/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings (RFC 8259). Other JSON is written by buf_printf(). */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>

#include "base/buf.h"

/* Appends a quoted and escaped string, which is also safe in a script element of HTML. Bytes that
 * are not UTF-8 become U+FFFD. An error stays in the buffer. */
void json_string(struct buf *, const char *p, size_t len);
void json_text(struct buf *, const char *); /* of a string with NUL; NULL: "" */
#endif
