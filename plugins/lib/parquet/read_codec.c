/* SPDX-License-Identifier: Apache-2.0 */
#include <zlib.h>
#include <zstd.h>

#include "read_internal.h"

enum { NONE = 0, GZIP = 2, ZSTD = 6 };

bool pq_codec_known(int64_t codec)
{
	return codec == NONE || codec == GZIP || codec == ZSTD;
}

static int inflate_all(const uint8_t *from, size_t n, uint8_t *to, size_t raw)
{
	z_stream z = {0};
	int r;

	if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)(uintptr_t)from;
	z.avail_in = (uInt)n;
	z.next_out = to;
	z.avail_out = (uInt)raw;
	r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_STREAM_END && !z.avail_in && !z.avail_out ? 0 : -EINVAL;
}

/* The format's sizes of pages are below 2 GiB. */
int pq_decompress(int codec, const uint8_t *from, size_t n, uint8_t *to, size_t raw)
{
	if (codec == GZIP)
		return inflate_all(from, n, to, raw);
	if (codec == ZSTD)
		return ZSTD_decompress(to, raw, from, n) == raw ? 0 : -EINVAL;
	if (n != raw)
		return -EINVAL;
	memcpy(to, from, n);
	return 0;
}
