/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/http
/* Against tests/run/lib/http_server.py: run from the source's root. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "lib/http_cases.h"

#define NS 1000000000ull

static struct fake *sink_at(int port, const char *path)
{
	return begun(
		fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d%s", port, path), NULL));
}

/* One delivery to that path of a server with default options. */
static struct fake *tried(int port, const char *path, int expected)
{
	struct fake *f = sink_at(port, path);
	int r = deliver(f, 1, 3);

	if (r != expected)
		fprintf(stderr, "# %s: %s\n", path, f->error);
	CHECK_INT(r, expected);
	return f;
}

/* ---- what is taken ---- */

TEST(delivers)
{
	const struct fusee_profile *p;
	struct pprof_file *file;
	struct buf b = {0};
	const char *why;
	struct fake *f;
	int port, fd;

	setenv("http_proxy", "http://127.0.0.1:1", 1); /* not used */
	scratch();
	port = serve(NULL, NULL, NULL);
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d/ok?key=1", port),
			   "headers", "X-Scope=me,X-Empty=", NULL));
	for (uint32_t i = 1; i <= 3; i++)
		CHECK_INT(deliver(f, i, 40 * i), 0);
	CHECK_INT(requests(), 3);
	for (int i = 1; i <= 3; i++) {
		fd = open(text("%s/%d.pb.gz", dir, i), O_RDONLY);
		CHECK_INT(buf_read_fd(&b, fd, 1 << 20), 0);
		close(fd);
		CHECK_INT(pprof_decode(b.p, b.len, &file, &why), 0);
		p = pprof_profile(file);
		CHECK_INT(p->samples.n, 40 * i);
		pprof_free(file);
		buf_reset(&b);
	}
	buf_fini(&b);
	CHECK_INT(fake_count(f, "bytes_sent"), bytes_received());
	CHECK(logged("\"method\": \"POST\", \"path\": \"/ok?key=1\""));
	CHECK(logged("\"content-type\": \"application/octet-stream\""));
	CHECK(logged("\"idempotency-key\": \"03000000000000000000000000000000\""));
	CHECK(logged("\"x-scope\": \"me\", \"x-empty\": \"\""));
	CHECK(logged("\"user-agent\": \"fusee\""));
	CHECK(!logged("expect") && !logged("authorization") && !logged("proxy"));
	/* one connection for all of them */
	CHECK(logged("\"connection\": 1,") && !logged("\"connection\": 2,"));
	CHECK_INT(fake_count(f, "requests{status=\"2xx\"}"), 3);
	fake_free(f);
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d/ok", port), "method",
			   "PUT", "content_type", "application/x-pprof", "tenant", "ops", NULL));
	CHECK_INT(deliver(f, 1, 3), 0);
	CHECK(logged("\"x-scope-orgid\": \"ops\""));
	CHECK(logged("\"method\": \"PUT\"") && logged("\"content-type\": \"application/x-pprof\""));
	fake_free(f);
	f = begun(fake_new(&fusee_plugin, "url", "http://backend.example/ok", "proxy",
			   text("http://127.0.0.1:%d", port), NULL));
	CHECK_INT(deliver(f, 1, 3), 0);
	CHECK(logged("\"path\": \"http://backend.example/ok\""));
	fake_free(f);
}

TEST(secrets_are_read_each_time)
{
	struct fake *f;
	int port;

	scratch();
	put("token", "first\n");
	port = serve(NULL, NULL, NULL);
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d/ok", port),
			   "bearer_file", text("%s/token", dir), NULL));
	CHECK_INT(deliver(f, 1, 3), 0);
	CHECK(logged("\"authorization\": \"Bearer first\""));
	put("token", "second");
	CHECK_INT(deliver(f, 2, 3), 0);
	CHECK(logged("\"authorization\": \"Bearer second\""));
	put("token", "two\r\nX-Evil: lines");
	CHECK_INT(deliver(f, 3, 3), FAKE_DENIED);
	CHECK(strstr(f->error, "token' is empty or has several lines"));
	unlink(text("%s/token", dir));
	CHECK_INT(deliver(f, 3, 3), FAKE_DENIED);
	CHECK(strstr(f->error, "token': No such file or directory"));
	CHECK_INT(requests(), 2);
	fake_free(f);
	put("password", "open sesame");
	f = begun(fake_new(&fusee_plugin, "url", text("http://127.0.0.1:%d/ok", port), "user",
			   "Aladdin", "password_file", text("%s/password", dir), NULL));
	CHECK_INT(deliver(f, 4, 3), 0);
	CHECK(logged("\"authorization\": \"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\""));
	fake_free(f);
}

/* ---- what is not ---- */

struct tried_case {
	const char *path;
	int r;
	uint64_t after;    /* seconds until the next attempt, 0: not named */
	const char *error; /* a part of the sentence; "": there is none, NULL: any */
};

static void check_cases(int port, const struct tried_case *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fake *f = tried(port, all[i].path, all[i].r);

		CHECK_INT(f->retry_after, all[i].after * NS);
		CHECK_INT(f->retry_named, all[i].after != 0);
		if (all[i].error && (!strstr(f->error, all[i].error) || !*all[i].error))
			CHECK_STR(f->error, all[i].error);
		fake_free(f);
	}
}

TEST(answers)
{
	static const struct tried_case statuses[] = {
		{"/status/200", 0, 0, NULL},
		{"/status/204", 0, 0, NULL},
		{"/status/299", 0, 0, NULL},
		{"/status/300", FAKE_DENIED, 0, NULL},
		{"/status/303", FAKE_DENIED, 0, NULL},
		{"/status/400", -EBADMSG, 0, NULL},
		{"/status/401", FAKE_DENIED, 0, NULL},
		{"/status/404?after=5", FAKE_DENIED, 5, NULL},
		{"/status/402", FAKE_DENIED, 0, NULL},
		{"/status/403", FAKE_DENIED, 0, NULL},
		{"/status/405", FAKE_DENIED, 0, NULL},
		{"/status/406", -EBADMSG, 0, NULL},
		{"/status/407", FAKE_DENIED, 0, NULL},
		{"/status/408", -EAGAIN, 0, NULL},
		{"/status/409", -EBADMSG, 0, NULL},
		{"/status/410", FAKE_DENIED, 0, NULL},
		{"/status/413", -EBADMSG, 0, NULL},
		{"/status/415", FAKE_DENIED, 0, NULL},
		{"/status/422", -EBADMSG, 0, NULL},
		{"/status/429?after=7", -EAGAIN, 7, NULL},
		{"/status/429", -EAGAIN, 0, NULL},
		{"/status/429?after=soon", -EAGAIN, 0, NULL},
		{"/status/429?after=-5", -EAGAIN, 0, NULL},
		{"/status/429?after=0", -EAGAIN, 0, NULL},
		{"/status/500", -EAGAIN, 0, NULL},
		{"/status/502", -EAGAIN, 0, NULL},
		{"/status/503?after=30", -EAGAIN, 30, "/status/503' answered 503, again in 30 s"},
		{"/status/503?after=999999999", -EAGAIN, 3600, NULL},
		{"/status/503?after=Fri,%2031%20Dec%202999%2023:59:59%20GMT", -EAGAIN, 3600, NULL},
		{"/status/503?after=Fri,%2031%20Dec%201999%2023:59:59%20GMT", -EAGAIN, 0, NULL},
	};
	/* The status decides once it is there; without one it is tried again. */
	static const struct tried_case broken[] = {
		{"/truncated-answer/200", 0, 0, ""},
		{"/truncated-answer/403", FAKE_DENIED, 0, "answered 403: the first line"},
		{"/truncated-answer/500", -EAGAIN, 0, "answered 500: the first line"},
		{"/huge/200", 0, 0, ""},
		{"/huge/400", -EBADMSG, 0, "answered 400: a line"},
		{"/truncated-head", -EAGAIN, 0, "no answer from '"},
		{"/huge-head", -EAGAIN, 0, "its headers do not end"},
		{"/continue", -EAGAIN, 0, "its headers do not end"},
		{"/garbage", -EAGAIN, 0, "no answer from '"},
	};
	time_t then = time(NULL) + 3000;
	struct fake *f;
	char when[64];
	struct tm tm;
	int port;

	scratch();
	port = serve(NULL, NULL, NULL);
	check_cases(port, statuses, sizeof(statuses) / sizeof(*statuses));
	check_cases(port, broken, sizeof(broken) / sizeof(*broken));
	f = tried(port, "/say/401/token%20expired%07%1b[2J%c3%a4?key=secret", FAKE_DENIED);
	CHECK_STR(f->error, text("'http://127.0.0.1:%d/say/401/token%%20expired%%07%%1b[2J%%c3%%a4'"
				 " answered 401: token expired\?\?[2J\?",
				 port));
	CHECK_INT(fake_count(f, "requests{status=\"4xx\"}"), 1);
	fake_free(f);
	gmtime_r(&then, &tm);
	strftime(when, sizeof(when), "%a,%%20%d%%20%b%%20%Y%%20%H:%M:%S%%20GMT", &tm);
	f = tried(port, text("/status/429?after=%s", when), -EAGAIN);
	CHECK(f->retry_after >= 2000 * NS && f->retry_after <= 3000 * NS);
	fake_free(f);
}

TEST(a_server_that_comes_back)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 9, 3, NULL);
	struct fake *f;
	int port;

	scratch();
	port = serve(NULL, NULL, NULL);
	f = sink_at(port, "/truncated-request");
	CHECK_INT(deliver(f, 1, 20000), -EAGAIN);
	CHECK(access(text("%s/1.pb.gz", dir), F_OK));
	CHECK_INT(fake_count(f, "requests{status=\"none\"}"), 1);
	CHECK_INT(fake_count(f, "bytes_sent"), 0);
	fake_free(f);
	f = sink_at(port, "/flaky/2/503");
	CHECK_INT(fake_consume(f, p, 0), -EAGAIN);
	CHECK_INT(fake_consume(f, p, 1), -EAGAIN);
	CHECK_INT(fake_consume(f, p, 2), 0);
	CHECK_INT(f->encodes, 1);
	builder_free(b);
	fake_free(f);
}

/* One of our connections has been ended by the other side. */
static bool is_closed_by_peer(void)
{
	char byte;

	for (int fd = 3; fd < 64; fd++)
		if (!recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
			return true;
	return false;
}

/* The kept connection was closed meanwhile: that is no failure. */
TEST(a_stale_connection)
{
	struct fake *f;

	scratch();
	f = sink_at(serve(NULL, NULL, NULL), "/stale");
	CHECK_INT(deliver(f, 1, 3), 0);
	WAIT_FOR(is_closed_by_peer());
	CHECK_INT(deliver(f, 2, 3), 0);
	CHECK(logged("\"connection\": 2,"));
	fake_free(f);
}

/* ---- who does not answer ---- */

/* A port of our own: without a listener, or with a listener that never accepts. */
static int silent(int backlog, int *fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(*fd, (struct sockaddr *)&a, len));
	CHECK(!getsockname(*fd, (struct sockaddr *)&a, &len));
	if (backlog < 0)
		return ntohs(a.sin_port);
	CHECK(!listen(*fd, backlog));
	for (int i = 0; i < 8; i++) {
		struct pollfd one = {.events = POLLOUT};

		one.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		CHECK(one.fd >= 0 && (!connect(one.fd, (struct sockaddr *)&a, len) || errno));
		if (!i) /* its queue is full, once the first is there */
			WAIT_FOR(poll(&one, 1, 0) == 1);
	}
	return ntohs(a.sin_port);
}

TEST(nobody_listens)
{
	struct fake *f;
	int fd;

	f = tried(silent(-1, &fd), "/x", -EAGAIN);
	CHECK(strstr(f->error, "no answer from 'http://127.0.0.1:"));
	CHECK(strstr(f->error, "onnect"));
	CHECK_INT(fake_count(f, "requests{status=\"none\"}"), 1);
	fake_free(f);
	close(fd);
}

/* Fails with -EAGAIN, not before the timeout, and not as late as others end. */
static void late(const char *url, const char *timeout, const char *text, uint64_t least)
{
	struct fake *f = begun(fake_new(&fusee_plugin, "url", url, timeout, text, NULL));
	uint64_t from = ms(), took;

	CHECK_INT(deliver(f, 1, 3), -EAGAIN);
	took = ms() - from;
	CHECK(took >= least && took < 9000 * (uint64_t)test_within(1));
	fake_free(f);
}

TEST(times_out)
{
	int port, fd, full = silent(0, &fd);

	late(text("http://127.0.0.1:%d/x", full), "connect_timeout", "300ms", 250);
	close(fd);
	scratch();
	port = serve(NULL, NULL, NULL);
	late(text("http://127.0.0.1:%d/hang", port), "timeout", "400ms", 350);
	late(text("http://127.0.0.1:%d/slow/3600", port), "timeout", "500ms", 450);
	fake_free(tried(port, "/slow/0.5", 0));
}

TEST(cancel_ends_it)
{
	int port, fd, full = silent(0, &fd);

	check_cancel_at(text("http://127.0.0.1:%d/x", full), "");
	close(fd);
	scratch();
	port = serve(NULL, NULL, NULL);
	check_cancel_at(text("http://127.0.0.1:%d/hang", port), "");
	check_cancel_at(text("http://127.0.0.1:%d/slow/3600", port), "");
}

/* A network of our own where the name server never answers. */
static void deaf_name_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	put("resolv.conf", "nameserver 127.0.0.1\noptions timeout:20 attempts:3\n");
	put("nsswitch.conf", "hosts: dns\n");
	if (geteuid() || unshare(CLONE_NEWNS | CLONE_NEWNET) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(text("%s/resolv.conf", dir), "/etc/resolv.conf", NULL, MS_BIND, NULL) ||
	    mount(text("%s/nsswitch.conf", dir), "/etc/nsswitch.conf", NULL, MS_BIND, NULL))
		SKIP("needs namespaces and root");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(!ioctl(fd, SIOCSIFFLAGS, &lo));
	a.sin_port = htons(53);
	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
}

TEST(cancel_ends_a_name_lookup)
{
	scratch();
	deaf_name_server();
	check_cancel_at("http://backend.example:4040/x", "");
	late("http://backend.example:4040/x", "connect_timeout", "300ms", 250);
}

/* ---- redirects ---- */

TEST(redirects)
{
	static const int kept[] = {301, 302, 307, 308};
	static const struct tried_case others[] = {
		{"/redirect/302?to=file:///etc/passwd", FAKE_DENIED, 0, "redirects to"},
		{"/redirect/302", FAKE_DENIED, 0, "answered 302 without a location"},
		{"/redirect/307?to=", FAKE_DENIED, 0, NULL}, /* a place that is empty */
	};
	struct fake *f;
	int port, before;

	scratch();
	port = serve(NULL, NULL, NULL);
	for (size_t i = 0; i < 4; i++) {
		fake_free(tried(port, text("/redirect/%d?to=/ok/%zu", kept[i], i), 0));
		CHECK(logged(text("\"method\": \"POST\", \"path\": \"/ok/%zu\"", i)));
		CHECK_INT(requests(), 2 * (int)i + 2);
	}
	f = tried(port, "/redirect/302?to=http://localhost:1/steal%3Fx", FAKE_DENIED);
	CHECK_STR(f->error, text("'http://127.0.0.1:%d/redirect/302' redirects to "
				 "'http://localhost:1/steal': make that the address if it is right",
				 port));
	fake_free(f);
	check_cases(port, others, sizeof(others) / sizeof(*others));
	before = requests();
	f = tried(port,
		  "/redirect/307?to=/redirect/307%3fto=/redirect/307%253fto=/redirect/"
		  "307%25253fto=/redirect/307%2525253fto=/redirect/307%252525253fto=/redirect/"
		  "307%25252525253fto=/ok",
		  FAKE_DENIED);
	CHECK(strstr(f->error, "redirects without end"));
	CHECK(requests() < before + 20);
	fake_free(f);
	fake_free(tried(
		port,
		text("/redirect/302?to=http://127.0.0.1:%d/redirect/307%%3fto=/status/429", port),
		-EAGAIN));
}

/* A token never leaves for another server. */
TEST(a_token_stays)
{
	struct fake *f;
	int one, two;

	scratch();
	put("token", "secret");
	two = serve(NULL, NULL, NULL);
	one = serve(NULL, NULL, NULL);
	f = begun(fake_new(
		&fusee_plugin, "url",
		text("http://127.0.0.1:%d/redirect/307?to=http://127.0.0.1:%d/stolen", one, two),
		"bearer_file", text("%s/token", dir), NULL));
	CHECK_INT(deliver(f, 1, 3), FAKE_DENIED);
	CHECK_INT(requests(), 1); /* of both servers together */
	fake_free(f);
}

/* ---- options ---- */

TEST(options_that_are_wrong)
{
	static const struct {
		const char *url, *name, *value, *error;
	} all[] = {
		{"pyroscope:4040/ingest", NULL, NULL,
		 "option 'url': 'pyroscope:4040/ingest' is not an http:// or https:// address"},
		{"ftp://x/", NULL, NULL,
		 "option 'url': 'ftp://x/' is not an http:// or https:// address"},
		{"file:///etc/passwd", NULL, NULL,
		 "option 'url': 'file:///etc/passwd' is not an http:// or https:// address"},
		{"", NULL, NULL, "option 'url': '' is not an http:// or https:// address"},
		{"http://me:secret@x/", NULL, NULL,
		 "option 'url' has a password in it: use 'user' and 'password_file'"},
		{"http://x/", "headers", "a b=c",
		 "option 'headers': 'a b' is not a header's name, or its value has a control "
		 "character"},
		{"http://x/", "headers", "X=c\r\nY: d",
		 "option 'headers': 'X' is not a header's name, or its value has a control "
		 "character"},
		{"http://x/", "headers", "Content-Length=5",
		 "option 'headers': 'Content-Length' is set by the plugin itself"},
		{"http://x/", "bearer_file", "/nope/token",
		 "option 'bearer_file': cannot read '/nope/token': No such file or directory"},
		{"http://x/", "ca_file", "/nope/ca",
		 "option 'ca_file': cannot read '/nope/ca': No such file or directory"},
		{"http://x/", "user", "me", "'user' and 'password_file' belong together"},
		{"http://x/", "password_file", "/etc/hostname",
		 "'user' and 'password_file' belong together"},
		{"http://x/", "key_file", "/etc/hostname", "'key_file' needs 'cert_file'"},
		{"http://x/", "content_type", "a\nb",
		 "option 'content_type': no control characters"},
		{"http://x/", "headers", "Idempotency-Key=5",
		 "option 'headers': 'Idempotency-Key' is set by the plugin itself"},
		{"http://x/", "tenant", "a\nb", "option 'tenant': no control characters"},
		{"http://x/", "proxy", "http://u:p@y:1",
		 "option 'proxy': it must be http://HOST:PORT, https:// or socks5h://, without a "
		 "password"},
		{"http://x/", "proxy", "ftp://y:1",
		 "option 'proxy': it must be http://HOST:PORT, https:// or socks5h://, without a "
		 "password"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		check_refused(all[i].name ? fake_new(&fusee_plugin, "url", all[i].url, all[i].name,
						     all[i].value, NULL)
					  : fake_new(&fusee_plugin, "url", all[i].url, NULL),
			      0, all[i].error);
	check_refused(fake_new(&fusee_plugin, "url", "http://x/", "tenant", "ops", "headers",
			       "x-scope-orgid=me", NULL),
		      -EINVAL, "option 'headers': 'x-scope-orgid' is set by 'tenant'");
}

TEST(a_token_without_tls)
{
	struct fake *f = begun(fake_new(&fusee_plugin, "url", "http://backend.example/",
					"bearer_file", "/etc/hostname", NULL));

	CHECK(fake_logged(f, "4 not https"));
	fake_free(f);
	f = begun(fake_new(&fusee_plugin, "url", "http://127.0.0.1/", "bearer_file",
			   "/etc/hostname", NULL));
	CHECK(!fake_logged(f, "not https"));
	fake_free(f);
}
