/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in the format RowBinary, by the types of a server's columns. */
#ifndef CLICKHOUSE_ENCODE_H
#define CLICKHOUSE_ENCODE_H

#include <fusee/rows.h>

#include "body.h"
#include "layout.h"

/* Both add a row; on an error the body's end is undefined. 0, -ENOMEM, or -E2BIG: the body would
 * have more bytes than it may. */
int encode_sample(struct fusee_bytes *, const struct layout *, const struct fusee_profile *,
		  const struct fusee_rows_sample *, uint64_t number);
int encode_stack(struct fusee_bytes *, const struct layout *, const struct fusee_profile *,
		 const struct fusee_rows_stack *);
#endif
