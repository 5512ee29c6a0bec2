/* SPDX-License-Identifier: Apache-2.0 */
#include "body.h"

void body_text(struct fusee_bytes *b, struct fusee_str s)
{
	fusee_bytes_varint(b, s.len);
	fusee_bytes_add(b, s.p, s.len);
}

void body_uuid(struct fusee_bytes *b, const uint8_t id[16])
{
	uint8_t turned[16];

	for (int i = 0; i < 8; i++) {
		turned[i] = id[7 - i];
		turned[8 + i] = id[15 - i];
	}
	fusee_bytes_add(b, turned, sizeof(turned));
}
