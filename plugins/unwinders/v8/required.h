/* SPDX-License-Identifier: Apache-2.0 */
/* The constants that V8 exports for debuggers as variables, v8dbg_NAME, and the words of the table
 * that they are. */
#ifndef V8_REQUIRED_H
#define V8_REQUIRED_H

#include <stdint.h>

#include "words.h"

/* The names that releases have given to a word; the first that a library has counts. */
#define V8_MOST_NAMES 4

struct v8_required {
	uint32_t word;
	const char *names[V8_MOST_NAMES]; /* without v8dbg_ */
};

/* Those from here on are of compiled code: if one is missing, all are 0. */
#define V8_REQUIRED_OF_CODE 34u

#define V8_REQUIRED 42u

extern const struct v8_required v8_required[V8_REQUIRED];

/* Constants that the step takes for granted: all releases that it knows have these values. */
struct v8_granted {
	const char *name;
	int32_t value;
};

#define V8_GRANTED 7u

extern const struct v8_granted v8_granted[V8_GRANTED];

#endif
