/* SPDX-License-Identifier: Apache-2.0 */
/* What a pprof file does not have and reports need, inferred from names. */
#ifndef PPROF_INFER_H
#define PPROF_INFER_H

#include <stdbool.h>
#include <stdint.h>

/* FUSEE_MAPPING_*: the kind of a mapping. may_be_main: it is the first, or the first is a program.
 */
uint32_t pprof_kind_of_mapping(const char *path, bool may_be_main);
/* FUSEE_LOCATION_* of a location with one function. path: of its mapping; NULL: it has none. */
uint32_t pprof_kind_of_location(const char *name, const char *path);
#endif
