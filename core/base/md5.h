/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321), for numbers that others compute from texts by it. It protects nothing. */
#ifndef BASE_MD5_H
#define BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

void md5(const void *, size_t len, uint8_t digest[16]);
#endif
