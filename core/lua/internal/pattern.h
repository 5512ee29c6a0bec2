/* SPDX-License-Identifier: Apache-2.0 */
/* The number of steps that Lua's matcher takes for a pattern on a text, so that a match that takes
 * too long can be refused before Lua begins it. */
#ifndef LUA_PATTERN_H
#define LUA_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern_text {
	const char *p;
	size_t len;
};

enum pattern_search {
	PATTERN_FIRST,  /* find, match */
	PATTERN_ALL,    /* gsub */
	PATTERN_GMATCH, /* as PATTERN_ALL, but '^' is an ordinary character */
};

/* Steps of a search from byte `init`; counting stops at most + 1. Of a malformed pattern, the steps
 * before the mistake are counted. */
uint64_t pattern_cost(struct pattern_text text, struct pattern_text pattern, size_t init,
		      enum pattern_search, uint64_t most);
#endif
