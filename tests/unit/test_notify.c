// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/net
/* core/net/notify: the datagrams that systemd would get. */
#include <inttypes.h>
#include <stddef.h>
#include <sys/un.h>

#include "net/notify.h"
#include "test.h"

static int listener(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, path, len + 1);
	if (*path == '@')
		at.sun_path[0] = '\0';
	CHECK(fd >= 0);
	CHECK(!bind(fd, (struct sockaddr *)&at,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*path != '@'))));
	setenv("NOTIFY_SOCKET", path, 1);
	return fd;
}

static const char *received(int fd, char *buf, size_t cap)
{
	ssize_t n = recv(fd, buf, cap - 1, MSG_DONTWAIT);

	CHECK(n >= 0);
	buf[n] = '\0';
	return buf;
}

static void talk(const char *path)
{
	int fd = listener(path);
	char buf[4096], longer[4096];
	struct timespec now;
	uint64_t us;

	CHECK_INT(notify_send("READY=1\nSTATUS=%d targets", 7), 0);
	CHECK_STR(received(fd, buf, sizeof(buf)), "READY=1\nSTATUS=7 targets");
	CHECK_INT(notify_reloading(), 0);
	received(fd, buf, sizeof(buf));
	CHECK(sscanf(buf, "RELOADING=1\nMONOTONIC_USEC=%" SCNu64, &us) == 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK(us <= (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	CHECK(us + 60000000 > (uint64_t)now.tv_sec * 1000000);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	CHECK_INT(notify_send("STATUS=%s", longer), 0); /* truncated, but sent */
	CHECK_INT(strlen(received(fd, buf, sizeof(buf))), 2047);
	close(fd);
}

TEST(sockets)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/notify", test_dir());
	talk(path);
	CHECK_INT(notify_send("READY=1"), -ECONNREFUSED);
	unlink(path);
	CHECK_INT(notify_send("READY=1"), -ENOENT);
	snprintf(path, sizeof(path), "@fusee-test/%d", getpid());
	talk(path);
	CHECK_INT(notify_send("READY=1"), -ECONNREFUSED);
}

TEST(nobody_and_nonsense)
{
	char longer[300];

	unsetenv("NOTIFY_SOCKET");
	CHECK_INT(notify_send("READY=1"), 0);
	CHECK_INT(notify_reloading(), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	CHECK_INT(notify_send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	CHECK_INT(notify_send("READY=1"), -EAFNOSUPPORT);
	setenv("NOTIFY_SOCKET", "@", 1);
	CHECK_INT(notify_send("READY=1"), -EINVAL);
	memset(longer, '/', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	setenv("NOTIFY_SOCKET", longer, 1);
	CHECK_INT(notify_send("READY=1"), -ENAMETOOLONG);
}

/* Who does not read must not stop us. */
TEST(a_full_socket)
{
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "@fusee-test/%d", getpid());
	fd = listener(path);
	for (int i = 0; i < 5000 && !err; i++)
		err = notify_send("STATUS=%d", i);
	CHECK_INT(err, -EAGAIN);
	close(fd);
}

TEST(watchdog)
{
	char pid[32];

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	CHECK_INT(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	CHECK_INT(notify_watchdog_ns(), 15000000000);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	CHECK_INT(notify_watchdog_ns(), 15000000000);
	setenv("WATCHDOG_PID", "1", 1);
	CHECK_INT(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_PID", "x", 1);
	CHECK_INT(notify_watchdog_ns(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "12 parsecs", 1);
	CHECK_INT(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "-1", 1);
	CHECK_INT(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "18446744073709551615", 1);
	CHECK_INT(notify_watchdog_ns(), 0);
}
