/* SPDX-License-Identifier: Apache-2.0 */
/* One request to a bucket, with its signature. */
#include <stdlib.h>
#include <strings.h>

#include "bucket.h"
#include "credentials.h"
#include "sigv4.h"

#define PATH 4096
#define OWN 6u /* headers beside those of the option */

struct parts {
	struct credentials keys;
	char hash[SIGV4_HASH], time[SIGV4_TIME], authorization[SIGV4_AUTHORIZATION];
	char path[PATH], signed_path[PATH];
	struct fusee_label sent[OWN + BUCKET_HEADERS], signs[OWN + BUCKET_HEADERS];
	uint32_t nsent, nsigns;
};

static void add(struct parts *p, struct fusee_label l)
{
	static const char amazon[] = "x-amz-";

	p->sent[p->nsent++] = l;
	/* the server refuses unsigned headers of its own protocol */
	if (fusee_text_is(l.key, "Host") ||
	    (l.key.len > strlen(amazon) && !strncasecmp(l.key.p, amazon, strlen(amazon))))
		p->signs[p->nsigns++] = l;
}

/* Whether a header of the option belongs to this request. Some belong to each request of an
 * upload. */
static bool is_for(const struct bucket_request *q, struct fusee_str name)
{
	static const char *const all[] = {"x-amz-request-payer", "x-amz-expected-bucket-owner"};
	static const char customer[] = "x-amz-server-side-encryption-customer-";
	const size_t n = sizeof(customer) - 1;

	if (q->begins)
		return true;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (name.len == strlen(all[i]) && !strncasecmp(name.p, all[i], name.len))
			return true;
	/* a key for encryption, which an aborted upload does not need */
	return !(q->flags & FUSEE_HTTP_DELETE) && name.len > n && !strncasecmp(name.p, customer, n);
}

static int set_paths(struct parts *p, const struct bucket *b, const char *key)
{
	int n = key        ? snprintf(p->path, PATH, "%s/", b->path)
		: b->named ? snprintf(p->path, PATH, "/")
			   : snprintf(p->path, PATH, "/%s/", b->name);

	key = key ? key : "";
	if (n >= PATH || sigv4_encode(p->path + n, PATH - (size_t)n, fusee_text(key), "/") < 0 ||
	    snprintf(p->signed_path, PATH, "%s%s", b->above, p->path) >= PATH)
		return -E2BIG;
	return 0;
}

static int sign(struct parts *p, const struct bucket *b, const struct bucket_request *q)
{
	const struct sigv4_key key = {p->keys.id, p->keys.secret, b->region, "s3"};
	struct sigv4_request r = {.method = q->flags & FUSEE_HTTP_GET      ? "GET"
					    : q->flags & FUSEE_HTTP_PUT    ? "PUT"
					    : q->flags & FUSEE_HTTP_DELETE ? "DELETE"
									   : "POST",
				  .path = p->signed_path,
				  .query = q->query,
				  .hash = p->hash};
	int err = set_paths(p, b, q->key);

	if (!err)
		err = sigv4_hash(p->hash, q->body);
	if (err)
		return err;
	sigv4_time(p->time, time(NULL));
	add(p, fusee_text_label("Host", b->host));
	add(p, fusee_text_label("x-amz-content-sha256", p->hash));
	add(p, fusee_text_label("x-amz-date", p->time));
	if (*p->keys.token)
		add(p, fusee_text_label("x-amz-security-token", p->keys.token));
	if (q->range)
		add(p, fusee_text_label("Range", q->range));
	FUSEE_FOR_EACH (struct fusee_label, l, b->headers)
		if (is_for(q, l->key))
			add(p, *l);
	r.headers = (struct fusee_table){p->signs, p->nsigns, sizeof(*p->signs)};
	err = sigv4_authorize(p->authorization, &key, &r, p->time);
	if (!err)
		add(p, fusee_text_label("Authorization", p->authorization));
	return err;
}

int bucket_send(struct bucket *b, const struct bucket_request *q, struct fusee_http_answer *a)
{
	struct parts *p = calloc(1, sizeof(*p));
	char why[FUSEE_HTTP_WHY];
	int r;

	if (!p)
		return fusee_fail(b->self, -ENOMEM, "no memory for a request");
	r = credentials_read(&p->keys, b->self, b->credentials_file, why);
	if (r) {
		/* a file that is missing now may be written later */
		r = fusee_fail(b->self, -EAGAIN, "%s", why);
	} else if ((r = sign(p, b, q))) {
		fusee_fail(b->self, r, "cannot sign a request: %s", strerror(-r));
	} else {
		struct fusee_http_request h = {
			.flags = q->flags | FUSEE_HTTP_NO_REDIRECT,
			.path = p->path,
			.query = *q->query ? q->query : NULL,
			.content_type = q->flags & FUSEE_HTTP_GET ? NULL
					: q->begins               ? "application/vnd.apache.parquet"
								  : "application/octet-stream",
			.body = q->body,
			.into = q->into,
			.room = q->room,
			.headers = {p->sent, p->nsent, sizeof(*p->sent)}};

		r = fusee_http_send(b->client, &h, a);
	}
	credentials_clear(&p->keys);
	free(p);
	return r;
}
