// SPDX-License-Identifier: Apache-2.0
// check: overlaps
/* core/net/http: what scrapers and others send. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "net/http.h"
#include "test.h"

static struct loop *loop;
static pthread_t thread;
static struct http *http;
static int port;

static int get_metrics(void *arg, struct buf *body)
{
	(void)arg;
	buf_str(body, "fusee_a 1\n");
	return 200;
}

static int get_ready(void *arg, struct buf *body)
{
	(void)arg;
	buf_str(body, "not yet\n");
	return 503;
}

static int get_big(void *arg, struct buf *body)
{
	char *to = buf_grow(body, 8 << 20);

	(void)arg;
	CHECK(to);
	memset(to, 'x', 8 << 20);
	return 200;
}

static int get_broken(void *arg, struct buf *body)
{
	(void)arg;
	body->error = -ENOMEM;
	return 200;
}

static const struct http_page pages[] = {
	{"/metrics", "text/plain; version=0.0.4", get_metrics},
	{"/readyz", "text/plain", get_ready},
	{"/big", "text/plain", get_big},
	{"/broken", "text/plain", get_broken},
	{0},
};

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
	CHECK_INT(http_new(&http, loop, listen, pages, NULL, &text), 0);
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
	struct timeval patience = {.tv_sec = 30};
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

TEST(pages_and_methods)
{
	begin("127.0.0.1:0");
	CHECK_STR(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
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
	end();
}

TEST(nonsense)
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

	begin("127.0.0.1:0");
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
	end();
}

/* In pieces; and with a head as long as it may be, and longer. */
TEST(pieces_and_long_heads)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nA: b\r\n\r\n";
	char head[9000];
	int fd;

	begin("127.0.0.1:0");
	fd = dial();
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		CHECK(send(fd, &request[i], 1, MSG_NOSIGNAL) == 1);
		usleep(500);
	}
	CHECK(!strncmp(hear(fd), "HTTP/1.1 200 ", 13));
	memset(head, 'x', sizeof(head));
	memcpy(head, "GET /metrics HTTP/1.1\r\nA: ", 26);
	strcpy(head + 8188, "\r\n\r\n");
	check_status(head, "200");
	memset(head + 8188, 'x', 8);
	strcpy(head + 8195, "\r\n\r\n");
	check_status(head, "431");
	end();
}

/* More than a client takes at once; and nothing waits for a client that takes nothing. */
TEST(long_answers)
{
	const char *answer;
	int slow;

	begin("127.0.0.1:0");
	slow = dial();
	say(slow, "GET /big HTTP/1.1\r\n\r\n");
	answer = ask("GET /big HTTP/1.1\r\n\r\n");
	CHECK_INT(strlen(strstr(answer, "\r\n\r\n") + 4), 8 << 20);
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	close(slow);
	end();
}

/* 16 silent clients are closed after 5 seconds; then the next are served. */
TEST(silent_clients)
{
	int fds[20];

	begin("127.0.0.1:0");
	for (int i = 0; i < 20; i++)
		fds[i] = dial();
	say(fds[0], "GET /met");
	check_status("GET /metrics HTTP/1.1\r\n\r\n", "200");
	CHECK(!strncmp(hear(fds[0]), "HTTP/1.1 408 ", 13));
	for (int i = 1; i < 16; i++)
		CHECK_STR(hear(fds[i]), "");
	end();
	for (int i = 16; i < 20; i++)
		close(fds[i]);
}

TEST(unix_socket)
{
	char dir[] = "/tmp/fusee-http.XXXXXX", listen[64];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct http *other;
	struct stat st;
	char *text;
	int fd;

	CHECK(mkdtemp(dir));
	snprintf(listen, sizeof(listen), "unix:%s/socket", dir);
	umask(0077);
	begin(listen);
	CHECK_STR(http_address(http), listen);
	strcpy(at.sun_path, listen + 5);
	CHECK(!stat(at.sun_path, &st) && (st.st_mode & 0777) == 0666);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	say(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	CHECK(!strncmp(hear(fd), "HTTP/1.1 200 ", 13));
	CHECK_INT(http_new(&other, loop, listen, pages, NULL, &text), -EADDRINUSE);
	free(text);
	CHECK(!access(at.sun_path, F_OK));
	end();
	CHECK(!rmdir(dir)); /* the socket was taken away */
}

static void check_refused(const char *listen, int err, const char *expected)
{
	struct http *h;
	char *text = NULL;

	CHECK_INT(http_new(&h, loop, listen, pages, NULL, &text), err);
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
