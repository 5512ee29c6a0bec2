/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends profiles to any URL that takes pprof. The status of the answer decides: the profile is
 * accepted, sent again later, or dropped. The core keeps the queue, times the retries and encodes.
 */
#include <fusee/http.h>

enum method { POST, PUT };

static const char *const methods[] = {[POST] = "POST", [PUT] = "PUT", NULL};

struct http {
	struct fusee_self self;
	struct fusee_http_options http;
	const char *content_type;
	int64_t method; /* enum method */
	struct fusee_http *client;
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct http, http, "Where profiles are sent: http:// or https://."),
	FUSEE_OPTION_ENUM(struct http, method, "POST", methods, "Method of the request."),
	FUSEE_OPTION_STRING(struct http, content_type, "application/octet-stream",
			    "Content-Type of the body, which is gzipped pprof."),
	FUSEE_HTTP_OPTIONS(struct http, http, "30s"),
};

static void set_id(char text[2 * 16 + 1], const uint8_t *id)
{
	for (size_t i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct http *h = ctx;
	struct fusee_label header;
	struct fusee_http_answer a;
	struct fusee_http_request q = {.flags = h->method == PUT ? FUSEE_HTTP_PUT : 0,
				       .content_type = h->content_type,
				       .out = d->out,
				       .headers = {&header, 1, sizeof(header)}};
	enum fusee_http_verdict verdict;
	char id[33];
	int r;

	r = h->self.host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &q.body);
	if (r)
		return fusee_fail(&h->self, r, "cannot encode a profile: %s", strerror(-r));
	set_id(id, d->profile->id);
	header = fusee_text_label("Idempotency-Key", id);
	r = fusee_http_send(h->client, &q, &a);
	if (r)
		return r;
	verdict = fusee_http_verdict(&a);
	if (verdict == FUSEE_HTTP_TOO_LARGE)
		verdict = FUSEE_HTTP_REFUSED; /* a profile cannot be divided */
	r = fusee_http_result(h->client, d->out, &a, verdict, NULL);
	if (!r)
		fusee_count(&h->self, "bytes_sent", q.body.len);
	return r;
}

static void cancel(void *ctx)
{
	fusee_http_cancel(((struct http *)ctx)->client);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	static const char *const own[] = {"idempotency-key", NULL};
	struct http *h = ctx;

	fusee_self_init(ctx, in, host);
	if (!fusee_http_is_value(fusee_text(h->content_type)))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'content_type': no control characters");
	return fusee_http_open(&h->client, &h->self, &h->http, own);
}

static void fini(void *ctx)
{
	fusee_http_close(((struct http *)ctx)->client);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(http, FUSEE_SINK, .version = "0.1",
	     .doc = "Sends profiles to a URL that takes gzipped pprof.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct http), .init = init,
	     .fini = fini, .ops = &ops);
