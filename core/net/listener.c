/* SPDX-License-Identifier: Apache-2.0 */
#include "net/internal/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 32 };

int listener_address(const char *path, struct sockaddr_un *at)
{
	size_t len = strlen(path);

	if (!len)
		return -EINVAL;
	if (len >= sizeof(at->sun_path))
		return -ENAMETOOLONG;
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(at->sun_path, path, len);
	return 0;
}

/* Unlinks a socket that no process listens at. */
static int remove_stale(const char *path, const struct sockaddr_un *at)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: the queue is full, so a process listens */
	if (!connect(fd, (const struct sockaddr *)at, sizeof(*at)) || errno == EAGAIN)
		err = -EADDRINUSE;
	else if (errno != ECONNREFUSED && errno != ENOENT)
		err = -errno;
	close(fd);
	if (!err && unlink(path) && errno != ENOENT)
		err = -errno;
	return err;
}

int listener_unix(const char *path, mode_t mode, int *ret)
{
	struct sockaddr_un at;
	int fd, err = listener_address(path, &at);

	if (!err)
		err = remove_stale(path, &at);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* before bind(), so that the file never has a wider mode; the umask may narrow it */
	if (fchmod(fd, mode) || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		err = -errno;
		close(fd);
		return err;
	}
	if (chmod(path, mode) || listen(fd, BACKLOG)) {
		err = -errno;
		unlink(path);
		close(fd);
		return err;
	}
	*ret = fd;
	return 0;
}

/* Copies the host, without brackets, and returns the port; NULL: not a valid address. */
static const char *split_port(const char *address, char *host, size_t cap)
{
	const char *colon = strrchr(address, ':'), *from = address;
	size_t len;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    strlen(colon + 1) > 5 || strtoul(colon + 1, NULL, 10) > 65535)
		return NULL;
	len = (size_t)(colon - address);
	if (len >= 2 && *from == '[' && from[len - 1] == ']') {
		from++;
		len -= 2;
	} else if (memchr(address, ':', len)) {
		return NULL; /* an IPv6 address needs brackets */
	}
	if (len >= cap)
		return NULL;
	memcpy(host, from, len);
	host[len] = '\0';
	return colon + 1;
}

static int listen_at(const struct addrinfo *a, int *ret)
{
	int on = 1, err;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		err = -errno;
		close(fd);
		return err;
	}
	*ret = fd;
	return 0;
}

int listener_tcp(const char *address, int *ret)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	char host[256];
	const char *port = split_port(address, host, sizeof(host)), *name = host;
	struct addrinfo *found;
	int err = -EINVAL;

	if (!port)
		return -EINVAL;
	if (!*host)
		name = "::";
	else if (!strcmp(host, "localhost")) /* without a name server, which may hang */
		name = "127.0.0.1";
	if (getaddrinfo(name, port, &hints, &found))
		return -EINVAL;
	err = listen_at(found, ret);
	freeaddrinfo(found);
	if (!*host && err == -EAFNOSUPPORT && !getaddrinfo("0.0.0.0", port, &hints, &found)) {
		err = listen_at(found, ret);
		freeaddrinfo(found);
	}
	return err;
}
