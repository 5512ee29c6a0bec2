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

#define V8_REQUIRED 34u

extern const struct v8_required v8_required[V8_REQUIRED];

/* Words of WebAssembly: all, or none counts. */
#define V8_WASM_WORDS 5u

extern const struct v8_required v8_wasm_words[V8_WASM_WORDS];

/* Words of compiled code, by the layouts that releases have. The first layout counts whose
 * constants the library has; without any all these words are 0. */
#define V8_LAYOUTS 4u
#define V8_CODE_WORDS 13u

struct v8_code_word {
	uint32_t word;
	const char *name; /* NULL: it is not exported, and is `value` */
	uint32_t value;
};

extern const struct v8_code_word v8_code_words[V8_LAYOUTS][V8_CODE_WORDS];

/* Constants that the step takes for granted: all releases that it knows have these values. */
struct v8_granted {
	const char *name;
	int32_t value;
};

#define V8_GRANTED 7u

extern const struct v8_granted v8_granted[V8_GRANTED];

#endif
