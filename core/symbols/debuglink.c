// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/debuglink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/internal/source.h"

#define MAX_LINK 8192

/* The CRC behind the name in .gnu_debuglink. */
static int expected_crc(const struct source *file, uint32_t *crc)
{
	char *link;
	size_t len, at;
	int r = source_load(file, ".gnu_debuglink", MAX_LINK, &link, &len);

	if (r)
		return r;
	at = (strlen(link) + 4) & ~(size_t)3;
	if (at > len || len - at < 4)
		r = -EBADMSG;
	else
		memcpy(crc, link + at, 4);
	free(link);
	return r;
}

int debuglink_matches(const struct source *file, const struct source *debug)
{
	uint8_t a[64], b[64];
	size_t na = source_build_id(file, a), nb = source_build_id(debug, b);
	uint32_t expected, crc;
	int r;

	if (source_machine(file) != source_machine(debug))
		return 0;
	if (na && nb)
		return na == nb && !memcmp(a, b, na);
	r = expected_crc(file, &expected);
	if (r)
		return r == -ENOENT ? 0 : r;
	r = source_crc(debug, &crc);
	return r ? r : expected == crc;
}

int debugaltlink_read(const struct source *file, char **name, uint8_t id[64], size_t *n)
{
	size_t len, at;
	char *link;
	int r = source_load(file, ".gnu_debugaltlink", MAX_LINK, &link, &len);

	if (r)
		return r;
	at = strlen(link) + 1;
	if (at >= len || len - at > 64) {
		free(link);
		return -EBADMSG;
	}
	*n = len - at;
	memcpy(id, link + at, *n);
	*name = link;
	return 0;
}

int debugaltlink_matches(const struct source *file, const struct source *alt)
{
	uint8_t expected[64], id[64];
	size_t len, n = source_build_id(alt, id);
	char *name;
	int r = debugaltlink_read(file, &name, expected, &len);

	if (r)
		return r == -EBADMSG ? 0 : r;
	free(name);
	return n == len && !memcmp(expected, id, n);
}
