// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/inspection core/worker
/* The agent's side against workers that were taken over: this program is its own worker, and what
 * would be the plugin folder says how it lies. */
#include <poll.h>

#include "base/background.h"
#include "base/clock.h"
#include "test.h"
#include "inspection/internal/block.h"
#include "worker/internal/protocol.h"
#include "worker/internal/client.h"

static void say(int sock, uint32_t kind, uint64_t id)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = kind, .id = id, .call = 41};

	if (protocol_send_reply(sock, &r, -1))
		_exit(1);
}

/* The next request, with its descriptors closed. */
static struct protocol_request hear(int sock)
{
	static char payload[PROTOCOL_INLINE];
	struct protocol_request q;
	int fds[PROTOCOL_MAX_FDS];

	if (protocol_receive_request(sock, &q, fds, payload) != 1)
		_exit(1);
	for (int i = 0; i < PROTOCOL_MAX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return q;
}

/* The next request, with the owner of its file. */
static struct protocol_request hear_owner(int sock, uid_t *owner)
{
	static char payload[PROTOCOL_INLINE];
	struct protocol_request q;
	int fds[PROTOCOL_MAX_FDS];
	struct stat st;

	if (protocol_receive_request(sock, &q, fds, payload) != 1 || fstat(fds[0], &st))
		_exit(1);
	close(fds[0]);
	*owner = st.st_uid;
	return q;
}

/* Answers the same key for every file. Dies of files of user 12345; of others it makes a table. */
static void poison(int sock)
{
	for (;;) {
		static const uint32_t words[] = {0xbad};
		struct inspection_slab slab = {.unwinder = "nasty", .words = words, .n = 1};
		struct inspection i = {.key = {7},
				       .slabs = &slab,
				       .nslabs = 1,
				       .debuglink = "",
				       .compiler = "",
				       .notes = ""};
		struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = REPLY_DONE, .key = {7}};
		struct buf b = {0};
		uid_t owner;
		struct protocol_request q = hear_owner(sock, &owner);
		int fd = -1;

		r.id = q.id;
		if (q.kind == REQUEST_INSPECT) {
			if (owner == 12345 || inspection_write(&b, &i))
				_exit(3);
			r.bytes = b.len;
			fd = protocol_seal(b.p, b.len);
			buf_fini(&b);
		}
		if (protocol_send_reply(sock, &r, fd))
			_exit(1);
		close(fd);
	}
}

static void lie(int sock, const char *how)
{
	if (!strcmp(how, "ready without end"))
		for (;;)
			say(sock, REPLY_READY, 0);
	say(sock, REPLY_READY, 0);
	if (!strcmp(how, "denied without end"))
		for (;;)
			say(sock, REPLY_DENIED, 0);
	if (!strcmp(how, "prints")) {
		for (int i = 0; i < 10000; i++)
			dprintf(2, "\033]0;title\007\033[2Jline %d\n%s", i, i ? "" : "\n\r\x9b");
		hear(sock);
		_exit(3);
	}
	if (!strncmp(how, "poison", 6))
		poison(sock);
	if (!strcmp(how, "done without end"))
		for (uint64_t id = hear(sock).id;;)
			say(sock, REPLY_DONE, ++id);
	_exit(2);
}

__attribute__((constructor)) static void become_worker(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "worker"))
		lie(atoi(argv[2]), argv[4]);
}

struct answer {
	int calls, err;
	char text[400];
};

static void answered(void *arg, int err, const char *text, struct inspection *i)
{
	struct answer *a = arg;

	a->calls++;
	a->err = err;
	snprintf(a->text, sizeof(a->text), "%s", text);
	inspection_unref(i);
}

/* One request to such a worker. */
static struct answer ask(const char *how)
{
	struct worker_options o = {.plugin_dir = how, .request_ms = 1000};
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
	uint64_t began = clock_now();
	struct answer a = {0};
	struct worker *w;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(worker_inspect(w, fd, "true", NULL, answered, &a), 0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK_INT(a.calls, 1);
	worker_stop(w);
	close(fd);
	CHECK(clock_now() - began < test_within(30) * 1000000000ull);
	return a;
}

TEST(messages_without_end)
{
	struct answer a = ask("ready without end");

	CHECK_INT(a.err, -EFAULT);
	CHECK(strstr(a.text, "malformed reply"));
	a = ask("denied without end");
	CHECK_INT(a.err, -EFAULT);
	a = ask("done without end");
	CHECK_INT(a.err, -EFAULT);
	CHECK(strstr(a.text, "malformed reply"));
}

/* The lines are cleaned and counted; no control character reaches the terminal. */
TEST(what_it_prints)
{
	int said = memfd_create("said", 0), before = dup(2);
	static char text[1 << 20];
	uint32_t lines = 0;
	ssize_t n;

	CHECK(dup2(said, 2) == 2);
	CHECK_INT(ask("prints").err, -EFAULT);
	dup2(before, 2);
	n = pread(said, text, sizeof(text) - 1, 0);
	CHECK(n > 0);
	for (ssize_t i = 0; i < n; i++) {
		CHECK((unsigned char)text[i] >= 0x20 || text[i] == '\n');
		CHECK((unsigned char)text[i] != 0x9b || (unsigned char)text[i - 1] >= 0x80);
		lines += text[i] == '\n';
	}
	CHECK(strstr(text, "fusee: worker ") && strstr(text, "]0;title"));
	CHECK(strstr(text, "further lines are dropped"));
	CHECK_INT(lines, 201);
}

/* ---- what it says of other files ---- */

/* A file of this user below the scratch folder. */
static int file_of(const char *name, uid_t owner)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, name, strlen(name)) > 0 && !fchown(fd, owner, owner));
	return fd;
}

static struct answer ask_of(struct worker *w, int fd)
{
	struct answer a = {0};

	CHECK_INT(worker_inspect(w, fd, "a file", NULL, answered, &a), 0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK_INT(a.calls, 1);
	WAIT_FOR(!background_waiting(worker_background(w))); /* it is written to the cache */
	return a;
}

static int files_in_cache(void)
{
	char command[128];
	int n = -1;
	FILE *f;

	snprintf(command, sizeof(command), "find %s/cache -type f ! -name 'refusals-*' | wc -l",
		 test_dir());
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

/* A worker of one user's files says that they have the key of another owner's. It is refused, and
 * kept, for neither; and a restart remembers the refusal. */
TEST(a_key_of_others)
{
	char cache[80];
	struct worker_options o = {.plugin_dir = "poison", .cache_dir = cache};
	struct worker *w;
	int bad, other, clean;

	if (geteuid())
		SKIP("takes files of several users");
	snprintf(cache, sizeof(cache), "%s/cache", test_dir());
	bad = file_of("bad", 12345);
	other = file_of("other", 12346);
	clean = file_of("clean", 0);
	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(ask_of(w, bad).err, -EFAULT);
	CHECK_INT(ask_of(w, other).err, 0);
	CHECK_INT(files_in_cache(), 0);
	CHECK_INT(ask_of(w, clean).err, 0);
	CHECK_INT(files_in_cache(), 1);
	worker_stop(w);
	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(ask_of(w, bad).err, -EFAULT);
	CHECK_INT(worker_pid(w), 0); /* none was started for it */
	CHECK_INT(ask_of(w, other).err, 0);
	worker_stop(w);
	close(bad);
	close(other);
	close(clean);
}
