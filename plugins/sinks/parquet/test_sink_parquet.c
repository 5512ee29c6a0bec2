/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* The folder of sink.parquet. What its files hold is tested by tests/run/parquet. */
#include <sys/file.h>

#define LABELS "process", "web", "host", "a/b"
#include "lib/folder_sink.h"
#include "folder.h"

#define T 1795248900ull /* 2026-11-21T08:15:00Z */

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

static int files(const char *where)
{
	char command[128];

	snprintf(command, sizeof(command), "find %s -type f ! -name 'lock-*' 2>/dev/null | wc -l",
		 where);
	return atoi(shell(command));
}

static int all_files(void)
{
	return files(".");
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
}

/* ---- disks that fail ---- */

TEST(errors_of_the_disk)
{
	scratch();
	check_disk_errors(all_files, 2);
}

TEST(a_full_disk)
{
	struct fake *f;
	int room;

	scratch();
	small_disk("size=128k");
	f = started("0", "1GiB");
	room = (int)fill(f);
	CHECK_INT(files("samples"), room);
	CHECK_INT(files(".unfinished"), 0);
	shell("rm $(ls samples/*/*/* stacks/*/*/* | head -n 1) && rm $(ls stacks/*/*/* | head -n "
	      "1)");
	CHECK_INT(deliver(f, 1000, 50, now()), 0);
	fake_free(f);
}

/* ---- options ---- */

/* What else is refused is tested by plugins/lib/folder/test_folder.c. */
TEST(refuses)
{
	scratch();
	refused("dir", "", -EINVAL, "set 'dir' to a folder, 'bucket' to s3://NAME/PREFIX, or both");
	refused("mode", "0755", -EINVAL,
		"option 'mode': '0755' is not an octal number from 0600 to 0666, such as 0640");
}
