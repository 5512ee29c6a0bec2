/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
/* Files that lie behind names of others: what is opened, and what is only looked at. */
#include "test.h"

#include <linux/openat2.h>
#include <sys/inotify.h>

#include "process/safe_open.h"

static const char *at(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	return path;
}

static void write_file(const char *name)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	close(fd);
}

/* How often files of the folder were opened since the last call. */
static int opened(int watch)
{
	char events[4096];
	ssize_t n = read(watch, events, sizeof(events));
	int count = 0;

	for (ssize_t i = 0; i < n; count++)
		i += (ssize_t)(sizeof(struct inotify_event) +
			       ((struct inotify_event *)(events + i))->len);
	return count;
}

/* The mapping of a file of the folder. Its name is in a buffer that at() does not use. */
static struct procfs_mapping map(const char *name, bool unmap)
{
	static char path[128];
	int fd = open(at(name), O_RDONLY | O_CLOEXEC);
	struct procfs_mapping m = {0};
	struct stat st;
	char *p;

	CHECK(fd >= 0 && !fstat(fd, &st));
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	snprintf(path, sizeof(path), "%s", at(name));
	m.lo = (uint64_t)(uintptr_t)p;
	m.hi = m.lo + 4096;
	m.ino = st.st_ino;
	m.name = path;
	if (unmap)
		munmap(p, 4096);
	return m;
}

static int open_name(int root, const char *path, uint64_t resolve, struct stat *st)
{
	int held = safe_hold(root, path, resolve), fd;

	if (held < 0)
		return held;
	fd = safe_reopen(held, st);
	close(held);
	return fd;
}

TEST(only_regular_files_are_opened)
{
	int root = open("/", O_PATH | O_CLOEXEC), watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), fd; /* nobody else opens it */
	char device[64];
	struct stat st;

	CHECK(terminal >= 0 && !ptsname_r(terminal, device, sizeof(device)));
	write_file("file");
	CHECK_INT(mkfifo(at("fifo"), 0600), 0);
	CHECK_INT(symlink(device, at("device")), 0);
	CHECK(inotify_add_watch(watch, test_dir(), IN_OPEN) >= 0);
	CHECK(inotify_add_watch(watch, device, IN_OPEN) >= 0);
	fd = open_name(root, at("file"), 0, &st);
	CHECK(fd >= 0 && st.st_size == 4096);
	close(fd);
	CHECK_INT(opened(watch), 1); /* the watch sees what is opened */
	CHECK_INT(open_name(root, at("fifo"), 0, &st), -EINVAL);
	CHECK_INT(open_name(root, at("device"), 0, &st), -EINVAL);
	CHECK_INT(open_name(root, device, 0, &st), -EINVAL);
	CHECK_INT(open_name(root, test_dir(), 0, &st), -EINVAL);
	CHECK_INT(open_name(root, at("device"), RESOLVE_NO_SYMLINKS, &st), -ELOOP);
	CHECK_INT(open_name(root, "/proc/self/exe", 0, &st), -ELOOP);
	CHECK_INT(opened(watch), 0);
	close(terminal);
	close(watch);
	close(root);
}

TEST(a_name_that_became_a_link_is_not_followed)
{
	struct procfs_mapping m;
	char moved[128];
	int fd, watch;

	write_file("file");
	m = map("file", true);
	fd = safe_open_mapping(getpid(), &m);
	CHECK(fd >= 0);
	close(fd);
	snprintf(moved, sizeof(moved), "%s", at("moved"));
	CHECK_INT(rename(at("file"), moved), 0);
	CHECK_INT(symlink(moved, at("file")), 0);
	watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	CHECK(inotify_add_watch(watch, moved, IN_OPEN) >= 0);
	CHECK_INT(safe_open_mapping(getpid(), &m), -ELOOP); /* though the inode is the same */
	CHECK_INT(unlink(at("file")), 0);
	CHECK_INT(symlink("/dev/null", at("file")), 0);
	CHECK_INT(safe_open_mapping(getpid(), &m), -ELOOP);
	CHECK_INT(unlink(at("file")), 0);
	CHECK_INT(mkfifo(at("file"), 0600), 0);
	CHECK_INT(safe_open_mapping(getpid(), &m), -EINVAL);
	CHECK_INT(opened(watch), 0);
	close(watch);
	CHECK_INT(rename(moved, at("file")), 0);
}

TEST(the_device_is_compared)
{
	struct procfs_mapping m;
	int fd;

	write_file("file");
	m = map("file", true);
	m.dev_major = 4095;
	m.dev_minor = 4095;
	CHECK_INT(safe_open_mapping(getpid(), &m), -ESTALE);
	m.dev_major = m.dev_minor = 0;
	fd = safe_open_mapping(getpid(), &m);
	CHECK(fd >= 0);
	close(fd);
}
