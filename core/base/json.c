/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

#include "base/utf8.h"

void json_string(struct buf *out, const char *p, size_t len)
{
	struct buf clean = {0};

	if (utf8_clean(&clean, p, len))
		out->error = clean.error;
	buf_str(out, "\"");
	for (size_t i = 0; i < clean.len; i++) {
		unsigned char c = (unsigned char)clean.p[i];

		if (c == '"' || c == '\\')
			buf_add(out, (char[]){'\\', (char)c}, 2);
		else if (c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&')
			buf_printf(out, "\\u%04x", c);
		else
			buf_add(out, &c, 1);
	}
	buf_str(out, "\"");
	buf_fini(&clean);
}

void json_text(struct buf *out, const char *text)
{
	json_string(out, text ? text : "", text ? strlen(text) : 0);
}
