/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/folder
/* What sinks of files share. Their own tests (test_sink_pprof, test_sink_parquet) have disks that
 * are full, other file systems, and the order of removal over real names. */
#include "test.h"

#include <sys/file.h>

#include <fusee/folder.h>

#include "lib/clock.h"
#include "lib/fakehost.h"
#include "lib/begun.h"

#define DAY (24 * (uint64_t)FUSEE_HOUR)

static char dir[64];
static int scans;
static int held, held_for; /* a locked file: it is closed in that many attempts to lock it */

/* Waiting for a lock takes no time of a test. */
int usleep(useconds_t us)
{
	clock_skip(us / 1e6);
	if (held_for && !--held_for)
		close(held);
	return 0;
}

/* ---- a sink: "000000012.0" is table 0 of the window that began at 12 s ---- */

struct plug {
	struct fusee_self self;
	struct fusee_folder folder;
};

static uint64_t first_ns; /* of window 0 */

static int each_file(int at, struct fusee_folder_scan *scan)
{
	char name[32];

	scans++;
	for (uint32_t i = 0; i < 40; i++)
		for (uint32_t table = 0; table < 2; table++) {
			snprintf(name, sizeof(name), "%09u.%u", i, table);
			fusee_folder_found(scan, at, name, first_ns + i * FUSEE_SECOND, table);
		}
	return 0;
}

static int remove_file(int at, const char *name, uint32_t table)
{
	CHECK_INT(name[strlen(name) - 1] - '0', table);
	return unlinkat(at, name, 0) ? -errno : 0;
}

static const struct fusee_folder_ops folder_ops = {.each = each_file, .remove = remove_file};

static const struct fusee_option options[] = {
	FUSEE_FOLDER_OPTIONS(struct plug, folder, "7d", "1000"),
};

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct plug *s = ctx;

	fusee_self_init(ctx, in, host);
	return fusee_folder_init(&s->folder, &s->self, &folder_ops);
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	return 0;
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = consume};
FUSEE_PLUGIN(plug, FUSEE_SINK, .version = "0", .doc = "A test.", .options = FUSEE_TABLE(options),
	     .ctx_size = sizeof(struct plug), .init = init, .ops = &ops);

/* ---- help ---- */

static void scratch(void)
{
	snprintf(dir, sizeof(dir), "%.40s/d", getenv("TMPDIR"));
	CHECK(!mkdir(dir, 0700));
	first_ns = (uint64_t)time(NULL) * FUSEE_SECOND - (uint64_t)FUSEE_HOUR;
	scans = 0;
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static bool exists(const char *name)
{
	struct stat st;

	return !lstat(in_dir(name), &st);
}

static void put(const char *name, size_t bytes)
{
	static const char zeros[4096];
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && bytes <= sizeof(zeros));
	CHECK_INT(fusee_folder_write(fd, zeros, bytes), 0);
	close(fd);
}

static struct fake *started(const char *keep, const char *max_size)
{
	return begun(fake_new(&fusee_plugin, "dir", dir, "keep", keep, "max_size", max_size, NULL));
}

static struct fusee_folder *folder(struct fake *f)
{
	return &((struct plug *)f->ctx)->folder;
}

static int make_room(struct fake *f, uint64_t need)
{
	int at = fusee_folder_open(folder(f)), r;

	CHECK(at >= 0);
	r = fusee_folder_make_room(folder(f), at, need);
	close(at);
	return r;
}

/* ---- tests ---- */

TEST(the_oldest_go_first_and_tables_in_order)
{
	struct fake *f;

	scratch();
	put("000000001.0", 100);
	put("000000001.1", 200);
	put("000000002.0", 100);
	put("000000002.1", 200);
	f = started("7d", "1000");
	CHECK_INT((int)folder(f)->bytes, 600);
	CHECK_INT(make_room(f, 400), 0);
	CHECK(exists("000000001.0"));
	/* 60 bytes too many, and 1/32 of max_size for the next windows */
	CHECK_INT(make_room(f, 460), 0);
	CHECK(!exists("000000001.0") && exists("000000001.1"));
	CHECK_INT(make_room(f, 650), 0);
	CHECK(!exists("000000001.1") && exists("000000002.0"));
	CHECK_INT(fake_count(f, "files_removed{reason=\"max_size\"}"), 2);
	CHECK_INT((int)folder(f)->bytes, 300);
	fake_free(f);
}

TEST(too_old)
{
	struct fake *f;

	scratch();
	first_ns -= 30 * DAY;
	put("000000001.0", 100);
	f = started("7d", "0");
	CHECK(!exists("000000001.0"));
	CHECK_INT(fake_count(f, "files_removed{reason=\"keep\"}"), 1);
	fake_free(f);
	put("000000001.0", 100);
	f = started("0", "0");
	CHECK(exists("000000001.0"));
	fake_free(f);
}

TEST(scans_are_rare)
{
	struct fake *f;

	scratch();
	f = started("7d", "1000");
	for (int i = 0; i < 20; i++)
		CHECK_INT(make_room(f, 10), 0);
	CHECK_INT(scans, 1);
	/* other processes write, too: an hour later it looks again */
	folder(f)->next_ns -= (uint64_t)FUSEE_HOUR + FUSEE_MINUTE;
	put("000000003.1", 4000);
	CHECK_INT(make_room(f, 10), 0);
	CHECK_INT(scans, 2);
	CHECK(!exists("000000003.1"));
	fake_free(f);
}

TEST(what_is_not_ours_stays)
{
	struct fake *f;

	scratch();
	first_ns -= 30 * DAY;
	CHECK(!mkdir(in_dir("000000001.0"), 0700));
	CHECK(!symlink("/etc/passwd", in_dir("000000002.0")));
	put("000000003.0", 1);
	if (!geteuid())
		CHECK(!chown(in_dir("000000003.0"), 65534, 65534));
	f = started("7d", "1000");
	CHECK(exists("000000001.0") && exists("000000002.0"));
	CHECK(exists("000000003.0") == !geteuid());
	fake_free(f);
}

TEST(locks_tell_who_writes)
{
	int at, fd, other;
	struct stat st;

	scratch();
	at = open(dir, O_RDONLY | O_DIRECTORY);
	fd = fusee_folder_create(at, "part", 0640);
	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK_INT((int)st.st_mode & 07777, 0640);
	CHECK_INT(fusee_folder_create(at, "part", 0640), -EAGAIN);
	CHECK_INT(fusee_folder_remove_unlocked(at, "part"), 0);
	close(fd); /* as the end of its process does */
	other = fusee_folder_create(at, "part", 0600);
	CHECK(other >= 0);
	close(other);
	CHECK_INT(fusee_folder_remove_unlocked(at, "part"), 1);
	CHECK_INT(fusee_folder_remove_unlocked(at, "part"), 0);
	close(at);
}

/* Another holds the lock for half a second, as on a disk that is slow. */
TEST(a_lock_is_waited_for)
{
	int at, fd;

	scratch();
	at = open(dir, O_RDONLY | O_DIRECTORY);
	held = fusee_folder_create(at, "part", 0600);
	CHECK(held >= 0);
	held_for = 500;
	fd = fusee_folder_create(at, "part", 0600);
	CHECK(fd >= 0 && !held_for);
	close(fd);
	close(at);
}

TEST(what_others_put_there_is_replaced)
{
	int at, fd;
	struct stat st;

	scratch();
	put("victim", 7);
	CHECK(!symlink("victim", in_dir("part")) && !mkfifo(in_dir("pipe"), 0600));
	at = open(dir, O_RDONLY | O_DIRECTORY);
	fd = fusee_folder_create(at, "part", 0600);
	CHECK(fd >= 0 && !fusee_folder_write(fd, "x", 1));
	close(fd);
	CHECK(!stat(in_dir("victim"), &st) && st.st_size == 7);
	CHECK_INT(fusee_folder_remove_unlocked(at, "pipe"), 0);
	fd = fusee_folder_create(at, "pipe", 0600);
	CHECK(fd >= 0);
	close(fd);
	if (!geteuid()) { /* another user's, who holds its lock */
		int theirs = openat(at, "part", O_RDWR);

		CHECK(!fchown(theirs, 65534, 65534) && !flock(theirs, LOCK_EX));
		fd = fusee_folder_create(at, "part", 0600);
		CHECK(fd >= 0 && !fstat(fd, &st) && st.st_uid == 0);
		close(fd);
		close(theirs);
	}
	close(at);
}

TEST(sentences)
{
	static const char *const modes[] = {"", "640x", "0755", "0777", "0440", "0040", "rw"};
	struct fake *f;
	char text[512];

	scratch();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		snprintf(text, sizeof(text),
			 "option 'mode': '%s' is not an octal number from 0600 to 0666, such as "
			 "0640",
			 modes[i]);
		check_refused(fake_new(&fusee_plugin, "dir", dir, "mode", modes[i], NULL), -EINVAL,
			      text);
	}
	check_refused(fake_new(&fusee_plugin, "dir", "", NULL), -EINVAL, "option 'dir' is empty");
	put("file", 1);
	for (int below = 0; below < 2; below++) {
		const char *place = in_dir(below ? "file/x" : "file");

		snprintf(text, sizeof(text), "cannot open directory '%s': Not a directory", place);
		check_refused(fake_new(&fusee_plugin, "dir", place, NULL), -ENOTDIR, text);
	}
	check_refused(fake_new(&fusee_plugin, "dir", "/proc/nope", NULL), -ENOENT,
		      "cannot create directory '/proc/nope': No such file or directory; create it, "
		      "or name another as 'dir'");
	f = begun(fake_new(&fusee_plugin, "dir", in_dir("a/b"), NULL));
	CHECK(!rmdir(in_dir("a/b")) && !rmdir(in_dir("a")));
	CHECK_INT(fusee_folder_open(folder(f)) >= 0, 1); /* it is made again */
	fusee_folder_count_lost(folder(f), -ENOSPC);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"no space\"}"), 1);
	fake_free(f);
}
