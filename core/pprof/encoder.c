/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/encoder.h"

#include <errno.h>

#include "base/utf8.h"
#include "pprof/internal/wire.h"

void encoder_bytes(struct encoder *e, uint32_t field, const void *p, size_t len)
{
	struct buf *to = encoder_message(e);

	if (e->error)
		return;
	put_bytes(to, field, p, len);
	if (to->error)
		encoder_fail(e, -ENOMEM);
}

void encoder_emit(struct encoder *e, uint32_t field)
{
	if (e->msg.error || e->sub.error)
		return encoder_fail(e, -ENOMEM);
	encoder_bytes(e, field, e->msg.p, e->msg.len);
	buf_reset(&e->msg);
}

uint32_t encoder_text(struct encoder *e, const char *p, uint64_t len)
{
	uint32_t id;

	if (!len)
		return 0;
	if (!utf8_valid(p, len)) {
		buf_reset(&e->clean);
		if (utf8_clean(&e->clean, p, len)) {
			encoder_fail(e, -ENOMEM);
			return 0;
		}
		p = e->clean.p;
		len = e->clean.len;
	}
	id = dict_add(&e->texts, p, len);
	if (id != DICT_NONE)
		return id;
	encoder_fail(e, -ENOMEM);
	return 0;
}
