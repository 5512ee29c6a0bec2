/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "pprof/internal/varint.h"
#include "pprof/pprof.h"

#define IN_STEP 65536
#define WINDOW_GZIP (15 + 16)
enum { FIELD_SAMPLE = 2, FIELD_TIME_NANOS = 9 };
#define CHUNK (1u << 20)
#define CHUNK_HEAD 16u /* blocks are aligned to it */

static int fail(struct pprof_message *m, int code, const char *error)
{
	if (!m->error) {
		m->error = error;
		m->code = code;
	}
	return m->code;
}

static int fail_too_large(struct pprof_message *m, bool gzip)
{
	if (m->max_bytes == PPROF_MAX_BYTES)
		return fail(m, -EFBIG,
			    gzip ? "the profile is larger than 512 MiB uncompressed"
				 : "the profile is larger than 512 MiB");
	return fail(m, -EFBIG,
		    gzip ? "the profile is larger than its limit uncompressed"
			 : "the profile is larger than its limit");
}

/* ---- gzip ---- */

static int inflate_member(struct pprof_message *m, z_stream *z, struct buf *out)
{
	int ret = Z_OK;

	while (ret != Z_STREAM_END) {
		size_t n = IN_STEP;

		if (out->len > m->max_bytes)
			return fail_too_large(m, true);
		z->next_out = buf_grow(out, n);
		if (!z->next_out)
			return fail(m, -ENOMEM, "no memory");
		z->avail_out = (uInt)n;
		ret = inflate(z, Z_NO_FLUSH);
		out->len -= z->avail_out;
		if (ret == Z_BUF_ERROR || (ret == Z_OK && !z->avail_in && z->avail_out))
			return fail(m, -EINVAL, "the gzip stream is truncated");
		if (ret != Z_OK && ret != Z_STREAM_END)
			return fail(m, -EINVAL, "the gzip stream is damaged");
	}
	return 0;
}

/* Inflates all members; nothing may follow them. */
static int gunzip(struct pprof_message *m, const uint8_t *p, size_t len, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)len};

	if (len > UINT32_MAX)
		return fail(m, -EFBIG, "the file is larger than 4 GiB");
	if (inflateInit2(&z, WINDOW_GZIP) != Z_OK)
		return fail(m, -ENOMEM, "no memory");
	while (!inflate_member(m, &z, out) && z.avail_in) {
		if (z.avail_in < 2 || z.next_in[0] != 0x1f || z.next_in[1] != 0x8b) {
			fail(m, -EINVAL, "there is something else behind the gzip stream");
			break;
		}
		inflateReset(&z);
	}
	inflateEnd(&z);
	return m->code;
}

/* ---- wire ---- */

static bool is_sample(uint32_t field, uint32_t wire)
{
	return field == FIELD_SAMPLE && wire == WIRE_BYTES;
}

/* Checks that the bytes are a message, and copies all but the samples to m->rest. To protobuf two
 * concatenated profiles are one message with the scalars of the second; they are recognized by
 * their two times. */
static int scan(struct pprof_message *m)
{
	const uint8_t *p = m->samples, *rest = p;
	uint32_t times = 0, field, wire;

	while (p < m->end) {
		const uint8_t *begin = p, *at;
		uint64_t v, len;

		if (!get_tag(&p, m->end, &field, &wire) || !field ||
		    !get_value(&p, m->end, wire, &v, &at, &len))
			return fail(m, -EINVAL, "this is not a pprof profile, or it is truncated");
		if (field == FIELD_TIME_NANOS && v && times++)
			return fail(m, -EINVAL, "several profiles are concatenated in this file");
		if (is_sample(field, wire)) {
			buf_add(&m->rest, rest, (size_t)(begin - rest));
			rest = p;
			m->nsamples++;
		}
	}
	buf_add(&m->rest, rest, (size_t)(p - rest));
	return m->rest.error ? fail(m, -ENOMEM, "no memory") : 0;
}

bool pprof_next_sample(struct pprof_message *m, const uint8_t **sample, uint64_t *len)
{
	uint32_t field, wire;
	uint64_t v;

	while (m->samples < m->end && get_tag(&m->samples, m->end, &field, &wire) &&
	       get_value(&m->samples, m->end, wire, &v, sample, len))
		if (is_sample(field, wire))
			return true;
	return false;
}

/* A piece of memory for many blocks; the next is behind it in the list. */
struct pprof_chunk {
	struct pprof_chunk *next;
};

static char *new_chunk(struct pprof_message *m, size_t size)
{
	struct pprof_chunk *c = malloc(CHUNK_HEAD + size);

	if (!c)
		return NULL;
	c->next = m->chunks;
	m->chunks = c;
	return (char *)c + CHUNK_HEAD;
}

/* The allocator of protobuf-c, with a bound for the sum. A profile has millions of small blocks,
 * which live as long as the message: they are freed together. */
static void *allocate(void *arg, size_t size)
{
	struct pprof_message *m = arg;
	size_t need = size ? (size + 15) & ~(size_t)15 : 16;
	char *p;

	if (need < size || need > m->memory) {
		fail(m, -EFBIG, "this profile would take far more memory than its size explains");
		return NULL;
	}
	if (need > m->room && need < CHUNK / 4) {
		m->at = new_chunk(m, CHUNK);
		m->room = m->at ? CHUNK : 0;
	}
	p = need <= m->room ? m->at : need < CHUNK / 4 ? NULL : new_chunk(m, need);
	if (!p) {
		fail(m, -ENOMEM, "no memory");
		return NULL;
	}
	if (p == m->at) {
		m->at += need;
		m->room -= need;
	}
	m->memory -= need;
	return p;
}

static void release(void *arg, void *p)
{
	(void)arg;
	(void)p;
}

static int unpack(struct pprof_message *m, const uint8_t *p, size_t len)
{
	m->samples = p;
	m->end = p + len;
	if (scan(m))
		return m->code;
	m->memory = PPROF_MEMORY_BASE + len * PPROF_MEMORY_FACTOR;
	m->profile = perftools__profiles__profile__unpack(&m->allocator, m->rest.len,
							  (const uint8_t *)m->rest.p);
	buf_fini(&m->rest);
	return m->profile ? 0 : fail(m, -EINVAL, "this is not a pprof profile, or it is damaged");
}

int pprof_unpack(struct pprof_message *m, const void *bytes, size_t len, uint64_t max_bytes)
{
	const uint8_t *p = bytes;

	*m = (struct pprof_message){.allocator = {allocate, release, m}, .max_bytes = max_bytes};
	if (!len)
		return fail(m, -EINVAL, "the file is empty");
	if (len < 2 || p[0] != 0x1f || p[1] != 0x8b)
		return len > max_bytes ? fail_too_large(m, false) : unpack(m, p, len);
	if (!gunzip(m, p, len, &m->plain) && m->plain.len > max_bytes)
		fail_too_large(m, true);
	else if (!m->error)
		unpack(m, (const uint8_t *)m->plain.p, m->plain.len);
	return m->code;
}

void pprof_message_free(struct pprof_message *m)
{
	for (struct pprof_chunk *c = m->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	buf_fini(&m->plain);
	buf_fini(&m->rest);
	m->chunks = NULL;
	m->profile = NULL;
}
