/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which rows share a row group of a merged file. Services with common stacks, as those of
 * one program, form a family. Families are sorted by name, and a row group gets as many as fit; a
 * family that needs more row groups is divided at some texts of its stacks. So a family has the
 * text of a stack in one row group only, next to texts with the same beginning, and the bounds of a
 * row group exclude other services. All rows are counted first.
 */
#ifndef PARQUET_ORDER_H
#define PARQUET_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/helpers.h>

#include "numbers.h"

#define ORDER_LEAST 8
#define ORDER_TEXT 64 /* bytes of a service's name that decide its place */

struct order_service {
	uint64_t hash;
	char text[ORDER_TEXT];
	uint32_t len;
	uint32_t family;             /* the first service of its family; after order_finish() */
	uint64_t least[ORDER_LEAST]; /* of its stacks' numbers, mixed: of each residue */
	uint64_t rows, bytes;
	uint32_t first, n; /* of its row groups */
	uint32_t splits;   /* n - 1 of `splits` from here on, if has_splits */
	bool has_splits;
};

/* A stack of a service. */
struct order_stack {
	int64_t number;
	uint32_t service, len; /* len: of its text */
};

/* A sample of the texts of stacks: those whose mixed number is a multiple of `rate`. */
struct order_text {
	uint64_t mixed;
	char *p;
	uint32_t len, service;
};

struct order {
	struct order_service *services;
	struct order_stack *stacks; /* until order_finish() */
	uint32_t nservices, nstacks;
	uint64_t services_cap, stacks_cap, texts_cap;
	struct numbers by_hash; /* indices of services */
	struct numbers pairs;   /* of services and stacks; until order_finish() */
	uint32_t ngroups;       /* after order_finish() */
	struct order_text *texts;
	uint32_t ntexts, rate; /* rate: a power of 2 */
	uint64_t texts_bytes;
	struct order_text *splits; /* first texts of a family's later row groups; borrowed */
	uint32_t nsplits;
};

/* The number of a service. UINT32_MAX: no memory. */
uint32_t order_service(struct order *, struct fusee_str name);
/* Counts a row of this service: its bytes without texts of stacks, and its stack. 0 or -ENOMEM. */
int order_row(struct order *, uint32_t service, uint64_t bytes, int64_t stack,
	      struct fusee_str text);
/* Forms row groups of about `bytes` and `rows` at most. No row can be counted after it. 0 or
 * -ENOMEM. */
int order_finish(struct order *, uint64_t bytes, uint64_t rows);
/* The number of a service; UINT32_MAX: there is none. */
uint32_t order_find(const struct order *, struct fusee_str name);
/* The row group of a row: text: of its stack. */
uint32_t order_group(const struct order *, uint32_t service, struct fusee_str text);
void order_fini(struct order *);
#endif
