/* SPDX-License-Identifier: Apache-2.0 */
/* From a collector, whose names have come, to a profile. */
#ifndef SAMPLING_BUILD_PROFILE_H
#define SAMPLING_BUILD_PROFILE_H

#include <stdint.h>

#include "profile/builder.h"
#include "sampling/collector.h"
#include "sampling/symbolizer.h"

struct pipeline;

struct build_options {
	uint64_t period_ns; /* the base rate's */
	/* A label set's labels; NULL: samples carry `process` and `thread` alone. */
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg;
	const char *const *omit; /* labels that are left out; ends with NULL. NULL: none */
	bool one_set;            /* only samples of `set`, whose labels go to the resource */
	uint32_t set;
};

/* Fills the builder: types samples/count and cpu/nanoseconds, all names, the time of the collector.
 * The files of the collector's frames must still be there. 0 or -errno. */
int build_profile(struct builder *, const struct collector *, const struct pipeline *,
		  struct symbolizer *, const struct build_options *);

/* Files whose names are poor, the hottest first: of `self_ns` own CPU time, what its names came
 * from. */
struct poorly_symbolized_file {
	const char *path;
	char build_id[129]; /* hex, "" none */
	uint32_t quality;   /* INSPECTION_SYMTAB .. */
	uint64_t self_ns;
};
/* At most n. Returns how many. */
uint32_t build_find_poorly_symbolized(const struct collector *, const struct pipeline *,
				      const struct symbolizer *, struct poorly_symbolized_file *,
				      uint32_t n);
#endif
