// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/net
/* core/net/control: requests complete, in pieces and wrong; answers now, late and never. */
#include <poll.h>
#include <sys/time.h>
#include <sys/un.h>

#include "lib/pause.h"
#include "net/control.h"
#include "net/control_client.h"
#include "test.h"

#define SECOND 1000000000ull

/* ---- an agent of a kind, in a thread ---- */

static struct agent {
	struct loop *loop;
	struct control *control;
	char path[64];
	pthread_t thread;
	struct control_reply *held[64];
	_Atomic int nheld;
	char word[5000];
} agent;

static void on_echo(void *arg, const char *word, struct control_reply *r)
{
	struct agent *a = arg;
	char json[64];

	snprintf(a->word, sizeof(a->word), "%s", word);
	snprintf(json, sizeof(json), "\"length\": %zu,\n\"x\": {}", strlen(word));
	control_answer(r, json, NULL);
}

static void on_fail(void *arg, const char *word, struct control_reply *r)
{
	control_answer(r, "", "a \"quoted\"\nsentence");
}

static void on_hold(void *arg, const char *word, struct control_reply *r)
{
	struct agent *a = arg;

	a->held[a->nheld++] = r;
}

static void on_release(void *arg, const char *word, struct control_reply *r)
{
	struct agent *a = arg;

	while (a->nheld)
		control_answer(a->held[--a->nheld], "\"held\": true", NULL);
	control_answer(r, "", NULL);
}

static void on_big(void *arg, const char *word, struct control_reply *r)
{
	size_t len = *word == 'h' ? 40 << 20 : 8 << 20;
	char *json = malloc(len + 1);

	CHECK(json);
	memset(json, 'x', len);
	memcpy(json, "\"a\":\"", 5);
	memcpy(json + len - 1, "\"", 2);
	control_answer(r, json, NULL);
	free(json);
}

static const struct control_command commands[] = {
	{"echo", on_echo},       {"fail", on_fail}, {"hold", on_hold},
	{"release", on_release}, {"big", on_big},   {0},
};

static void *agent_run(void *arg)
{
	CHECK_INT(loop_run(arg), 0);
	return NULL;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void begin(void)
{
	struct stat st;

	snprintf(agent.path, sizeof(agent.path), "%s/made/socket", test_dir());
	CHECK_INT(loop_new(&agent.loop), 0);
	CHECK_INT(control_new(&agent.control, agent.loop, agent.path, commands, &agent), 0);
	CHECK(!stat(agent.path, &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
	CHECK(!pthread_create(&agent.thread, NULL, agent_run, agent.loop));
}

static void end(void)
{
	CHECK_INT(loop_post(agent.loop, stop, agent.loop), 0);
	CHECK(!pthread_join(agent.thread, NULL));
	control_free(agent.control);
	*strrchr(agent.path, '/') = '\0';
	CHECK(access(agent.path, F_OK)); /* with the folder that was made */
	while (agent.nheld)              /* nobody is there any more */
		control_answer(agent.held[--agent.nheld], "\"held\": true", NULL);
	loop_free(agent.loop);
}

/* ---- clients ---- */

static int dial(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = test_within(30)};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, agent.path);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void say(int fd, const char *text)
{
	CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

static void hear(int fd, const char *expected)
{
	char line[4096];
	size_t n = 0;

	while (n < sizeof(line) - 1 && recv(fd, line + n, 1, 0) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	CHECK_STR(line, expected);
}

static void hear_end(int fd)
{
	char c;

	CHECK_INT(recv(fd, &c, 1, 0), 0);
	close(fd);
}

static void ask(const char *command, const char *expected)
{
	char *line;

	CHECK_INT(control_request(agent.path, command, test_within(30) * SECOND, &line), 0);
	CHECK_STR(line, expected);
	free(line);
}

#define LENGTH(n) "{\"ok\": true, \"length\": " #n ", \"x\": {}}"
#define REQUEST_WRONG                                                                 \
	"{\"ok\": false, \"error\": \"a request is one line: NAME, or {\\\"cmd\\\": " \
	"\\\"NAME\\\"}\"}"

#define TEST_OF_AGENT(id) TEST_BETWEEN(id, begin(), end())

TEST_OF_AGENT(requests)
{
	static const char *const wrong[] = {
		"{",
		"{}",
		"{\"cmd\"}",
		"{\"cmd\": echo}",
		"{\"cmd\": \"echo\"",
		"{\"cmd\": \"echo",
		"{\"cmd\": \"echo\"} x",
		"{\"cmd\": \"echo\", \"a\": 1}",
		"{\"command\": \"echo\"}",
		"{\"cmd\": \"e\\x\"}",
		"{\"cmd\": \"\\u12\"}",
		"{\"cmd\": \"\\u0000\"}",
		"{\"cmd\": \"\\",
		"{\"cmd\":",
	};

	ask("echo", LENGTH(0));
	ask("echo  two words ", LENGTH(9));
	CHECK_STR(agent.word, "two words");
	ask(" echo\tx\r", LENGTH(1));
	ask("{\"cmd\": \"echo\"}", LENGTH(0));
	ask(" { \"cmd\" : \"\\u0065cho a\\\\\\\"\\/b\" } ", LENGTH(5));
	CHECK_STR(agent.word, "a\\\"/b");
	ask("fail", "{\"ok\": false, \"error\": \"a \\\"quoted\\\"\\u000asentence\"}");
	ask("ecko", "{\"ok\": false, \"error\": \"there is no command 'ecko' (did you mean "
		    "'echo'?)\"}");
	ask("{\"cmd\": \"\\u00e9\"}",
	    "{\"ok\": false, \"error\": \"there is no command '\xc3\xa9'\"}");
	ask("zzz", "{\"ok\": false, \"error\": \"there is no command 'zzz'\"}");
	ask("\xff", "{\"ok\": false, \"error\": \"a request is text\"}");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ask(wrong[i], REQUEST_WRONG);
}

TEST_OF_AGENT(pieces_and_several_at_once)
{
	int fd = dial();

	for (const char *p = "echo abc\n"; *p; p++) {
		char c[2] = {*p, '\0'};

		say(fd, c);
		pause_us(1000, "so that they arrive one by one");
	}
	hear(fd, LENGTH(3));
	say(fd, "\n\n  \necho 1\r\nzzz\n{\"cmd\": \"echo 12\"}\necho 1");
	hear(fd, LENGTH(1));
	hear(fd, "{\"ok\": false, \"error\": \"there is no command 'zzz'\"}");
	hear(fd, LENGTH(2));
	say(fd, "23\n");
	hear(fd, LENGTH(3));
	/* nothing more to come: the answers still do */
	say(fd, "echo 1\necho 12\nhalf");
	CHECK(!shutdown(fd, SHUT_WR));
	hear(fd, LENGTH(1));
	hear(fd, LENGTH(2));
	hear_end(fd);
	send(fd = dial(), "echo a\0b\n", 9, MSG_NOSIGNAL);
	hear(fd, "{\"ok\": false, \"error\": \"a request is text\"}");
	close(fd);
}

TEST_OF_AGENT(long_lines)
{
	char line[6000];
	int fd = dial();

	memset(line, 'x', sizeof(line));
	memcpy(line, "echo ", 5);
	line[4095] = '\n';
	line[4096] = '\0';
	say(fd, line);
	hear(fd, LENGTH(4090));
	line[4095] = 'x';
	line[4096] = '\n';
	line[4097] = '\0';
	say(fd, line);
	hear(fd, "{\"ok\": false, \"error\": \"the line is too long\"}");
	close(fd);
	ask("echo", LENGTH(0));
}

/* Answers that come late come in order, and to nobody when the client went away. */
TEST(late_answers)
{
	int fd, closed;

	begin();
	fd = dial();
	closed = dial();
	say(closed, "hold\n");
	say(fd, "hold\necho 1\n");
	WAIT_FOR(agent.nheld == 2);
	close(closed);
	ask("echo", LENGTH(0)); /* which the agent takes behind that */
	ask("release", "{\"ok\": true}");
	hear(fd, "{\"ok\": true, \"held\": true}");
	hear(fd, LENGTH(1));
	say(fd, "hold\n");
	WAIT_FOR(agent.nheld == 1);
	close(fd);
	fd = dial();
	say(fd, "hold\n"); /* not answered until the socket is removed */
	WAIT_FOR(agent.nheld == 2);
	end();
	hear_end(fd);
}

TEST_OF_AGENT(many_clients)
{
	int fds[40];

	for (int i = 0; i < 40; i++) /* the kernel keeps the others */
		fds[i] = dial();
	for (int i = 0; i < 16; i++) {
		say(fds[i], "echo 1\n");
		hear(fds[i], LENGTH(1));
	}
	for (int i = 16; i < 40; i++)
		say(fds[i], "echo 12\n");
	for (int i = 0; i < 40; i++) {
		if (i >= 16)
			hear(fds[i], LENGTH(2));
		close(fds[i]); /* makes room for another */
	}
	ask("echo", LENGTH(0));
}

TEST_OF_AGENT(long_answers)
{
	char *line;

	CHECK_INT(control_request(agent.path, "big", test_within(30) * SECOND, &line), 0);
	CHECK_INT(strlen(line), (8 << 20) + 14);
	free(line);
	ask("big huge", "{\"ok\": false, \"error\": \"the answer is too long\"}");
}

/* Who does not read an answer, or sends a line drop by drop, is let go. */
TEST_OF_AGENT(slow_clients)
{
	int reader, drops;
	char bytes[65536];
	ssize_t n, sum = 0;
	unsigned long long began = test_now_ns();

	reader = dial();
	drops = dial();
	say(reader, "big\n");
	ask("echo", LENGTH(0)); /* nobody else waits */
	WAIT_FOR((pause_us(100000, "drop by drop"), send(drops, "x", 1, MSG_NOSIGNAL) < 0));
	CHECK(test_now_ns() - began >= 4 * SECOND);
	close(drops);
	/* until the server closes the connection */
	CHECK(poll(&(struct pollfd){.fd = reader, .events = POLLRDHUP}, 1,
		   (int)test_within(20) * 1000) == 1);
	while ((n = recv(reader, bytes, sizeof(bytes), 0)) > 0)
		sum += n;
	CHECK(sum < 8 << 20);
	close(reader);
}

TEST_OF_AGENT(the_socket_file)
{
	struct control *other;
	char path[256], *line;
	int fd;

	CHECK_INT(control_new(&other, agent.loop, agent.path, commands, &agent), -EADDRINUSE);
	ask("echo", LENGTH(0));
	snprintf(path, sizeof(path), "%s/stale", test_dir());
	/* a socket whose owner has ended */
	if (!fork()) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};

		strcpy(at.sun_path, path);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		_exit(bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1));
	}
	wait(NULL);
	CHECK(!access(path, F_OK));
	CHECK_INT(control_request(path, "echo", SECOND, &line), -ECONNREFUSED);
	CHECK_INT(loop_post(agent.loop, stop, agent.loop), 0);
	CHECK(!pthread_join(agent.thread, NULL));
	CHECK_INT(control_new(&other, agent.loop, path, commands, &agent), 0);
	control_free(other);
	CHECK(access(path, F_OK));
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(control_new(&other, agent.loop, path, commands, &agent), -EEXIST);
	CHECK(!unlink(path)); /* still there */
	CHECK_INT(control_new(&other, agent.loop, "/nope/nope/nope", commands, &agent), -ENOENT);
	/* the folder that is made for a socket goes with it, another stays */
	snprintf(path, sizeof(path), "%s/another/socket", test_dir());
	for (int ours = 1; ours >= 0; ours--) {
		CHECK_INT(control_new(&other, agent.loop, path, commands, &agent), 0);
		control_free(other);
		*strrchr(path, '/') = '\0';
		CHECK(!!access(path, F_OK) == ours && (!ours || !mkdir(path, 0700)));
		strcat(path, "/socket");
	}
	*strrchr(path, '/') = '\0';
	CHECK(!rmdir(path));
	snprintf(path, sizeof(path), "%s/open", test_dir());
	CHECK(!mkdir(path, 0755) && !chmod(path, 0777));
	strcat(path, "/socket");
	CHECK_INT(control_new(&other, agent.loop, path, commands, &agent), -EPERM);
	*strrchr(path, '/') = '\0';
	CHECK(!rmdir(path));
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK_INT(control_new(&other, agent.loop, path, commands, &agent), -ENAMETOOLONG);
	CHECK_INT(control_request(path, "echo", SECOND, &line), -ENAMETOOLONG);
	CHECK(!pthread_create(&agent.thread, NULL, agent_run, agent.loop));
}

TEST(asking)
{
	char *line;
	int fd, held;

	CHECK_INT(control_request("/nope/socket", "echo", SECOND, &line), -ENOENT);
	CHECK_INT(control_request("", "echo", SECOND, &line), -EINVAL);
	begin();
	CHECK_INT(control_request(agent.path, "a\nb", SECOND, &line), -EINVAL);
	CHECK_INT(control_request(agent.path, "", SECOND, &line), -EINVAL);
	CHECK_INT(control_request(agent.path, "hold", SECOND / 20, &line), -ETIMEDOUT);
	fd = dial();
	say(fd, "hold\n");
	WAIT_FOR(agent.nheld == 2);
	held = fork();
	if (!held) {
		int err = control_request(agent.path, "hold", test_within(30) * SECOND, &line);

		_exit(err != -ECONNRESET);
	}
	WAIT_FOR(agent.nheld == 3);
	end();
	close(fd);
	CHECK(waitpid(held, &fd, 0) == held && !fd);
}

/* Another user is refused, whatever the file's mode says. */
TEST(other_users)
{
	int fd, status;
	char c;

	if (geteuid())
		SKIP("needs root to be another user");
	begin();
	CHECK(!chmod(agent.path, 0777) && !chmod(test_dir(), 0755));
	if (!fork()) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		fd = dial();
		send(fd, "echo\n", 5, MSG_NOSIGNAL);
		_exit(recv(fd, &c, 1, 0) > 0 ? 2 : 0);
	}
	CHECK(wait(&status) > 0 && !status);
	end();
}

/* A socket that another user may have made is not used. */
TEST(a_socket_of_another_user)
{
	char *line;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd, status, ready[2];

	if (geteuid())
		SKIP("needs root to be another user");
	CHECK(!chmod(test_dir(), 0777) && !pipe(ready));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", test_dir());
	if (!fork()) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (setgid(65533) || setuid(65533) || bind(fd, (struct sockaddr *)&at, sizeof(at)))
			_exit(1);
		if (chmod(at.sun_path, 0777) || listen(fd, 2) || write(ready[1], "x", 1) != 1)
			_exit(2);
		fd = accept(fd, NULL, NULL); /* a client connects, and ends */
		_exit(read(fd, &status, 1) != 0);
	}
	CHECK_INT(read(ready[0], &status, 1), 1);
	if (!fork()) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		_exit(control_request(at.sun_path, "echo", SECOND, &line) != -EACCES);
	}
	for (int i = 0; i < 2; i++)
		CHECK(wait(&status) > 0 && !status);
}
