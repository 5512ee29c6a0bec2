// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/net
/* core/net/http: what scrapers and others send. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/clock.h"
#include "lib/pause.h"
#include "net/http.h"
#include "net/http_query.h"
#include "test.h"

static struct loop *loop;
static pthread_t thread;
static struct http *http;
static int port;

static int get_metrics(void *arg, struct buf *body)
{
	buf_str(body, "fusee_a 1\n");
	return 200;
}

static int get_ready(void *arg, struct buf *body)
{
	buf_str(body, "not yet\n");
	return 503;
}

static int get_big(void *arg, struct buf *body)
{
	char *to = buf_grow(body, 8 << 20);

	CHECK(to);
	memset(to, 'x', 8 << 20);
	return 200;
}

static int get_broken(void *arg, struct buf *body)
{
	body->error = -ENOMEM;
	return 200;
}

/* Answers with the query after 50 ms. */
struct later {
	struct http_request *request;
	struct loop_timer *timer;
	char query[200];
};

static _Atomic int released;

static void on_released(void *arg)
{
	struct later *l = arg;

	loop_timer_free(l->timer);
	free(l);
	released++;
}

static void on_later(void *arg)
{
	struct later *l = arg;

	l->timer = NULL;
	http_answer(l->request, &(struct http_answer){.status = 200,
						      .type = "text/query",
						      .headers = "X-A: 1\r\n",
						      .body = l->query,
						      .len = strlen(l->query)});
}

static void begin_later(void *arg, struct http_request *request, char *query)
{
	struct later *l = calloc(1, sizeof(*l));

	CHECK(l);
	l->request = request;
	snprintf(l->query, sizeof(l->query), "[%s]", query);
	http_request_on_release(request, on_released, l);
	CHECK_INT(loop_at(loop, clock_now() + 50000000, on_later, l, &l->timer), 0);
}

static void begin_never(void *arg, struct http_request *request, char *query)
{
	struct later *l = calloc(1, sizeof(*l));

	http_request_on_release(request, on_released, l);
}

static const struct http_page pages[] = {
	{"/metrics", "text/plain; version=0.0.4", get_metrics, NULL},
	{"/readyz", "text/plain", get_ready, NULL},
	{"/big", "text/plain", get_big, NULL},
	{"/broken", "text/plain", get_broken, NULL},
	{"/later", NULL, NULL, begin_later},
	{"/never", NULL, NULL, begin_never},
	{0},
};

static const struct fusee_table *get_hosts(void *arg)
{
	static const struct fusee_str hosts[] = {{"node7.example", 13}, {"10.9.8.7", 8}};
	static const struct fusee_table table = {hosts, 2, sizeof(*hosts)};

	return &table;
}

#define OPTIONS(address) \
	(&(const struct http_options){.listen = (address), .pages = pages, .hosts = get_hosts})

static void *run(void *arg)
{
	CHECK_INT(loop_run(arg), 0);
	return NULL;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void begin(const char *listen)
{
	const char *colon;
	char *text;

	CHECK_INT(loop_new(&loop), 0);
	CHECK_INT(http_new(&http, loop, OPTIONS(listen), &text), 0);
	colon = strrchr(http_address(http), ':');
	port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
	CHECK(!pthread_create(&thread, NULL, run, loop));
}

static void end(void)
{
	CHECK_INT(loop_post(loop, stop, loop), 0);
	CHECK(!pthread_join(thread, NULL));
	http_free(http);
	loop_free(loop);
}

static int dial(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = test_within(30)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void say(int fd, const char *text)
{
	CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* All until the connection's end, in memory that the next call takes. */
static const char *hear(int fd)
{
	static struct buf b;

	buf_reset(&b);
	CHECK_INT(buf_read_fd(&b, fd, 64 << 20), 0);
	close(fd);
	buf_add(&b, "", 1);
	return b.p;
}

static const char *ask(const char *request)
{
	int fd = dial();

	say(fd, request);
	return hear(fd);
}

static void check_status(const char *request, const char *status)
{
	const char *answer = ask(request);

	if (strncmp(answer, "HTTP/1.1 ", 9) || strncmp(answer + 9, status, 3))
		fprintf(stderr, "# '%s' got '%s'\n", request, answer);
	CHECK(!strncmp(answer, "HTTP/1.1 ", 9) && !strncmp(answer + 9, status, 3));
}

#define TEST_OF_SERVER(id) TEST_BETWEEN(id, begin("127.0.0.1:0"), end())

TEST_OF_SERVER(pages_and_methods)
{
	CHECK_STR(ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		  "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
		  "Content-Length: 10\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n"
		  "fusee_a 1\n");
	CHECK_STR(ask("HEAD /metrics?name=x HTTP/1.0\n\n"),
		  "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
		  "Content-Length: 10\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n");
	CHECK_STR(ask("GET /readyz HTTP/1.1\r\n\r\n"),
		  "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
		  "Content-Length: 8\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n"
		  "not yet\n");
	CHECK_STR(ask("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde"),
		  "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n"
		  "Content-Length: 19\r\nConnection: close\r\nCache-Control: no-store\r\n"
		  "Allow: GET, HEAD\r\n\r\nMethod Not Allowed\n");
	check_status("GET / HTTP/1.1\r\n\r\n", "404");
	check_status("POST /nope HTTP/1.1\r\n\r\n", "404");
	check_status("GET /metrics/ HTTP/1.1\r\n\r\n", "404");
	check_status("get /metrics HTTP/1.1\r\n\r\n", "405");
	check_status("GET /broken HTTP/1.1\r\n\r\n", "500");
	check_status("GET /metrics HTTP/2.0\r\n\r\n", "505");
}

static void wait_released(int n)
{
	WAIT_FOR(released >= n);
	CHECK_INT(released, n);
}

/* Answered after the call; nothing waits for it. */
TEST(answers_later)
{
	int fds[20];

	released = 0;
	begin("127.0.0.1:0");
	for (int i = 0; i < 20; i++) {
		fds[i] = dial();
		say(fds[i], "GET /later?a=1&b=%20 HTTP/1.1\r\n\r\nGET /more HTTP/1.1\r\n\r\n");
	}
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	for (int i = 0; i < 20; i++)
		CHECK_STR(hear(fds[i]),
			  "HTTP/1.1 200 OK\r\nContent-Type: text/query\r\n"
			  "Content-Length: 11\r\nConnection: close\r\nCache-Control: no-store\r\n"
			  "X-A: 1\r\n\r\n[a=1&b=%20]");
	wait_released(20);
	CHECK(strstr(ask("GET /later HTTP/1.1\r\n\r\n"), "\r\n\r\n[]"));
	CHECK(strstr(ask("HEAD /later HTTP/1.1\r\n\r\n"), "405 Method Not Allowed\r\n"));
	check_status("POST /later HTTP/1.1\r\n\r\n", "405");
	end();
}

/* A client that leaves is noticed at once, and so is the end of the server. */
TEST(leaves_before_the_answer)
{
	int fd, stays;

	released = 0;
	begin("127.0.0.1:0");
	fd = dial();
	say(fd, "GET /never HTTP/1.1\r\n\r\n");
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	CHECK_INT(released, 0);
	close(fd);
	wait_released(1);
	fd = dial();
	say(fd, "GET /never HTTP/1.1\r\n\r\n");
	shutdown(fd, SHUT_WR);
	CHECK_STR(hear(fd), "");
	wait_released(2);
	fd = dial(); /* more input than is kept does not hide the end */
	say(fd, "GET /never HTTP/1.1\r\n\r\n");
	for (int i = 0; i < 64; i++)
		say(fd, "012345678901234567890123456789012345678901234567890123456789012345678901"
			"2345678901234567890123456789012345678901234567890123456789012345678901");
	close(fd);
	wait_released(3);
	stays = dial();
	say(stays, "GET /never HTTP/1.1\r\n\r\n");
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	end();
	CHECK_INT(released, 4);
	close(stays);
}

static int parse_query(const char *text, uint32_t max, struct http_param *params, char *copy)
{
	uint32_t n;
	int r;

	strcpy(copy, text);
	r = http_query_parse(copy, params, max, &n);
	return r ? r : (int)n;
}

TEST(queries)
{
	struct http_param p[3];
	char copy[100];

	CHECK_INT(parse_query("", 3, p, copy), 0);
	CHECK_INT(parse_query("&&", 3, p, copy), 0);
	CHECK_INT(parse_query("a=1&b%3d=%41+%c3%A4=", 3, p, copy), 2);
	CHECK_STR(p[0].name, "a");
	CHECK_STR(p[0].value, "1");
	CHECK_STR(p[1].name, "b=");
	CHECK_STR(p[1].value, "A \303\244=");
	CHECK_INT(parse_query("x&=&y=", 3, p, copy), 3);
	CHECK_STR(p[0].name, "x");
	CHECK_STR(p[0].value, "");
	CHECK_STR(p[1].name, "");
	CHECK_INT(parse_query("a&b&c&d", 3, p, copy), -E2BIG);
	CHECK_INT(parse_query("a=%", 3, p, copy), -EINVAL);
	CHECK_INT(parse_query("a=%4", 3, p, copy), -EINVAL);
	CHECK_INT(parse_query("%4g=", 3, p, copy), -EINVAL);
	CHECK_INT(parse_query("a=%00", 3, p, copy), -EINVAL);
}

TEST_OF_SERVER(nonsense)
{
	static const char *const wrong[] = {
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET /metrics\r\n\r\n",
		"GET  /metrics HTTP/1.1\r\n\r\n",
		"GET /metrics HTTP/1.1 \r\n\r\n",
		"GET metrics HTTP/1.1\r\n\r\n",
		"GET http://x/metrics HTTP/1.1\r\n\r\n",
		"GET /metrics HTTP/1.11\r\n\r\n",
		"GET /metrics HTTX/1.1\r\n\r\n",
		"GET /met\trics HTTP/1.1\r\n\r\n",
		"GET /\xff HTTP/1.1\r\n\r\n",
		"G(T /metrics HTTP/1.1\r\n\r\n",
		" /metrics HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x02 TLS\n\n",
	};
	int fd;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_status(wrong[i], "400");
	fd = dial();
	CHECK(send(fd, "GET /metrics\0 HTTP/1.1\n\n", 24, MSG_NOSIGNAL) == 24);
	CHECK(!strncmp(hear(fd), "HTTP/1.1 400 ", 13));
	fd = dial(); /* went away in the middle */
	say(fd, "GET /metr");
	shutdown(fd, SHUT_WR);
	CHECK_STR(hear(fd), "");
	close(dial());
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
}

/* In pieces; and with a head as long as it may be, and longer. */
TEST_OF_SERVER(pieces_and_long_heads)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nA: b\r\n\r\n";
	char head[9000];
	int fd = dial();

	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		CHECK(send(fd, &request[i], 1, MSG_NOSIGNAL) == 1);
		pause_us(500, "so that they arrive one by one");
	}
	CHECK(!strncmp(hear(fd), "HTTP/1.1 200 ", 13));
	memset(head, 'x', sizeof(head));
	memcpy(head, "GET /metrics HTTP/1.1\r\nA: ", 26);
	strcpy(head + 8188, "\r\n\r\n");
	check_status(head, "200");
	memset(head + 8188, 'x', 8);
	strcpy(head + 8195, "\r\n\r\n");
	check_status(head, "431");
}

/* More than a client takes at once; and nothing waits for a client that takes nothing. */
TEST_OF_SERVER(long_answers)
{
	const char *answer;
	int slow = dial();

	say(slow, "GET /big HTTP/1.1\r\n\r\n");
	answer = ask("GET /big HTTP/1.1\r\n\r\n");
	CHECK_INT(strlen(strstr(answer, "\r\n\r\n") + 4), 8 << 20);
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	close(slow);
}

/* Silent clients are dropped for later clients, the oldest first, and a client's half request does
 * not protect it. */
ASIDE(silent_clients)
TEST(silent_clients)
{
	int fds[60];

	begin("127.0.0.1:0");
	for (int i = 0; i < 60; i++) {
		fds[i] = dial();
		if (i % 2)
			say(fds[i], "GET /met");
	}
	for (int i = 0; i < 100; i++)
		check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	for (int i = 0; i < 40; i++)
		hear(fds[i]);
	end();
	for (int i = 40; i < 60; i++)
		close(fds[i]);
}

/* Clients that take no answer are dropped as well, if there are no others. */
ASIDE(clients_that_take_nothing)
TEST_OF_SERVER(clients_that_take_nothing)
{
	int fds[40];

	for (int i = 0; i < 40; i++) {
		fds[i] = dial();
		say(fds[i], "GET /big HTTP/1.1\r\n\r\n");
	}
	for (int i = 0; i < 20; i++)
		check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	for (int i = 0; i < 40; i++)
		close(fds[i]);
}

/* A half request has 5 seconds. */
ASIDE(a_late_request)
TEST_OF_SERVER(a_late_request)
{
	int fd = dial();

	say(fd, "GET /met");
	CHECK(!strncmp(hear(fd), "HTTP/1.1 408 ", 13));
}

static void check_host(const char *host, const char *status)
{
	char request[600];

	snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\n%s\r\n\r\n", host);
	check_status(request, status);
}

TEST_OF_SERVER(hosts)
{
	static const char *const good[] = {
		"Host: localhost",
		"hOST:LocalHost:9190",
		"Host:\t127.0.0.1:1 ",
		"Host: [::1]:9190",
		"Host: [::1]",
		"Host: a.localhost",
		"Host: localhost.",
		"Host: NODE7.example:5",
		"Host: 10.9.8.7",
		"Host: 127.8.9.10:9190",
		"Host:",
		"X: y",
		"Host: [::ffff:127.0.0.1]",
	};
	static const char *const foreign[] = {
		"Host: evil.example",           "Host: 10.9.8.6",
		"Host: localhost.evil.example", "Host: x",
		"Host: evillocalhost",          "Host: 127.0.0.1.evil.example",
		"Host: [fe80::1]:80",           "Host: node7.example.x",
		"A: b\r\nHost: evil.example",
	};
	static const char *const wrong[] = {
		"Host: localhost\r\nHost: localhost",
		"Host: [::1",
		"Host: localhost:80x",
		"Host: [::1]x:80",
	};
	char own[300] = "Host: ";

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		check_host(good[i], "200");
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		check_host(foreign[i], "421");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check_host(wrong[i], "400");
	CHECK(!gethostname(own + 6, sizeof(own) - 7));
	check_host(own, "200");
	CHECK(strstr(ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
		     "Name the host in the script: metrics { hosts"));
}

TEST(unix_socket)
{
	char listen[64];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct http *other;
	struct stat st;
	char *text;
	int fd;

	snprintf(listen, sizeof(listen), "unix:%s/socket", test_dir());
	umask(0077);
	begin(listen);
	CHECK_STR(http_address(http), listen);
	strcpy(at.sun_path, listen + 5);
	CHECK(!stat(at.sun_path, &st) && (st.st_mode & 0777) == 0666);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	say(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	CHECK(!strncmp(hear(fd), "HTTP/1.1 200 ", 13));
	CHECK_INT(http_new(&other, loop, OPTIONS(listen), &text), -EADDRINUSE);
	free(text);
	CHECK(!access(at.sun_path, F_OK));
	end();
	CHECK(access(at.sun_path, F_OK)); /* it was taken away */
}

static void check_refused(const char *listen, int err, const char *expected)
{
	struct http *h;
	char *text = NULL;

	CHECK_INT(http_new(&h, loop, OPTIONS(listen), &text), err);
	CHECK_STR(text, expected);
	free(text);
}

#define NO_ADDRESS(x)                                                                     \
	"'" x "' is no address to listen at: that is ADDRESS:PORT, [IPV6-ADDRESS]:PORT, " \
	"or unix:PATH"

TEST(addresses)
{
	char used[64], expected[200];
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool six = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));

	close(fd);
	if (six) {
		begin("[::1]:0");
		CHECK(!strncmp(http_address(http), "[::1]:", 6) && port > 0);
		end();
	}
	begin(":0");
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	end();
	begin("localhost:0");
	CHECK(!strncmp(http_address(http), "127.0.0.1:", 10));
	snprintf(used, sizeof(used), "127.0.0.1:%d", port);
	snprintf(expected, sizeof(expected), "cannot listen at '%s': Address already in use", used);
	check_refused(used, -EADDRINUSE, expected);
	check_refused("", -EINVAL, NO_ADDRESS(""));
	check_refused("9190", -EINVAL, NO_ADDRESS("9190"));
	check_refused("127.0.0.1", -EINVAL, NO_ADDRESS("127.0.0.1"));
	check_refused("127.0.0.1:", -EINVAL, NO_ADDRESS("127.0.0.1:"));
	check_refused("127.0.0.1:http", -EINVAL, NO_ADDRESS("127.0.0.1:http"));
	check_refused("127.0.0.1:70000", -EINVAL, NO_ADDRESS("127.0.0.1:70000"));
	check_refused("::1:9190", -EINVAL, NO_ADDRESS("::1:9190"));
	check_refused("example.org:80", -EINVAL, NO_ADDRESS("example.org:80"));
	check_refused("unix:", -EINVAL, NO_ADDRESS("unix:"));
	check_refused("unix:/nope/x", -ENOENT,
		      "cannot listen at 'unix:/nope/x': No such file or directory");
	check_refused("192.0.2.1:0", -EADDRNOTAVAIL,
		      "cannot listen at '192.0.2.1:0': Cannot assign requested address");
	end();
}
