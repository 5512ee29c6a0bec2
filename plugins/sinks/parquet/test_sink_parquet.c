/* SPDX-License-Identifier: Apache-2.0 */
// check: overlaps
/* The folder of sink.parquet. What its files hold is tested by tests/run/parquet. */
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/fakehost.h"
#include "lib/scratch.h"
#include "folder.h"

#define NS 1000000000ull
#define MINUTE (60 * NS)
#define T 1795248900ull /* 2026-11-21T08:15:00Z */

extern const struct fusee_plugin fusee_plugin;

static int fsync_error; /* of the next calls */

int fsync(int fd)
{
	errno = fsync_error;
	return fsync_error ? -1 : (int)syscall(SYS_fsync, fd);
}

/* ---- help ---- */

static int cleans_next; /* calls of flock() that come too late */

int flock(int fd, int operation)
{
	static bool cleaning;
	int at;

	if (cleans_next && !cleaning) {
		cleaning = true;
		cleans_next--;
		at = open(dir, O_RDONLY | O_DIRECTORY);
		CHECK_INT(folder_clean(at), 1);
		close(at);
		cleaning = false;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static const char *in_dir(const char *name)
{
	static char paths[4][512];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
	return paths[turn];
}

static int files(const char *where)
{
	char command[128];

	snprintf(command, sizeof(command), "find %s -type f ! -name 'lock-*' 2>/dev/null | wc -l",
		 where);
	return atoi(shell(command));
}

static uint64_t now(void)
{
	return (uint64_t)time(NULL) * NS;
}

/* Delivers a profile of a window that began then. */
static int deliver(struct fake *f, uint32_t id, uint32_t stacks, uint64_t start_ns)
{
	struct builder *b;
	struct fusee_profile p = *fake_profile(&b, id, stacks, "process", "web", "host", "a/b",
					       NULL);
	int r;

	p.start_ns = start_ns;
	r = fake_consume(f, &p, 0);
	builder_free(b);
	return r;
}

static struct fake *started(const char *keep, const char *max_size)
{
	struct fake *f = fake_new(&fusee_plugin, "dir", dir, "keep", keep, "max_size", max_size,
				  NULL);

	CHECK_INT(fake_init(f), 0);
	return f;
}

/* ---- files ---- */

#define PARTITION "date=2026-11-21/hour=08/"
#define NAME "2026-11-21T08-15-00Z-a_b-0700000000000000.parquet"

/* Metadata is bounded at characters: half of one is no text. */
TEST(a_long_reason_of_losses_costs_no_window)
{
	char reason[402];
	struct fusee_label loss = {.str = FUSEE_TEXT("lost"), .num = 7};
	struct builder *b;
	struct fusee_profile p;
	struct fake *f;

	for (int i = 0; i < 402; i += 3)
		memcpy(reason + i, "\xe2\x82\xac", 3);
	scratch();
	f = started("0", "0");
	for (uint64_t len = 198; len <= 402; len += 3) {
		loss.key = (struct fusee_str){reason, len};
		p = *fake_profile(&b, 7, 3, "process", "web", NULL);
		p.losses = (struct fusee_table){&loss, 1, sizeof(loss)};
		CHECK_INT(fake_consume(f, &p, 0), 0);
		builder_free(b);
	}
	fake_free(f);
	clean();
}

TEST(a_window_is_two_files)
{
	struct fake *f;
	struct stat st;

	umask(077);
	scratch();
	f = started("0", "0");
	CHECK_INT(deliver(f, 7, 3, T * NS), 0);
	CHECK_INT(files("."), 2);
	CHECK(!stat(in_dir("samples/" PARTITION NAME), &st));
	CHECK_INT(st.st_mode & 07777, 0640);
	CHECK_INT(fake_count(f, "rows_written"), 3);
	CHECK(!stat(in_dir("stacks/" PARTITION NAME), &st));
	CHECK_STR(shell("head -c 4 samples/" PARTITION NAME), "PAR1");
	CHECK_INT(atoi(shell("cat */*/*/* | wc -c")), fake_count(f, "bytes_written"));
	/* the same once more is the same; another is another */
	CHECK_INT(deliver(f, 7, 3, T * NS), 0);
	CHECK_INT(files("."), 2);
	CHECK_INT(deliver(f, 8, 3, T * NS), 0);
	CHECK_INT(files("."), 4);
	fake_free(f);
	clean();
}

TEST(planted_links_are_not_followed)
{
	struct fake *f;
	struct stat st;

	scratch();
	shell("mkdir victim && echo precious > victim/file && mkdir -p samples/" PARTITION
	      " .unfinished && ln -s ../../../victim/file samples/" PARTITION NAME
	      " && ln -s ../victim/file .unfinished/" NAME ".samples");
	f = started("0", "0");
	CHECK_INT(deliver(f, 7, 3, T * NS), 0);
	CHECK_STR(shell("cat victim/file"), "precious");
	CHECK(!lstat(in_dir("samples/" PARTITION NAME), &st) && S_ISREG(st.st_mode));
	shell("rm -rf stacks samples && ln -s victim samples");
	CHECK(deliver(f, 7, 3, T * NS) != 0);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"other\"}"), 1);
	CHECK_INT(files("victim"), 1);
	fake_free(f);
	clean();
}

TEST(leftovers_go_but_not_those_under_way)
{
	struct fake *f;
	int fd;

	scratch();
	shell("mkdir .unfinished && cd .unfinished && echo x > " NAME ".samples && echo x > " NAME
	      ".stacks && echo x > other.samples");
	fd = open(in_dir(".unfinished/" NAME ".stacks"), O_RDONLY);
	CHECK(fd >= 0 && !flock(fd, LOCK_EX));
	f = started("0", "0");
	CHECK_INT(fake_count(f, "files_removed{reason=\"unfinished\"}"), 1);
	CHECK_INT(files("."), 2);
	fake_free(f);
	close(fd);
	f = started("0", "0");
	CHECK_INT(fake_count(f, "files_removed{reason=\"unfinished\"}"), 1);
	CHECK_INT(files("."), 1);
	fake_free(f);
	clean();
}

/* An agent that starts looks for unfinished files before another has locked its own. */
TEST(starts_beside_a_writer)
{
	struct fake *f;

	scratch();
	f = started("0", "0");
	for (int cleans = 1; cleans < 4; cleans++) {
		cleans_next = cleans;
		CHECK_INT(deliver(f, (uint32_t)cleans, 1, T * NS), 0);
		CHECK_INT(cleans_next, 0);
	}
	CHECK_INT(files("samples"), 3);
	CHECK_INT(files("."), 6);
	fake_free(f);
	clean();
}

/* ---- which files go ---- */

TEST(old_files_go_with_their_folders)
{
	struct fake *f;
	uint64_t t = now();

	scratch();
	f = started("0", "0");
	CHECK_INT(deliver(f, 1, 1, T * NS - 26 * 60 * MINUTE), 0);
	CHECK_INT(deliver(f, 2, 1, t - 30 * MINUTE), 0);
	shell("mkdir -p samples/date=2020-01-01/hour=00 && echo x > "
	      "samples/date=2020-01-01/hour=00/notes");
	shell("cp stacks/*/*/* . ");
	fake_free(f);
	f = started("1h", "0");
	CHECK_INT(fake_count(f, "files_removed{reason=\"keep\"}"), 2);
	CHECK_INT(files("samples"), 2);
	CHECK_INT(files("stacks"), 1);
	CHECK_STR(shell("ls -d stacks/date=* | wc -l | tr -d ' '"), "1");
	CHECK_STR(shell("cat samples/date=2020-01-01/hour=00/notes"), "x");
	CHECK_INT(deliver(f, 3, 1, t), 0);
	CHECK_INT(files("stacks"), 2);
	fake_free(f);
	clean();
}

TEST(the_oldest_make_room)
{
	uint64_t t = now() - 100 * MINUTE, one;
	struct fake *f;
	char limit[32];

	scratch();
	f = started("0", "0");
	CHECK_INT(deliver(f, 1, 20, t), 0);
	one = fake_count(f, "bytes_written");
	fake_free(f);
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)(one * 5 + one / 2));
	f = started("0", limit);
	for (uint32_t i = 2; i <= 30; i++) {
		CHECK_INT(deliver(f, i, 20, t + i * MINUTE), 0);
		/* the oldest window's samples may be room enough without its stacks */
		CHECK(files("samples") <= 5 && files("stacks") <= 6);
	}
	CHECK(files("samples") >= 4);
	CHECK_INT(fake_count(f, "files_removed{reason=\"max_size\"}"), 60 - (uint64_t)files("."));
	CHECK_INT(atoi(shell("find . -name '*-1e00000000000000.parquet' | wc -l")), 2);
	CHECK_INT(deliver(f, 41, 20000, t), -EFBIG);
	CHECK(strstr(f->error, "more than 'max_size' allows"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"max_size\"}"), 1);
	CHECK_INT(files(".unfinished"), 0);
	fake_free(f);
	clean();
}

/* ---- disks that fail ---- */

TEST(errors_of_the_disk)
{
	static const struct {
		int error;
		const char *counter;
	} all[] = {{EIO, "windows_lost{reason=\"i/o error\"}"},
		   {EDQUOT, "windows_lost{reason=\"quota\"}"},
		   {ENOSPC, "windows_lost{reason=\"no space\"}"},
		   {EAGAIN, "windows_lost{reason=\"other\"}"}};
	struct fake *f;

	scratch();
	f = started("7d", "1GiB");
	CHECK_INT(deliver(f, 1, 1, now()), 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		fsync_error = all[i].error;
		CHECK_INT(deliver(f, 2, 1, now()), all[i].error == EAGAIN ? -EIO : -all[i].error);
		CHECK_INT(fake_count(f, all[i].counter), 1);
		CHECK(strstr(f->error, "cannot write '"));
		CHECK(strstr(f->error, strerror(all[i].error)));
		CHECK_INT(files("."), 2);
	}
	fsync_error = 0;
	CHECK_INT(deliver(f, 2, 1, now()), 0);
	CHECK_INT(files("."), 4);
	fake_free(f);
	clean();
}

/* In a mount namespace of the test's own. */
TEST(a_full_disk)
{
	int flags = CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0), r, room;
	struct fake *f;
	uint32_t i = 0;

	scratch();
	if (unshare(flags) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("fusee-test", dir, "tmpfs", 0, "size=128k"))
		SKIP("mount namespaces are refused here");
	f = started("0", "1GiB");
	while (!(r = deliver(f, ++i, 50, now())))
		CHECK(i < 100);
	room = (int)i - 1;
	CHECK(room > 0);
	CHECK_INT(r, -ENOSPC);
	CHECK(strstr(f->error, strerror(ENOSPC)));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"no space\"}"), 1);
	CHECK_INT(files("samples"), room);
	CHECK_INT(files(".unfinished"), 0);
	shell("rm $(ls samples/*/*/* stacks/*/*/* | head -n 1) && rm $(ls stacks/*/*/* | head -n "
	      "1)");
	CHECK_INT(deliver(f, ++i, 50, now()), 0);
	fake_free(f);
	CHECK(!umount(dir));
	rmdir(dir);
}

/* ---- options ---- */

static void refused(const char *option, const char *value, int err, const char *text)
{
	struct fake *f = strcmp(option, "dir")
				 ? fake_new(&fusee_plugin, "dir", dir, option, value, NULL)
				 : fake_new(&fusee_plugin, option, value, NULL);

	CHECK_INT(fake_init(f), err);
	CHECK_STR(f->error, text);
	fake_free(f);
}

TEST(refuses)
{
	char text[512];

	scratch();
	shell("echo > file");
	snprintf(text, sizeof(text), "cannot open directory '%s/file': Not a directory", dir);
	refused("dir", in_dir("file"), -ENOTDIR, text);
	refused("dir", "/proc/nope", -ENOENT,
		"cannot create directory '/proc/nope': No such file or directory; create it, or "
		"name another as 'dir'");
	refused("dir", "", -EINVAL, "set 'dir' to a folder, 'bucket' to s3://NAME/PREFIX, or both");
	refused("mode", "0755", -EINVAL,
		"option 'mode': '0755' is not an octal number from 0600 to 0666, such as 0640");
	clean();
}
