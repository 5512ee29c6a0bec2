/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/pyroscope
/* Against tests/run/lib/http_server.py: requests are decoded by protoc with push.proto, the
 * profiles in them by the core's decoder of pprof. Runs from the source's root. */
#include "test.h"

#include <fusee/helpers.h>

#define SINK_OPTIONS "max_age", "0s",
#include "lib/served_sink.h"

/* ---- profiles ---- */

/* A sample of a stack of 3 frames with these labels: name, value, .., NULL. */
static void add(struct builder *b, uint32_t i, int64_t value, ...)
{
	struct fusee_label labels[40];
	uint32_t n = 0, stack[3];
	const char *key;
	va_list ap;

	va_start(ap, value);
	while ((key = va_arg(ap, const char *)))
		labels[n++] = fusee_text_label(key, va_arg(ap, const char *));
	va_end(ap);
	for (uint32_t k = 0; k < 3; k++) {
		char name[32];
		struct fusee_function fn = {0};
		struct fusee_line line = {.line = 1};
		struct fusee_location l = {.address = k ? k : 10 + i};

		snprintf(name, sizeof(name), k ? "frame_%u" : "leaf_%u_%u", k, i);
		if (!k)
			snprintf(name, sizeof(name), "leaf_%u", i);
		fn.name = fn.system_name = builder_cstr(b, name);
		line.function = builder_function(b, &fn);
		stack[k] = builder_location(b, &l, &line, 1);
	}
	builder_sample(b, builder_stack(b, stack, 3), labels, n, 100 + i, 200 + i, &value);
}

static struct builder *begin(void)
{
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "cpu", "nanoseconds");
	return b;
}

static const struct fusee_profile *end(struct builder *b, const char *kind, uint8_t id)
{
	struct fusee_profile *head = builder_profile(b);
	const struct fusee_profile *p;

	head->kind = builder_cstr(b, kind);
	head->period_type = builder_cstr(b, "cpu");
	head->period_unit = builder_cstr(b, "nanoseconds");
	head->period = 10000000;
	head->start_ns = 1795248900000000000ull;
	head->duration_ns = 10000000000ull;
	head->id[0] = id;
	CHECK_INT(builder_finish(b, &p), 0);
	return p;
}

/* ---- what the server got ---- */

/* The text that is quoted in a line of protoc's, in place. *n: its bytes. */
static char *unquote(char *line, size_t *n)
{
	char *from = strchr(line, '"') + 1, *to = from, *begin = from;

	for (; *from && *from != '"'; from++) {
		if (*from != '\\') {
			*to++ = *from;
			continue;
		}
		from++;
		if (*from >= '0' && *from <= '7') {
			int c = 0, digits = 0;

			for (; digits < 3 && *from >= '0' && *from <= '7'; digits++)
				c = 8 * c + (*from++ - '0');
			*to++ = (char)c;
			from--;
		} else {
			*to++ = *from == 'n'   ? '\n'
				: *from == 'r' ? '\r'
				: *from == 't' ? '\t'
					       : *from;
		}
	}
	*n = (size_t)(to - begin);
	*to = '\0';
	return begin;
}

/* A request as protobuf decodes it. */
struct got {
	char labels[4096]; /* "__name__=process_cpu,.." */
	char id[64];
	struct pprof_file *file;
	const struct fusee_profile *p;
	int64_t sum;
	uint32_t series, samples; /* messages */
};

static void take_line(struct got *g, char *line)
{
	size_t n, len = strlen(g->labels);
	const char *why;
	char *text;

	g->series += strstr(line, "series {") != NULL;
	g->samples += strstr(line, "samples {") != NULL;
	if (!strchr(line, '"'))
		return;
	text = unquote(line, &n);
	if (strstr(line, "name:"))
		snprintf(g->labels + len, sizeof(g->labels) - len, "%s%s=", len ? "," : "", text);
	else if (strstr(line, "value:"))
		snprintf(g->labels + len, sizeof(g->labels) - len, "%s", text);
	else if (strstr(line, "ID:"))
		snprintf(g->id, sizeof(g->id), "%s", text);
	else if (strstr(line, "raw_profile:"))
		CHECK_INT(pprof_decode(text, n, &g->file, &why), 0);
}

static struct got *got(int number)
{
	struct got *g = calloc(1, sizeof(*g));
	char *text_of, *next;

	CHECK(g);
	if (system(text("protoc --decode=push.v1.PushRequest -I plugins/sinks/pyroscope push.proto "
			"<'%s/%d.pb.gz' >'%s/text'",
			dir, number, dir)))
		SKIP("no protoc (apt install protobuf-compiler)");
	text_of = strdup(read_file("text"));
	for (char *line = text_of; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		take_line(g, line);
	}
	free(text_of);
	CHECK_INT(g->series, 1);
	CHECK_INT(g->samples, 1);
	CHECK(g->file);
	g->p = pprof_profile(g->file);
	for (uint32_t i = 0; i < g->p->samples.n; i++)
		g->sum += *FUSEE_AT(int64_t, g->p->values, (uint64_t)i * g->p->types.n);
	return g;
}

static void got_free(struct got *g)
{
	pprof_free(g->file);
	free(g);
}

/* ---- what is taken ---- */

TEST(a_request_for_each_series)
{
	struct builder *b = begin();
	const struct fusee_profile *p;
	struct fake *f;
	struct got *g;

	add(b, 1, 10, "process", "web", "thread", "one", "k8s.pod", "web-1", NULL);
	add(b, 1, 20, "process", "web", "thread", "two", "k8s.pod", "web-1", NULL);
	add(b, 2, 5, "process", "web", "k8s.pod", "web-1", NULL);
	add(b, 1, 7, "process", "db", "service_name", "orders", "__secret", "x", NULL);
	builder_resource(b, "host", "h1");
	p = end(b, "cpu", 7);
	f = sink_at(served(), "/ok/", NULL, NULL);
	CHECK_INT(fake_consume(f, p, 0), 0);
	CHECK_INT(requests(), 2);
	CHECK(logged("\"method\": \"POST\", \"path\": \"/ok/push.v1.PusherService/Push\""));
	CHECK(logged("\"content-type\": \"application/proto\""));
	CHECK(logged("\"connect-protocol-version\": \"1\""));
	g = got(1);
	CHECK_STR(g->labels, "__name__=process_cpu,service_name=web,host=h1,k8s_pod=web-1,"
			     "process=web");
	CHECK_INT(g->p->samples.n, 2);
	CHECK_INT(g->sum, 35);
	CHECK_INT(FUSEE_AT(struct fusee_sample, g->p->samples, 0)->nlabels, 0);
	CHECK_INT(FUSEE_AT(struct fusee_stack, g->p->stacks, 1)->n, 3);
	CHECK(g->p->start_ns == p->start_ns && g->p->duration_ns == p->duration_ns);
	CHECK_INT(g->p->functions.n, 1 + 4); /* not those of the other series */
	CHECK_INT(strlen(g->id), 36);
	CHECK(g->id[8] == '-' && g->id[23] == '-');
	got_free(g);
	g = got(2);
	CHECK_STR(g->labels, "__name__=process_cpu,service_name=orders,host=h1,process=db");
	CHECK_INT(g->sum, 7);
	got_free(g);
	CHECK_INT(fake_count(f, "requests{status=\"2xx\"}"), 2);
	CHECK_INT(fake_count(f, "bytes_sent"), bytes_received());
	builder_free(b);
	fake_free(f);
}

TEST(other_kinds_and_services)
{
	struct builder *b = begin();
	struct fake *f;
	struct got *g;

	add(b, 1, 10, "team", "x", NULL);
	f = sink_at(served(), "/ok", "service", "app,team");
	CHECK_INT(fake_consume(f, end(b, "off_cpu", 1), 0), 0);
	g = got(1);
	CHECK_STR(g->labels, "__name__=off_cpu,service_name=x,team=x");
	got_free(g);
	builder_free(b);
	fake_free(f);
	b = begin();
	add(b, 1, 10, "process", "", NULL);
	f = sink_at(served(), "/ok", NULL, NULL);
	CHECK_INT(fake_consume(f, end(b, "alloc", 1), 0), 0);
	g = got(1); /* of another server, with another log */
	CHECK_STR(g->labels, "__name__=memory,service_name=unknown_service");
	got_free(g);
	builder_free(b);
	fake_free(f);
}

TEST(parts)
{
	struct builder *b = begin();
	const struct fusee_profile *p;
	struct fake *f;
	int64_t sum = 0;

	for (uint32_t i = 0; i < 100; i++)
		add(b, i, i + 1, "process", "web", NULL);
	p = end(b, "cpu", 3);
	f = sink_at(served(), "/ok", "max_samples", "30");
	CHECK_INT(fake_consume(f, p, 0), 0);
	CHECK_INT(requests(), 4);
	for (int i = 1; i <= 4; i++) {
		struct got *g = got(i);

		CHECK(g->p->samples.n <= 30);
		sum += g->sum;
		got_free(g);
	}
	CHECK_INT(sum, 5050);
	builder_free(b);
	fake_free(f);
}

/* A server with smaller limits than we know of: the parts become smaller until it takes them. */
TEST(a_server_with_smaller_limits)
{
	static const char *const answers[] = {
		"400/%7B%22code%22:%22invalid_argument%22,%22message%22:%22the%20profile%20exceeds"
		"%20the%20size%20limit%20(max_profile_size_byte,%20actual:%201,%20limit:%200)%22%"
		"7D",
		"429/%7B%22code%22:%22resource_exhausted%22,%22message%22:%22push%20rate%20limit%20"
		"(4.0%20MiB)%20exceeded%20while%20adding%203.0%20MiB%22%7D",
		"413/too%20large"};
	int port;

	port = served();
	for (size_t i = 0; i < 3; i++) {
		struct builder *b = begin();
		const struct fusee_profile *p;
		int before = i ? requests() : 0;
		struct fake *f;
		int64_t sum = 0;

		for (uint32_t k = 0; k < 200; k++)
			add(b, k, k + 1, "process", "web", NULL);
		p = end(b, "cpu", 3);
		f = sink_of(text("http://127.0.0.1:%d/limit/1000/%s", port, answers[i]), NULL,
			    NULL);
		CHECK_INT(fake_consume(f, p, 0), 0);
		CHECK_INT(fake_count(f, "samples_refused"), 0);
		CHECK(requests() > before + 3);
		for (int n = before + 1; n <= requests(); n++) {
			struct stat st;
			struct got *g;

			CHECK(!stat(text("%s/%d.pb.gz", dir, n), &st));
			if (st.st_size > 1000)
				continue;
			g = got(n);
			sum += g->sum;
			got_free(g);
		}
		CHECK_INT(sum, 20100);
		builder_free(b);
		fake_free(f);
	}
}

/* ---- what is not ---- */

#define CONNECT(code, message) "%7B%22code%22:%22" code "%22,%22message%22:%22" message "%22%7D"

TEST(what_an_answer_says)
{
	static const struct {
		const char *path;
		int r;
		const char *error;
	} all[] = {
		{"/say/400/" CONNECT("invalid_argument", "invalid%20metric%20name"), -EBADMSG,
		 " answered 400: invalid metric name"},
		{"/say/401/" CONNECT("unauthenticated", "no%20org%20id"), FAKE_DENIED,
		 " answered 401: no org id"},
		{"/say/403/" CONNECT("permission_denied", ""), FAKE_DENIED,
		 " answered 403: permission_denied"},
		{"/say/404/no", FAKE_DENIED,
		 " answered 404: no (a Pyroscope before 1.0 needs api = 'ingest')"},
		{"/say/408/x", -EAGAIN, " answered 408: x"},
		{"/say/422/" CONNECT("unknown", "invalid%20profile"), -EBADMSG,
		 " answered 422: invalid profile"},
		{"/say/422/" CONNECT("resource_exhausted", "push%20rate%20limit%20(4.0%20MiB)"),
		 -EAGAIN, " answered 422: push rate limit (4.0 MiB)"},
		{"/say/422/per-tenant%20rate%20limit", -EAGAIN, " answered 422"},
		{"/say/429/" CONNECT("resource_exhausted",
				     "push%20rate%20limit%20exceeded%20while%20adding%201.5%20MiB"),
		 -EAGAIN, " answered 429"},
		{"/say/500/" CONNECT("unknown", "gzip%20reset:%20gzip:%20invalid%20header"),
		 -EBADMSG, " answered 500: gzip reset: gzip: invalid header"},
		{"/say/500/" CONNECT("unknown", "copy%20to%20buffer:%20unexpected%20EOF"), -EBADMSG,
		 " answered 500: copy to buffer: unexpected EOF"},
		{"/say/500/" CONNECT("internal", "ring%20has%20no%20instances"), -EAGAIN,
		 " answered 500: ring has no instances"},
		{"/say/501/" CONNECT("unimplemented", "unknown%20compression"), FAKE_DENIED,
		 " answered 501: unknown compression"},
		{"/say/503/" CONNECT("unavailable", "at%20least%201%20live%20replicas%20required"),
		 -EAGAIN, " answered 503: at least 1 live replicas required"},
		{"/say/504/x", -EAGAIN, " answered 504: x"},
		{"/say/415/", FAKE_DENIED, " answered 415"},
		{"/type/200/text%2Fhtml;%20charset=utf-8/%3Chtml%3E", FAKE_DENIED,
		 " answered 200: a page of HTML: this is not Pyroscope"},
		{"/type/200/application%2Fproto/", 0, ""},
		{"/type/200/application%2Fjson/%7B%7D", 0, ""},
	};
	int port;

	port = served();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct fake *f = sink_of(text("http://127.0.0.1:%d%s", port, all[i].path), NULL,
					 NULL);
		struct builder *b = begin();
		int r;

		add(b, 1, 10, "process", "web", NULL);
		r = fake_consume(f, end(b, "cpu", 3), 0);
		if (r != all[i].r || !strstr(f->error, all[i].error))
			fprintf(stderr, "# %s: %d %s\n", all[i].path, r, f->error);
		CHECK_INT(r, all[i].r);
		CHECK(strstr(f->error, all[i].error));
		CHECK_INT(f->fails, r != 0);
		CHECK_INT(requests(), (int)i + 1);
		builder_free(b);
		fake_free(f);
	}
}

TEST(retry_after)
{
	struct builder *b = begin();
	struct fake *f;

	add(b, 1, 10, "process", "web", NULL);
	f = sink_at(served(), "/status/429?after=7", NULL, NULL);
	CHECK_INT(fake_consume(f, end(b, "cpu", 3), 0), -EAGAIN);
	CHECK(f->retry_after == 7ull * FUSEE_SECOND);
	builder_free(b);
	fake_free(f);
}

/* After a failure only the other series are sent. */
TEST(an_attempt_goes_on)
{
	struct builder *b = begin();
	const struct fusee_profile *p;
	int64_t sum = 0;
	struct fake *f;

	for (uint32_t i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%u", i);
		add(b, 1, 1 << i, "process", name, NULL);
	}
	p = end(b, "cpu", 3);
	f = sink_at(served(), "/flaky/2/503", NULL, NULL);
	CHECK_INT(fake_consume(f, p, 0), -EAGAIN);
	CHECK_INT(fake_consume(f, p, 1), -EAGAIN);
	CHECK_INT(requests(), 2);
	CHECK_INT(fake_consume(f, p, 2), 0);
	CHECK_INT(requests(), 12);
	for (int i = 3; i <= 12; i++) {
		struct got *g = got(i);

		sum += g->sum;
		got_free(g);
	}
	CHECK_INT(sum, 1023);
	CHECK_INT(fake_consume(f, p, 3), 0);
	CHECK_INT(requests(), 12);
	builder_free(b);
	fake_free(f);
}

/* The service is the label that the server requires, whatever its name is. Other labels are counted
 * once, however often a series is tried. */
TEST(more_labels_than_a_server_takes)
{
	struct builder *b = begin();
	const struct fusee_profile *p;
	struct fake *f;
	struct got *g;

	add(b, 1, 10, "zz.app", "shop", NULL);
	add(b, 1, 20, "zz.app", "desk", NULL);
	for (int i = 0; i < 30; i++)
		builder_resource(b, text("l%02d", i), "x");
	p = end(b, "cpu", 3);
	f = sink_at(served(), "/flaky/1/503", "service", "zz.app");
	CHECK_INT(fake_consume(f, p, 0), -EAGAIN);
	CHECK_INT(fake_consume(f, p, 1), 0);
	CHECK_INT(fake_consume(f, p, 2), 0);
	CHECK_INT(requests(), 3);
	g = got(2);
	CHECK(strstr(g->labels, "service_name=shop,l00=x,"));
	CHECK(strstr(g->labels, ",l26=x,zz_app=shop"));
	CHECK(!strstr(g->labels, "l27"));
	got_free(g);
	CHECK_INT(fake_count(f, "labels_dropped"), 6);
	builder_free(b);
	fake_free(f);
}

TEST(older_than_the_server_takes)
{
	struct fake *f = fake_new(&fusee_plugin, "url", "http://127.0.0.1:1/", NULL);
	struct builder *b = begin();

	add(b, 1, 10, "process", "web", NULL);
	CHECK_INT(fake_init(f), 0);
	CHECK_INT(fake_consume(f, end(b, "cpu", 3), 0), -EBADMSG);
	CHECK(strstr(f->error, "is older than 'max_age'"));
	builder_free(b);
	fake_free(f);
}

/* ---- servers before 1.0 ---- */

TEST(ingest)
{
	struct builder *b = begin();
	const struct fusee_profile *p;
	struct pprof_file *file;
	struct buf body = {0};
	const char *why;
	struct fake *f;
	int fd;

	add(b, 1, 10, "service", "my app/v1", "note", "a,b}\xc3\xa4 c", NULL);
	p = end(b, "cpu", 7);
	f = sink_at(served(), "/ok", "api", "ingest");
	CHECK_INT(fake_consume(f, p, 0), 0);
	CHECK(logged("\"path\": \"/ok/ingest?name=my_app_v1%7Bnote%3Da_b_%C3%A4%20c%2C"
		     "service%3Dmy%20app%2Fv1%7D&from=1795248900000000000&until="
		     "1795248910000000000&format=pprof&spyName=fusee\""));
	CHECK(logged("\"content-type\": \"application/octet-stream\""));
	fd = open(text("%s/1.pb.gz", dir), O_RDONLY);
	CHECK(fd >= 0 && !buf_read_fd(&body, fd, 1 << 20));
	close(fd);
	CHECK_INT(pprof_decode(body.p, body.len, &file, &why), 0);
	CHECK_INT(pprof_profile(file)->samples.n, 1);
	pprof_free(file);
	buf_fini(&body);
	builder_free(b);
	fake_free(f);
}
