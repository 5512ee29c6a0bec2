/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets of `fusee ctl targets` and `fusee check`. */
#ifndef CTL_TARGET_TABLE_H
#define CTL_TARGET_TABLE_H

#include <json-c/json.h>

#include "base/buf.h"

/* Appends the table, with at most `rows` rows (0: all); targets with most processes first. `list`:
 * the array of targets, as the agent's control socket sends it; it is sorted. width: as
 * grid_print().
 */
void target_table(struct json_object *list, uint32_t width, size_t rows, struct buf *out);
#endif
