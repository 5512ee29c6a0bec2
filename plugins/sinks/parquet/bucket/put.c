/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file is one request. A larger file is sent in parts: the upload is begun, the server
 * answers each part with a tag, and the list of tags completes the object. An upload that fails is
 * aborted, and the complete file is sent again later.
 */
#include <stdlib.h>
#include <unistd.h>

#include "bucket.h"
#include "sigv4.h"

#define PARTS 10000u /* of an object, at most: the protocol's limit */
#define UPLOAD 3072  /* bytes of an upload's encoded id, at most */
#define TAG 256u

struct upload {
	struct bucket *bucket;
	struct fusee_sink_out *out;
	const char *key;
	int fd;
	uint64_t bytes, part; /* of the file, of a part */
	char *buffer;         /* a part */
	char id[UPLOAD];      /* encoded; "": it is not begun */
};

/* Reads instead of mapping the file, because other users may be able to truncate it. */
static int read_part(struct upload *u, uint64_t at, struct fusee_str *part)
{
	uint64_t len = u->bytes - at < u->part ? u->bytes - at : u->part, n = 0;

	while (n < len) {
		ssize_t got = pread(u->fd, u->buffer + n, len - n, (off_t)(at + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fusee_fail(u->bucket->self, -EIO, "cannot read '%s' to send it: %s",
					  u->key, got ? strerror(errno) : "it was truncated");
		n += (uint64_t)got;
	}
	*part = (struct fusee_str){u->buffer, len};
	return 0;
}

/* Sends a request and judges its answer. */
static int request(struct upload *u, const struct bucket_request *q, struct fusee_http_answer *a)
{
	int r = bucket_send(u->bucket, q, a);

	return r ? r : bucket_result(u->bucket, u->out, a);
}

static int put_all(struct upload *u)
{
	struct bucket_request q = {
		.flags = FUSEE_HTTP_PUT, .begins = true, .key = u->key, .query = ""};
	struct fusee_http_answer a;
	int r = read_part(u, 0, &q.body);

	return r ? r : request(u, &q, &a);
}

/* ---- parts ---- */

static int begin(struct upload *u)
{
	const struct bucket_request q = {.begins = true, .key = u->key, .query = "uploads="};
	struct fusee_http_answer a;
	struct fusee_str id;
	int r = request(u, &q, &a);

	if (r)
		return r;
	id = bucket_xml(a.body, "UploadId");
	if (id.len && sigv4_encode(u->id, sizeof(u->id), id, "") > 0)
		return 0;
	*u->id = '\0';
	return fusee_fail(u->bucket->self, a.complete ? -EBADMSG : -EAGAIN,
			  "'%s' began an upload without an id",
			  fusee_http_shown(u->bucket->client));
}

static int put_part(struct upload *u, uint32_t number, FILE *list)
{
	char query[UPLOAD + 64];
	struct bucket_request q = {.flags = FUSEE_HTTP_PUT, .key = u->key, .query = query};
	struct fusee_http_answer a;
	struct fusee_str tag;
	int r = read_part(u, (number - 1) * u->part, &q.body);

	snprintf(query, sizeof(query), "partNumber=%u&uploadId=%s", number, u->id);
	if (!r)
		r = request(u, &q, &a);
	if (r)
		return r;
	if (!fusee_http_header(&a, "ETag", &tag) || !tag.len || tag.len > TAG ||
	    memchr(tag.p, '<', tag.len) || memchr(tag.p, '&', tag.len))
		return fusee_fail(u->bucket->self, -EBADMSG,
				  "'%s' took a part without a tag (ETag)",
				  fusee_http_shown(u->bucket->client));
	fprintf(list, "<Part><PartNumber>%u</PartNumber><ETag>%.*s</ETag></Part>", number,
		(int)tag.len, tag.p);
	return 0;
}

/* The server sends the status before it joins the parts, so the end of the body decides. */
static int complete(struct upload *u, struct fusee_str list)
{
	static const char end[] = "</CompleteMultipartUploadResult>";
	char query[UPLOAD + 64];
	const struct bucket_request q = {.key = u->key, .query = query, .body = list};
	struct fusee_http_answer a;
	int r;

	snprintf(query, sizeof(query), "uploadId=%s", u->id);
	r = request(u, &q, &a);
	if (r || memmem(a.body.p, a.body.len, end, strlen(end)))
		return r;
	return fusee_fail(u->bucket->self, -EAGAIN, "'%s' did not say that '%s' is complete",
			  fusee_http_shown(u->bucket->client), u->key);
}

/* Aborts the upload: remaining parts cost money until a rule of the bucket removes them. */
static void give_up(struct upload *u)
{
	char query[UPLOAD + 64];
	const struct bucket_request q = {.flags = FUSEE_HTTP_DELETE, .key = u->key, .query = query};
	struct fusee_http_answer a;
	bool aborted;

	snprintf(query, sizeof(query), "uploadId=%s", u->id);
	aborted = !bucket_send(u->bucket, &q, &a) &&
		  (a.status / 100 == 2 || a.status == 404); /* 404: the upload no longer exists */
	fusee_count_by(u->bucket->self, "uploads", "end", aborted ? "aborted" : "not aborted", 1);
}

static int put_parts(struct upload *u)
{
	uint32_t n = (uint32_t)((u->bytes + u->part - 1) / u->part);
	char *text = NULL;
	size_t len = 0;
	FILE *list = open_memstream(&text, &len);
	int r = list ? begin(u) : fusee_fail(u->bucket->self, -ENOMEM, "no memory for a list");

	if (list)
		fputs("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
		      list);
	for (uint32_t i = 1; !r && i <= n; i++)
		r = put_part(u, i, list);
	if (list) {
		fputs("</CompleteMultipartUpload>", list);
		if (fclose(list) && !r)
			r = fusee_fail(u->bucket->self, -ENOMEM, "no memory for a list of parts");
	}
	if (!r)
		r = complete(u, (struct fusee_str){text, len});
	free(text);
	if (!r)
		fusee_count_by(u->bucket->self, "uploads", "end", "complete", 1);
	else if (*u->id)
		give_up(u);
	return r;
}

int bucket_put(struct bucket *b, struct fusee_sink_out *out, const char *key, int fd,
	       uint64_t bytes)
{
	struct upload u = {.bucket = b, .out = out, .key = key, .fd = fd, .bytes = bytes};
	int r;

	u.part = bytes / b->part_bytes < PARTS ? b->part_bytes : bytes / PARTS + 1;
	u.buffer = malloc(bytes < u.part ? bytes + 1 : u.part);
	if (!u.buffer)
		return fusee_fail(b->self, -ENOMEM, "no memory to send '%s'", key);
	r = bytes > b->part_bytes ? put_parts(&u) : put_all(&u);
	free(u.buffer);
	if (!r) {
		fusee_count(b->self, "objects_sent", 1);
		fusee_count(b->self, "bytes_sent", bytes);
	}
	return r;
}
