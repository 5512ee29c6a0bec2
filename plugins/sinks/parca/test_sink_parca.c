/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parca
/* Answers as Parca sends them, and requests to tests/run/lib/http_server.py, which libprotobuf-c
 * and python3's json decode. Runs from the source's root. */
#include <fusee/helpers.h>

#define SINK_OPTIONS
#include "lib/served_sink.h"

#include "parca.pb-c.h"
#include "write.h"

/* ---- answers ---- */

static void check_verdict(enum write_protocol protocol, long status, const char *head,
			  struct fusee_str body, enum fusee_http_verdict expected, const char *said)
{
	struct fusee_http_answer a = {
		.status = status, .head = fusee_text(head), .error = "", .body = body};
	char words[FUSEE_HTTP_WORDS];

	CHECK_INT(write_verdict(protocol, &a, words), expected);
	CHECK_STR(words, said);
}

#define NOT_PARCA "without a status of gRPC: this is not Parca, or not all of its answer"
/* body: a literal, which may have NULs. */
#define GRPC(status, head, body, expected, said)                                                \
	check_verdict(WRITE_GRPC_WEB, status, head, (struct fusee_str){body, sizeof(body) - 1}, \
		      expected, said)
#define JSON(status, body, expected, said)                                                \
	check_verdict(WRITE_JSON, status, "", (struct fusee_str){body, sizeof(body) - 1}, \
		      expected, said)

TEST(answers_of_grpc_web)
{
	static const char ok[] = "Grpc-Status: 0\r\n";

	/* headers only */
	GRPC(200, ok, "", FUSEE_HTTP_TAKEN, "grpc-status 0");
	GRPC(200, "grpc-status: 3\r\ngrpc-message: missing%20__name__%25 label\r\n", "",
	     FUSEE_HTTP_REFUSED, "grpc-status 3, missing __name__% label");
	GRPC(200, "Grpc-Status: 14\r\nGrpc-Message: bad%2\r\n", "", FUSEE_HTTP_LATER,
	     "grpc-status 14, bad%2");
	GRPC(200, "Grpc-Status: 2\r\nGrpc-Message: invalid profile type\r\n", "",
	     FUSEE_HTTP_REFUSED, "grpc-status 2, invalid profile type");
	GRPC(200,
	     "Grpc-Status: 8\r\nGrpc-Message: grpc: received message larger than max (9 vs. 4)\r\n",
	     "", FUSEE_HTTP_TOO_LARGE,
	     "grpc-status 8, grpc: received message larger than max (9 vs. 4)");
	GRPC(200, "Grpc-Status: 8\r\n", "", FUSEE_HTTP_LATER, "grpc-status 8");
	GRPC(200, "Grpc-Status: 16\r\n", "", FUSEE_HTTP_DENIED, "grpc-status 16");
	GRPC(200, "Grpc-Status: 7\r\n", "", FUSEE_HTTP_DENIED, "grpc-status 7");
	GRPC(200, "Grpc-Status: 12\r\n", "", FUSEE_HTTP_DENIED, "grpc-status 12");
	/* behind a message */
	GRPC(200, "", "\0\0\0\0\0\x80\0\0\0\x10grpc-status: 0\r\n", FUSEE_HTTP_TAKEN,
	     "grpc-status 0");
	GRPC(200, "", "\0\0\0\0\1x\x80\0\0\0\x0egrpc-status:5\n", FUSEE_HTTP_DENIED,
	     "grpc-status 5");
	GRPC(200, "", "\x80\0\0\0\x0fgrpc-status:14\n", FUSEE_HTTP_LATER, "grpc-status 14");
	/* no status at all: grpc-web-text with a raw body, an incomplete answer, another server */
	GRPC(200, "", "", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(200, "", "\0\0\0\0\0", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(200, "", "\0\0\0\0\0\x80\0\0\0\x11grpc-status: 0\r\n", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(200, "", "<html>", FUSEE_HTTP_DENIED, NOT_PARCA);
	GRPC(200, "Grpc-Status: x\r\n", "", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(200, "Grpc-Status: 99999999999999999999\r\n", "", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(200, "Grpc-Status: \r\n", "", FUSEE_HTTP_REFUSED, NOT_PARCA);
	GRPC(404, "", "no such page\n", FUSEE_HTTP_DENIED, "no such page");
	GRPC(502, "", "", FUSEE_HTTP_LATER, "");
	GRPC(413, "", "", FUSEE_HTTP_TOO_LARGE, "");
	GRPC(0, "", "", FUSEE_HTTP_LATER, "");
}

TEST(answers_of_the_gateway)
{
	JSON(200, "{}", FUSEE_HTTP_TAKEN, "grpc-status 0");
	JSON(200, " \n{}\n", FUSEE_HTTP_TAKEN, "grpc-status 0");
	JSON(400, "{\"code\":3, \"message\":\"missing __name__ label\", \"details\":[]}",
	     FUSEE_HTTP_REFUSED, "grpc-status 3, missing __name__ label");
	JSON(500, "{\"code\": 2,\"message\":\"invalid profile type at row\"}", FUSEE_HTTP_REFUSED,
	     "grpc-status 2, invalid profile type at row");
	JSON(503, "{\"code\":14,\"message\":\"\"}", FUSEE_HTTP_LATER, "grpc-status 14");
	JSON(429, "{\"code\":8,\"message\":\"slow down\"}", FUSEE_HTTP_LATER,
	     "grpc-status 8, slow down");
	JSON(200, "<!doctype html><html>", FUSEE_HTTP_DENIED, NOT_PARCA); /* a path without /api */
	JSON(200, "", FUSEE_HTTP_REFUSED, NOT_PARCA);
	JSON(501, "Method Not Allowed", FUSEE_HTTP_DENIED, "Method Not Allowed");
	JSON(502, "", FUSEE_HTTP_LATER, "");
	/* a proxy's own: its code is HTTP's, or nothing */
	JSON(503, "{\"code\":503,\"message\":\"no upstream\"}", FUSEE_HTTP_LATER,
	     "{\"code\":503,\"message\":\"no upstream\"}");
	JSON(502, "{\"code\":0}", FUSEE_HTTP_LATER, "{\"code\":0}");
	JSON(200, "{\"code\":503}", FUSEE_HTTP_REFUSED, NOT_PARCA);
}

/* Nothing that a server sends is read beyond its end. */
TEST(answers_of_random_bytes)
{
	uint64_t state = 88172645463325252ull;

	for (int i = 0; i < 100000; i++) {
		struct fusee_http_answer a = {.status = i % 3 ? 200 : 400, .head = fusee_text("")};
		uint64_t n = (state >> 20) % 24;
		char *bytes = malloc(n + 1); /* a NUL follows, and nothing else */
		char words[FUSEE_HTTP_WORDS];

		CHECK(bytes);
		for (uint64_t k = 0; k < n; k++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = state >> 60
					   ? "\0\0\x80\3{\"code\":grpc-status:"[state >> 33 & 15]
					   : (char)(state >> 40);
		}
		bytes[n] = '\0';
		a.body = (struct fusee_str){bytes, n};
		write_verdict(i & 1 ? WRITE_JSON : WRITE_GRPC_WEB, &a, words);
		CHECK(strlen(words) < sizeof(words));
		free(bytes);
		state++;
	}
}

/* ---- requests ---- */

/* Two processes, one of them with two threads; a type without a period. */
static const struct fusee_profile *two_processes(struct builder **b)
{
	struct fusee_label web[] = {fusee_text_label("process", "web"),
				    fusee_text_label("thread", "one"),
				    fusee_text_label("note", "a \"b\"\\\n\xc3\xbc")};
	struct fusee_label db[] = {fusee_text_label("process", "db"),
				   fusee_text_label("__secret", "x")};
	const struct fusee_profile *p = NULL;
	struct fusee_function fn = {0};
	struct fusee_line line = {.line = 4};
	struct fusee_location l = {.address = 16};
	int64_t one[] = {1, 1000}, two[] = {2, 2000};
	uint32_t stack;

	CHECK(!builder_new(b));
	builder_type(*b, "samples", "count");
	builder_type(*b, "cpu", "nanoseconds");
	fn.name = fn.system_name = builder_cstr(*b, "work");
	line.function = builder_function(*b, &fn);
	stack = builder_location(*b, &l, &line, 1);
	stack = builder_stack(*b, &stack, 1);
	builder_sample(*b, stack, web, 3, 12, 13, one);
	web[1] = fusee_text_label("thread", "two");
	builder_sample(*b, stack, web, 3, 12, 14, two);
	builder_sample(*b, stack, db, 2, 99, 99, one);
	builder_resource(*b, "host", "n1");
	builder_profile(*b)->default_type = 1;
	builder_profile(*b)->start_ns = 1795248900000000000ull;
	builder_profile(*b)->duration_ns = 10000000000ull;
	builder_profile(*b)->id[0] = 7;
	CHECK_INT(builder_finish(*b, &p), 0);
	return p;
}

/* "values of samples; period type; labels of samples" of the series' pprof. */
static char *profile_text(const void *bytes, size_t n)
{
	struct pprof_file *file;
	const struct fusee_profile *p;
	const char *why;
	static char line[256];

	CHECK_INT(pprof_decode(bytes, n, &file, &why), 0);
	p = pprof_profile(file);
	CHECK_INT(p->samples.n, 1);
	CHECK_INT(p->types.n, 2);
	snprintf(line, sizeof(line), "%lld %lld of %.*s, %u labels, at %llu",
		 (long long)*FUSEE_AT(int64_t, p->values, 0),
		 (long long)*FUSEE_AT(int64_t, p->values, 1),
		 (int)FUSEE_AT(struct fusee_str, p->strings, p->period_type)->len,
		 FUSEE_AT(struct fusee_str, p->strings, p->period_type)->p,
		 FUSEE_AT(struct fusee_sample, p->samples, 0)->nlabels,
		 (unsigned long long)p->start_ns);
	pprof_free(file);
	return line;
}

/* The request of gRPC-web with this number: "name=value,..: profile_text()". */
static const char *request_text(int n)
{
	static struct buf all;
	const Parca__RawProfileSeries *s;
	Parca__WriteRawRequest *r;
	struct buf b = {0};
	int fd = open(text("%s/%d.pb.gz", dir, n), O_RDONLY);
	uint32_t len;

	CHECK(fd >= 0 && !buf_read_fd(&b, fd, 1 << 20));
	close(fd);
	CHECK(b.len > 5 && !b.p[0]);
	memcpy(&len, b.p + 1, 4);
	CHECK_INT(__builtin_bswap32(len), b.len - 5);
	r = parca__write_raw_request__unpack(NULL, b.len - 5, (const uint8_t *)b.p + 5);
	CHECK(r && r->n_series == 1 && r->normalized && !*r->tenant);
	s = r->series[0];
	CHECK(s->n_samples == 1 && !s->samples[0]->n_executable_info);
	buf_reset(&all);
	for (size_t i = 0; i < s->labels->n_labels; i++)
		buf_printf(&all, "%s=%s,", s->labels->labels[i]->name, s->labels->labels[i]->value);
	buf_printf(&all, " %s",
		   profile_text(s->samples[0]->raw_profile.data, s->samples[0]->raw_profile.len));
	buf_add(&all, "", 1);
	parca__write_raw_request__free_unpacked(r, NULL);
	buf_fini(&b);
	return all.p;
}

static const char web_labels[] =
	"__name__=process_cpu,host=n1,note=a \"b\"\\\n\xc3\xbc,process=web,";
static const char web_profile[] = "3 3000 of cpu, 0 labels, at 1795248900000000000";
static const char db_text[] =
	"__name__=process_cpu,host=n1,process=db, 1 1000 of cpu, 0 labels, at "
	"1795248900000000000";

TEST(a_request_for_each_series)
{
	struct builder *b;
	const struct fusee_profile *p = two_processes(&b);
	struct fake *f;

	f = sink_at(served(), "/trailers/0/", NULL, NULL);
	CHECK_INT(fake_consume(f, p, 0), 0);
	CHECK_INT(requests(), 2);
	CHECK(logged("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw\""));
	CHECK(logged("\"content-type\": \"application/grpc-web+proto\""));
	if (strstr(request_text(1), "process=web")) {
		CHECK_STR(request_text(1), text("%s %s", web_labels, web_profile));
		CHECK_STR(request_text(2), db_text);
	} else {
		CHECK_STR(request_text(1), db_text);
		CHECK_STR(request_text(2), text("%s %s", web_labels, web_profile));
	}
	CHECK_INT(fake_count(f, "bytes_sent"), bytes_received());
	fake_free(f);
	builder_free(b);
}

/* The gateway's body as python's json reads it: "name=value,.." in labels, the profile in profile.
 */
static const char *const read_json =
	"import base64, json, sys\n"
	"r = json.load(open(sys.argv[1], 'rb'))\n"
	"s, = r['series']\n"
	"x, = s['samples']\n"
	"assert r['normalized'] is True and list(x) == ['rawProfile'], r\n"
	"line = ''.join('%s=%s,' % (l['name'], l['value']) for l in s['labels']['labels'])\n"
	"open(sys.argv[2] + '/labels', 'w').write(line)\n"
	"open(sys.argv[2] + '/profile', 'wb').write(base64.b64decode(x['rawProfile'], "
	"validate=True))\n";

TEST(the_gateway_gets_the_same)
{
	struct builder *b;
	const struct fusee_profile *p = two_processes(&b);
	struct buf bytes = {0};
	struct fake *f;
	bool found = false;

	scratch();
	put("read.py", read_json);
	f = sink_of(text("http://127.0.0.1:%d/type/200/application%%2Fjson/{}",
			 serve(NULL, NULL, NULL)),
		    "protocol", "json");
	CHECK_INT(fake_consume(f, p, 0), 0);
	CHECK_INT(requests(), 2);
	CHECK(logged("/api/profiles/writeraw\""));
	for (int i = 1; i <= 2; i++) {
		int fd;

		CHECK(!system(text("PYTHONUTF8=1 python3 '%s/read.py' '%s/%d.pb.gz' '%s'", dir, dir,
				   i, dir)));
		if (strcmp(read_file("labels"), web_labels))
			continue;
		found = true;
		fd = open(text("%s/profile", dir), O_RDONLY);
		CHECK(fd >= 0 && !buf_read_fd(&bytes, fd, 1 << 20));
		close(fd);
		CHECK_STR(profile_text(bytes.p, bytes.len), web_profile);
	}
	CHECK(found);
	buf_fini(&bytes);
	fake_free(f);
	builder_free(b);
}

TEST(says_what_servers_answer)
{
	int port;

	port = served();
	check_said(sink_at(port, "/grpc/0/", NULL, NULL), 0, "");
	check_said(sink_at(port, "/trailers/0/", NULL, NULL), 0, "");
	check_said(sink_at(port, "/grpc/3/no%2520good", NULL, NULL), -EBADMSG,
		   "answered 200: grpc-status 3, no good");
	check_said(sink_at(port, "/trailers/14/away", NULL, NULL), -EAGAIN,
		   "answered 200: grpc-status 14, away");
	check_said(sink_at(port, "/ok", NULL, NULL), -EBADMSG, NOT_PARCA);
	check_said(sink_at(port, "/status/503?after=7", NULL, NULL), -EAGAIN,
		   "answered 503, again in 7 s");
	check_said(sink_at(port, "/status/404", NULL, NULL), FAKE_DENIED, "answered 404");
}
