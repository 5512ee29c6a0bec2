/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/pprof
#include <dirent.h>
#include <sys/file.h>

#include "lib/clock.h"
#include "lib/folder_sink.h"
#include "name.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* All names in dir, sorted, a line each. */
static const char *list(void)
{
	static char all[16384], names[256][NAME_SIZE];
	struct dirent *e;
	DIR *d = opendir(dir);
	size_t n = 0;

	CHECK(d);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
			CHECK(n < 256);
			snprintf(names[n++], sizeof(*names), "%.159s", e->d_name);
		}
	closedir(d);
	qsort(names, n, sizeof(*names), by_text);
	*all = '\0';
	for (size_t i = 0; i < n; i++) {
		strcat(all, names[i]);
		strcat(all, "\n");
	}
	return all;
}

static int files(void)
{
	int n = 0;

	for (const char *at = list(); (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

static uint64_t size_of(const char *name)
{
	struct stat st;

	CHECK(!stat(in_dir(name), &st));
	return (uint64_t)st.st_size;
}

/* ---- names ---- */

static const char *name_of(uint32_t id, const char *key, const char *value)
{
	static char name[NAME_SIZE];
	struct builder *b;

	name_make(name, fake_profile(&b, id, 1, key, value, NULL));
	builder_free(b);
	CHECK(name_is_ours(name, NULL));
	return name;
}

TEST(names)
{
	char longest[300] = {0}, part[NAME_SIZE], first[NAME_SIZE];
	uint64_t ns;

	CHECK_STR(name_of(0x11223344, "service_name", "shop"),
		  "2026-11-21T08-15-00Z-shop-666deb24-4433221100000000.pb.gz");
	CHECK(strstr(name_of(1, "process", "../../etc/x y;\n'\xff"), "Z-.._.._etc_x_y______-"));
	CHECK(strstr(name_of(1, "team", "a"), "Z-all-"));
	CHECK(strstr(name_of(1, NULL, NULL), "Z-all-811c9dc5-0100000000000000.pb.gz"));
	snprintf(first, sizeof(first), "%s", name_of(1, "process", "a"));
	CHECK(strcmp(first, name_of(1, "process", "b")) &&
	      strcmp(first, name_of(2, "process", "a")));
	CHECK_STR(first, name_of(1, "process", "a"));
	CHECK(name_is_ours(first, &ns) && ns == 1795248900ull * NS);
	memset(longest, 'x', 299);
	name_make_unfinished(part, name_of(1, "process", longest));
	CHECK(name_is_unfinished(part) && !name_is_ours(part, NULL));
}

TEST(names_of_others)
{
	static const char *const others[] = {
		"",
		"x",
		".pb.gz",
		"2026-11-21.pb.gz",
		"fusee.pb.gz",
		"2026-11-21T08-15-00Z-shop-fb30cbaf-4433221100000000.pb.gz.bak",
		"2026-11-21T08-15-00Z-shop-fb30cbaf-4433221100000000.pb",
		"2026-11-21T08-15-00Z-shop-fb30cbaf-44332211000000zz.pb.gz",
		"2026-11-21T08-15-00Z-shop-fb30cbag-4433221100000000.pb.gz",
		"2026-11-21T08-15-00Z-shop+fb30cbaf-4433221100000000.pb.gz",
		"2026-11-21T08-15-00Zxshop-fb30cbaf-4433221100000000.pb.gz",
		"2026-11-21 08-15-00Z-shop-fb30cbaf-4433221100000000.pb.gz",
		"2026-13-41T28-15-00Z-shop-fb30cbaf-4433221100000000.pb.gz",
		"2026-11-21T08-15-00Z-sh op-fb30cbaf-4433221100000000.pb.gz",
		".2026-11-21T08-15-00Z-shop-fb30cbaf-4433221100000000.pb.gz",
	};
	char longest[400];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		CHECK(!name_is_ours(others[i], NULL));
		CHECK(!name_is_unfinished(others[i]));
	}
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "2026-11-21T08-15-00Z-", 21);
	memcpy(longest + 350, "-fb30cbaf-4433221100000000.pb.gz", 33);
	CHECK(!name_is_ours(longest, NULL));
}

/* ---- init ---- */

TEST(makes_its_directory)
{
	struct fake *f;
	struct stat st;

	umask(077);
	scratch();
	f = begun(fake_new(&fusee_plugin, "dir", in_dir("a/b/c"), "mode", "0644", NULL));
	CHECK(!stat(in_dir("a/b/c"), &st) && S_ISDIR(st.st_mode));
	CHECK_INT(deliver(f, 1, 1, now()), 0);
	fake_free(f);
}

/* What else is refused is tested by plugins/lib/folder/test_folder.c. */
TEST(refuses)
{
	scratch();
	refused("dir", "", -EINVAL, "option 'dir' is empty");
	refused("mode", "rw", -EINVAL,
		"option 'mode': 'rw' is not an octal number from 0600 to 0666, such as 0640");
}

/* ---- writing ---- */

TEST(a_window_is_a_file)
{
	struct fake *f;
	struct pprof_file *file;
	struct buf b = {0};
	const char *why;
	struct stat st;
	char name[NAME_SIZE];
	int fd;

	umask(077);
	scratch();
	f = started("0", "0");
	CHECK_INT(deliver(f, 7, 3, 1795248900 * NS), 0);
	CHECK_INT(files(), 1);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(list(), "\n"), list());
	CHECK(strstr(name, "2026-11-21T08-15-00Z-web-"));
	CHECK(!stat(in_dir(name), &st));
	CHECK_INT(st.st_mode & 07777, 0640);
	fd = open(in_dir(name), O_RDONLY);
	CHECK_INT(buf_read_fd(&b, fd, 1 << 20), 0);
	close(fd);
	CHECK_INT(pprof_decode(b.p, b.len, &file, &why), 0);
	CHECK_INT(pprof_profile(file)->samples.n, 3);
	pprof_free(file);
	CHECK_INT(fake_count(f, "bytes_written"), b.len);
	buf_fini(&b);
	/* the same once more is the same file; another target's is another */
	CHECK_INT(deliver(f, 7, 3, 1795248900 * NS), 0);
	CHECK_INT(files(), 1);
	CHECK_INT(deliver(f, 8, 3, 1795248900 * NS), 0);
	CHECK_INT(files(), 2);
	fake_free(f);
}

TEST(planted_links_are_not_followed)
{
	char name[NAME_SIZE], part[NAME_SIZE];
	struct fake *f;
	struct stat st;

	scratch();
	put("victim", "precious");
	snprintf(name, sizeof(name), "%s", name_of(7, "process", "web"));
	name_make_unfinished(part, name);
	CHECK(!symlink("victim", in_dir(name)) && !symlink("victim", in_dir(part)));
	f = started("0", "0");
	CHECK_INT(deliver(f, 7, 3, 1795248900 * NS), 0);
	CHECK_INT(size_of("victim"), 8);
	CHECK(!lstat(in_dir(name), &st) && S_ISREG(st.st_mode));
	CHECK(lstat(in_dir(part), &st) && errno == ENOENT);
	fake_free(f);
}

TEST(leftovers_go_but_not_those_under_way)
{
	char abandoned[NAME_SIZE], busy[NAME_SIZE];
	int fd;

	scratch();
	name_make_unfinished(abandoned, name_of(1, "process", "abandoned"));
	name_make_unfinished(busy, name_of(2, "process", "busy"));
	put(abandoned, "half");
	put(busy, "half");
	put(".other.part", "half");
	fd = open(in_dir(busy), O_RDONLY);
	CHECK(!flock(fd, LOCK_EX));
	fake_free(started("7d", "1GiB"));
	CHECK(!exists(abandoned));
	CHECK(exists(busy));
	CHECK(exists(".other.part"));
	close(fd);
	fake_free(started("7d", "1GiB"));
	CHECK(!exists(busy));
	CHECK(exists(".other.part"));
}

static int starts_next; /* calls of flock() that come too late */

/* Another sink starts just before. */
int flock(int fd, int operation)
{
	static bool starting;

	if (starts_next && !starting) {
		starting = true;
		starts_next--;
		fake_free(started("7d", "1GiB"));
		starting = false;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

TEST(starts_beside_a_writer)
{
	struct fake *f;

	scratch();
	f = started("7d", "1GiB");
	for (int starts = 1; starts < 4; starts++) {
		starts_next = starts;
		CHECK_INT(deliver(f, (uint32_t)starts, 1, now()), 0);
		CHECK_INT(starts_next, 0);
		CHECK(strstr(list(), ".pb.gz") && !strstr(list(), ".part"));
	}
	fake_free(f);
}

TEST(the_directory_may_vanish)
{
	struct fake *f;

	scratch();
	f = begun(fake_new(&fusee_plugin, "dir", in_dir("d"), NULL));
	CHECK(!rmdir(in_dir("d")));
	CHECK_INT(deliver(f, 1, 1, now()), 0);
	CHECK_STR(shell("rm -r d"), "");
	put("d", "");
	CHECK_INT(deliver(f, 2, 1, now()), -ENOTDIR);
	CHECK(strstr(f->error, "cannot open directory '"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"other\"}"), 1);
	fake_free(f);
}

/* ---- which files go ---- */

TEST(old_files_go)
{
	struct fake *f;
	uint64_t t = now();

	scratch();
	put("notes.txt", "");
	put("2020-01-01.pb.gz", "");
	put("2020-01-01T00-00-00Z-x-00000000-0000000000000000.pb.gz", "old");
	f = started("0", "0");
	CHECK_INT(deliver(f, 1, 1, t - 90 * MINUTE), 0);
	CHECK_INT(deliver(f, 2, 1, t - 30 * MINUTE), 0);
	CHECK_INT(files(), 5);
	fake_free(f);
	f = started("1h", "0");
	CHECK_INT(files(), 3);
	CHECK_INT(fake_count(f, "files_removed{reason=\"keep\"}"), 2);
	CHECK_INT(deliver(f, 3, 1, t), 0);
	CHECK_INT(files(), 4);
	CHECK(strstr(list(), "notes.txt\n") && strstr(list(), "2020-01-01.pb.gz\n"));
	fake_free(f);
}

TEST(old_files_go_while_it_runs)
{
	struct fake *f;

	scratch();
	f = started("2s", "0");
	CHECK_INT(deliver(f, 1, 1, now()), 0);
	CHECK_INT(files(), 1);
	clock_skip(4);
	CHECK_INT(deliver(f, 2, 1, now()), 0);
	CHECK_INT(files(), 1);
	CHECK_INT(fake_count(f, "files_removed{reason=\"keep\"}"), 1);
	fake_free(f);
}

TEST(the_oldest_make_room)
{
	uint64_t t = now() - 100 * MINUTE, total, one;
	struct fake *f;
	char limit[32];
	struct buf newest = {0};

	scratch();
	f = started("0", "0");
	CHECK_INT(deliver(f, 1, 20, t), 0);
	one = fake_count(f, "bytes_written");
	fake_free(f);
	put("large", "others' files don't count");
	CHECK(!truncate(in_dir("large"), 1 << 20));
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)(one * 5 + one / 2));
	f = started("0", limit);
	for (uint32_t i = 2; i <= 40; i++) {
		CHECK_INT(deliver(f, i, 20, t + i * MINUTE), 0);
		CHECK(files() <= 6); /* five of ours and `large` */
	}
	CHECK(files() >= 5);
	total = fake_count(f, "files_removed{reason=\"max_size\"}");
	CHECK_INT(total, 40 - (uint64_t)(files() - 1));
	buf_str(&newest, list());
	CHECK(newest.len > 30 && memmem(newest.p, newest.len, "-2800000000000000.pb.gz", 23));
	CHECK(!memmem(newest.p, newest.len, "-0100000000000000.pb.gz", 23));
	CHECK(memmem(newest.p, newest.len, "large", 5));
	buf_fini(&newest);
	CHECK_INT(deliver(f, 41, 2000, t), -EFBIG);
	CHECK(strstr(f->error, "more than 'max_size' allows"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"max_size\"}"), 1);
	fake_free(f);
}

TEST(links_of_our_names_stay)
{
	scratch();
	put("victim", "precious");
	CHECK(!symlink("victim", in_dir("2020-01-01T00-00-00Z-x-00000000-0000000000000000.pb.gz")));
	CHECK(!mkdir(in_dir("2020-01-02T00-00-00Z-x-00000000-0000000000000000.pb.gz"), 0700));
	fake_free(started("1h", "1KiB"));
	CHECK_INT(files(), 3);
}

/* More files than a look remembers. */
TEST(very_many_files)
{
	struct fake *f;

	scratch();
	for (int i = 0; i < 9000; i++) {
		char name[NAME_SIZE];
		int fd;

		snprintf(name, sizeof(name), "2020-01-01T%02d-%02d-%02dZ-x-00000000-%016x.pb.gz",
			 i / 3600, i / 60 % 60, i % 60, i);
		fd = open(in_dir(name), O_WRONLY | O_CREAT, 0600);
		CHECK(fd >= 0 && write(fd, "x", 1) == 1);
		close(fd);
	}
	f = started("0", "3200");
	CHECK_INT(fake_count(f, "files_removed{reason=\"max_size\"}"), 9000 - 3100);
	CHECK(!exists("2020-01-01T01-38-19Z-x-00000000-000000000000170b.pb.gz"));
	CHECK(exists("2020-01-01T01-38-20Z-x-00000000-000000000000170c.pb.gz"));
	fake_free(f);
	f = started("1h", "0");
	CHECK_INT(files(), 0);
	fake_free(f);
}

/* ---- disks that fail ---- */

TEST(errors_of_the_disk)
{
	scratch();
	check_disk_errors(files, 1);
}

TEST(a_full_disk)
{
	struct fake *f;
	uint32_t room;
	char name[NAME_SIZE];

	scratch();
	small_disk("size=64k");
	f = started("7d", "1GiB");
	room = fill(f);
	CHECK_INT(files(), (int)room);
	CHECK(!strstr(list(), ".part"));
	CHECK_INT(deliver(f, 1000, 50, now()), -ENOSPC);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"no space\"}"), 2);
	/* room again: it goes on */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(list(), "\n"), list());
	CHECK(!unlink(in_dir(name)));
	CHECK_INT(deliver(f, 1001, 50, now()), 0);
	CHECK_INT(files(), (int)room);
	fake_free(f);
}

/* Room is made before a file is written: a full disk does not keep old files for ever. */
TEST(old_files_go_from_a_full_disk)
{
	struct fake *f;
	uint32_t i = 0;

	scratch();
	small_disk("size=64k");
	f = started("0", "0");
	while (!deliver(f, ++i, 50, now() - 120 * MINUTE))
		;
	fake_free(f);
	f = started("1h", "0");
	CHECK_INT(files(), 0);
	CHECK_INT(deliver(f, ++i, 50, now()), 0);
	fake_free(f);
}
