/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of addresses: a label of a sample is a number of 32 bits, and an address has 64. */
#ifndef LOCK_NUMBERS_H
#define LOCK_NUMBERS_H

#include <stdint.h>

#define LOCK_OTHERS 0u       /* the number of all addresses for which there is no room */
#define LOCK_MOST (1u << 16) /* addresses; a program may have millions of locks */

/* Zeroed: empty. Addresses are never forgotten, since a number may be in use. */
struct lock_numbers {
	uint64_t *addresses; /* number -> address; [0] is unused */
	uint32_t *slots;     /* hash -> number, 0: none */
	uint32_t n, cap;     /* numbers in use, and slots: a power of two */
};

void lock_numbers_free(struct lock_numbers *);
/* From 1 on, or LOCK_OTHERS: there is no room, or no memory. */
uint32_t lock_number(struct lock_numbers *, uint64_t address);
/* 0: it is LOCK_OTHERS, or no address has that number. */
uint64_t lock_address(const struct lock_numbers *, uint32_t number);
#endif
