// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/spool/profile.c core/spool/segment.c core/pprof/encode.c core/pprof/encoder.c core/pprof/encode_sample.c core/pprof/flags.c core/pprof/interpreter.c core/loss/comment.c
// sources: core/profile/build*.c core/loss/loss.c core/profile/check.c core/profile/omit.c
// sources: core/base/[!al]*.c core/base/arena.c
// libs: -ldeflate -lz -lm
// clang-format on
// What a spool's files may be: bytes that are taken for a profile are refused, or are a profile
// that can be encoded, as pprof and for the spool again; and a segment in which bytes were changed
// still gives the records that were not.
#include "fuzz.h"

#include "spool/internal/segment.h"
#include "profile/builder.h"
#include "pprof/pprof.h"

#define RECORDS 3u

static void holds(bool ok)
{
	if (!ok)
		abort();
}

static void decode(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	struct spool_profile *sp, *again;
	struct buf pprof = {0}, bytes = {0};

	memcpy(copy, data, size);
	if (spool_profile_decode(copy, size, &sp))
		return;
	pprof_encode(spool_profile_get(sp), false, &pprof);
	holds(!spool_profile_encode(spool_profile_get(sp), &bytes));
	holds(!spool_profile_decode(bytes.p, bytes.len, &again)); /* takes them over */
	holds(spool_profile_get(again)->samples.n == spool_profile_get(sp)->samples.n);
	spool_profile_free(again);
	spool_profile_free(sp);
	buf_fini(&pprof);
}

/* ---- a segment with changed bytes ---- */

static size_t ends[RECORDS];

static void make_segment(struct buf *segment)
{
	for (uint32_t i = 0; i < RECORDS; i++) {
		const struct fusee_profile *p;
		struct builder *b;

		holds(!builder_new(&b));
		builder_type(b, "cpu", "nanoseconds");
		builder_sample(b, 0, NULL, 0, i, i, (int64_t[]){(int64_t)i});
		holds(!builder_finish(b, &p));
		holds(!spool_record_encode(p, i, 1, segment));
		ends[i] = segment->len;
		builder_free(b);
	}
}

struct found {
	const char *bytes;
	uint32_t mask; /* of records by their times */
};

static int on_record(void *arg, const struct spool_record *r)
{
	struct found *f = arg;
	struct spool_profile *sp;

	holds(r->stored_ns < RECORDS && !(f->mask & 1u << r->stored_ns));
	f->mask |= 1u << r->stored_ns;
	holds(!spool_record_decode(f->bytes + r->offset, r->bytes, &sp));
	holds(FUSEE_AT(struct fusee_sample, spool_profile_get(sp)->samples, 0)->pid ==
	      r->stored_ns);
	spool_profile_free(sp);
	return 0;
}

/* Three bytes each: a place and what it is XORed with; the first is where the segment ends. */
static void change(const uint8_t *data, size_t size)
{
	static struct buf segment;
	struct found f = {0};
	uint32_t intact = 0;
	uint64_t damaged;
	char *copy;
	size_t len;

	if (!segment.len)
		make_segment(&segment);
	copy = malloc(segment.len);
	memcpy(copy, segment.p, segment.len);
	len = size >= 3 && data[2] ? (data[0] | data[1] << 8) % segment.len : segment.len;
	for (size_t i = 3; i + 2 < size; i += 3)
		copy[(data[i] | data[i + 1] << 8) % segment.len] ^= (char)data[i + 2];
	for (uint32_t i = 0; i < RECORDS; i++) {
		size_t from = i ? ends[i - 1] : 0;

		if (ends[i] <= len && !memcmp(copy + from, segment.p + from, ends[i] - from))
			intact |= 1u << i;
	}
	f.bytes = copy;
	holds(!spool_segment_scan(copy, len, 0, on_record, &f, &damaged));
	holds((f.mask & intact) == intact);
	holds(damaged <= RECORDS + 1 && (damaged || f.mask == intact));
	free(copy);
}

static int ignore(void *arg, const struct spool_record *r)
{
	(void)arg;
	(void)r;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t damaged;

	if (!size)
		return 0;
	if (data[0] % 3 == 0)
		decode(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		change(data + 1, size - 1);
	else
		spool_segment_scan(data + 1, size - 1, 0, ignore, NULL, &damaged);
	return 0;
}
