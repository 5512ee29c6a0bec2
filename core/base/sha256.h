/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): names for contents that somebody may want to forge. By the CPU's own
 * instructions where it has them. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t len;            /* bytes so far */
	unsigned char block[64]; /* len % 64 of them wait */
	bool by_cpu;             /* set by init; may be cleared */
};

void sha256_init(struct sha256 *);
void sha256_add(struct sha256 *, const void *, size_t len);
void sha256_end(struct sha256 *, uint8_t digest[32]);
#endif
