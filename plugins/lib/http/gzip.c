/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <zlib.h>

#include "internal.h"

#define LEVEL 4        /* as for profiles: half the time of zlib's own choice */
#define GZIP (15 + 16) /* window bits, and gzip's form */
#define MEMORY 8       /* zlib's default */

int http_gzip(struct fusee_str bytes, struct fusee_str *ret)
{
	z_stream z = {0};
	uint8_t *to;
	uLong most;
	int r;

	*ret = (struct fusee_str){0};
	if (bytes.len > UINT32_MAX / 2 ||
	    deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	most = deflateBound(&z, bytes.len);
	to = malloc(most);
	if (!to) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (Bytef *)(void *)(uintptr_t)bytes.p; /* zlib does not write to it */
	z.avail_in = (uInt)bytes.len;
	z.next_out = to;
	z.avail_out = (uInt)most;
	r = deflate(&z, Z_FINISH);
	*ret = (struct fusee_str){(const char *)to, most - z.avail_out};
	deflateEnd(&z);
	if (r == Z_STREAM_END)
		return 0;
	free(to);
	*ret = (struct fusee_str){0};
	return -ENOMEM;
}
