/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for identities of contents that an attacker may want to forge. Uses the
 * CPU's SHA instructions if it has them. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t len;            /* bytes added so far */
	unsigned char block[64]; /* the last len % 64 bytes, not yet in state */
	bool by_cpu; /* use the CPU's instructions; sha256_init() sets it, tests may clear it */
};

void sha256_init(struct sha256 *);
void sha256_add(struct sha256 *, const void *, size_t len);
void sha256_end(struct sha256 *, uint8_t digest[32]);
#endif
