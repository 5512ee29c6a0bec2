/* SPDX-License-Identifier: Apache-2.0 */
/* A frame as sink.parquet writes it: an object of JSON with these members in this order, of which
 * those that are empty or 0 are omitted. */
#ifndef PARQUET_FRAME_H
#define PARQUET_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"

enum parquet_frame_text {
	FRAME_FUNCTION,
	FRAME_FILE,
	FRAME_MAPPING,
	FRAME_BUILD_ID,
	FRAME_TYPE,
	FRAME_LANGUAGE,
	FRAME_TEXTS
};

enum parquet_frame_number {
	FRAME_LINE,
	FRAME_INLINED,
	FRAME_START_LINE,
	FRAME_FLAGS,
	FRAME_ADDRESS,
	FRAME_NUMBERS
};

struct parquet_frame {
	struct fusee_str texts[FRAME_TEXTS]; /* in the text that was read, or in `room` */
	int64_t numbers[FRAME_NUMBERS];
};

/* Reads a frame. room: for texts with escapes, until the next call. 0; -EINVAL: it is none;
 * -ENOMEM. */
int parquet_frame_read(struct parquet_frame *, struct fusee_str text, struct buf *room);
/* Reads the function alone: what follows it is not looked at. */
int parquet_frame_function(struct fusee_str *function, struct fusee_str text, struct buf *room);
#endif
