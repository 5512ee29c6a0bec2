/* SPDX-License-Identifier: Apache-2.0 */
/* Part of maps_reader.c. */
#ifndef PROCESS_MAPS_ANSWER_H
#define PROCESS_MAPS_ANSWER_H

#include "process/maps_reader.h"

/* Reads what the request names; the process can keep the caller waiting. most: mappings. */
void maps_answer_read(struct maps_answer *, uint32_t most);
uint64_t maps_answer_bytes(const struct maps_answer *); /* of memory */
#endif
