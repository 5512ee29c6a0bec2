/* SPDX-License-Identifier: Apache-2.0 */
/* What a server said, as an error shows it: one line of printable ASCII that ends. */
#ifndef FUZZ_SERVER_WORDS_H
#define FUZZ_SERVER_WORDS_H

#include <stdlib.h>
#include <string.h>

static inline void check_words(const char *words, size_t size)
{
	if (strnlen(words, size) == size)
		abort();
	for (const char *p = words; *p; p++)
		if (*p < ' ' || *p > '~')
			abort();
}
#endif
