/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a jitdump file, each kept once, or again where many hashes are alike: names of functions
 * and, at every line, of files. For one thread. */
#ifndef JITDUMP_TEXTS_H
#define JITDUMP_TEXTS_H

#include <stdbool.h>

#include <fusee/plugin.h>

#define TEXTS_LONGEST 65535u /* bytes; longer texts are truncated */

/* Zeroed is empty. */
struct texts {
	char *at;        /* of each: u16 length, then the bytes */
	uint32_t len, n; /* n: texts with a slot */
	uint64_t cap;
	uint32_t *slots; /* by hash: 1 + offset of a text; 0: free */
	uint32_t nslots; /* a power of two */
};

void texts_fini(struct texts *);
/* Finds the text or adds it. *text: what texts_get() takes. false: no memory. */
bool texts_add(struct texts *, struct fusee_str, uint32_t *text);
struct fusee_str texts_get(const struct texts *, uint32_t text);
uint64_t texts_bytes(const struct texts *); /* memory in use */
#endif
