/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many texts that share words, as names of functions do: each word is kept once, and a text is the
 * numbers of its words. A word ends behind '_'. The kernel's names take a third of their bytes.
 */
#ifndef SYMBOLIZER_WORD_TEXTS_H
#define SYMBOLIZER_WORD_TEXTS_H

#include <stddef.h>
#include <stdint.h>

struct word_texts;

/* Keeps the texts 0 to n - 1, as text() returns them. 0 or -ENOMEM. */
int word_texts_new(struct word_texts **ret, const char *(*text)(void *arg, uint32_t i), void *arg,
		   uint32_t n);
void word_texts_free(struct word_texts *); /* NULL is valid */
/* Writes text i with its NUL, shortened to size bytes (at least 1). Returns its length as written;
 * 0 if there is no text i. */
size_t word_texts_get(const struct word_texts *, uint32_t i, char *to, size_t size);
#endif
