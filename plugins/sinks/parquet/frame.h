/* SPDX-License-Identifier: Apache-2.0 */
/* A frame as one text, so that a column has each distinct frame once. */
#ifndef PARQUET_FRAME_H
#define PARQUET_FRAME_H

#include <stdbool.h>

#include <fusee/bytes.h>
#include <fusee/rows.h>

/* An object of JSON without spaces, whose members are those of `frames` in docs/parquet.md, in that
 * order; members that are empty or 0 are omitted. It has at most FUSEE_PARQUET_MAX_TEXT bytes:
 * longer texts of the frame are truncated before a character. True: no text was truncated. */
bool frame_put(struct fusee_bytes *, const struct fusee_rows_frame *);
#endif
