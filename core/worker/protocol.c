// SPDX-License-Identifier: Apache-2.0
/* Messages over the socket pair; descriptors travel as SCM_RIGHTS. */
#include "worker/internal/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * PROTOCOL_MAX_FDS)];
};

static void attach(struct msghdr *m, union control *c, const int *fds, unsigned int n)
{
	if (!n)
		return;
	memset(c, 0, sizeof(*c));
	m->msg_control = c;
	m->msg_controllen = CMSG_SPACE(sizeof(int) * n);
	c->head.cmsg_level = SOL_SOCKET;
	c->head.cmsg_type = SCM_RIGHTS;
	c->head.cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(&c->head), fds, sizeof(int) * n);
}

/* Moves at most max received descriptors to fds and closes the rest. Returns how many were moved.
 */
static unsigned int detach(struct msghdr *m, int *fds, unsigned int max)
{
	unsigned int have = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		unsigned int n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned int i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (have < max)
				fds[have++] = fd;
			else
				close(fd);
		}
	}
	return have;
}

static int send_all(int sock, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int protocol_send_request(int sock, struct protocol_request *q, const int fds[3],
			  const void *payload)
{
	struct iovec v[2] = {{q, sizeof(*q)}, {(void *)payload, q->payload}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	int all[PROTOCOL_MAX_FDS], memfd = -1, err;
	unsigned int n = 0;
	union control c;

	fusee_assert(!(q->fds & ~(uint32_t)(FDS_FILE | FDS_DEBUG | FDS_ALT)));
	for (unsigned int i = 0; i < 3; i++)
		if (q->fds & 1u << i)
			all[n++] = fds[i];
	if (q->payload > PROTOCOL_INLINE) {
		memfd = protocol_seal(payload, q->payload);
		if (memfd < 0)
			return memfd;
		q->fds |= FDS_PAYLOAD;
		all[n++] = memfd;
		m.msg_iovlen = 1;
	}
	q->magic = PROTOCOL_MAGIC;
	attach(&m, &c, all, n);
	err = send_all(sock, &m, MSG_DONTWAIT);
	if (memfd >= 0)
		close(memfd);
	return err;
}

/* Whether a message of len bytes with n descriptors is what the request in it announces. */
static bool request_ok(const struct protocol_request *q, const struct msghdr *m, uint64_t len,
		       unsigned int n)
{
	if (len < sizeof(*q) || q->magic != PROTOCOL_MAGIC ||
	    m->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    (unsigned int)__builtin_popcount(q->fds & ((1u << PROTOCOL_MAX_FDS) - 1)) != n)
		return false;
	return len - sizeof(*q) == (q->fds & FDS_PAYLOAD ? 0 : q->payload);
}

int protocol_receive_request(int sock, struct protocol_request *q, int fds[PROTOCOL_MAX_FDS],
			     void *payload)
{
	struct iovec v[2] = {{q, sizeof(*q)}, {payload, PROTOCOL_INLINE}};
	int got[PROTOCOL_MAX_FDS];
	union control c;
	struct msghdr m = {
		.msg_iov = v, .msg_iovlen = 2, .msg_control = &c, .msg_controllen = sizeof(c)};
	unsigned int n, at = 0;
	bool ok;
	ssize_t len;

	do
		len = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len <= 0)
		return len ? -errno : 0;
	n = detach(&m, got, PROTOCOL_MAX_FDS);
	ok = request_ok(q, &m, (uint64_t)len, n);
	for (unsigned int i = 0; i < PROTOCOL_MAX_FDS; i++)
		fds[i] = ok && q->fds & 1u << i ? got[at++] : -1;
	while (!ok && n)
		close(got[--n]);
	return ok ? 1 : -EBADMSG;
}

int protocol_send_reply(int sock, const struct protocol_reply *r, int fd)
{
	struct iovec v = {(void *)r, sizeof(*r)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	union control c;

	attach(&m, &c, &fd, fd >= 0);
	return send_all(sock, &m, 0);
}

int protocol_receive_reply(int sock, struct protocol_reply *r, int *fd)
{
	struct iovec v = {r, sizeof(*r)};
	union control c;
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	ssize_t len;

	*fd = -1;
	do
		len = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? 0 : -EPIPE;
	if (!len)
		return -EPIPE;
	detach(&m, fd, 1);
	if (len != sizeof(*r) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    r->magic != PROTOCOL_MAGIC || !memchr(r->text, 0, sizeof(r->text)) ||
	    !r->bytes != (*fd < 0)) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return -EBADMSG;
	}
	return 1;
}

int protocol_seal(const void *bytes, uint64_t len)
{
	struct buf b = {.p = (void *)bytes, .len = len};
	int fd = memfd_create("fusee", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	err = buf_write(&b, fd);
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int protocol_map(int fd, uint64_t len, void **map)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) || !len ||
	    (uint64_t)st.st_size != len)
		return -EBADMSG;
	p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*map = p;
	return 0;
}
