/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/buf.h"
#include "pprof/pprof.h"

#define IN_STEP 65536
#define WINDOW_GZIP (15 + 16)
#define FIELD_TIME_NANOS 9
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

/* ---- gzip ---- */

static int inflate_member(struct pprof_message *m, z_stream *z, struct buf *out)
{
	int ret = Z_OK;

	while (ret != Z_STREAM_END) {
		size_t n = IN_STEP;

		if (out->len >= PPROF_MAX_BYTES)
			return fail(m, -EFBIG, "the profile is larger than 512 MiB uncompressed");
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

static bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (uint32_t shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (*p == end)
			return false;
		byte = *(*p)++;
		*v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Skips a field's value. *v: the value of a varint. */
static bool skip_value(const uint8_t **p, const uint8_t *end, uint32_t wire, uint64_t *v)
{
	uint64_t len = 0;

	*v = 0;
	if (wire == 0)
		return get_varint(p, end, v);
	if (wire == 1)
		len = 8;
	else if (wire == 5)
		len = 4;
	else if (wire != 2 || !get_varint(p, end, &len))
		return false;
	if (len > (uint64_t)(end - *p))
		return false;
	*p += len;
	return true;
}

/* Checks that the bytes are a message. To protobuf two concatenated profiles are one message with
 * the scalars of the second; they are recognized by their two times. */
static int scan(struct pprof_message *m, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint32_t times = 0;

	while (p < end) {
		uint64_t tag, v;

		if (!get_varint(&p, end, &tag) || !(tag >> 3) || tag > UINT32_MAX ||
		    !skip_value(&p, end, tag & 7, &v))
			return fail(m, -EINVAL, "this is not a pprof profile, or it is truncated");
		if (tag >> 3 == FIELD_TIME_NANOS && v && times++)
			return fail(m, -EINVAL, "several profiles are concatenated in this file");
	}
	return 0;
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
	if (scan(m, p, len))
		return m->code;
	m->memory = PPROF_MEMORY_BASE + len * PPROF_MEMORY_FACTOR;
	m->profile = perftools__profiles__profile__unpack(&m->allocator, len, p);
	return m->profile ? 0 : fail(m, -EINVAL, "this is not a pprof profile, or it is damaged");
}

int pprof_unpack(struct pprof_message *m, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	struct buf plain = {0};

	*m = (struct pprof_message){.allocator = {allocate, release, m}};
	if (!len)
		return fail(m, -EINVAL, "the file is empty");
	if (len < 2 || p[0] != 0x1f || p[1] != 0x8b)
		return len > PPROF_MAX_BYTES ? fail(m, -EFBIG, "the profile is larger than 512 MiB")
					     : unpack(m, p, len);
	if (!gunzip(m, p, len, &plain))
		unpack(m, (const uint8_t *)plain.p, plain.len);
	buf_fini(&plain);
	return m->code;
}

void pprof_message_free(struct pprof_message *m)
{
	for (struct pprof_chunk *c = m->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	m->chunks = NULL;
	m->profile = NULL;
}
