/* SPDX-License-Identifier: Apache-2.0 */
/* What a Lua pattern costs on a text. One call into Lua's string library can't be stopped, and a
 * pattern may backtrack for ever: so it is counted first. */
#ifndef CONFIG_PATTERN_H
#define CONFIG_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern_text {
	const char *p;
	size_t len;
};

enum pattern_search { PATTERN_FIRST, PATTERN_ALL, PATTERN_GMATCH /* all; '^' is a letter */ };

/* Steps that a search from byte `init` takes. Beyond `most` it stops and returns most + 1. A
 * malformed pattern costs what comes before its mistake. */
uint64_t pattern_cost(struct pattern_text text, struct pattern_text pattern, size_t init,
		      enum pattern_search, uint64_t most);
#endif
