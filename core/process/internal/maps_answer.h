/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the answers of maps_reader.c. */
#ifndef PROCESS_MAPS_ANSWER_H
#define PROCESS_MAPS_ANSWER_H

#include "process/maps_reader.h"

/* Reads the requested process, which can keep the caller waiting. most: executable mappings. */
void maps_answer_read(struct maps_answer *, uint32_t most);
uint64_t maps_answer_bytes(const struct maps_answer *); /* of memory */
#endif
