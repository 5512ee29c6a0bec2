/* SPDX-License-Identifier: Apache-2.0 */
/* The packed table of lines of a method. */
#ifndef HOTSPOT_LINES_H
#define HOTSPOT_LINES_H

#include <stdint.h>

/* The line of the bytecode at bci, and in *first that of the method's first. 0: not known. The
 * table ends with a 0 if it is complete. excess: of each byte of a packed number. */
uint32_t hotspot_line(const unsigned char *table, uint32_t n, uint32_t excess, uint32_t bci,
		      uint32_t *first);

#endif
