// SPDX-License-Identifier: Apache-2.0
#include "opener/internal/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static int send_all(int sock, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static ssize_t receive(int sock, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = recvmsg(sock, m, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	return n;
}

int opener_send_request(int sock, uint64_t id, const struct opener_query *q, uint64_t most_copied)
{
	const struct procfs_mapping *m = &q->mapping;
	const char *path = q->kind == OPENER_MAPPING ? m->name : q->path ? q->path : "";
	const char *link = q->link ? q->link : "";
	struct opener_request r = {.magic = OPENER_MAGIC,
				   .kind = q->kind,
				   .id = id,
				   .pid = q->pid,
				   .dev_major = m->dev_major,
				   .dev_minor = m->dev_minor,
				   .len = q->len,
				   .lo = m->lo,
				   .hi = m->hi,
				   .ino = m->ino,
				   .generation = m->generation,
				   .address = q->address,
				   .most_copied = most_copied,
				   .build_id_len = q->build_id_len,
				   .path_len = (uint32_t)strlen(path) + 1,
				   .link_len = (uint32_t)strlen(link) + 1};
	struct iovec v[3] = {
		{&r, sizeof(r)}, {(void *)path, r.path_len}, {(void *)link, r.link_len}};
	struct msghdr message = {.msg_iov = v, .msg_iovlen = 3};

	if (r.path_len > OPENER_MAX_PATH || r.link_len > OPENER_MAX_LINK ||
	    q->build_id_len > sizeof(r.build_id) || q->len > OPENER_MAX_BYTES)
		return -ENAMETOOLONG;
	if (q->build_id_len)
		memcpy(r.build_id, q->build_id, q->build_id_len);
	return send_all(sock, &message, MSG_DONTWAIT);
}

static bool is_text(const char *p, uint32_t len, uint32_t max)
{
	return len && len <= max && memchr(p, 0, len) == p + len - 1;
}

int opener_receive_request(int sock, struct opener_request_message *to)
{
	struct iovec v = {to, sizeof(*to)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	const struct opener_request *q = &to->q;
	ssize_t n = receive(sock, &m, 0);

	if (n <= 0)
		return n ? -errno : 0;
	if ((size_t)n < sizeof(*q) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    q->magic != OPENER_MAGIC || q->build_id_len > sizeof(q->build_id) ||
	    q->len > OPENER_MAX_BYTES || q->path_len > OPENER_MAX_PATH ||
	    (size_t)n != sizeof(*q) + q->path_len + q->link_len ||
	    !is_text(to->texts, q->path_len, OPENER_MAX_PATH) ||
	    !is_text(to->texts + q->path_len, q->link_len, OPENER_MAX_LINK))
		return -EBADMSG;
	return 1;
}

int opener_send_reply(int sock, const struct opener_reply *r, const void *data, int fd)
{
	struct iovec v[2] = {{(void *)r, sizeof(*r)}, {(void *)data, r->len}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	union control c;

	if (r->has_fd) {
		memset(&c, 0, sizeof(c));
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
	}
	return send_all(sock, &m, 0);
}

int opener_receive_reply(int sock, struct opener_reply_message *to, int *fd)
{
	struct iovec v = {to, sizeof(*to)};
	union control c;
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	const struct opener_reply *r = &to->r;
	struct cmsghdr *head;
	ssize_t n;

	*fd = -1;
	n = receive(sock, &m, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -EPIPE;
	head = CMSG_FIRSTHDR(&m);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	/* MSG_CTRUNC: the table of descriptors of this process is full. The answer is valid. */
	if (m.msg_flags & MSG_CTRUNC && *fd < 0 && (size_t)n >= sizeof(*r) && r->has_fd) {
		to->r.err = -EMFILE;
		to->r.has_fd = 0;
	}
	if ((size_t)n >= sizeof(*r) && !(m.msg_flags & MSG_TRUNC) && r->magic == OPENER_MAGIC &&
	    r->err <= 0 && r->err > -4096 && (size_t)n == sizeof(*r) + r->len &&
	    r->has_fd == (*fd >= 0))
		return 1;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EBADMSG;
}
