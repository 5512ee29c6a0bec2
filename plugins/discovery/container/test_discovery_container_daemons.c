/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/container
/* discovery container: its requests, and what becomes of failures, with a server of the test's own:
 * Docker's API in HTTP/1.1, and the CRI in the frames of HTTP/2 that gRPC needs. */
#include "test.h"

#include <sys/un.h>

#include "lib/clock.h"
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/discovery.h"

extern const struct fusee_plugin fusee_plugin;

#define A "a077d18bb4f4c9691576a97b9bd743ed0da097d87899c6d4cfa22a43fd0129dc"
#define B "b077d18bb4f4c9691576a97b9bd743ed0da097d87899c6d4cfa22a43fd0129dc"

#define ITEM(id, name)                           \
	"{\"Id\":\"" id "\",\"Names\":[\"/" name \
	"\"],\"Image\":\"box\",\"Labels\":{\"team\":\"blue\"}}"
#define EVENT(action, id, name)                                                     \
	"{\"Type\":\"container\",\"Action\":\"" action "\",\"Actor\":{\"ID\":\"" id \
	"\",\"Attributes\":{\"image\":\"box\",\"name\":\"" name "\"}}}\n"
#define OK "HTTP/1.1 200 OK\r\nLibpod-Api-Version: 4.3.1\r\nConnection: close\r\n\r\n"

/* Seconds, of daemon.c. */
#define SILENCE 10
#define PAUSE_MOST 5
#define STABLE 5

enum way { WAY_ANSWER, WAY_SILENT, WAY_ENDLESS };

/* What the server says: answers with their heads. */
struct script {
	const char *list, *events; /* events NULL: there are none (404) */
	const char *status;        /* of the CRI: the answer's message */
	size_t nlist, nstatus;     /* of the CRI */
	enum way way;
};

struct server {
	char path[64];
	int fd, stop[2]; /* stop: a pipe */
	pthread_t thread;
	pthread_mutex_t lock;
	struct script script;
	int streams[16], nstreams; /* connections that events go to */
};

/* ---- HTTP/1.1 ---- */

static bool send_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		p = (const char *)p + k;
		n -= (size_t)k;
	}
	return true;
}

static void answer_text(const struct script *s, int fd)
{
	static const char item[] = ITEM(A, "web") ",";
	static char many[512 * sizeof(item)];
	bool good = send_all(fd, s->list, strlen(s->list));

	for (size_t i = 0; i < 512; i++)
		memcpy(many + i * (sizeof(item) - 1), item, sizeof(item) - 1);
	while (good && s->way == WAY_ENDLESS)
		good = send_all(fd, many, 512 * (sizeof(item) - 1));
}

/* true: the connection stays. */
static bool serve_text(const struct script *script, int fd, const char *head)
{
	if (script->way == WAY_SILENT)
		return true;
	if (strncmp(head, "GET /v1.40/events?", 18)) {
		CHECK(!strncmp(head, "GET /v1.40/containers/json ", 27));
		answer_text(script, fd);
		return false;
	}
	if (!script->events) {
		send_all(fd, "HTTP/1.1 500 x\r\nConnection: close\r\n\r\n{\"message\":\"no log\"}",
			 58);
		return false;
	}
	send_all(fd, OK, strlen(OK));
	send_all(fd, script->events, strlen(script->events));
	return true;
}

/* ---- HTTP/2, as far as a client of one request needs it ---- */

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, END_STREAM = 1, END_HEADERS = 4, MOST = 16384 };

static bool read_all(int fd, void *p, size_t n)
{
	while (n) {
		ssize_t k = recv(fd, p, n, 0);

		if (k <= 0)
			return false;
		p = (char *)p + k;
		n -= (size_t)k;
	}
	return true;
}

static bool send_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
		       size_t n)
{
	uint8_t head[9] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags, 0, 0, 0,
			   (uint8_t)stream};

	return send_all(fd, head, sizeof(head)) && send_all(fd, p, n);
}

static void answer_grpc(int fd, uint32_t stream, const char *p, size_t n)
{
	static const char status[] = "\0\x0bgrpc-status\1"
				     "0"; /* a literal of HPACK */

	send_frame(fd, HEADERS, END_HEADERS, stream, "\x88", 1); /* :status 200 */
	for (size_t at = 0, k; at < n; at += k) {
		k = n - at < MOST ? n - at : MOST;
		if (!send_frame(fd, DATA, 0, stream, p + at, k))
			return;
	}
	send_frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, status, sizeof(status) - 1);
}

/* ContainerStatus has an ID in its message, ListContainers has no message. */
static void serve_grpc(const struct script *script, int fd)
{
	uint8_t head[9], body[MOST];
	size_t received = 0;

	if (!read_all(fd, body, 24) || !send_frame(fd, SETTINGS, 0, 0, "", 0))
		return;
	while (read_all(fd, head, sizeof(head))) {
		size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

		if (n > sizeof(body) || !read_all(fd, body, n))
			return;
		if (head[3] == SETTINGS && !(head[4] & 1))
			send_frame(fd, SETTINGS, 1, 0, "", 0);
		if (head[3] == DATA)
			received += n;
		if (head[3] == DATA && head[4] & END_STREAM) {
			if (received > 5)
				answer_grpc(fd, head[8], script->status, script->nstatus);
			else
				answer_grpc(fd, head[8], script->list, script->nlist);
		}
	}
}

/* ---- the server ---- */

static void serve(struct server *s, int fd)
{
	char head[2048];
	ssize_t n = recv(fd, head, 3, MSG_PEEK);
	struct script script;

	pthread_mutex_lock(&s->lock);
	script = s->script;
	pthread_mutex_unlock(&s->lock);
	if (n == 3 && !memcmp(head, "PRI", 3)) {
		serve_grpc(&script, fd);
	} else if (n > 0) {
		n = recv(fd, head, sizeof(head) - 1, 0); /* a request comes in one piece */
		head[n > 0 ? n : 0] = '\0';
		if (serve_text(&script, fd, head)) {
			pthread_mutex_lock(&s->lock);
			CHECK(s->nstreams < 16);
			s->streams[s->nstreams++] = fd;
			pthread_mutex_unlock(&s->lock);
			return;
		}
	}
	close(fd);
}

static void *server_thread(void *arg)
{
	struct server *s = arg;
	struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN},
			      {.fd = s->stop[0], .events = POLLIN}};

	while (poll(p, 2, -1) > 0 && !p[1].revents) {
		int fd = accept(s->fd, NULL, NULL);

		if (fd >= 0)
			serve(s, fd);
	}
	return NULL;
}

static void set(struct server *s, struct script script)
{
	pthread_mutex_lock(&s->lock);
	s->script = script;
	pthread_mutex_unlock(&s->lock);
}

/* It has no path yet, or none any more after server_kill(). */
static void server_listen(struct server *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(at.sun_path, s->path, sizeof(s->path));
	CHECK(s->fd >= 0 && !bind(s->fd, (struct sockaddr *)&at, sizeof(at)) && !listen(s->fd, 16));
	CHECK(!pipe(s->stop));
	CHECK(!pthread_create(&s->thread, NULL, server_thread, s));
}

static struct server *server_new(struct script script)
{
	struct server *s = calloc(1, sizeof(*s));

	CHECK(s);
	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_init(&s->lock, NULL);
	s->script = script;
	snprintf(s->path, sizeof(s->path), "%.40s/docker.sock", getenv("TMPDIR"));
	server_listen(s);
	return s;
}

static void server_kill(struct server *s)
{
	CHECK(write(s->stop[1], "", 1) == 1);
	pthread_join(s->thread, NULL);
	close(s->stop[0]);
	close(s->stop[1]);
	close(s->fd);
	unlink(s->path);
	while (s->nstreams)
		close(s->streams[--s->nstreams]);
}

static void server_free(struct server *s)
{
	server_kill(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int streams(struct server *s)
{
	int n;

	pthread_mutex_lock(&s->lock);
	n = s->nstreams;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Once there is a connection that they go to. */
static void send_events(struct server *s, struct fake *f, const char *text)
{
	ROUNDS_UNTIL(f, streams(s));
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < s->nstreams; i++)
		send_all(s->streams[i], text, strlen(text));
	pthread_mutex_unlock(&s->lock);
}

/* ---- an instance ---- */

/* Of `kind`, docker or cri, at this path. */
static struct fake *start(const char *kind, const char *path, const char *poll_every)
{
	char socket[96];
	struct fake *f;

	snprintf(socket, sizeof(socket), "%s:%s", kind, path);
	f = begun(fake_new(&fusee_plugin, "sockets", socket, "labels", "team", "poll", poll_every,
			   NULL));
	CHECK_INT(fake_start(f), 0);
	return f;
}

static int lines_with(struct fake *f, const char *text)
{
	int n = 0;

	for (size_t at = 0; at < f->logged.len;) {
		const char *hit = memmem(f->logged.p + at, f->logged.len - at, text, strlen(text));

		if (!hit)
			break;
		n++;
		at = (size_t)(hit - f->logged.p) + strlen(text);
	}
	return n;
}

static const struct script web = {.list = OK "[" ITEM(A, "web") "]", .events = ""},
			   web_and_db = {.list = OK "[" ITEM(A, "web") "," ITEM(B, "db") "]",
					 .events = ""};

TEST(a_list_and_events)
{
	struct server *s = server_new(web);
	struct fake *f = start("docker", s->path, "1h");

	LABEL_COMES(f, "0//" A, "container", "web");
	CHECK_STR(label_of(f, "0//" A, "image"), "box");
	CHECK_STR(label_of(f, "0//" A, "team"), "blue");
	CHECK_STR(label_of(f, "0//" A, "container_runtime"), "podman");
	ROUNDS_UNTIL(f, f->commits == 1);
	send_events(s, f, EVENT("create", B, "db") EVENT("rename", A, "web2"));
	LABEL_COMES(f, "0//" B, "container", "db");
	LABEL_COMES(f, "0//" A, "container", "web2");
	CHECK(fake_count(f, "events") >= 2);
	CHECK_INT(fake_count(f, "failures{reason=\"no answer\"}"), 0);
	fake_free(f);
	server_free(s);
}

/* The daemon is killed; while it is away a container begins. */
TEST(a_daemon_that_comes_back)
{
	struct server *s = server_new(web);
	struct fake *f = start("docker", s->path, "1s");

	LABEL_COMES(f, "0//" A, "container", "web");
	server_kill(s);
	for (uint64_t i = 1; i <= 4; i++) {
		ROUNDS_UNTIL(f, fake_count(f, "failures{reason=\"no answer\"}") >= i);
		clock_skip(PAUSE_MOST);
	}
	CHECK(fake_logged(f, "No such file or directory; containers keep the names"));
	CHECK_INT(lines_with(f, "no answer from"), 1);
	CHECK_STR(label_of(f, "0//" A, "container"), "web");
	set(s, web_and_db);
	server_listen(s);
	clock_skip(PAUSE_MOST);
	LABEL_COMES(f, "0//" B, "container", "db");
	LOG_COMES(f, "answers: containers have their names");
	send_events(s, f, EVENT("rename", B, "db2"));
	LABEL_COMES(f, "0//" B, "container", "db2");
	fake_free(f);
	server_free(s);
}

/* Podman without a log of events. */
TEST(a_daemon_without_events)
{
	struct server *s = server_new((struct script){.list = web.list});
	struct fake *f = start("docker", s->path, "1s");

	LOG_COMES(f, "answered 500: no log; its containers are listed every 1 s");
	LABEL_COMES(f, "0//" A, "container", "web");
	set(s, (struct script){.list = web_and_db.list});
	clock_skip(1);
	LABEL_COMES(f, "0//" B, "container", "db");
	CHECK_INT(lines_with(f, "no log"), 1);
	fake_free(f);
	server_free(s);
}

/* `silent`: to its requests there is no answer for the longest time that it waits. */
static void fails(struct script script, bool silent, const char *sentence, const char *reason)
{
	struct server *s = server_new(script);
	struct fake *f = start("docker", s->path, "1h");
	char counter[64];

	if (silent) {
		ROUNDS_UNTIL(f, streams(s) == 2); /* the events, and the list */
		clock_skip(SILENCE);
	}
	LOG_COMES(f, sentence);
	snprintf(counter, sizeof(counter), "failures{reason=\"%s\"}", reason);
	CHECK(fake_count(f, counter) >= 1);
	CHECK_INT(f->commits, 0);
	fake_free(f);
	server_free(s);
}

TEST(answers_that_mean_harm)
{
	static const struct {
		const char *list, *sentence, *reason;
	} all[] = {
		{OK "<html>", "as Docker does: not JSON", "not JSON"},
		{OK "[{\"Image\":\"\xff\"}]", "as Docker does: not UTF-8", "not UTF-8"},
		{OK "[{\"Id\":", "as Docker does: incomplete", "incomplete"},
		{"HTTP/1.1 403 x\r\nConnection: close\r\n\r\nno\1", "answered 403;", "refused"},
		{"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP", "no answer"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]", "the connection ended before",
		 "no answer"},
	};
	char *header = malloc(600000);

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		fails((struct script){.list = all[i].list, .events = ""}, false, all[i].sentence,
		      all[i].reason);
	CHECK(header);
	strcpy(header, "HTTP/1.1 200 OK\r\n");
	for (size_t at = strlen(header); at < 500000; at += 50)
		memcpy(header + at, "X-Header: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", 51);
	fails((struct script){.list = header, .events = ""}, false, "header of the answer",
	      "too large");
	free(header);
}

TEST(answers_without_an_end)
{
	fails((struct script){.list = OK "[", .events = "", .way = WAY_ENDLESS}, false,
	      "as Docker does: too large", "too large");
	fails((struct script){.way = WAY_SILENT, .events = ""}, true, "does not answer;", "silent");
}

TEST(events_that_mean_harm)
{
	struct server *s = server_new(web);
	struct fake *f = start("docker", s->path, "1s");

	LABEL_COMES(f, "0//" A, "container", "web");
	send_events(s, f, "{\"Type\":\"\xff\"}");
	LOG_COMES(f, "not UTF-8; its containers are listed every 1 s");
	CHECK(fake_count(f, "failures{reason=\"not UTF-8\"}") >= 1);
	CHECK_STR(label_of(f, "0//" A, "container"), "web");
	clock_skip(1);
	ROUNDS_UNTIL(f, streams(s) == 2);
	clock_skip(STABLE);
	LOG_COMES(f, "its events are followed");
	fake_free(f);
	server_free(s);
}

/* ---- gRPC ---- */

#define CRI_ITEM "\xa\x40" B "\x1a\6\xa\4main\x22\x42\xa\x40" A "\x30\1"

/* A list of n containers, of which each message has a length of two bytes. */
static char *cri_list(uint32_t n, size_t *size)
{
	static const char item[] = "\xa\xb7\1" CRI_ITEM "\x42\x25\xa\4team\x12\x1d"
				   "blue-blue-blue-blue-blue-blue";
	size_t len = sizeof(item) - 1;
	char *p = calloc(n, len + 5);

	CHECK(p);
	CHECK_INT(len, 3 + 0xb7);
	for (uint32_t i = 0; i < n; i++)
		memcpy(p + 5 + i * len, item, len);
	*size = 5 + n * len;
	for (int i = 0; i < 4; i++)
		p[1 + i] = (char)((n * len) >> (24 - 8 * i));
	return p;
}

/* The list has the image's ID, the status its name; lists later do not undo that. */
TEST(the_cri_names_images_by_their_status)
{
	static const char status[] = "\0\0\0\0\x57"
				     "\xa\x55\xa\x40" B "\x12\6\xa\4main\x18\1\x42\7\xa\5"
				     "box:1";
	struct script script = {.status = status, .nstatus = sizeof(status) - 1};
	struct server *s;
	struct fake *f;
	char *list = cri_list(1, &script.nlist);

	CHECK_INT(sizeof(status) - 1, 5 + 0x57);
	script.list = list;
	s = server_new(script);
	f = start("cri", s->path, "1s");
	LABEL_COMES(f, "0//" B, "image", "box:1");
	CHECK_STR(label_of(f, "0//" B, "container"), "main");
	LABEL_COMES(f, "0//" B, "team", "blue-blue-blue-blue-blue-blue");
	for (uint64_t lists = 2; lists <= 4; lists++) {
		clock_skip(1);
		ROUNDS_UNTIL(f, fake_count(f, "lists") >= lists);
		CHECK_STR(label_of(f, "0//" B, "image"), "box:1");
	}
	fake_free(f);
	server_free(s);
	free(list);
}

/* Some megabytes in one message, which libcurl hands over in pieces. */
TEST(a_large_list_of_the_cri)
{
	struct script script = {.status = "\0\0\0\0", .nstatus = 5};
	char *list = cri_list(30000, &script.nlist);
	struct server *s;
	struct fake *f;

	script.list = list;
	s = server_new(script);
	f = start("cri", s->path, "1h");
	LABEL_COMES(f, "0//" B, "container", "main");
	ROUNDS_UNTIL(f, fake_count(f, "lists") == 1);
	CHECK_INT(lines_with(f, "does not answer"), 0);
	fake_free(f);
	server_free(s);
	free(list);
}

TEST(grpc_that_means_harm)
{
	struct script script = {.list = "\0\0\0\0\3\xa\x7f\xa", .nlist = 8};
	struct server *s = server_new(script);
	struct fake *f = start("cri", s->path, "1h");

	LOG_COMES(f, "as a runtime of Kubernetes does: wrong protobuf");
	CHECK(fake_count(f, "failures{reason=\"wrong protobuf\"}") >= 1);
	fake_free(f);
	set(s, (struct script){.list = OK "[]"});
	server_free(s);
}

/* ---- options ---- */

TEST(options_that_are_wrong)
{
	static const struct {
		const char *name, *text, *sentence;
	} all[] = {
		{"sockets", "docker.sock", "is no absolute path"},
		{"sockets", "podman", "is no absolute path"},
		{"sockets", "tcp://127.0.0.1:2375", "what answers at"},
		{"sockets", "/run/any.sock", "what answers at"},
		{"sockets", "lxc:/run/any.sock", "what answers at"},
		{"sockets",
		 "docker:/a/23456789/23456789/23456789/23456789/23456789/23456789/23456789/23456789"
		 "/23456789/23456789/23456789/23456789",
		 "longer than a socket's path"},
		{"labels", "a,,b", ""},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct fake *f = fake_new(&fusee_plugin, all[i].name, all[i].text, NULL);
		int r = fake_init(f);

		CHECK(r == -EINVAL || r == -ENAMETOOLONG);
		CHECK(strstr(f->error, all[i].sentence));
		fake_free(f);
	}
}

TEST(a_socket_that_is_not_there)
{
	struct fake *f = start("docker", "/nonexistent/docker.sock", "10s");

	LOG_COMES(f, "no answer from '/nonexistent/docker.sock': No such file");
	CHECK_INT(f->commits, 0);
	fake_free(f);
}
