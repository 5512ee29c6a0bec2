/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/scrape
/* discovery scrape: addresses, options and pauses. tests/run/scrape has servers. */
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "lib/discovery.h"
#include "scrape.h"

extern const struct fusee_plugin fusee_plugin;

static char said[300];

static int fail(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	snprintf(said, sizeof(said), "%s", text);
	return err;
}

static const struct fusee_host host = {.size = sizeof(host), .fail = fail};

static int make(struct address *a, const char *target, const char *path, struct fusee_table params)
{
	const struct scrapes s = {
		.self = {NULL, &host}, .seconds = 7 * FUSEE_SECOND, .params = params};

	*a = (struct address){0};
	*said = '\0';
	return address_make(a, &s, target, path);
}

static void is(const char *target, const char *path, const char *base, const char *rest,
	       const char *kind, uint64_t seconds)
{
	char text[300];
	struct address a;

	CHECK_INT(make(&a, target, path, (struct fusee_table){0}), 0);
	CHECK_STR(a.base, base);
	snprintf(text, sizeof(text), "%s?%s", a.path, a.query);
	CHECK_STR(text, rest);
	CHECK_STR(a.kind, kind);
	CHECK_INT(a.lasts_ns, seconds * FUSEE_SECOND);
	address_free(&a);
}

TEST(addresses)
{
	is("web:6060", "/debug/pprof/heap", "http://web:6060", "/debug/pprof/heap?", "alloc", 0);
	is("web:6060", "/debug/pprof/profile", "http://web:6060", "/debug/pprof/profile?seconds=7",
	   "cpu", 7);
	is("https://web/x", "/debug/pprof/profile?a=b&seconds=9", "https://web/x",
	   "/debug/pprof/profile?a=b&seconds=9", "cpu", 9);
	is("[::1]:80", "/debug/pprof/profile/?a=b", "http://[::1]:80",
	   "/debug/pprof/profile?a=b&seconds=7", "cpu", 7);
	is("web:1", "/debug/pprof/mutex?seconds=3", "http://web:1", "/debug/pprof/mutex?seconds=3",
	   "mutex", 3);
	is("web:1", "/own/name", "http://web:1", "/own/name?", "name", 0);
}

TEST(parameters_are_encoded)
{
	const struct fusee_label params[] = {{.key = {"a b", 3}, .str = {"1&2=\xc3\xbc", 6}},
					     {.key = {"seconds", 7}, .str = {"4", 1}}};
	struct address a;

	CHECK_INT(make(&a, "web:1", "/x/profile?y=z",
		       (struct fusee_table){params, 2, sizeof(params[0])}),
		  0);
	CHECK_STR(a.query, "y=z&a%20b=1%262%3D%C3%BC&seconds=4");
	CHECK_STR(a.instance, "web:1");
	CHECK_STR(a.profile, "profile");
	CHECK_INT(a.lasts_ns, 4 * FUSEE_SECOND);
	address_free(&a);
}

static void refuses(const char *target, const char *path, const char *sentence)
{
	struct address a;

	CHECK_INT(make(&a, target, path, (struct fusee_table){0}), -EINVAL);
	CHECK_STR(said, sentence);
	address_free(&a);
}

TEST(wrong_addresses)
{
	/* and what a sentence shows of it: no password, no token */
	static const char *const targets[][2] = {
		{"", ""},
		{"ftp://x", "ftp://x"},
		{"user:secret@web:1", "***@web:1"},
		{"https://secret@web:1/x", "https://***@web:1/x"},
		{"http://user:sec?ret@web:1", "http://***"},
		{"web:1?token=secret", "web:1?***"},
		{"web:1/x?token=a@secret", "***"},
		{"web:1#secret", "web:1#***"},
		{"web:1/\xe2\x80\xae", "web:1/\xe2\x80\xae"},
	};
	static const char no_target[] = " is not HOST:PORT, or http:// or https:// with a host";
	char text[200];

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		snprintf(text, sizeof(text), "option 'targets': '%s'%s", targets[i][1], no_target);
		refuses(targets[i][0], "/x", text);
	}
	refuses("web:1", "x", "option 'paths': 'x' is not /a/path or /a/path?query");
	refuses("web:1", "/a b", "option 'paths': '/a b' is not /a/path or /a/path?query");
	refuses("web:1", "/x\r\nHost: y",
		"option 'paths': '/x\r\nHost: y' is not /a/path or /a/path?query");
	refuses("web:1", "/", "option 'paths': '/' names no profile");
	refuses("web:1", "/?token=secret", "option 'paths': '/?***' names no profile");
	refuses("web:1", "x?token=secret",
		"option 'paths': 'x?***' is not /a/path or /a/path?query");
	refuses("web:1", "/p?seconds=99999",
		"the parameter 'seconds' of '/p' must be a number up to 3600");
	refuses("web:1", "/p?seconds=x",
		"the parameter 'seconds' of '/p' must be a number up to 3600");
}

TEST(pauses)
{
	const uint64_t minute = FUSEE_MINUTE;

	CHECK_INT(scrape_pause(minute, 0, 0), minute);
	CHECK_INT(scrape_pause(minute, 1, 0), minute);
	CHECK_INT(scrape_pause(minute, 2, 0), 2 * minute);
	CHECK_INT(scrape_pause(minute, 4, 0), 8 * minute);
	CHECK_INT(scrape_pause(minute, 5, 0), 10 * minute);
	CHECK_INT(scrape_pause(minute, UINT32_MAX, 0), 10 * minute);
	CHECK_INT(scrape_pause(24 * FUSEE_HOUR, 9, 0), 24 * FUSEE_HOUR);
	CHECK_INT(scrape_pause(minute, 0, 3 * minute), 3 * minute);
}

TEST(what_an_instance_requires)
{
	static const struct {
		const char *job, *targets, *labels, *says;
	} all[] = {
		{"", "web:1", "", "option 'job' is empty"},
		{"a", "", "", "targets times paths must be 1 to 256, not 0"},
		{"a", "web:1", "a-b=c", "option 'labels': 'a-b' is not a label's name"},
		{"a\nb", "web:1", "",
		 "option 'job': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1", "team=b,in=\xe2\x80\xae",
		 "option 'labels': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1", "team=\xff",
		 "option 'labels': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1,ftp://x", "",
		 "option 'targets': 'ftp://x' is not HOST:PORT, or http:// or https:// with a "
		 "host"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct fake *f = fake_new(&fusee_plugin, "job", all[i].job, "targets",
					  all[i].targets, "labels", all[i].labels, NULL);

		CHECK_INT(fake_init(f), -EINVAL);
		CHECK_STR(f->error, all[i].says);
		fake_free(f);
	}
}

TEST(texts_of_labels)
{
	static char text[SCRAPE_TEXT + 2];

	CHECK(scrape_is_text("") && scrape_is_text("a b") && scrape_is_text("\xc3\xbc"));
	CHECK(!scrape_is_text("\xc2\x85") && !scrape_is_text("\x7f"));
	memset(text, 'x', SCRAPE_TEXT);
	CHECK(scrape_is_text(text));
	text[SCRAPE_TEXT] = 'x';
	CHECK(!scrape_is_text(text));
}

/* The options of all clients are the same. */
TEST(a_warning_is_logged_once)
{
	static const char warning[] =
		"4 not https: everyone on the way can read the password or token\n";
	struct fake *f = fake_new(&fusee_plugin, "job", "a", "targets", "web:1,web:2", "paths",
				  "/a,/b", "bearer_file", "/etc/hostname", NULL);

	CHECK_INT(fake_init(f), 0);
	CHECK_INT(f->logged.len, strlen(warning));
	CHECK(fake_logged(f, warning));
	fake_free(f);
}

/* ---- threads ---- */

static uint32_t threads_before_failure; /* 0: no thread fails */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*begin)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	CHECK(real);
	if (threads_before_failure && !--threads_before_failure)
		return EAGAIN;
	return real(thread, attr, begin, arg);
}

/* A server that answers each request with the next sentence; the number of requests is in it. */
static struct {
	int fd;
	const char *status;
	atomic_uint served;
} server;

static void *serve(void *arg)
{
	char text[2048];

	for (;;) {
		int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC), n = 0;
		uint32_t served = atomic_load(&server.served);

		CHECK(fd >= 0);
		while (n < (int)sizeof(text) - 1) {
			int got = (int)read(fd, text + n, sizeof(text) - 1 - (size_t)n);

			if (got <= 0)
				break;
			n += got;
			text[n] = '\0';
			if (strstr(text, "\r\n\r\n"))
				break;
		}
		n = snprintf(text, sizeof(text),
			     "HTTP/1.1 %s\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
			     "number %03u",
			     server.status, served);
		CHECK(send(fd, text, (size_t)n, MSG_NOSIGNAL) == n || errno == EPIPE ||
		      errno == ECONNRESET);
		close(fd);
		atomic_fetch_add(&server.served, 1);
	}
	return arg;
}

static atomic_uint handed;
static struct scrapes *instance;

/* As a profile that is decoded until the instance ends. */
static int take_slowly(struct fusee_instance *in, const struct fusee_pprof *p, char *why,
		       uint32_t cap)
{
	(void)in;
	snprintf(why, cap, "%s", "");
	if (!p)
		return 0;
	atomic_fetch_add(&handed, 1);
	WAIT_FOR(atomic_load(&instance->ended));
	return 0;
}

/* An instance that has begun, with so many paths of the server. */
static struct fake *instance_of(uint32_t n, const char *status, const char *interval)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	char target[32], paths[300];
	struct fake *f;
	pthread_t thread;
	int used = 0;

	server.status = status;
	server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(server.fd >= 0 && !bind(server.fd, (struct sockaddr *)&at, len) &&
	      !listen(server.fd, 64) && !getsockname(server.fd, (struct sockaddr *)&at, &len));
	CHECK(!pthread_create(&thread, NULL, serve, NULL) && !pthread_detach(thread));
	snprintf(target, sizeof(target), "127.0.0.1:%u", ntohs(at.sin_port));
	for (uint32_t i = 0; i < n; i++)
		used += snprintf(paths + used, sizeof(paths) - (size_t)used, "%s/p%u", i ? "," : "",
				 i);
	f = fake_new(&fusee_plugin, "job", "a", "targets", target, "paths", paths, "interval",
		     interval, NULL);
	f->discovery.profile = take_slowly;
	instance = f->ctx;
	CHECK_INT(fake_init(f), 0);
	return f;
}

static int threads(void)
{
	struct dirent **all;
	int n = scandir("/proc/self/task", &all, NULL, NULL);

	CHECK(n > 2);
	for (int i = 0; i < n; i++)
		free(all[i]);
	free(all);
	return n - 2;
}

/* None goes on with what the core frees after a failed start(). */
TEST(a_thread_that_cannot_begin)
{
	struct fake *f = instance_of(8, "200 OK", "60s");
	int before = threads();

	threads_before_failure = 5;
	CHECK_INT(fake_start(f), -EAGAIN);
	CHECK_STR(f->error, "cannot start a thread for each of 8 requests: Resource temporarily "
			    "unavailable");
	WAIT_FOR(threads() == before);
	fake_free(f);
}

/* The end waits for the profile that is handed over, and for none that waits for that. */
TEST(it_ends_while_many_hand_over)
{
	struct fake *f = instance_of(8, "200 OK", "60s");

	CHECK_INT(fake_start(f), 0);
	WAIT_FOR(atomic_load(&server.served) == 8 && atomic_load(&handed));
	CHECK_INT(handed, 1);
	fake_free(f);
	CHECK_INT(handed, 1);
}

/* The answers of all requests at a time have a limit; what one had is free again. */
TEST(memory_of_all_answers)
{
	struct fake *f = instance_of(1, "200 OK", "60s");
	char text[300], *shown;

	atomic_store(&instance->bytes, SCRAPES_MEMORY - 9);
	CHECK_INT(fake_start(f), 0);
	WAIT_FOR(fake_round(f, 1) < 0);
	shown = strstr(f->error, "/p0' sends");
	CHECK(shown && !strncmp(f->error, "no memory for what 'http://127.0.0.1:", 37));
	snprintf(text, sizeof(text), "%s", shown);
	CHECK_STR(text, "/p0' sends: the answers of all requests at a time may have 256 MiB");
	CHECK_INT(handed, 0);
	CHECK_INT(atomic_load(&instance->bytes), SCRAPES_MEMORY - 9);
	fake_free(f);
}

/* Another reason of the same kind is another sentence. */
TEST(each_reason_is_reported)
{
	struct fake *f = instance_of(1, "500 No", "1s");

	CHECK_INT(fake_start(f), 0);
	WAIT_FOR(fake_round(f, 1) < 0);
	CHECK(strstr(f->error, "answered 500: number 0"));
	WAIT_FOR(fake_round(f, 1) < 0 && !strstr(f->error, "number 000"));
	CHECK(strstr(f->error, "answered 500: number 0"));
	fake_free(f);
}
ASIDE(each_reason_is_reported)
