// SPDX-License-Identifier: Apache-2.0
#include "spool/internal/segment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define DEFLATE_MOST 1032u /* bytes from a byte of deflated data, at most */

/* The last byte is the version of the format. The bytes do not occur in UTF-8, so the marker seldom
 * occurs inside of a record. */
static const char marker[8] = {'\xf5', 'f', 'u', 's', '\xc0', 'e', '\xe0', 1};

/* The beginning of a record; the profile follows, compressed. */
struct head {
	char marker[8];
	uint64_t checksum; /* XXH3, 64 bits, of all that follows it in the record */
	uint32_t bytes;    /* of the compressed profile */
	uint32_t raw;      /* bytes of the profile */
	uint64_t stored_ns, samples;
};

#define CHECKED offsetof(struct head, bytes) /* where the checksum's bytes begin */

int spool_record_encode(const struct fusee_profile *p, uint64_t stored_ns, uint64_t samples,
			struct buf *out)
{
	struct head h = {.stored_ns = stored_ns, .samples = samples};
	size_t begin = out->len;
	struct buf raw = {0};
	char *at = NULL;
	uLongf bytes;
	int r = spool_profile_encode(p, &raw);

	if (!r && raw.len > SPOOL_MAX_PROFILE)
		r = -EMSGSIZE;
	bytes = compressBound(raw.len);
	if (!r)
		at = buf_grow(out, sizeof(h) + bytes);
	if (!r && (!at || compress2((Bytef *)at + sizeof(h), &bytes, (const Bytef *)raw.p, raw.len,
				    Z_BEST_SPEED) != Z_OK))
		r = -ENOMEM;
	if (!r) {
		memcpy(h.marker, marker, sizeof(marker));
		h.bytes = (uint32_t)bytes;
		h.raw = (uint32_t)raw.len;
		memcpy(at, &h, sizeof(h));
		h.checksum = XXH3_64bits(at + CHECKED, sizeof(h) - CHECKED + bytes);
		memcpy(at, &h, sizeof(h));
	}
	out->len = r ? begin : begin + sizeof(h) + bytes;
	buf_fini(&raw);
	return r;
}

/* Is there a record at the beginning of these bytes? */
static bool read_head(const char *at, size_t len, struct head *h)
{
	if (len < sizeof(*h) || memcmp(at, marker, sizeof(marker)))
		return false;
	memcpy(h, at, sizeof(*h));
	return h->bytes <= len - sizeof(*h) && h->raw <= SPOOL_MAX_PROFILE &&
	       h->raw / DEFLATE_MOST <= h->bytes &&
	       XXH3_64bits(at + CHECKED, sizeof(*h) - CHECKED + h->bytes) == h->checksum;
}

int spool_record_decode(const void *record, size_t bytes, struct spool_profile **ret)
{
	struct head h;
	uLongf raw;
	void *to;

	if (!read_head(record, bytes, &h))
		return -EBADMSG;
	to = malloc(h.raw + 1ul);
	if (!to)
		return -ENOMEM;
	raw = h.raw;
	if (uncompress(to, &raw, (const Bytef *)record + sizeof(h), h.bytes) != Z_OK ||
	    raw != h.raw) {
		free(to);
		return -EBADMSG;
	}
	return spool_profile_decode(to, raw, ret);
}

/* The next place with a marker, or the end. */
static size_t next_marker(const char *bytes, size_t len, size_t from)
{
	const char *at = from < len ? memmem(bytes + from, len - from, marker, sizeof(marker))
				    : NULL;

	return at ? (size_t)(at - bytes) : len;
}

int spool_segment_scan(const void *bytes, size_t len, size_t from,
		       int (*each)(void *arg, const struct spool_record *), void *arg,
		       uint64_t *damaged)
{
	bool within = false; /* a damaged stretch */
	struct head h;
	int r;

	*damaged = 0;
	while (from < len) {
		if (!read_head((const char *)bytes + from, len - from, &h)) {
			*damaged += !within;
			within = true;
			from = next_marker(bytes, len, from + 1);
			continue;
		}
		within = false;
		r = each(arg, &(struct spool_record){.stored_ns = h.stored_ns,
						     .samples = h.samples,
						     .offset = (uint32_t)from,
						     .bytes = (uint32_t)(sizeof(h) + h.bytes)});
		if (r)
			return r;
		from += sizeof(h) + h.bytes;
	}
	return 0;
}
