/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by key: byte strings with a sum each, numbered from 1 on in the order of their addition. */
#ifndef QUERY_TALLY_H
#define QUERY_TALLY_H

#include "base/buf.h"
#include "base/dict.h"
#include <fusee/profile.h>

#define TALLY_NONE DICT_NONE

struct tally {
	struct dict keys; /* [0] is the empty key, which no sum has */
	struct buf sums;  /* int64_t, by number less 1 */
};

int tally_init(struct tally *); /* 0 or -ENOMEM */
void tally_fini(struct tally *);
/* Adds v to the sum of a key that is not empty; sums saturate. Its number; TALLY_NONE: no memory.
 */
uint32_t tally_add(struct tally *, const void *key, size_t len, int64_t v);
uint32_t tally_size(const struct tally *); /* the number of keys */
/* By number less 1. Keys are aligned to 8 bytes. */
int64_t tally_sum(const struct tally *, uint32_t i);
struct fusee_str tally_key(const struct tally *, uint32_t i);
uint64_t tally_bytes(const struct tally *); /* of memory, about */
#endif
