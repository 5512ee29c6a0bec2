/* SPDX-License-Identifier: Apache-2.0 */
/* The code around an address, by call frame information. */
#ifndef SYMBOLS_INTERNAL_FDE_H
#define SYMBOLS_INTERNAL_FDE_H

#include "symbols/fde.h"

/* The end of the last function before addr, if no function covers addr; else 0. */
uint64_t fdes_gap(const struct fdes *, uint64_t addr);
/* Narrows [*lo, *hi), which contains addr, to the function around addr or to the gap between two
 * functions. */
void fdes_narrow(const struct fdes *, uint64_t addr, uint64_t *lo, uint64_t *hi);
#endif
