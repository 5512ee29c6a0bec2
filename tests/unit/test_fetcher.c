// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/fetcher
/* The agent's side of fetching, against processes that end, lie, are silent or answer; and what a
 * fetcher believes of a file. libdebuginfod and real servers: tests/run/debuginfod. */
#include <limits.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/shm.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "process/elf.h"
#include "test.h"
#include "fetcher/fetcher.h"
#include "fetcher/internal/protocol.h"

static const uint8_t id[] = {0xab, 0xcd, 0xef};
static uint32_t came;

/* ---- the process: /proc/self/exe is this program ---- */

static void answer(int err, uint64_t bytes, const char *text)
{
	struct fetcher_reply_message r = {.magic = FETCHER_MAGIC, .err = err, .bytes = bytes};

	snprintf(r.text, sizeof(r.text), "%s", text);
	CHECK(send(3, &r, sizeof(r), 0) == sizeof(r));
}

static void put_file(const struct fetcher_request_message *q)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/abcdef", q->folder);
	mkdir(path, 0700);
	strcat(path, "/debuginfo");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0400);
	CHECK(fd >= 0 && write(fd, "data", 4) == 4);
	close(fd);
}

/* Does what the server's name says. */
static void behave(const struct fetcher_request_message *q)
{
	const char *how = q->servers + strlen("http://");

	if (!strcmp(how, "ends"))
		exit(1);
	if (!strcmp(how, "silent"))
		pause();
	if (!strcmp(how, "short"))
		CHECK(send(3, "x", 1, 0) == 1);
	if (!strcmp(how, "magic"))
		CHECK(send(3, &q->seconds, sizeof(struct fetcher_reply_message), 0) > 0);
	if (!strcmp(how, "positive"))
		answer(1, 0, "text");
	if (!strcmp(how, "missing"))
		answer(-ENOENT, 0, "not there");
	if (!strcmp(how, "wrong"))
		answer(-EBADMSG, 0, "another\033[31m file");
	if (!strcmp(how, "away"))
		answer(-ECONNREFUSED, 0, "away");
	if (!strcmp(how, "library"))
		answer(-ENOPKG, 0, "there is no library (apt install it)");
	if (!strcmp(how, "kernel"))
		answer(-ENOSYS, 0, "the kernel has no Landlock");
	if (!strcmp(how, "good")) {
		put_file(q);
		answer(0, 4, "");
	}
	exit(0);
}

__attribute__((constructor)) static void as_fetcher(int argc, char **argv)
{
	static struct fetcher_request_message q;

	if (argc != 3 || strcmp(argv[1], "fetcher"))
		return;
	if (recv(3, &q, sizeof(q), 0) != sizeof(q))
		exit(2);
	behave(&q);
}

/* ---- the agent's side ---- */

static void arrived(void *arg, const uint8_t *build_id, uint32_t len)
{
	came += len == sizeof(id) && !memcmp(build_id, id, len);
}

static struct fetcher *open_fetcher(const char *servers, uint32_t ms)
{
	char folder[PATH_MAX];
	struct fetcher *f;

	log_set_level(LOG_ERROR);
	snprintf(folder, sizeof(folder), "%s/debuginfod", getenv("TMPDIR"));
	CHECK_INT(fetcher_new(&f, folder), 0);
	CHECK_INT(fetcher_set_servers(f, servers, ms, arrived, NULL), 0);
	return f;
}

static void wait_for(struct fetcher *f)
{
	while (fetcher_pending(f)) {
		struct pollfd p = {.fd = fetcher_fd(f), .events = POLLIN};

		poll(&p, 1, -1);
		fetcher_dispatch(f);
	}
}

static struct fetcher_file last;
static char last_text[300];

static void keep(void *arg, const struct fetcher_file *f)
{
	last = *f;
	snprintf(last_text, sizeof(last_text), "%s", f->text);
}

static double counted(const char *result)
{
	return metric_get("debuginfod_files_total", METRIC_LABELS("result", result));
}

static void check_end(const char *server, uint32_t ms, enum fetcher_state state, const char *text,
		      const char *result)
{
	struct fetcher *f = open_fetcher(server, ms);
	double before = counted(result);

	CHECK_INT(fetcher_request(f, id, sizeof(id), "/usr/bin/x"), FETCHER_PENDING);
	CHECK_INT(fetcher_request(f, id, sizeof(id), "/usr/bin/x"), FETCHER_PENDING);
	CHECK_INT(fetcher_pending(f), 1);
	wait_for(f);
	fetcher_each(f, keep, NULL);
	CHECK_INT(last.state, state);
	CHECK_STR(last.name, "/usr/bin/x");
	CHECK_STR(last_text, text);
	CHECK_INT(counted(result) - before, 1);
	CHECK_INT(fetcher_request(f, id, sizeof(id), "/usr/bin/x"), state);
	CHECK_INT(fetcher_open(f, id, sizeof(id), "x"), -ENOENT);
	fetcher_free(f);
}

ASIDE(each_end_has_a_state_a_text_and_a_counter)
TEST(each_end_has_a_state_a_text_and_a_counter)
{
	const char *ended = "the process that fetches it has ended";

	check_end("http://ends", 60000, FETCHER_FAILED, ended, "failed");
	check_end("http://short", 60000, FETCHER_FAILED, ended, "failed");
	check_end("http://magic", 60000, FETCHER_FAILED, ended, "failed");
	check_end("http://positive", 60000, FETCHER_FAILED, "text", "failed");
	check_end("http://missing", 60000, FETCHER_MISSING, "not there", "missing");
	check_end("http://wrong", 60000, FETCHER_FAILED, "another?[31m file", "wrong");
	check_end("http://away", 60000, FETCHER_FAILED, "away", "unreachable");
	check_end("http://library", 60000, FETCHER_FAILED, "there is no library (apt install it)",
		  "unavailable");
	check_end("http://kernel", 60000, FETCHER_FAILED, "the kernel has no Landlock",
		  "unavailable");
	check_end("http://silent", 1, FETCHER_LATE, "the server did not send it in time", "late");
	CHECK_INT(came, 0);
}

TEST(a_file_comes_once_and_is_there_without_a_server)
{
	struct fetcher *f = open_fetcher("http://good", 60000);
	char bytes[8];
	int fd;

	CHECK_INT(fetcher_open(f, id, sizeof(id), "x"), -ENOENT);
	CHECK_INT(fetcher_request(f, id, sizeof(id), "x"), FETCHER_PENDING);
	wait_for(f);
	CHECK_INT(came, 1);
	fd = fetcher_open(f, id, sizeof(id), "x");
	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes)) == 4);
	close(fd);
	fetcher_free(f);

	f = open_fetcher("http://ends", 60000);
	CHECK_INT(fetcher_request(f, id, sizeof(id), "x"), FETCHER_HERE);
	CHECK_INT(fetcher_pending(f), 0);
	fetcher_free(f);
}

#define TEST_OF_FETCHER(id, servers, ms) \
	TEST_WITH(id, struct fetcher *, f, open_fetcher(servers, ms), fetcher_free(f))

TEST_OF_FETCHER(nothing_is_requested_unasked, "", 60000)
{
	CHECK(!fetcher_is_on(f) && !fetcher_is_on(NULL));
	CHECK_INT(fetcher_request(f, id, sizeof(id), "x"), FETCHER_OFF);
	CHECK_INT(fetcher_request(NULL, id, sizeof(id), "x"), FETCHER_OFF);
	CHECK_INT(fetcher_open(f, id, sizeof(id), "x"), -ENOENT);
	CHECK_INT(fetcher_set_servers(f, "http://ends", 1000, NULL, NULL), 0);
	CHECK_INT(fetcher_request(f, id, 0, "x"), FETCHER_OFF);
	CHECK_INT(fetcher_request(f, id, 1, "x"), FETCHER_OFF);
	CHECK_INT(fetcher_request(f, id, FETCHER_ID_MAX + 1, "x"), FETCHER_OFF);
}

/* Of ten files a server that is away costs a few tries. */
TEST_OF_FETCHER(a_server_that_is_away_has_a_pause, "http://away", 60000)
{
	uint8_t other[4] = {0};

	for (other[0] = 0; other[0] < 20; other[0]++)
		fetcher_request(f, other, sizeof(other), "x");
	wait_for(f);
	CHECK_INT(counted("unreachable"), 20);
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_FAILED);
	fetcher_each(f, keep, NULL);
	CHECK_STR(last_text, "the server could not be reached a while ago");
	CHECK_INT(fetcher_set_servers(f, "http://good", 60000, NULL, NULL), 0); /* another is not */
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_PENDING);
	wait_for(f);
}

/* It is no server's failure, and all files have that reason. */
TEST_OF_FETCHER(a_machine_that_lacks_something_says_so_once, "http://library", 60000)
{
	const char *text = "there is no library (apt install it)";
	double unreachable = counted("unreachable"), before = counted("unavailable");
	uint8_t other[4] = {0};

	CHECK(!fetcher_obstacle(f) && !fetcher_obstacle(NULL));
	for (other[0] = 0; other[0] < 20; other[0]++)
		fetcher_request(f, other, sizeof(other), "x");
	wait_for(f);
	CHECK_STR(fetcher_obstacle(f), text);
	CHECK(!fetcher_obstacle(f));
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_FAILED);
	fetcher_each(f, keep, NULL);
	CHECK_STR(last_text, text);
	CHECK(!fetcher_obstacle(f));
	CHECK_INT(counted("unavailable") - before, 21);
	CHECK_INT(counted("unreachable") - unreachable, 0);
	CHECK_INT(fetcher_set_servers(f, "http://library", 60000, NULL, NULL), 0); /* a reload */
	other[0]++;
	fetcher_request(f, other, sizeof(other), "x");
	wait_for(f);
	CHECK_STR(fetcher_obstacle(f), text);
	/* a server that is away after that has its own tries */
	CHECK_INT(fetcher_set_servers(f, "http://away", 60000, NULL, NULL), 0);
	other[0]++;
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_PENDING);
	wait_for(f);
	fetcher_each(f, keep, NULL);
	CHECK_STR(last_text, "away");
	other[0]++;
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_PENDING);
	wait_for(f);
}

/* What is said of files that were not requested is what was the case. */
ASIDE(a_server_that_is_silent_has_a_pause)
TEST_OF_FETCHER(a_server_that_is_silent_has_a_pause, "http://silent", 1)
{
	double unreachable = counted("unreachable");
	uint8_t other[4] = {0};

	for (other[0] = 0; other[0] < 5; other[0]++)
		fetcher_request(f, other, sizeof(other), "x");
	wait_for(f);
	CHECK_INT(fetcher_request(f, other, sizeof(other), "x"), FETCHER_LATE);
	fetcher_each(f, keep, NULL);
	CHECK_STR(last_text, "the server did not send files in time a while ago");
	CHECK_INT(counted("unreachable") - unreachable, 0);
}

TEST(giving_up_ends_the_processes)
{
	struct fetcher *f = open_fetcher("http://silent", 3600000);
	uint8_t other[4] = {0};

	for (other[0] = 0; other[0] < 20; other[0]++)
		fetcher_request(f, other, sizeof(other), "x");
	CHECK_INT(fetcher_pending(f), 20);
	fetcher_give_up(f);
	CHECK_INT(fetcher_pending(f), 0);
	fetcher_each(f, keep, NULL);
	CHECK_INT(last.state, FETCHER_LATE);
	fetcher_free(f);
	while (waitpid(-1, NULL, 0) > 0) /* all were killed: this ends */
		;
}

TEST(folders_of_others_are_not_used)
{
	char folder[PATH_MAX], link[PATH_MAX];
	struct fetcher *f;

	snprintf(folder, sizeof(folder), "%s/f", getenv("TMPDIR"));
	snprintf(link, sizeof(link), "%s/l", getenv("TMPDIR"));
	CHECK(!mkdir(folder, 0700) && !chmod(folder, 0777) && !symlink(folder, link));
	CHECK_INT(fetcher_new(&f, folder), 0);
	CHECK_INT(fetcher_set_servers(f, "http://good", 1000, NULL, NULL), -EPERM);
	fetcher_free(f);
	CHECK(!chmod(folder, 0700));
	CHECK_INT(fetcher_new(&f, link), 0);
	CHECK_INT(fetcher_set_servers(f, "http://good", 1000, NULL, NULL), -EPERM);
	fetcher_free(f);
	CHECK_INT(fetcher_new(&f, NULL), 0);
	CHECK_INT(fetcher_set_servers(f, "http://good", 1000, NULL, NULL), -ENOENT);
	CHECK_INT(fetcher_set_servers(f, "", 1000, NULL, NULL), 0);
	fetcher_free(f);
}

TEST(servers_are_urls)
{
	char text[FETCHER_MAX_SERVERS + 16] = "http://";

	CHECK(!fetcher_wrong_servers("http://a https://b:8002,http://c/d"));
	CHECK(!fetcher_wrong_servers(""));
	CHECK(fetcher_wrong_servers("debuginfod.debian.net"));
	CHECK(fetcher_wrong_servers("file:///etc"));
	CHECK(fetcher_wrong_servers("http://"));
	CHECK(fetcher_wrong_servers("http:///x"));
	CHECK(fetcher_wrong_servers("http://a ftp://b"));
	CHECK(fetcher_wrong_servers("https://user:word@host"));
	CHECK(fetcher_wrong_servers("http://a\nX: y"));
	memset(text + 7, 'a', sizeof(text) - 8);
	CHECK(fetcher_wrong_servers(text));
}

/* ---- what is believed of a file ---- */

static int copy_part(uint64_t bytes)
{
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("part", 0);
	char buf[65536];

	CHECK(from >= 0 && to >= 0);
	while (bytes) {
		ssize_t n = read(from, buf, bytes < sizeof(buf) ? bytes : sizeof(buf));

		CHECK(n > 0 && write(to, buf, (size_t)n) == n);
		bytes -= (uint64_t)n;
	}
	close(from);
	return to;
}

TEST(a_file_is_judged)
{
	int fd = open("/proc/self/exe", O_RDONLY), part;
	struct fusee_file_info info;
	struct stat st;
	struct elf *e;
	uint8_t own[64];
	uint32_t len;

	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK_INT(elf_open(&e, fd), 0);
	CHECK_INT(elf_info(e, &info), 0);
	len = (uint32_t)info.build_id.len;
	if (!len)
		SKIP("the linker makes no build ids");
	memcpy(own, info.build_id.p, len);
	elf_close(e);
	CHECK_INT(fetcher_judge(fd, own, len), 0);
	CHECK_INT(fetcher_judge(fd, own, len - 1), -EBADMSG);
	own[0] ^= 1;
	CHECK_INT(fetcher_judge(fd, own, len), -EBADMSG);
	own[0] ^= 1;
	for (uint64_t bytes = 0; bytes < (uint64_t)st.st_size; bytes += (uint64_t)st.st_size / 9) {
		part = copy_part(bytes);
		CHECK_INT(fetcher_judge(part, own, len), -EBADMSG);
		close(part);
	}
	close(fd);
}

/* ---- the folder ---- */

static void make_file(const char *folder, const char *name, const char *file, time_t age)
{
	struct timespec t[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
	char path[2 * PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, name, file);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (int i = 0; i < 64; i++)
		CHECK(write(fd, path, 4096) == 4096);
	CHECK(!futimens(fd, t));
	close(fd);
}

static void make_old(const char *folder, const char *name, time_t age)
{
	struct timespec t[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	CHECK(!utimensat(AT_FDCWD, path, t, 0));
}

static bool is_there(const char *folder, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

TEST(the_folder_keeps_what_was_used)
{
	static struct fetcher_request_message q = {.max_bytes = 1 << 20,
						   .folder_bytes = (1 << 20) + 600000};

	snprintf(q.folder, sizeof(q.folder), "%s/folder", getenv("TMPDIR"));
	CHECK(!mkdir(q.folder, 0700));
	make_file(q.folder, "aaaa", "debuginfo", 9000);
	make_file(q.folder, "bbbb", "debuginfo", 100);
	make_file(q.folder, "cccc", "debuginfo", 5000);
	make_file(q.folder, "cccc", "debuginfo.XyZabc", 9000);
	make_file(q.folder, "dddd", "debuginfo.XyZabc", 10);
	make_file(q.folder, "eeee", "debuginfo.XyZabc", 9000);
	make_old(q.folder, "eeee", 9000);
	make_file(q.folder, "ffff", "debuginfo.XyZabc", 9000);
	make_file(q.folder, "other", "debuginfo", 99999);
	CHECK(fetcher_tidy(&q) <= 1 << 20);
	CHECK(!is_there(q.folder, "aaaa"));
	CHECK(is_there(q.folder, "bbbb/debuginfo"));
	CHECK(is_there(q.folder, "cccc/debuginfo"));
	CHECK(!is_there(q.folder, "cccc/debuginfo.XyZabc"));
	CHECK(is_there(q.folder, "dddd/debuginfo.XyZabc")); /* a transfer goes on */
	CHECK(!is_there(q.folder, "eeee"));                 /* of a process that was killed */
	CHECK(is_there(q.folder, "ffff"));                  /* its transfer may begin now */
	CHECK(is_there(q.folder, "other/debuginfo"));       /* it is not its own */
}

/* ---- what a process can do that a server has taken over ---- */

static char own_file[PATH_MAX + 64];

static int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

/* As a process of root's, which owns files that Landlock lets it read; these are in its own
 * folder, where Landlock refuses nothing. */
static void confine(void)
{
	static struct fetcher_request_message q = {.max_bytes = 1 << 20};
	int err;

	snprintf(q.folder, sizeof(q.folder), "%s/folder", getenv("TMPDIR"));
	snprintf(own_file, sizeof(own_file), "%s/file", q.folder);
	CHECK(!mkdir(q.folder, 0700));
	close(open(own_file, O_WRONLY | O_CREAT, 0600));
	CHECK(!truncate(own_file, 100));
	err = fetcher_confine(&q);
	if (err == -ENOSYS)
		SKIP("the kernel has no Landlock");
	CHECK_INT(err, 0);
}

/* Each would succeed, of the file's owner. */
static void check_changes(int fd, const char *other)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	int on = 1;

	CHECK_INT(errno_of(syscall(SYS_truncate, own_file, 0)), EPERM);
	CHECK_INT(errno_of(open(own_file, O_RDONLY | O_TRUNC)), EPERM);
	CHECK_INT(errno_of(open(own_file, 3 | O_TRUNC)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_openat2, AT_FDCWD, own_file, NULL, 0)), ENOSYS);
	CHECK_INT(errno_of(utimensat(AT_FDCWD, own_file, times, 0)), EPERM);
	CHECK_INT(errno_of(futimens(fd, times)), EPERM);
	CHECK_INT(errno_of(chmod(own_file, 0666)), EPERM);
	CHECK_INT(errno_of(fchmod(fd, 0666)), EPERM);
	CHECK_INT(errno_of(chown(own_file, getuid(), getgid())), EPERM);
	CHECK_INT(errno_of(link(own_file, other)), EPERM);
	CHECK_INT(errno_of(symlink(own_file, other)), EPERM);
	CHECK_INT(errno_of(mknod(other, S_IFIFO | 0600, 0)), EPERM);
	CHECK_INT(errno_of(ioctl(fd, FS_IOC_SETFLAGS, &on)), EPERM);
	CHECK_INT(errno_of(fcntl(fd, F_SETLEASE, F_RDLCK)), EPERM);
	CHECK_INT(errno_of(fcntl(fd, F_SETOWN, getppid())), EPERM);
	CHECK_INT(errno_of(kill(getppid(), 0)), EPERM);
	CHECK_INT(errno_of(setpriority(PRIO_PROCESS, 0, 19)), EPERM);
	CHECK_INT(errno_of(shmget(IPC_PRIVATE, 4096, 0600)), EPERM);
#ifdef __x86_64__
	CHECK_INT(errno_of(syscall(SYS_open, own_file, O_RDONLY | O_TRUNC)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_link, own_file, other)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_symlink, own_file, other)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_mknod, other, S_IFIFO | 0600, 0)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_utime, own_file, NULL)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_utimes, own_file, NULL)), EPERM);
	CHECK_INT(errno_of(syscall(SYS_futimesat, AT_FDCWD, own_file, NULL)), EPERM);
#endif
}

TEST(a_confined_process_changes_no_file)
{
	struct stat before, after;
	char other[PATH_MAX];
	int fd;

	snprintf(other, sizeof(other), "%s/folder/other", getenv("TMPDIR"));
	confine();
	fd = open(own_file, O_RDONLY);
	CHECK(fd >= 0 && !fstat(fd, &before));
	check_changes(fd, other);
	/* setxattrat .. file_setattr, and those that do not exist yet */
	for (long call = 463; call < 600; call++)
		CHECK_INT(errno_of(syscall(call, AT_FDCWD, own_file, 0, 0, 0, 0)), ENOSYS);
	CHECK(!fstat(fd, &after));
	CHECK_INT(after.st_size, 100);
	CHECK(!memcmp(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim)));
	_exit(0); /* the search for leaks needs a process */
}

/* What libdebuginfod, curl, the resolver and TLS do. */
TEST(a_confined_process_can_fetch)
{
	char other[PATH_MAX];
	int fd, s, on = 1;

	snprintf(other, sizeof(other), "%s/folder/other", getenv("TMPDIR"));
	confine();
	fd = open(own_file, O_RDWR | O_TRUNC);
	CHECK(fd >= 0 && write(fd, "data", 4) == 4 && !ftruncate(fd, 2));
	CHECK(!rename(own_file, other) && !unlink(other));
	CHECK(!mkdir(other, 0700) && !rmdir(other));
	s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(s >= 0 && !ioctl(s, FIONBIO, &on));
	CHECK(fcntl(s, F_SETFL, O_NONBLOCK) == 0 && fcntl(s, F_GETFD) == FD_CLOEXEC);
	CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	CHECK_INT(errno_of(socket(AF_UNIX, SOCK_STREAM, 0)), EPERM);
	fd = open("/etc/hosts", O_RDONLY);
	CHECK(fd >= 0 || errno == ENOENT);
	CHECK_INT(errno_of(open("/etc/passwd", O_RDONLY)), EACCES);
	_exit(0);
}
