/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/kubernetes
/* discovery kubernetes: how it goes on with a server that is slow or silent. What takes longer than
 * a watch that is stable, 5 s, is tested here, the rest in tests/run/kubernetes. */
#include "test.h"

#include <arpa/inet.h>
#include <stdatomic.h>

#include "lib/clock.h"
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/discovery.h"

extern const struct fusee_plugin fusee_plugin;

/* Seconds, of follow.c. */
#define PAUSE 1
#define STABLE 5

/* What the server does, and how many requests it had. In shared memory. */
struct server {
	int errors;  /* lists that it answers with an error at first */
	bool silent; /* to watches */
	_Atomic int lists, watches;
	_Atomic bool answers; /* watches; until then they wait */
};

static void answer(struct server *s, int fd, const char *request)
{
	static const char list[] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
			  error[] = "{\"items\":[{\"metadata\":{\"uid\":\"u\"},\"spec\":{"
				    "\"nodeName\":\"n\"}}],\"message\":\"busy\",\"code\":500}";

	if (strstr(request, "watch=1")) {
		s->watches++;
		if (s->silent)
			return;
		WAIT_FOR(s->answers);
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
static struct fake *follow(struct server **server, int errors, bool silent, const char *silence)
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
	s->silent = silent;
	CHECK(!bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 8) &&
	      !getsockname(listener, (struct sockaddr *)&a, &len));
	if (!fork())
		serve(s, listener);
	close(listener);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	f = begun(fake_new(&fusee_plugin, "server", url, "node", "n", "silence", silence, NULL));
	CHECK_INT(fake_start(f), 0);
	*server = s;
	return f;
}

/* It is a failure, however long it took, and what is known stays known. */
TEST(a_watch_without_an_answer)
{
	struct server *s;
	struct fake *f = follow(&s, 0, true, "6s");

	ROUNDS_UNTIL(f, s->watches == 1);
	clock_skip(6);
	LOG_COMES(f, "does not answer");
	clock_skip(PAUSE);
	ROUNDS_UNTIL(f, s->watches == 2);
	CHECK(fake_count(f, "failures") == 1);
	CHECK_INT(s->lists, 1);
	CHECK_INT(f->commits, 1);
	fake_free(f);
}

TEST(a_watch_that_is_answered_late)
{
	struct server *s;
	struct fake *f = follow(&s, 1, false, "30s");

	LOG_COMES(f, "answered 500: busy");
	clock_skip(PAUSE);
	ROUNDS_UNTIL(f, s->watches == 1);
	clock_skip(STABLE + 0.5);
	CHECK(fake_round(f, 0) >= 0);
	CHECK(!fake_logged(f, "answers: pods have their labels"));
	s->answers = true;
	LOG_COMES(f, "answers: pods have their labels");
	CHECK_INT(s->watches, 1);
	CHECK_INT(f->puts, 0); /* an answer that is an error has no pods */
	CHECK(fake_count(f, "failures") == 1);
	fake_free(f);
}
