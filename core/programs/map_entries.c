/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/map_entries.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define BATCH 4096u

int map_entries_each(int map, size_t key, size_t value,
		     int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	char *keys = malloc(BATCH * key), *values = malloc(BATCH * value);
	uint64_t in = 0, out = 0; /* places in the map */
	int r = keys && values ? 0 : -ENOMEM, end = 0;

	for (uint32_t first = 1; !r && !end; first = 0, in = out) {
		uint32_t n = BATCH;

		if (bpf_map_lookup_batch(map, first ? NULL : &in, &out, keys, values, &n, NULL))
			end = -errno;
		if (end && end != -ENOENT) {
			r = end;
			break;
		}
		for (uint32_t i = 0; !r && i < n; i++)
			r = each(arg, keys + i * key, values + i * value);
	}
	free(keys);
	free(values);
	return r;
}
