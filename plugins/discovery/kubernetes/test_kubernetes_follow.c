/* SPDX-License-Identifier: Apache-2.0 */
// check: overlaps
/* discovery kubernetes: how it goes on with a server that is slow or silent. What takes longer than
 * a watch that is stable, 5 s, is tested here, the rest in tests/run/kubernetes. */
#include "test.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/fakehost.h"

extern const struct fusee_plugin fusee_plugin;

/* What the server does, and how many requests it had. In shared memory. */
struct server {
	int errors;    /* lists that it answers with an error at first */
	int header_ms; /* from a watch's request to the header of its answer; -1: it never comes */
	_Atomic int lists, watches;
};

static void answer(struct server *s, int fd, const char *request)
{
	static const char list[] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
			  error[] = "{\"items\":[{\"metadata\":{\"uid\":\"u\"},\"spec\":{"
				    "\"nodeName\":\"n\"}}],\"message\":\"busy\",\"code\":500}";

	if (strstr(request, "watch=1")) {
		s->watches++;
		if (s->header_ms < 0)
			return;
		usleep((useconds_t)s->header_ms * 1000);
		dprintf(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	} else if (++s->lists <= s->errors) {
		dprintf(fd, "HTTP/1.1 500 Error\r\nContent-Length: %zu\r\n\r\n%s",
			sizeof(error) - 1, error);
	} else {
		dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", sizeof(list) - 1,
			list);
	}
}

static _Noreturn void serve(struct server *s, int listener)
{
	char request[4096];
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		while ((n = recv(fd, request, sizeof(request) - 1, 0)) > 0) {
			request[n] = '\0';
			answer(s, fd, request);
		}
		close(fd);
	}
}

/* Starts a server, which ends with the test, and an instance that follows it. */
static struct fake *follow(struct server **server, int errors, int header_ms, const char *silence)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);
	struct server *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fake *f;
	char url[64];

	CHECK(s != MAP_FAILED);
	s->errors = errors;
	s->header_ms = header_ms;
	CHECK(!bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 8) &&
	      !getsockname(listener, (struct sockaddr *)&a, &len));
	if (!fork())
		serve(s, listener);
	close(listener);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	f = fake_new(&fusee_plugin, "server", url, "node", "n", "silence", silence, NULL);
	CHECK_INT(fake_init(f), 0);
	CHECK_INT(fake_start(f), 0);
	*server = s;
	return f;
}

/* Lets the instance run until it has logged the text and the server has had these watches. */
static void run_until(struct fake *f, const struct server *s, const char *logged, int watches)
{
	time_t end = time(NULL) + 20;

	while ((!fake_logged(f, logged) || s->watches < watches) && time(NULL) < end)
		CHECK(fake_round(f, 100) >= 0);
	CHECK(fake_logged(f, logged));
	CHECK(s->watches >= watches);
}

/* It is a failure, however long it took, and what is known stays known. */
TEST(a_watch_without_an_answer)
{
	struct server *s;
	struct fake *f = follow(&s, 0, -1, "6s");

	run_until(f, s, "does not answer", 2);
	CHECK(fake_count(f, "failures") == 1);
	CHECK_INT(s->lists, 1);
	CHECK_INT(f->commits, 1);
	fake_free(f);
}

TEST(a_watch_that_is_answered_late)
{
	struct server *s;
	struct fake *f = follow(&s, 1, 5500, "30s");

	run_until(f, s, "answered 500: busy", 1);
	run_until(f, s, "answers: pods have their labels", 1);
	CHECK_INT(s->watches, 1);
	CHECK_INT(f->puts, 0); /* an answer that is an error has no pods */
	CHECK(fake_count(f, "failures") == 1);
	fake_free(f);
}
