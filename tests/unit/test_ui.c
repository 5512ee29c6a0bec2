// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/ui core/net
/* The server of fusee ui: who is answered, and what a query selects. tests/run/ui looks at the
 * page. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/time.h>

#include <fusee/helpers.h>

#include "lib/put_file.h"
#include "pprof/pprof.h"
#include "profile/builder.h"
#include "report/model.h"
#include "test.h"
#include "ui/internal/selection.h"
#include "ui/internal/server.h"
#include "ui/internal/views.h"
#include "view/source_text.h"

/* ---- a profile ---- */

static uint32_t frame(struct builder *b, const char *name, const char *path, uint32_t line)
{
	struct fusee_function f = {.name = builder_cstr(b, name)};
	struct fusee_line l = {.function = builder_function(b, &f), .line = line};
	struct fusee_mapping m = {.path = builder_cstr(b, path), .limit = UINT64_MAX};
	struct fusee_location at = {.mapping = builder_mapping(b, &m), .address = 0x1000 + line};

	return builder_location(b, &at, &l, 1);
}

static void sample(struct builder *b, const uint32_t *leaf_first, uint32_t n, const char *process,
		   int64_t value)
{
	struct fusee_label l = fusee_text_label("process", process);

	CHECK(!builder_sample(b, builder_stack(b, leaf_first, n), &l, 1, 1, 1, &value));
}

/* main calls work of two libraries; work of a.so calls main again. */
static struct builder *made(void)
{
	struct builder *b;
	uint32_t root, a, other;

	CHECK(!builder_new(&b));
	builder_type(b, "cpu", "nanoseconds");
	root = frame(b, "main", "/bin/program", 3);
	a = frame(b, "work", "/lib/a.so", 3);
	other = frame(b, "work", "/lib/b.so", 3);
	sample(b, (uint32_t[]){a, root}, 2, "aa", 7);
	sample(b, (uint32_t[]){root, a, root}, 3, "aa", 4);
	sample(b, (uint32_t[]){other, root}, 2, "bb", 9);
	sample(b, (uint32_t[]){root}, 1, "bb", 30);
	return b;
}

/* An earlier run: work of a.so, in another line. */
static const struct fusee_profile *other_made(struct builder **b)
{
	const struct fusee_profile *p;
	uint32_t work;

	CHECK(!builder_new(b));
	builder_type(*b, "cpu", "nanoseconds");
	work = frame(*b, "work", "/lib/a.so", 2);
	sample(*b, &work, 1, "aa", 5);
	CHECK(!builder_finish(*b, &p));
	return p;
}

/* ---- queries ---- */

static int parse(struct ui_selection *s, const char *text)
{
	static char query[400];
	struct buf error = {0};
	int r;

	snprintf(query, sizeof(query), "%s", text);
	r = ui_selection_parse(s, query, &error);
	CHECK(!r == !error.len);
	buf_fini(&error);
	return r;
}

TEST(a_query_selects)
{
	struct ui_selection s;

	CHECK_INT(parse(&s, ""), 0);
	CHECK(ui_side_is_empty(&s.now) && ui_side_is_empty(&s.base));
	CHECK_INT(parse(&s, "file=3&base=0&type=cpu&where=a%3Db&where=c!=d&function=f%3Cint%3E"),
		  0);
	CHECK_INT(s.now.n, 1);
	CHECK_INT(s.now.files[0], 3);
	CHECK_INT(s.base.n, 1);
	CHECK_INT(s.base.files[0], 0);
	CHECK_STR(s.o.type, "cpu");
	CHECK_STR(s.o.where[0], "a=b");
	CHECK_STR(s.o.where[1], "c!=d");
	CHECK(!s.o.where[2]);
	CHECK_STR(s.o.function, "f<int>");
	CHECK_INT(parse(&s, "file="), -EINVAL);
	CHECK_INT(parse(&s, "file=-1"), -EINVAL);
	CHECK_INT(parse(&s, "file=1,"), -EINVAL);
	CHECK_INT(parse(&s, "file=1,,2"), -EINVAL);
	CHECK_INT(parse(&s, "file=1x"), -EINVAL);
	CHECK_INT(parse(&s, "file=4294967295"), -EINVAL);
	CHECK_INT(parse(&s, "path=/etc/passwd"), -EINVAL);
	CHECK_INT(parse(&s, "function=%zz"), -EINVAL);
}

TEST(a_query_selects_several_profiles)
{
	struct ui_selection s;
	struct buf q = {0};

	CHECK_INT(parse(&s, "file=7,1,7,3&base=all&base_from=5&base_to=1763712000123"), 0);
	CHECK_INT(s.now.n, 3);
	CHECK(s.now.files[0] == 1 && s.now.files[1] == 3 && s.now.files[2] == 7 && !s.now.all);
	CHECK(s.now.range.from_ns == 0 && s.now.range.to_ns == UINT64_MAX);
	CHECK(s.base.all && !s.base.n);
	CHECK(s.base.range.from_ns == 5000000 && s.base.range.to_ns == 1763712000123000000);
	CHECK_INT(parse(&s, "file=all&by=service_name&span_from=1&span_to=2"), 0);
	CHECK_STR(s.by, "service_name");
	CHECK(s.span.from_ns == 1000000 && s.span.to_ns == 2000000);
	CHECK_INT(parse(&s, "from=x"), -EINVAL);
	CHECK_INT(parse(&s, "from=-1"), -EINVAL);
	CHECK_INT(parse(&s, "to=17637120001230"), -EINVAL);
	for (uint32_t i = 0; i <= UI_MAX_ADDED; i++)
		buf_printf(&q, "%s%u", i ? "," : "file=", i);
	buf_add(&q, "", 1);
	CHECK_INT(parse(&s, q.p), -EINVAL);
	*strrchr(q.p, ',') = '\0';
	CHECK_INT(parse(&s, q.p), 0);
	CHECK_INT(s.now.n, UI_MAX_ADDED);
	buf_fini(&q);
}

TEST(too_many_labels_are_refused)
{
	struct ui_selection s;
	struct buf q = {0};

	for (int i = 0; i < RENDER_MAX_WHERE; i++)
		buf_str(&q, "where=a=b&");
	buf_add(&q, "", 1);
	CHECK_INT(parse(&s, q.p), 0);
	q.len--;
	buf_str(&q, "where=a=b");
	buf_add(&q, "", 1);
	CHECK_INT(parse(&s, q.p), -EINVAL);
	buf_fini(&q);
}

/* ---- the address ---- */

TEST(only_the_token_is_permitted)
{
	struct ui_address a, other;
	char path[200];

	CHECK_INT(ui_address_make(&a), 0);
	CHECK_INT(ui_address_make(&other), 0);
	CHECK(strcmp(a.token, other.token) && strcmp(a.token, a.ticket));
	CHECK_INT(strlen(a.token), 48);
	snprintf(path, sizeof(path), "/%s/x", a.token);
	CHECK(ui_address_permits(&a, path));
	CHECK(!ui_address_permits(&other, path));
	path[48]++;
	CHECK(!ui_address_permits(&a, path));
	snprintf(path, sizeof(path), "/%s", a.token);
	CHECK(!ui_address_permits(&a, path));
	snprintf(path, sizeof(path), "/%sx/", a.token);
	CHECK(!ui_address_permits(&a, path));
	CHECK(!ui_address_permits(&a, "/"));
	CHECK(!ui_address_permits(&a, "//"));
	snprintf(path, sizeof(path), "/%s", a.ticket);
	CHECK(ui_address_permits(&a, path));
	*a.ticket = '\0';
	CHECK(!ui_address_permits(&a, path));
	CHECK(!ui_address_permits(&a, "/"));
	CHECK(!ui_address_permits(&a, ""));
}

/* ---- one function ---- */

static void check_total(const struct fusee_profile *p, const char *function, const char *of,
			int64_t self, int64_t total)
{
	const struct render_options o = {.function = function};
	struct render_model m;
	struct buf error = {0};
	bool found = false;

	CHECK(!render_model_make(&m, p, NULL, &o, &error));
	CHECK_INT(m.total, 50);
	for (uint32_t i = 0; i < m.nfunctions; i++) {
		if (!fusee_text_is(m.functions[i].shown, of))
			continue;
		found = true;
		CHECK_INT(m.functions[i].self, self);
		CHECK_INT(m.functions[i].total, total);
	}
	CHECK(found);
	render_model_free(&m);
}

TEST(a_function_keeps_its_stacks)
{
	const struct fusee_profile *p;
	struct builder *b = made();

	CHECK(!builder_finish(b, &p));
	check_total(p, NULL, "main", 34, 50);
	check_total(p, "work [a.so]", "main", 4, 11);
	check_total(p, "work [a.so]", "work [a.so]", 7, 11);
	check_total(p, "work [a.so]", "work [b.so]", 0, 0);
	check_total(p, "work [b.so]", "main", 0, 9);
	check_total(p, "work", "main", 0, 0);
	builder_free(b);
}

/* Labels leave one of two functions of a name: it is still found by the name that tells it from the
 * other. */
TEST(a_function_is_found_among_fewer_samples)
{
	const struct fusee_profile *p;
	struct builder *b = made();
	struct ui_view v = {.o.function = "work [a.so]", .o.where = {"process=aa"}};
	struct buf out = {0};

	CHECK(!builder_finish(b, &p));
	v.p = p;
	CHECK(!ui_table(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "[\"work [a.so]\",\"\",0,\"/lib/a.so\",1,7,11]"));
	buf_reset(&out);
	v.o.function = "work [/lib/a.so]";
	CHECK(!ui_callers(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"function\":[\"work [/lib/a.so]\""));
	for (int i = 0; i < 3; i++) {
		static const char *const others[] = {"work [b.so]", "work [a.s]", "wor [a.so]"};

		buf_reset(&out);
		v.o.function = others[i];
		CHECK(!ui_table(&v, &out));
		buf_add(&out, "", 1);
		CHECK(strstr(out.p, "\"functions\":[]"));
	}
	buf_fini(&out);
	builder_free(b);
}

TEST(views_of_one_function)
{
	const struct fusee_profile *p;
	struct builder *b = made(), *base;
	struct ui_view v = {.o.function = "work [a.so]"};
	struct buf out = {0};

	CHECK(!builder_finish(b, &p));
	v.p = p;
	CHECK(!ui_callers(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"callers\":[[\"main\",false,11]],\"callees\":[[\"main\",false,4]]"));
	buf_reset(&out);
	CHECK(!ui_labels(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "{\"key\":\"process\",\"n\":1,\"values\":[[\"aa\",11,0]]}"));
	buf_reset(&out);
	CHECK(!ui_source(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"library\":\"/lib/a.so\",\"self\":7,\"total\":11,"
			    "\"found\":false,\"lines\":[[3,7,11,null]]"));
	CHECK(!strstr(out.p, "/lib/b.so"));
	buf_reset(&out);
	v.o.where[0] = "process=bb";
	CHECK(!ui_source(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"functions\":[]"));
	buf_reset(&out);
	v.base = other_made(&base);
	v.o.where[0] = NULL;
	CHECK(!ui_source(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"base\":5,"));
	CHECK(strstr(out.p, "\"self\":7,\"total\":11,\"base_self\":5,\"base_total\":5,"
			    "\"found\":false,\"lines\":[[2,0,0,null,5,5],[3,7,11,null,0,0]]"));
	buf_reset(&out);
	v.p = v.base; /* the function of b.so has vanished */
	v.base = p;
	v.o.function = "work [b.so]";
	CHECK(!ui_source(&v, &out));
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "\"library\":\"/lib/b.so\",\"self\":0,\"total\":0,"
			    "\"base_self\":9,\"base_total\":9,\"found\":false,"
			    "\"lines\":[[3,0,0,null,9,9]]"));
	builder_free(base);
	buf_fini(&out);
	builder_free(b);
}

/* ---- source files ---- */

static bool opens(const char *path)
{
	FILE *f = source_text_open(fusee_text(path));

	if (f)
		fclose(f);
	return f;
}

/* A profile chooses the name. */
TEST(only_regular_files_are_opened)
{
	char path[300];

	put_file("source/a.c", "int a;\n");
	put_file("source/empty.c", "");
	snprintf(path, sizeof(path), "%s/source/a.c", test_dir());
	CHECK(opens(path));
	snprintf(path, sizeof(path), "%s/source/empty.c", test_dir());
	CHECK(!opens(path));
	snprintf(path, sizeof(path), "%s/source", test_dir());
	CHECK(!opens(path));
	snprintf(path, sizeof(path), "%s/source/pipe", test_dir());
	CHECK(!mkfifo(path, 0600));
	CHECK(!opens(path));
	CHECK(!opens("/dev/zero"));
	CHECK(!opens("/proc/kmsg"));
	CHECK(!opens("/proc/self/environ"));
	CHECK(!opens(""));
}

/* ---- the server ---- */

static struct ui_server server;
static pthread_t thread;

static void *run(void *arg)
{
	CHECK_INT(loop_run(arg), 0);
	return NULL;
}

static void write_profile(const char *path)
{
	const struct fusee_profile *p;
	struct builder *b = made();
	struct buf bytes = {0};
	FILE *f = fopen(path, "w");

	CHECK(!builder_finish(b, &p));
	CHECK(!pprof_encode(p, true, &bytes));
	CHECK(f && fwrite(bytes.p, bytes.len, 1, f) == 1);
	CHECK(!fclose(f));
	buf_fini(&bytes);
	builder_free(b);
}

/* Files are closed before the thread that reads ahead has ended, behind that, and when they have
 * its profile. */
TEST(reading_ahead_is_not_waited_for)
{
	char path[250], *paths[] = {path};

	put_file("ahead/one.pb.gz", "");
	snprintf(path, sizeof(path), "%s/ahead/one.pb.gz", test_dir());
	write_profile(path);
	for (int i = 0; i < 40; i++) {
		const struct fusee_profile *p = NULL;
		struct ui_files f = {0};
		struct buf error = {0};

		CHECK_INT(ui_files_open(&f, paths, 1), 0);
		ui_files_ahead(&f);
		CHECK(f.ahead && f.ahead->file.path != f.files[0].path);
		while (i % 3 == 1 && !f.ahead->is_released)
			sched_yield();
		if (i % 3 == 2) {
			CHECK_INT(ui_files_profile(&f, 0, &p, &error), 0);
			CHECK(p && p->samples.n && !f.ahead);
		}
		ui_files_close(&f);
		CHECK(!f.ahead && !f.n);
	}
}

static char folder[200];

static void begin(void)
{
	char path[250], *paths[] = {folder}, *text;

	put_file("ui/secret.txt", "not a profile");
	snprintf(folder, sizeof(folder), "%s/ui", test_dir());
	snprintf(path, sizeof(path), "%s/one.pb.gz", folder);
	write_profile(path);
	server = (struct ui_server){0};
	CHECK_INT(ui_files_open(&server.profiles.files, paths, 1), 0);
	CHECK_INT(ui_profiles_open(&server.profiles, NULL, NULL), 0);
	CHECK_INT(loop_new(&server.loop), 0);
	CHECK_INT(ui_server_open(&server, &text), 0);
	CHECK(!pthread_create(&thread, NULL, run, server.loop));
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void end(void)
{
	loop_post(server.loop, stop, server.loop);
	CHECK(!pthread_join(thread, NULL));
	ui_server_close(&server);
	loop_free(server.loop);
	ui_profiles_close(&server.profiles);
}

static int dial(void)
{
	const char *colon = strrchr(http_address(server.http), ':');
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = test_within(30)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* The answer to a request of this path with these header lines, in memory that the next call takes.
 */
static const char *ask(const char *path, const char *headers)
{
	static struct buf b;
	int fd = dial();

	buf_reset(&b);
	buf_printf(&b, "GET %s HTTP/1.1\r\n%s\r\n", path, headers);
	CHECK(send(fd, b.p, b.len, MSG_NOSIGNAL) == (ssize_t)b.len);
	buf_reset(&b);
	CHECK_INT(buf_read_fd(&b, fd, 64 << 20), 0);
	close(fd);
	buf_add(&b, "", 1);
	return b.p;
}

static void check_status(const char *path, const char *headers, const char *status)
{
	const char *answer = ask(path, headers);

	if (strncmp(answer, "HTTP/1.1 ", 9) || strncmp(answer + 9, status, 3))
		fprintf(stderr, "# '%s' '%s' got '%.200s'\n", path, headers, answer);
	CHECK(!strncmp(answer, "HTTP/1.1 ", 9) && !strncmp(answer + 9, status, 3));
}

#define OWN "Host: localhost\r\n"
#define TEST_OF_SERVER(id) TEST_BETWEEN(id, begin(), end())

static const char *at(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "/%s/%s", server.address.token, name);
	return path;
}

TEST_OF_SERVER(who_is_answered)
{
	check_status(at(""), OWN, "200");
	check_status(at("main.js"), OWN, "200");
	check_status(at(""), "Host: evil.example\r\n", "421");
	check_status("/x/", "Host: evil.example\r\n", "421");
	check_status(at(""), OWN "Origin: http://localhost\r\n", "200");
	check_status(at(""), "Host: localhost:81\r\nOrigin: http://localhost:81\r\n", "200");
	check_status(at(""), OWN "Origin: http://localhost:81\r\n", "403");
	check_status(at(""), OWN "Origin: https://localhost\r\n", "403");
	check_status(at(""), OWN "Origin: http://evil.example\r\n", "403");
	check_status(at(""), OWN "Origin: null\r\n", "403");
	check_status("/", OWN, "403");
	check_status("/000000000000000000000000000000000000000000000000/", OWN, "403");
	check_status("/main.js", OWN, "403");
	check_status(at("../secret.txt"), OWN, "404");
	check_status(at("secret.txt"), OWN, "404");
	check_status(at("one.pb.gz"), OWN, "404");
}

TEST_OF_SERVER(answers_have_the_policy)
{
	const char *names[] = {"",
			       "main.js",
			       "table.json?file=0",
			       "graph.html?file=0",
			       "table.json?file=9",
			       "table.json?bad=1"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *answer = ask(at(names[i]), OWN);

		CHECK(strstr(answer, "Content-Security-Policy: default-src 'none'; script-src "
				     "'self'; style-src 'self'; "));
		CHECK(!strstr(answer, "unsafe-inline"));
		CHECK(strstr(answer, "frame-ancestors 'self'"));
		CHECK(strstr(answer, "X-Content-Type-Options: nosniff"));
		CHECK(strstr(answer, "Cache-Control: no-store"));
	}
}

TEST_OF_SERVER(the_ticket_leads_to_the_token_once)
{
	char path[100], location[100];

	snprintf(path, sizeof(path), "/%s", server.address.ticket);
	snprintf(location, sizeof(location), "Location: /%s/\r\n", server.address.token);
	CHECK(strstr(ask(path, OWN), location));
	check_status(path, OWN, "403");
}

TEST_OF_SERVER(data_of_a_folder)
{
	CHECK(strstr(ask(at("profiles.json"), OWN), "\"name\":\"one.pb.gz\""));
	CHECK(!strstr(ask(at("profiles.json"), OWN), "secret"));
	CHECK(strstr(ask(at("about.json?file=0"), OWN), "\"types\":[\"cpu\"],\"type\":\"cpu\""));
	CHECK(strstr(ask(at("table.json?file=0"), OWN), "\"total\":50"));
	CHECK(strstr(ask(at("table.json?file=0&base=0"), OWN), "\"base\":50"));
	CHECK(strstr(ask(at("table.json?file=all"), OWN), "\"total\":50"));
	CHECK(strstr(ask(at("time.json?file=all&by=process"), OWN),
		     "\"windows\":1,\"broken\":0,\"other_types\":0,"
		     "\"groups\":[[\"bb\",39,[[0,39]]],[\"aa\",11,"));
	CHECK(strstr(ask(at("time.json?file=all&function=work+[a.so]"), OWN), "\"total\":11,"));
	CHECK(strstr(ask(at("time.json?file=all&function=main&where=process!=bb"), OWN),
		     "\"total\":11,"));
	check_status(at("table.json?file=all&from=1&to=1"), OWN, "400");
	check_status(at("table.json?file=0,1"), OWN, "404");
	check_status(at("table.json"), OWN, "404");
	check_status(at("table.json?file=1"), OWN, "404");
	check_status(at("table.json?file=0&base=1"), OWN, "404");
	check_status(at("table.json?file=0&type=no"), OWN, "400");
	check_status(at("table.json?file=0&where=no=1"), OWN, "400");
	check_status(at("table.json?file=0&x=1"), OWN, "400");
}

/* A file that changed is read again, a removed file is an error, and a new file is listed. */
TEST_OF_SERVER(files_change)
{
	char path[300], other[300];

	snprintf(path, sizeof(path), "%s/one.pb.gz", folder);
	snprintf(other, sizeof(other), "%s/two.pb.gz", folder);
	CHECK(strstr(ask(at("table.json?file=0"), OWN), "\"total\":50"));
	put_file("ui/one.pb.gz", "broken");
	CHECK(strstr(ask(at("table.json?file=0"), OWN), "cannot read 'one.pb.gz'"));
	write_profile(other);
	CHECK(strstr(ask(at("profiles.json"), OWN), "{\"file\":1,\"name\":\"two.pb.gz\""));
	check_status(at("table.json?file=1"), OWN, "200");
	CHECK(!unlink(path));
	CHECK(!strstr(ask(at("profiles.json"), OWN), "one.pb.gz"));
	check_status(at("table.json?file=0"), OWN, "400");
}

/* What the loop's thread sees. */
static struct seen {
	uint32_t shown;
	bool idle;
	_Atomic int looks;
} seen;

static void look(void *arg)
{
	seen.shown = server.shown;
	seen.idle = server.idle;
	seen.looks++;
}

static uint32_t shown(void)
{
	int before = seen.looks;

	CHECK_INT(loop_post(server.loop, look, NULL), 0);
	WAIT_FOR(seen.looks > before);
	return seen.shown;
}

/* A page holds a request; its end begins the time until the server ends. */
TEST_OF_SERVER(a_page_that_is_open_is_counted)
{
	char request[400];
	int fd = dial();

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" OWN "\r\n", at("open"));
	CHECK(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	WAIT_FOR(shown() == 1);
	CHECK(!seen.idle);
	close(fd);
	WAIT_FOR(shown() == 0);
	CHECK(seen.idle);
}
