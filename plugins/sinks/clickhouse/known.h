/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that the server has already: each is sent once an hour. */
#ifndef CLICKHOUSE_KNOWN_H
#define CLICKHOUSE_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_SLOTS (1u << 19) /* 4 MiB, once there is one; half of them are used */

/* Zeroed is empty. */
struct known {
	int64_t *slots; /* owned; 0: empty */
	uint32_t n;
	uint64_t hour; /* of the windows in which they were sent */
};

/* Forgets stacks of an hour other than this window's. */
void known_begin(struct known *, uint64_t start_ns);
void known_forget(struct known *); /* all */
bool known_has(const struct known *, int64_t id);
/* Notes that the server has the stack. Without room does nothing: the stack is then sent again. */
void known_add(struct known *, int64_t id);
void known_fini(struct known *);
#endif
