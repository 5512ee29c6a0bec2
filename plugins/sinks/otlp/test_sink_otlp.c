/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/otlp
/* Answers as receivers send them, and deliveries to tests/run/lib/http_server.py: run from the
 * source's root. */
#define SINK_OPTIONS
#include "lib/served_sink.h"
#include "lib/otlp_read.h"
#include "lib/random.h"

#include "answer.h"

/* ---- answers ---- */

static void answered(long status, const char *type, struct fusee_str body, struct answer *to)
{
	struct fusee_http_answer a = {.status = status, .error = "", .body = body};
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 %ld X\r\nContent-Type: %s\r\n\r\n", status, type);
	a.head = fusee_text(head);
	answer_read(&a, 4, to);
}

#define PROTO "application/x-protobuf"
static void check_answer(long status, const char *type, struct fusee_str body,
			 enum fusee_http_verdict verdict, const char *said)
{
	struct answer a;

	answered(status, type, body, &a);
	CHECK_INT(a.verdict, verdict);
	CHECK_STR(a.words, said);
}

/* body: a literal, which may have NULs. */
#define CHECK_ANSWER(status, type, body, verdict, said) \
	check_answer(status, type, (struct fusee_str){body, sizeof(body) - 1}, verdict, said)

TEST(answers_of_success)
{
	static const char not_ours[] = "but not as a receiver of OTLP does: is 'url' right?";

	CHECK_ANSWER(200, PROTO, "", FUSEE_HTTP_TAKEN, "");
	CHECK_ANSWER(200, PROTO, "\x0a\x00", FUSEE_HTTP_TAKEN, ""); /* the Collector's */
	CHECK_ANSWER(202, PROTO "; charset=x", "\x0a\x00", FUSEE_HTTP_TAKEN, "");
	CHECK_ANSWER(200, PROTO,
		     "\x0a\x05\x12\x03"
		     "old",
		     FUSEE_HTTP_TAKEN, "old");
	CHECK_ANSWER(200, PROTO,
		     "\x0a\x07\x08\x01\x12\x03"
		     "bad",
		     FUSEE_HTTP_TAKEN, "rejected 1 of 4 profiles: bad");
	CHECK_ANSWER(200, PROTO, "\x0a\x02\x08\x04", FUSEE_HTTP_REFUSED,
		     "rejected 4 of 4 profiles");
	CHECK_ANSWER(200, PROTO, "\x0a\x06\x08\x99\x99\x99\x99\x09", FUSEE_HTTP_REFUSED,
		     "rejected 4 of 4 profiles");
	/* fields that a later version adds */
	CHECK_ANSWER(200, PROTO, "\x0a\x02\x18\x07\x12\x01x", FUSEE_HTTP_TAKEN, "");
	/* some other server */
	CHECK_ANSWER(200, "text/html", "<!doctype html>", FUSEE_HTTP_DENIED, not_ours);
	CHECK_ANSWER(200, "application/json", "{}", FUSEE_HTTP_REFUSED, not_ours);
	CHECK_ANSWER(200, PROTO, "ok\n", FUSEE_HTTP_REFUSED, not_ours);
	CHECK_ANSWER(200, PROTO, "\x0a\x09", FUSEE_HTTP_REFUSED, not_ours);
	CHECK_ANSWER(200, PROTO, "\x08\x01", FUSEE_HTTP_REFUSED, not_ours);
}

TEST(answers_of_failure)
{
	CHECK_ANSWER(400, PROTO,
		     "\x08\x03\x12\x03"
		     "bad",
		     FUSEE_HTTP_REFUSED, "bad");
	CHECK_ANSWER(400, "text/plain", "bad\nand more", FUSEE_HTTP_REFUSED, "bad");
	CHECK_ANSWER(400, PROTO,
		     "\x08\x03\x12\x1c"
		     "http: request body too large",
		     FUSEE_HTTP_TOO_LARGE, "http: request body too large");
	CHECK_ANSWER(413, PROTO, "", FUSEE_HTTP_TOO_LARGE, "");
	CHECK_ANSWER(404, "text/plain", "404 page not found", FUSEE_HTTP_DENIED,
		     "404 page not found (no receiver of profiles: a Collector needs a pipeline "
		     "'profiles' and "
		     "--feature-gates=service.profilesSupport)");
	CHECK_ANSWER(415, "text/plain", "", FUSEE_HTTP_DENIED,
		     " (the server takes no OTLP in protobuf)");
	CHECK_ANSWER(400, "text/plain", "proto: wrong wireType = 2 for field LinkIndex",
		     FUSEE_HTTP_REFUSED,
		     "proto: wrong wireType = 2 for field LinkIndex (the receiver is older than "
		     "opentelemetry-proto 1.10)");
	CHECK_ANSWER(400, "text/plain", "supported otlp-profiles-development-version: 3",
		     FUSEE_HTTP_REFUSED,
		     "supported otlp-profiles-development-version: 3 (the receiver has another "
		     "version of the "
		     "signal than 1)");
	CHECK_ANSWER(429, PROTO, "", FUSEE_HTTP_LATER, "");
	CHECK_ANSWER(502, PROTO, "", FUSEE_HTTP_LATER, "");
	CHECK_ANSWER(503, PROTO,
		     "\x08\x0e\x12\x04"
		     "busy",
		     FUSEE_HTTP_LATER, "busy");
	CHECK_ANSWER(504, PROTO, "", FUSEE_HTTP_LATER, "");
	CHECK_ANSWER(501, PROTO, "", FUSEE_HTTP_DENIED, "");
	CHECK_ANSWER(401, "text/plain", "expired", FUSEE_HTTP_DENIED, "expired");
	CHECK_ANSWER(403, PROTO, "", FUSEE_HTTP_DENIED, "");
	CHECK_ANSWER(500, "text/plain", "rpc error: code = Unauthenticated desc = x",
		     FUSEE_HTTP_DENIED, "rpc error: code = Unauthenticated desc = x");
	/* Pyroscope's */
	CHECK_ANSWER(500, "text/plain", "rpc error: code = InvalidArgument desc = x",
		     FUSEE_HTTP_REFUSED, "rpc error: code = InvalidArgument desc = x");
	CHECK_ANSWER(500, "text/plain", "rpc error: code = Unavailable desc = x", FUSEE_HTTP_LATER,
		     "rpc error: code = Unavailable desc = x");
	CHECK_ANSWER(0, "", "", FUSEE_HTTP_LATER, "");
}

/* Nothing that a server sends is read beyond its end. */
TEST(answers_of_random_bytes)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t n = random32() % 24;
		char *bytes = malloc(
			n + !n); /* of this size: a sanitizer sees what is read behind it */
		struct answer a;

		CHECK(bytes);
		for (uint64_t k = 0; k < n; k++)
			bytes[k] = random32() % 3 ? (char)random32()
						  : "\x0a\x08\x12\x02\x80"[random32() % 5];
		answered(i % 2 ? 200 : 400, PROTO, (struct fusee_str){bytes, n}, &a);
		CHECK(strlen(a.words) < sizeof(a.words));
		free(bytes);
	}
}

/* ---- deliveries ---- */

static Otlp__Request *received(int n)
{
	struct buf b = {0};
	int fd = open(text("%s/%d.pb.gz", dir, n), O_RDONLY);
	Otlp__Request *r;

	CHECK(fd >= 0 && !buf_read_fd(&b, fd, 1 << 26));
	close(fd);
	r = otlp__request__unpack(NULL, b.len, (const uint8_t *)b.p);
	CHECK(r);
	buf_fini(&b);
	return r;
}

TEST(delivers)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 1, 20, "host", "n1", NULL);
	struct fake *sink;
	Otlp__Request *r;
	int port;

	port = served();
	sink = sink_at(port, "/ok", "gzip", "false");
	CHECK_INT(fake_consume(sink, p, 0), 0);
	r = received(1);
	otlp_check(r);
	CHECK_INT(r->n_resource_profiles, 1);
	CHECK(logged("\"path\": \"/ok/v1development/profiles\""));
	CHECK(logged("\"content-type\": \"application/x-protobuf\""));
	CHECK(logged("\"otlp-profiles-development-version\": \"1\""));
	CHECK(!logged("content-encoding"));
	otlp__request__free_unpacked(r, NULL);
	CHECK_INT(fake_count(sink, "bytes_sent"), bytes_received());
	fake_free(sink);
	sink = sink_at(port, "/ok", "path", "");
	CHECK_INT(fake_consume(sink, p, 0), 0);
	CHECK(logged("\"path\": \"/ok\"") && logged("\"content-encoding\": \"gzip\""));
	fake_free(sink);
	builder_free(b);
}

TEST(large_profiles_are_sent_in_parts)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 1, 5000, "host", "n1", NULL);
	size_t samples = 0;
	struct fake *sink;
	int port;

	port = served();
	sink = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d/ok", port), "gzip",
			      "false", "max_bytes", "64KiB", NULL));
	CHECK_INT(fake_consume(sink, p, 0), 0);
	CHECK(requests() > 4);
	for (int i = 1; i <= requests(); i++) {
		Otlp__Request *r = received(i);

		otlp_check(r);
		samples += r->resource_profiles[0]->scope_profiles[0]->profiles[0]->n_samples;
		otlp__request__free_unpacked(r, NULL);
	}
	CHECK_INT(samples, 5000);
	fake_free(sink);
	builder_free(b);
}

TEST(says_what_servers_answer)
{
	int port;

	port = served();
	check_said(sink_at(port, "/say/400/bad", "path", ""), -EBADMSG, "answered 400: bad");
	check_said(sink_at(port, "/say/200/hello", "path", ""), -EBADMSG,
		   "answered 200: but not as a receiver of OTLP does");
	check_said(sink_at(port, "/status/404", "path", ""), FAKE_DENIED,
		   "service.profilesSupport");
	check_said(sink_at(port, "/status/503?after=7", "path", ""), -EAGAIN,
		   "answered 503, again in 7 s");
	check_said(sink_at(port, "/status/500", "path", ""), -EBADMSG, "answered 500");
	check_said(sink_at(port, "/status/413", "path", ""), -E2BIG, "answered 413");
}

TEST(refuses_options)
{
	struct fake *f = fake_new(&fusee_plugin, "url", "http://h", "path", "x", NULL);

	CHECK_INT(fake_init(f), -EINVAL);
	CHECK_STR(f->error, "option 'path': 'x' does not begin with '/'");
	fake_free(f);
	f = fake_new(&fusee_plugin, "url", "http://h", "headers",
		     "OTLP-Profiles-Development-Version=2", NULL);
	CHECK_INT(fake_init(f), -EINVAL);
	fake_free(f);
}
