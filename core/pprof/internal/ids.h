/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings, functions and locations of a pprof file by their ids. */
#ifndef PPROF_INTERNAL_IDS_H
#define PPROF_INTERNAL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An id in the file, with the builder's index and the name of the element. */
struct pprof_id {
	uint64_t id;
	const char *name;
	uint32_t index;
	uint32_t language; /* of a function, in the builder; 0: its system name has none */
	bool guessed;      /* of a function: its locations are */
};

struct pprof_ids {
	struct pprof_id *at; /* freed by the caller */
	size_t n;
};

/* Room for n elements, of which there are none. 0 or -ENOMEM. */
int pprof_ids_make(struct pprof_ids *, size_t n);
/* Sorts what was added. -EINVAL: the first id is 0, or else two are equal. */
int pprof_ids_close(struct pprof_ids *);
/* NULL: there is none. After pprof_ids_close(). */
const struct pprof_id *pprof_ids_find(const struct pprof_ids *, uint64_t id);
#endif
