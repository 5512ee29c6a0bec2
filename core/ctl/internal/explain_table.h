/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's answer to `explain`, for people. */
#ifndef CTL_EXPLAIN_TABLE_H
#define CTL_EXPLAIN_TABLE_H

#include <json-c/json.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the process, its decision and its labels. Members that are missing or of another type
 * are 0 or "". */
void explain_table(struct json_object *answer, uint32_t width, struct buf *out);
#endif
