/* SPDX-License-Identifier: Apache-2.0 */
/* Deliberately wrong rows of a table, to show that a comparison finds them. */
#ifndef ACCURACY_ROWS_PLANT_H
#define ACCURACY_ROWS_PLANT_H

#include "../../plugins/unwinders/dwarf/table.h"

/* Makes one row of `every` wrong, as a wrong analysis would: its CFA is 8 bytes off. */
static void plant_many(uint32_t *w, uint32_t every)
{
	uint32_t at = w[DWARF_ROWS_AT];

	for (uint32_t i = 0; i < w[DWARF_ROWS]; i += every)
		if (w[at + i] >> 16 != DWARF_RULE_NONE && !(w[at + i] >> 16 & 0x8000))
			w[at + i] += 1u << 16;
}
#endif
