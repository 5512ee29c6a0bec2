/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOTSPOT_INSPECT_H
#define HOTSPOT_INSPECT_H

#include <fusee/helpers.h>

/* Makes the table of a libjvm.so: where the variables are with which it describes itself. 1: it is
 * made; 0: the file is no libjvm.so; or -errno after fail(). */
int hotspot_inspect(const struct fusee_self *, uint64_t file);

#endif
