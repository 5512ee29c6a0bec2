/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an agent's answer: "", 0, false or NULL if missing or of another type. */
#ifndef CTL_ANSWER_H
#define CTL_ANSWER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

const char *answer_text(struct json_object *, const char *key);
uint64_t answer_number(struct json_object *, const char *key);
double answer_real(struct json_object *, const char *key);
bool answer_bool(struct json_object *, const char *key);
struct json_object *answer_list(struct json_object *, const char *key);
/* Of an array; of anything else 0. */
size_t answer_length(struct json_object *);

/* Prints the text to the width, its first line in column `used`, the others at `indent`. */
void answer_wrap(struct buf *out, uint32_t width, uint32_t used, uint32_t indent, struct buf *text);
/* "config     TEXT"; further lines are indented to TEXT. */
void answer_line(struct buf *out, uint32_t width, const char *name, struct buf *text);
#endif
