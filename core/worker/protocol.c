// SPDX-License-Identifier: Apache-2.0
/* Messages over the socket pair. */
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
#include "sandbox/message.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int protocol_send_request(int sock, struct protocol_request *q, const int fds[3],
			  const void *payload)
{
	struct iovec v[2] = {{q, sizeof(*q)}, {(void *)payload, q->payload}};
	size_t nv = 2;
	int all[PROTOCOL_MAX_FDS], memfd = -1, err;
	unsigned int n = 0;

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
		nv = 1;
	}
	q->magic = PROTOCOL_MAGIC;
	err = message_send(sock, v, nv, all, n, MSG_DONTWAIT);
	if (memfd >= 0)
		close(memfd);
	return err;
}

/* Whether a message of len bytes with n descriptors is what the request in it announces. */
static bool request_ok(const struct protocol_request *q, uint64_t len, unsigned int n)
{
	if (len < sizeof(*q) || q->magic != PROTOCOL_MAGIC ||
	    (unsigned int)__builtin_popcount(q->fds & ((1u << PROTOCOL_MAX_FDS) - 1)) != n)
		return false;
	return len - sizeof(*q) == (q->fds & FDS_PAYLOAD ? 0 : q->payload);
}

int protocol_receive_request(int sock, struct protocol_request *q, int fds[PROTOCOL_MAX_FDS],
			     void *payload)
{
	struct iovec v[2] = {{q, sizeof(*q)}, {payload, PROTOCOL_INLINE}};
	int got[PROTOCOL_MAX_FDS];
	unsigned int n = PROTOCOL_MAX_FDS, at = 0;
	int flags = 0;
	bool ok;
	ssize_t len = message_receive(sock, v, 2, got, &n, &flags);

	if (len <= 0)
		return (int)len;
	ok = !flags && request_ok(q, (uint64_t)len, n);
	for (unsigned int i = 0; i < PROTOCOL_MAX_FDS; i++)
		fds[i] = ok && q->fds & 1u << i ? got[at++] : -1;
	while (!ok && n)
		close(got[--n]);
	return ok ? 1 : -EBADMSG;
}

int protocol_send_reply(int sock, const struct protocol_reply *r, int fd)
{
	struct iovec v = {(void *)r, sizeof(*r)};

	return message_send(sock, &v, 1, &fd, fd >= 0, 0);
}

int protocol_receive_reply(int sock, struct protocol_reply *r, int *fd)
{
	struct iovec v = {r, sizeof(*r)};
	unsigned int nfds = 1;
	int flags = MSG_DONTWAIT;
	ssize_t len;

	*fd = -1;
	len = message_receive(sock, &v, 1, fd, &nfds, &flags);
	if (len <= 0)
		return len == -EAGAIN ? 0 : -EPIPE;
	if (len != sizeof(*r) || flags || r->magic != PROTOCOL_MAGIC ||
	    !memchr(r->text, 0, sizeof(r->text)) || !r->bytes != (*fd < 0)) {
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
