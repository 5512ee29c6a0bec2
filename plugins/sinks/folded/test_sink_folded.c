/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/folded
#include <limits.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/cancel.h"
#include "lib/pause.h"

extern const struct fusee_plugin fusee_plugin;

static char dir[64], path[96];

static void scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/fusee-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out.folded", dir);
}

static struct fake *started(const char *max_size)
{
	return begun(fake_new(&fusee_plugin, "path", path, "max_size", max_size, NULL));
}

static int deliver(struct fake *f, uint32_t stacks, const char *process)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 1, stacks, "host", "h", "process", process,
						     NULL);
	int r = fake_consume(f, p, 0);

	builder_free(b);
	return r;
}

/* A file's text; owned by this function. */
static const char *text_of(const char *name)
{
	static struct buf b;
	int fd = open(name, O_RDONLY);

	CHECK(fd >= 0);
	buf_reset(&b);
	CHECK_INT(buf_read_fd(&b, fd, 64 << 20), 0);
	CHECK_INT(buf_add(&b, "", 1), 0);
	close(fd);
	return b.p;
}

TEST(appends)
{
	struct fake *f;

	scratch();
	f = started("1MiB");
	CHECK_INT(deliver(f, 2, "web"), 0);
	CHECK_STR(text_of(path), "web;main;work_0 10000000\nweb;main;work_1 10000000\n");
	CHECK_INT(deliver(f, 1, "a;b\nc"), 0);
	CHECK_INT(deliver(f, 1, ""), 0);
	CHECK_STR(text_of(path), "web;main;work_0 10000000\nweb;main;work_1 10000000\n"
				 "a:b c;main;work_0 10000000\nmain;work_0 10000000\n");
	CHECK_INT(fake_count(f, "bytes_written"), strlen(text_of(path)));
	fake_free(f);
	f = begun(fake_new(&fusee_plugin, "path", path, "root", "", NULL));
	CHECK(!unlink(path)); /* as logrotate does */
	CHECK_INT(deliver(f, 1, "web"), 0);
	CHECK_STR(text_of(path), "main;work_0 10000000\n");
	CHECK_INT(deliver(f, 0, "web"), 0);
	CHECK_STR(text_of(path), "main;work_0 10000000\n");
	fake_free(f);
}

TEST(steps_aside_when_it_is_large)
{
	char old[128];
	struct fake *f;
	struct stat st;
	size_t total = 0;

	scratch();
	snprintf(old, sizeof(old), "%s.1", path);
	f = started("100");
	for (int i = 0; i < 20; i++) {
		CHECK_INT(deliver(f, 1, "web"), 0);
		CHECK(!stat(path, &st) && st.st_size <= 100);
		total += 25;
	}
	CHECK_INT(strlen(text_of(path)), 100);
	CHECK_INT(strlen(text_of(old)), 100);
	CHECK_INT(fake_count(f, "bytes_written"), total);
	/* a window larger than the limit is a file of its own */
	CHECK_INT(deliver(f, 10, "web"), 0);
	CHECK_INT(strlen(text_of(path)), 250);
	fake_free(f);
}

static void refused(const char *where, int err, const char *text)
{
	struct fake *f = fake_new(&fusee_plugin, "path", where, NULL);

	CHECK_INT(fake_init(f), err);
	CHECK_STR(f->error, text);
	fake_free(f);
}

TEST(refuses)
{
	refused("", -EINVAL, "option 'path' is empty; '-' is standard output");
	refused("/", -EISDIR, "cannot open '/': Is a directory");
	refused("/nope/x", -ENOENT, "cannot open '/nope/x': No such file or directory");
}

TEST(standard_output)
{
	struct fake *f = fake_new(&fusee_plugin, "path", "-", NULL);
	int out = dup(1), fd;

	scratch();
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	fflush(stdout);
	CHECK_INT(fake_init(f), 0);
	CHECK(dup2(fd, 1) == 1);
	CHECK_INT(deliver(f, 1000, "web"), 0);
	CHECK(dup2(out, 1) == 1);
	CHECK(strstr(text_of(path), "web;main;work_0 10000000\n"));
	CHECK(strstr(text_of(path), "web;main;work_999 10000000\n"));
	fake_free(f);
}

/* ---- pipes ---- */

static int deliver_much(struct fake *f)
{
	return deliver(f, 20000, "web");
}

TEST(a_pipe_that_nobody_reads)
{
	struct fake *f;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	scratch();
	CHECK(!mkfifo(path, 0600));
	f = started("0");
	CHECK_INT(deliver(f, 1, "web"), -EAGAIN);
	CHECK(strstr(f->error, "no process reads the pipe '"));
	fd = open(path, O_RDONLY | O_NONBLOCK);
	CHECK_INT(deliver(f, 1, "web"), 0);
	check_cancel(f, deliver_much);
	close(fd);
	fake_free(f);
}

TEST(standard_output_that_nobody_reads)
{
	struct fake *f = fake_new(&fusee_plugin, "path", "-", NULL);
	int out = dup(1), fds[2];

	fflush(stdout);
	CHECK(!pipe(fds) && dup2(fds[1], 1) == 1);
	CHECK_INT(fake_init(f), 0);
	check_cancel(f, deliver_much);
	CHECK(dup2(out, 1) == 1);
	fake_free(f);
}

TEST(a_reader_that_goes)
{
	struct fake *f = fake_new(&fusee_plugin, "path", "-", NULL);
	int out = dup(1), fds[2];

	signal(SIGPIPE, SIG_IGN);
	fflush(stdout);
	CHECK(!pipe(fds) && dup2(fds[1], 1) == 1);
	close(fds[0]);
	CHECK_INT(fake_init(f), 0);
	CHECK_INT(deliver(f, 1, "web"), -EPIPE);
	CHECK_STR(f->error, "cannot write to standard output: Broken pipe");
	CHECK(dup2(out, 1) == 1);
	fake_free(f);
}

static void *slow_reader(void *arg)
{
	static char all[8 << 20];
	size_t n = 0;
	ssize_t r;

	while ((r = read(*(int *)arg, all + n, 3000)) > 0) {
		n += (size_t)r;
		if (n < 30000)
			pause_us(1000, "a reader that is slow");
	}
	all[n] = '\0';
	return all;
}

/* A window larger than a pipe arrives completely. */
TEST(a_slow_reader)
{
	struct fake *f = fake_new(&fusee_plugin, "path", "-", NULL);
	int out = dup(1), fds[2];
	pthread_t t;
	void *all;

	fflush(stdout);
	CHECK(!pipe(fds) && dup2(fds[1], 1) == 1);
	CHECK(!pthread_create(&t, NULL, slow_reader, &fds[0]));
	CHECK_INT(fake_init(f), 0);
	CHECK_INT(deliver(f, 10000, "web"), 0);
	CHECK(dup2(out, 1) == 1);
	close(fds[1]);
	pthread_join(t, &all);
	CHECK_INT(strlen(all), fake_count(f, "bytes_written"));
	CHECK(strstr(all, "web;main;work_9999 10000000\n"));
	fake_free(f);
}

/* ---- disks that are full ---- */

/* The kernel writes what still fits under RLIMIT_FSIZE, then fails: half a window is taken back. */
TEST(a_truncated_write)
{
	struct rlimit limit = {1000, 1000};
	struct fake *f;

	signal(SIGXFSZ, SIG_IGN);
	scratch();
	f = started("1MiB");
	CHECK_INT(deliver(f, 10, "web"), 0);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK_INT(deliver(f, 100, "web"), -EFBIG);
	CHECK_INT(strlen(text_of(path)), 250);
	CHECK_INT(deliver(f, 10, "web"), 0);
	CHECK_INT(strlen(text_of(path)), 500);
	fake_free(f);
}

TEST(a_full_disk)
{
	int flags = CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0);
	struct fake *f;
	size_t before;

	scratch();
	if (unshare(flags) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("fusee-test", dir, "tmpfs", 0, "size=64k"))
		SKIP("mount namespaces are refused here");
	f = started("1MiB");
	CHECK_INT(deliver(f, 1000, "web"), 0);
	before = strlen(text_of(path));
	CHECK_INT(deliver(f, 2000, "web"), -ENOSPC);
	CHECK(strstr(f->error, "No space left on device"));
	CHECK_INT(strlen(text_of(path)), before);
	CHECK_INT(deliver(f, 100, "web"), 0);
	CHECK(!umount2(dir, MNT_DETACH));
	fake_free(f);
	rmdir(dir);
}
