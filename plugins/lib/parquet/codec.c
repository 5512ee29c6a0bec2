/* SPDX-License-Identifier: Apache-2.0 */
#include <zlib.h>
#include <zstd.h>

#include "internal.h"

#define ZSTD_LEVEL 3
#define GZIP_LEVEL 6

int pq_codec_number(uint32_t codec)
{
	return codec == FUSEE_PARQUET_ZSTD ? 6 : codec == FUSEE_PARQUET_GZIP ? 2 : 0;
}

static int compress_zstd(const struct fusee_bytes *from, struct fusee_bytes *to, uint32_t level)
{
	size_t n;

	if (!fusee_bytes_reserve(to, ZSTD_compressBound(from->len) + 1))
		return -ENOMEM;
	n = ZSTD_compress(to->p, to->cap, from->p, from->len, level ? (int)level : ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	to->len = n;
	return 0;
}

static int compress_gzip(const struct fusee_bytes *from, struct fusee_bytes *to)
{
	z_stream z = {0};
	int r;

	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	if (!fusee_bytes_reserve(to, deflateBound(&z, from->len) + 1)) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (Bytef *)from->p;
	z.avail_in = (uInt)from->len;
	z.next_out = (Bytef *)to->p;
	z.avail_out = to->cap < UINT32_MAX ? (uInt)to->cap : UINT32_MAX;
	r = deflate(&z, Z_FINISH);
	to->len = z.total_out;
	deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -EIO;
}

int pq_compress(const struct fusee_parquet_options *o, const struct fusee_bytes *from,
		struct fusee_bytes *to)
{
	to->len = 0;
	if (from->error)
		return from->error;
	if (from->len > INT32_MAX) /* the format's limit for a page */
		return -E2BIG;
	if (o->codec == FUSEE_PARQUET_ZSTD)
		return compress_zstd(from, to, o->level);
	if (o->codec == FUSEE_PARQUET_GZIP)
		return compress_gzip(from, to);
	fusee_bytes_add(to, from->p, from->len);
	return to->error;
}
