/* SPDX-License-Identifier: Apache-2.0 */
#include "net/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* The address of $NOTIFY_SOCKET; "@name" is an abstract socket. 1, 0: it is not set, or -errno. */
static int address(struct sockaddr_un *to, socklen_t *size)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (!len)
		return 0;
	if (*path != '/' && *path != '@')
		return -EAFNOSUPPORT;
	if (len < 2)
		return -EINVAL;
	if (len >= sizeof(to->sun_path))
		return -ENAMETOOLONG;
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(to->sun_path, path, len);
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (*path == '@')
		to->sun_path[0] = '\0'; /* an abstract name is not terminated */
	else
		++*size;
	return 1;
}

int notify_send(const char *format, ...)
{
	struct timeval timeout = {.tv_usec = 200000}; /* if the queue of the socket is full */
	struct sockaddr_un to;
	socklen_t size = 0;
	char text[2048];
	va_list ap;
	int fd, n, err = address(&to, &size);

	if (err <= 0)
		return err;
	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n >= sizeof(text))
		n = sizeof(text) - 1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	err = 0;
	if (sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
		err = -errno;
	close(fd);
	return err;
}

int notify_reloading(void)
{
	return notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now() / 1000);
}

/* Parses a text that is a number; 0: it is not. */
static uint64_t number(const char *text)
{
	uint64_t v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno || *end ? 0 : v;
}

uint64_t notify_watchdog_ns(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t ns;

	if (pid && number(pid) != (uint64_t)getpid())
		return 0;
	if (__builtin_mul_overflow(number(getenv("WATCHDOG_USEC")), 500, &ns))
		return 0;
	return ns;
}
