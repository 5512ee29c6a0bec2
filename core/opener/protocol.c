// SPDX-License-Identifier: Apache-2.0
#include "opener/internal/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/message.h"

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
				   .offset = q->offset,
				   .bytes = q->bytes,
				   .build_id_len = q->build_id_len,
				   .path_len = (uint32_t)strlen(path) + 1,
				   .link_len = (uint32_t)strlen(link) + 1};
	struct iovec v[3] = {
		{&r, sizeof(r)}, {(void *)path, r.path_len}, {(void *)link, r.link_len}};

	if (r.path_len > OPENER_MAX_PATH || r.link_len > OPENER_MAX_LINK ||
	    q->build_id_len > sizeof(r.build_id) || q->len > OPENER_MAX_BYTES)
		return -ENAMETOOLONG;
	if (q->build_id_len)
		memcpy(r.build_id, q->build_id, q->build_id_len);
	return message_send(sock, v, 3, &q->fd, q->kind == OPENER_COMPARE, MSG_DONTWAIT);
}

static bool is_text(const char *p, uint32_t len, uint32_t max)
{
	return len && len <= max && memchr(p, 0, len) == p + len - 1;
}

int opener_receive_request(int sock, struct opener_request_message *to, int *fd)
{
	struct iovec v = {to, sizeof(*to)};
	const struct opener_request *q = &to->q;
	unsigned int nfds = 1;
	int flags = 0;
	ssize_t n;

	*fd = -1;
	n = message_receive(sock, &v, 1, fd, &nfds, &flags);
	if (n <= 0)
		return (int)n;
	if ((*fd >= 0) != (q->kind == OPENER_COMPARE) || (size_t)n < sizeof(*q) || flags ||
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

	return message_send(sock, v, 2, &fd, r->has_fd, 0);
}

int opener_receive_reply(int sock, struct opener_reply_message *to, int *fd)
{
	struct iovec v = {to, sizeof(*to)};
	const struct opener_reply *r = &to->r;
	unsigned int nfds = 1;
	int flags = MSG_DONTWAIT;
	ssize_t n;

	*fd = -1;
	n = message_receive(sock, &v, 1, fd, &nfds, &flags);
	if (n <= 0)
		return n == -EAGAIN ? 0 : -EPIPE;
	/* MSG_CTRUNC: the table of descriptors of this process is full. The answer is valid. */
	if (flags & MSG_CTRUNC && *fd < 0 && (size_t)n >= sizeof(*r) && r->has_fd) {
		to->r.err = -EMFILE;
		to->r.has_fd = 0;
	}
	if ((size_t)n >= sizeof(*r) && !(flags & MSG_TRUNC) && r->magic == OPENER_MAGIC &&
	    r->err <= 0 && r->err > -4096 && (size_t)n == sizeof(*r) + r->len &&
	    r->has_fd == (*fd >= 0))
		return 1;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EBADMSG;
}
