/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read twice, in pieces: for the hash, which the server requires before the bytes, and
 * while it is sent. If its owner writes to it meanwhile, the last bytes are not sent, so that the
 * server does not keep a mixture of the old and the new file. The hash is FNV-1a of 64 bits; a
 * server only compares it with that of an earlier upload.
 */
#include "upload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debuginfo.h"
#include "write.h"

#define HASH_BEGIN 0xcbf29ce484222325ull
#define HASH_PRIME 0x100000001b3ull

/* Parca by default reads a request for 5 s (--http-read-timeout), so a stream must be complete by
 * then; afterwards the next file waits, to keep the rate. */
#define STREAM_SECONDS 4u

static const struct fusee_label web = {.key = FUSEE_TEXT("X-Grpc-Web"), .str = FUSEE_TEXT("1")};
static const struct fusee_label trailers = {.key = FUSEE_TEXT("TE"), .str = FUSEE_TEXT("trailers")};

/* A file that is being sent. */
struct stream {
	int fd;
	bool framed; /* as messages of gRPC */
	uint64_t size, at, hash, expected;
	uint64_t rest;               /* of the chunk whose head was sent */
	struct debuginfo_frame head; /* sent before the file's next bytes */
	uint32_t head_at;
	int err; /* the file has changed */
};

/* ---- the file ---- */

static uint64_t add_hash(uint64_t hash, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * HASH_PRIME;
	return hash;
}

/* 0 or -errno. */
static int hash_file(const struct upload *u, int fd, uint64_t size, uint64_t *hash)
{
	uint8_t *buf = malloc(DEBUGINFO_CHUNK);
	uint64_t at = 0;
	int err = buf ? 0 : -ENOMEM;

	*hash = HASH_BEGIN;
	while (!err && at < size) {
		uint64_t most = size - at < DEBUGINFO_CHUNK ? size - at : DEBUGINFO_CHUNK;
		ssize_t n = pread(fd, buf, most, (off_t)at);

		if (n <= 0 || atomic_load(&u->ended)) {
			err = n > 0 ? -ECANCELED : n ? -errno : -ESTALE;
			break;
		}
		*hash = add_hash(*hash, buf, (uint64_t)n);
		at += (uint64_t)n;
	}
	free(buf);
	return err;
}

static int64_t read_file(struct stream *s, void *buf, uint64_t n)
{
	ssize_t got = pread(s->fd, buf, n, (off_t)s->at);

	if (got <= 0)
		return s->err = got ? -errno : -ESTALE;
	s->hash = add_hash(s->hash, buf, (uint64_t)got);
	s->at += (uint64_t)got;
	if (s->at == s->size && s->hash != s->expected)
		return s->err = -ESTALE;
	s->rest -= s->framed ? (uint64_t)got : 0;
	return got;
}

static int64_t give(void *arg, void *buf, uint64_t n)
{
	struct stream *s = arg;
	uint64_t rest = s->size - s->at;

	if (s->framed && s->head_at == s->head.len && !s->rest && rest) {
		s->rest = rest < DEBUGINFO_CHUNK ? rest : DEBUGINFO_CHUNK;
		debuginfo_chunk(&s->head, (uint32_t)s->rest);
		s->head_at = 0;
	}
	if (s->head_at < s->head.len) {
		n = n < s->head.len - s->head_at ? n : s->head.len - s->head_at;
		memcpy(buf, s->head.bytes + s->head_at, n);
		s->head_at += (uint32_t)n;
		return (int64_t)n;
	}
	rest = s->framed ? s->rest : rest;
	n = n < rest ? n : rest;
	return n ? read_file(s, buf, n) : 0;
}

/* Bytes of all messages. */
static uint64_t framed_bytes(const struct stream *s)
{
	uint64_t full = s->size / DEBUGINFO_CHUNK, rest = s->size % DEBUGINFO_CHUNK;
	struct debuginfo_frame f;
	uint64_t all = s->head.len + s->size;

	debuginfo_chunk(&f, DEBUGINFO_CHUNK);
	all += full * f.len;
	debuginfo_chunk(&f, (uint32_t)rest);
	return rest ? all + f.len : all;
}

/* ---- the server ---- */

static enum upload_result fail(struct upload *u, enum upload_result r, const char *why)
{
	snprintf(u->why, sizeof(u->why), "%s", why);
	return r;
}

/* The request could not be made. */
static enum upload_result not_sent(struct upload *u, int err)
{
	if (err == -ECANCELED)
		return fail(u, UPLOAD_ENDED, "ended");
	u->answered = false;
	return fail(u, UPLOAD_LATER, "the request cannot be made");
}

static enum upload_result judge(struct upload *u, const struct fusee_http_answer *a)
{
	enum fusee_http_verdict verdict = write_verdict(WRITE_GRPC_WEB, a, u->why);
	int code = write_code(a);

	u->answered = a->status;
	u->retry_after = a->retry_after;
	if (!a->status)
		return fail(u, UPLOAD_LATER, a->error);
	if (verdict == FUSEE_HTTP_TAKEN)
		return UPLOAD_DONE;
	if (code == CODE_ALREADY_EXISTS)
		return UPLOAD_KNOWN;
	if (code == CODE_FAILED_PRECONDITION || code == CODE_PERMISSION_DENIED ||
	    code == CODE_UNAUTHENTICATED || a->status == 401 || a->status == 403)
		return UPLOAD_BUSY;
	/* of its storage, or of a debuginfod server that it queries */
	if (code == CODE_UNKNOWN || code == CODE_INTERNAL)
		return UPLOAD_LATER;
	return verdict == FUSEE_HTTP_LATER ? UPLOAD_LATER : UPLOAD_REFUSED;
}

/* UPLOAD_DONE: *message is the answer's, until the next request. */
static enum upload_result call(struct upload *u, const char *path,
			       const struct debuginfo_frame *body, struct fusee_str *message)
{
	const struct fusee_http_request q = {.path = path,
					     .content_type = "application/grpc-web+proto",
					     .body = {body->bytes, body->len},
					     .headers = {&web, 1, sizeof(web)}};
	enum upload_result r;
	struct fusee_http_answer a;
	int err = fusee_http_send(u->client, &q, &a);

	if (err)
		return not_sent(u, err);
	r = judge(u, &a);
	if (r == UPLOAD_DONE && !write_message(&a, message))
		return fail(u, UPLOAD_REFUSED, "an answer without a message");
	return r;
}

static enum upload_result ask(struct upload *u, const char *id)
{
	char reason[DEBUGINFO_MAX_REASON];
	struct debuginfo_frame f;
	struct fusee_str message;
	enum upload_result r;
	bool should;

	debuginfo_should_initiate(&f, id);
	r = call(u, DEBUGINFO_SERVICE "ShouldInitiateUpload", &f, &message);
	if (r != UPLOAD_DONE)
		return r;
	if (!debuginfo_read_should(message, &should, reason))
		return fail(u, UPLOAD_REFUSED, "an answer that is no message");
	fusee_http_words(u->why, fusee_text(reason));
	if (should)
		return UPLOAD_DONE;
	/* only the text tells whether another upload is in progress or complete */
	return strstr(reason, "in-progress") || strstr(reason, "in progress") ? UPLOAD_BUSY
									      : UPLOAD_KNOWN;
}

static enum upload_result initiate(struct upload *u, const char *id, const struct stream *s,
				   struct debuginfo_instructions *to)
{
	struct debuginfo_frame f;
	struct fusee_str message;
	enum upload_result r;
	char hash[32];

	snprintf(hash, sizeof(hash), "%016" PRIx64, s->expected);
	debuginfo_initiate(&f, id, s->size, hash);
	r = call(u, DEBUGINFO_SERVICE "InitiateUpload", &f, &message);
	if (r != UPLOAD_DONE)
		return r;
	if (!debuginfo_read_instructions(message, to))
		return fail(u, UPLOAD_REFUSED, "instructions that cannot be read");
	if (to->strategy == DEBUGINFO_NO_STRATEGY)
		return fail(u, UPLOAD_REFUSED, "no way to upload that is known");
	return UPLOAD_DONE;
}

/* A request with the file as its body. */
static enum upload_result transfer(struct upload *u, struct stream *s, struct fusee_http_request *q,
				   uint64_t len, uint64_t rate, struct fusee_http_answer *a)
{
	const struct fusee_http_source source = {.read = give, .arg = s, .len = len, .rate = rate};
	int err;

	q->source = &source;
	err = fusee_http_send(u->client, q, a);
	u->sent = s->at;
	u->err = s->err;
	if (s->err)
		return fail(u, UPLOAD_FILE, "it changed while it was sent");
	return err ? not_sent(u, err) : UPLOAD_DONE;
}

static enum upload_result stream(struct upload *u, const char *id, struct stream *s,
				 const struct debuginfo_instructions *how)
{
	struct fusee_http_request q = {.flags = FUSEE_HTTP_GRPC,
				       .path = DEBUGINFO_SERVICE "Upload",
				       .content_type = "application/grpc+proto",
				       .headers = {&trailers, 1, sizeof(trailers)}};
	uint64_t rate = s->size / STREAM_SECONDS > u->rate ? s->size / STREAM_SECONDS : u->rate;
	struct fusee_http_answer a;
	enum upload_result r;

	s->framed = true;
	debuginfo_info(&s->head, id, how->upload_id);
	r = transfer(u, s, &q, framed_bytes(s), rate, &a);
	return r == UPLOAD_DONE ? judge(u, &a) : r;
}

/* If the server is reached by TLS, the file must not be sent without TLS. */
static bool is_allowed(const struct upload *u, const char *url)
{
	uint32_t flags = fusee_http_url_flags(url);

	return flags & FUSEE_HTTP_URL_VALID &&
	       (!(flags & FUSEE_HTTP_URL_PLAIN) ||
		fusee_http_url_flags(u->server) & FUSEE_HTTP_URL_PLAIN);
}

static enum upload_result put_to(struct upload *u, struct stream *s,
				 const struct debuginfo_instructions *how)
{
	struct fusee_http_request q = {.flags = FUSEE_HTTP_PUT, .url = how->url};
	struct fusee_http_answer a;
	enum upload_result r;

	if (!is_allowed(u, how->url))
		return fail(u, UPLOAD_REFUSED, "an address that is not https://");
	r = transfer(u, s, &q, s->size, u->rate, &a);
	if (r != UPLOAD_DONE)
		return r;
	u->answered = a.status;
	u->retry_after = a.retry_after;
	if (!a.status)
		return fail(u, UPLOAD_LATER, a.error);
	snprintf(u->why, sizeof(u->why), "the storage answered %ld", a.status);
	switch (fusee_http_verdict(&a)) {
	case FUSEE_HTTP_TAKEN:
		return UPLOAD_DONE;
	case FUSEE_HTTP_LATER:
		return UPLOAD_LATER;
	default:
		return UPLOAD_REFUSED;
	}
}

static enum upload_result send_bytes(struct upload *u, const char *id, struct stream *s,
				     const struct debuginfo_instructions *how)
{
	enum upload_result r = how->strategy == DEBUGINFO_GRPC ? stream(u, id, s, how)
							       : put_to(u, s, how);

	/* The server has answered before, so a transfer that never succeeds is abandoned after some
	 * attempts. */
	if (r == UPLOAD_LATER)
		u->answered = true;
	return r;
}

static enum upload_result send_file(struct upload *u, const char *id, struct stream *s)
{
	struct debuginfo_instructions *how = malloc(sizeof(*how));
	struct debuginfo_frame f;
	struct fusee_str message;
	enum upload_result r;

	if (!how)
		return fail(u, UPLOAD_LATER, "no memory");
	r = initiate(u, id, s, how);
	if (r == UPLOAD_DONE)
		r = send_bytes(u, id, s, how);
	if (r == UPLOAD_DONE) {
		debuginfo_finished(&f, id, how->upload_id);
		r = call(u, DEBUGINFO_SERVICE "MarkUploadFinished", &f, &message);
	}
	free(how);
	return r;
}

enum upload_result upload_file(struct upload *u, const char *id)
{
	struct stream s = {.hash = HASH_BEGIN};
	enum upload_result r;
	struct stat st;

	u->err = 0;
	u->answered = true;
	u->retry_after = u->bytes = u->sent = 0;
	r = ask(u, id);
	if (r != UPLOAD_DONE)
		return r;
	s.fd = u->self->host->sink->open_file(u->self->in, fusee_text(id), u->max_bytes);
	u->err = s.fd < 0 ? s.fd : fstat(s.fd, &st) < 0 ? -errno : 0;
	s.size = u->err ? 0 : (uint64_t)st.st_size;
	if (!u->err)
		u->err = s.size ? hash_file(u, s.fd, s.size, &s.expected) : -ESTALE;
	if (u->err)
		r = fail(u, u->err == -ECANCELED ? UPLOAD_ENDED : UPLOAD_FILE, strerror(-u->err));
	else
		r = send_file(u, id, &s);
	u->bytes = s.size;
	if (s.fd >= 0)
		close(s.fd);
	return r;
}
