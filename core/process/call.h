/* SPDX-License-Identifier: Apache-2.0 */
/* Call instructions of x86-64, which lie before return addresses. */
#ifndef PROCESS_CALL_H
#define PROCESS_CALL_H

#include <stdbool.h>

#define CALL_BYTES 7u /* of the longest, without its prefix */

/* May these bytes end with a call? */
bool call_ends(const unsigned char code[CALL_BYTES]);
#endif
