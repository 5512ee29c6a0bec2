/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/http
/* What sink.http's own test does not reach: addresses, parts of a profile, compressed bodies,
 * headers of answers. Runs from the source's root. */
#include <zlib.h>

#include <fusee/http_curl.h>

#include "internal.h"
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/served.h"

/* ---- a sink of this test's own ---- */

struct plug {
	struct fusee_self self;
	struct fusee_http_options http;
	struct fusee_http *client;
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct plug, http, "The server."),
	FUSEE_HTTP_OPTIONS(struct plug, http, "20s"),
};

static int plug_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct plug *p = ctx;

	fusee_self_init(ctx, in, host);
	return fusee_http_open(&p->client, &p->self, &p->http, NULL);
}

static void plug_fini(void *ctx)
{
	fusee_http_close(((struct plug *)ctx)->client);
}

/* What is sent for a part, and what becomes of it: by the number of its samples. */
static struct {
	uint32_t most;           /* more samples: -E2BIG */
	uint32_t failing, error; /* the part with that number, from 1, fails with -error, once */
	uint32_t calls, parts;   /* of send_part(), of parts that were taken */
	uint64_t samples;        /* of parts that were taken */
	int64_t value;           /* of all their samples */
} sent;

static struct fusee_http_limits limits;

static int send_part(void *arg, const struct fusee_delivery *d, const struct fusee_profile *part)
{
	sent.calls++;
	if (part->samples.n > sent.most)
		return -E2BIG;
	if (sent.calls == sent.failing) {
		sent.failing = 0;
		return -(int)sent.error;
	}
	sent.parts++;
	sent.samples += part->samples.n;
	for (uint32_t i = 0; i < part->samples.n; i++)
		sent.value += *FUSEE_AT(int64_t, part->values, i * part->types.n);
	return 0;
}

static int plug_consume(void *ctx, const struct fusee_delivery *d)
{
	struct plug *p = ctx;

	return fusee_http_each(p->client, d, d->profile, &limits, send_part, p);
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = plug_consume};

FUSEE_PLUGIN(plug, FUSEE_SINK, .version = "0", .doc = "A test.", .options = FUSEE_TABLE(options),
	     .ctx_size = sizeof(struct plug), .init = plug_init, .fini = plug_fini, .ops = &ops);

static struct fake *plug_of(const char *url)
{
	return begun(fake_new(&fusee_plugin, "url", url, NULL));
}

static int served(void)
{
	scratch();
	return serve(NULL, NULL, NULL);
}

static struct fake *plug_at(int port, const char *path)
{
	return plug_of(text("http://127.0.0.1:%d%s", port, path));
}

/* ---- parts ---- */

static int64_t total(const struct fusee_profile *p)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples.n; i++)
		sum += *FUSEE_AT(int64_t, p->values, i * p->types.n);
	return sum;
}

/* Two attempts to send 100 samples. What the server calls too large is halved until it is not, and
 * an attempt goes on where the last ended. */
TEST(parts)
{
	static const struct {
		uint32_t most, limit, failing, error;
		int first;                                    /* result of the first attempt */
		uint32_t samples, lost;                       /* of it */
		uint32_t then_most, calls, parts, in_the_end; /* of both, and samples */
	} all[] = {
		{30, 30, 0, 0, 0, 100, 0, 30, 4, 4, 100}, /* by the limits */
		{30, 0, 0, 0, 0, 100, 0, 30, 7, 4, 100},  /* by the server */
		{20, 20, 4, EAGAIN, -EAGAIN, 60, 0, 20, 6, 5, 100},
		/* the first half is there: later the halves are sent, even if all would be taken */
		{60, 0, 3, EAGAIN, -EAGAIN, 50, 0, 100, 4, 2, 100},
		/* each part is lost once, also if the profile is delivered again */
		{40, 40, 2, EBADMSG, -EBADMSG, 60, 40, 40, 3, 2, 60},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct fake *f = plug_of("http://127.0.0.1:1");
		struct builder *b;
		const struct fusee_profile *p = fake_profile(&b, 7, 100, NULL);

		memset(&sent, 0, sizeof(sent));
		sent.most = all[i].most;
		sent.failing = all[i].failing;
		sent.error = all[i].error;
		limits.samples = all[i].limit;
		CHECK_INT(fake_consume(f, p, 0), all[i].first);
		CHECK_INT(sent.samples, all[i].samples);
		CHECK_INT(f->lost, all[i].lost);
		sent.most = all[i].then_most;
		CHECK_INT(fake_consume(f, p, 1), 0);
		CHECK_INT(sent.calls, all[i].calls);
		CHECK_INT(sent.parts, all[i].parts);
		CHECK_INT(sent.samples, all[i].in_the_end);
		CHECK_INT(sent.value * 100, total(p) * (int64_t)all[i].in_the_end);
		CHECK_INT(f->lost, 0);
		CHECK_INT(fake_count(f, "samples_refused"), all[i].lost);
		builder_free(b);
		fake_free(f);
	}
}

TEST(one_sample_that_is_too_large)
{
	struct fake *f = plug_of("http://127.0.0.1:1");
	struct builder *b;

	CHECK_INT(fake_consume(f, fake_profile(&b, 8, 3, NULL), 0), -E2BIG);
	CHECK_INT(f->lost, 3);
	CHECK_INT(sent.calls, 5); /* 3, 2, 1, 1, 1 */
	CHECK_INT(fake_count(f, "samples_refused"), 3);
	builder_free(b);
	fake_free(f);
}

/* ---- requests ---- */

static int ask(struct fake *f, const struct fusee_http_request *q, struct fusee_http_answer *a)
{
	return fusee_http_send(((struct plug *)f->ctx)->client, q, a);
}

static void check_url(const char *base, const char *path, const char *query, const char *expected)
{
	char *url;

	CHECK_INT(http_url(base, path, query, &url), 0);
	CHECK_STR(url, expected);
	free(url);
}

TEST(a_path_and_a_query)
{
	struct fusee_http_request q = {.path = "/push.v1/Push", .query = "name=a%20b"};
	struct fusee_http_answer a;
	struct fake *f;

	f = plug_at(served(), "/ok/?key=1");
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK_INT(a.status, 200);
	CHECK(logged("\"path\": \"/ok/push.v1/Push?key=1&name=a%20b\""));
	fake_free(f);
	check_url("http://x", "/a", NULL, "http://x/a");
	check_url("http://x/?", "/a", "b=c", "http://x/a?b=c");
	check_url("http://x/y/#z", NULL, "b=c", "http://x/y/?b=c");
}

TEST(deletes_and_stays)
{
	struct fusee_http_request q = {.flags = FUSEE_HTTP_DELETE | FUSEE_HTTP_NO_REDIRECT};
	struct fusee_http_answer a;
	struct fusee_str to;
	struct fake *f;

	f = plug_at(served(), "/redirect/307?to=/ok");
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK_INT(a.status, 307);
	CHECK(fusee_http_header(&a, "Location", &to) && fusee_text_is(to, "/ok"));
	CHECK_INT(requests(), 1);
	CHECK(logged("\"method\": \"DELETE\""));
	q.flags = FUSEE_HTTP_DELETE;
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK_INT(a.status, 200);
	CHECK_INT(requests(), 3);
	CHECK(!logged("\"method\": \"POST\""));
	fake_free(f);
}

static void unpack(const char *name, char *to, size_t size)
{
	gzFile z = gzopen(text("%s/%s", dir, name), "rb");
	int n;

	CHECK(z);
	n = gzread(z, to, (unsigned)size - 1);
	CHECK(n >= 0);
	to[n] = '\0';
	gzclose(z);
}

TEST(a_body_with_gzip)
{
	char body[20000], got[20001];
	struct fusee_http_request q = {.flags = FUSEE_HTTP_GZIP | FUSEE_HTTP_PUT,
				       .content_type = "text/plain",
				       .body = {body, sizeof(body)}};
	struct fusee_http_answer a;
	struct fake *f;

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)('a' + i * i % 23);
	f = plug_at(served(), "/gzip/hello");
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK(logged("\"method\": \"PUT\"") && logged("\"content-encoding\": \"gzip\""));
	unpack("1.pb.gz", got, sizeof(got));
	CHECK(!memcmp(got, body, sizeof(body)));
	CHECK(fusee_text_is(a.body, "hello"));
	/* without it the body goes as it is */
	q.flags = 0;
	q.body.len = 5;
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK(!strncmp(read_file("2.pb.gz"), body, 5));
	fake_free(f);
}

TEST(headers_of_an_answer)
{
	struct fusee_label own = fusee_text_label("X-Own", "1");
	struct fusee_http_request q = {.headers = {&own, 1, sizeof(own)}};
	struct fusee_http_answer a;
	struct fusee_str value;
	struct fake *f;

	f = plug_at(served(), "/status/429?after=7");
	CHECK_INT(ask(f, &q, &a), 0);
	CHECK(logged("\"x-own\": \"1\""));
	CHECK_INT(a.status, 429);
	CHECK(a.retry_after == 7ull * FUSEE_SECOND);
	CHECK(fusee_http_header(&a, "retry-after", &value) && fusee_text_is(value, "7"));
	CHECK(!fusee_http_header(&a, "retry", &value));
	CHECK(!fusee_http_header(&a, "nonesuch", &value));
	CHECK_INT(fusee_http_verdict(&a), FUSEE_HTTP_LATER);
	fake_free(f);
}

TEST(bodies_that_are_complete)
{
	static const struct {
		const char *path;
		bool complete;
		uint64_t bytes;
	} all[] = {{"ok", true, 0},
		   {"gzip/hello", true, 5},
		   {"truncated-answer/200", false, 18},
		   {"huge/200", false, FUSEE_HTTP_BODY}};
	struct fusee_http_request q = {.flags = FUSEE_HTTP_GZIP};
	struct fusee_http_answer a;
	struct fake *f;
	int port;

	port = served();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		f = plug_of(text("http://127.0.0.1:%d/%s", port, all[i].path));
		CHECK_INT(ask(f, &q, &a), 0);
		CHECK_INT(a.status, 200);
		CHECK_INT(a.complete, all[i].complete);
		CHECK_INT(a.body.len, all[i].bytes);
		fake_free(f);
	}
}

TEST(words)
{
	char words[FUSEE_HTTP_WORDS], longer[500];

	fusee_http_words(words,
			 (struct fusee_str)FUSEE_TEXT("\r\n\nthe \x1b[2J \xc3\xa4\nnot this"));
	CHECK_STR(words, "the ?[2J ??");
	memset(longer, 'x', sizeof(longer));
	fusee_http_words(words, (struct fusee_str){longer, sizeof(longer)});
	CHECK_INT(strlen(words), FUSEE_HTTP_WORDS - 1);
	fusee_http_words(words, (struct fusee_str){NULL, 0});
	CHECK_STR(words, "");
}

/* ---- addresses ---- */

static bool loopback(const char *url)
{
	return fusee_http_url_flags(url) & FUSEE_HTTP_URL_LOOPBACK;
}

TEST(addresses)
{
	CHECK(loopback("http://localhost:1/x") && loopback("http://127.9.8.7"));
	CHECK(loopback("https://[::1]:5/"));
	CHECK(!loopback("http://127.0.0.1.example.com/") && !loopback("http://10.0.0.1/"));
	CHECK_INT(fusee_http_url_flags("nonsense:///"), 0);
	CHECK_INT(fusee_http_url_flags("ftp://x/"), 0);
	CHECK_INT(fusee_http_url_flags("x:4040/y"), 0);
	CHECK_INT(fusee_http_url_flags("https://x/"), FUSEE_HTTP_URL_VALID);
	CHECK_INT(fusee_http_url_flags("http://a:b@x/?c"),
		  FUSEE_HTTP_URL_VALID | FUSEE_HTTP_URL_PLAIN | FUSEE_HTTP_URL_USER |
			  FUSEE_HTTP_URL_QUERY);
}

TEST(reasons)
{
	char why[FUSEE_HTTP_WHY], to[8];
	struct fusee_str value;
	CURL *c = curl_easy_init();

	fusee_http_explain(c, CURLE_COULDNT_RESOLVE_HOST, NULL, why);
	CHECK_STR(why, "DNS does not know its name, or does not answer");
	fusee_http_explain(c, CURLE_SSL_CONNECT_ERROR, "a\nb", why);
	CHECK_STR(why, "a?b");
	curl_easy_cleanup(c);
	fusee_http_clean(to, sizeof(to), "\x01longer than that", 16);
	CHECK_STR(to, "?longer");
	CHECK(fusee_http_is_header((struct fusee_str)FUSEE_TEXT("Grpc-Status: \t5 \r\n"),
				   "grpc-status", &value));
	CHECK(fusee_text_is(value, "5"));
	CHECK(!fusee_http_is_header((struct fusee_str)FUSEE_TEXT("grpc-status-x: 5\r\n"),
				    "grpc-status", &value));
}

TEST(places)
{
	CHECK(http_same_place("http://a:1/x", "http://a:1/y?z"));
	CHECK(http_same_place("http://a/x", "http://A:80/y"));
	CHECK(http_same_place("https://a/x", "https://a:443/y"));
	CHECK(http_same_place("http://a/x", "https://a/y"));
	CHECK(!http_same_place("https://a/x", "http://a/y"));
	CHECK(!http_same_place("http://a/x", "https://a:8443/y"));
	CHECK(!http_same_place("http://a:1/x", "http://a:2/x"));
	CHECK(!http_same_place("http://a/x", "http://b/x"));
	CHECK(!http_same_place("http://a/x", "http://a.b/x"));
	CHECK(!http_same_place("http://a/x", "http://a@b/x"));
	CHECK(!http_same_place("http://a/x", "file:///a"));
	CHECK(!http_same_place("http://a/x", "nonsense"));
}
