// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/worker
/* core/worker/protocol: messages there and back, and malformed messages. */

#include "test.h"
#include "worker/internal/protocol.h"

static int pair[2];
static char room[PROTOCOL_INLINE];

static void open_pair(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* The lowest free descriptor: unchanged where nothing leaks. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

TEST(request_there_and_back)
{
	struct protocol_request q = {.kind = REQUEST_SYMBOLIZE, .id = 7, .payload = 16}, got;
	uint64_t addresses[2] = {1, 2};
	int fds[PROTOCOL_MAX_FDS], mine[3] = {-1, -1, -1};

	open_pair();
	mine[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	mine[2] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	q.fds = FDS_FILE | FDS_ALT;
	CHECK_INT(protocol_send_request(pair[0], &q, mine, addresses), 0);
	CHECK_INT(protocol_receive_request(pair[1], &got, fds, room), 1);
	CHECK(got.id == 7 && got.kind == REQUEST_SYMBOLIZE && got.payload == 16);
	CHECK(!memcmp(room, addresses, sizeof(addresses)));
	CHECK(same_file(fds[0], mine[0]) && same_file(fds[2], mine[2]));
	CHECK(fds[1] == -1 && fds[3] == -1);
	close(fds[0]);
	close(fds[2]);
	close(mine[0]);
	close(mine[2]);
	close_pair();
}

TEST(long_payload)
{
	static char payload[PROTOCOL_INLINE + 1];
	struct protocol_request q = {.kind = REQUEST_SYMBOLIZE, .payload = sizeof(payload)}, got;
	int fds[PROTOCOL_MAX_FDS], mine[3] = {-1, -1, -1};
	void *map;

	open_pair();
	payload[PROTOCOL_INLINE] = 'x';
	CHECK_INT(protocol_send_request(pair[0], &q, mine, payload), 0);
	CHECK_INT(protocol_receive_request(pair[1], &got, fds, room), 1);
	CHECK(fds[0] == -1 && fds[3] >= 0 && got.fds == FDS_PAYLOAD);
	CHECK_INT(protocol_map(fds[3], sizeof(payload), &map), 0);
	CHECK(!memcmp(map, payload, sizeof(payload)));
	munmap(map, sizeof(payload));
	CHECK_INT(protocol_map(fds[3], sizeof(payload) - 1, &map), -EBADMSG);
	close(fds[3]);
	close_pair();
}

/* What the head announces must be what came. */
TEST(malformed_requests)
{
	static const struct {
		uint32_t magic, fds;
		uint64_t payload, sent;
	} bad[] = {
		{PROTOCOL_MAGIC, FDS_FILE, 8, 0}, {PROTOCOL_MAGIC, FDS_FILE, 8, 7},
		{PROTOCOL_MAGIC, FDS_FILE, 8, 9}, {PROTOCOL_MAGIC, FDS_FILE | FDS_DEBUG, 0, 0},
		{PROTOCOL_MAGIC, 0, 0, 0},        {PROTOCOL_MAGIC + 1, FDS_FILE, 0, 0},
	};
	int fds[PROTOCOL_MAX_FDS], null = open("/dev/null", O_RDONLY | O_CLOEXEC), before;

	open_pair();
	before = next_fd();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct protocol_request q = {
			.magic = bad[i].magic, .fds = bad[i].fds, .payload = bad[i].payload};
		char bytes[16] = {0};
		struct iovec v[2] = {{&q, sizeof(q)}, {bytes, bad[i].sent}};
		_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
		struct msghdr m = {.msg_iov = v,
				   .msg_iovlen = 2,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &null, sizeof(int));
		CHECK(sendmsg(pair[0], &m, 0) > 0);
		CHECK_INT(protocol_receive_request(pair[1], &q, fds, room), -EBADMSG);
		CHECK(fds[0] == -1 && fds[1] == -1 && fds[2] == -1 && fds[3] == -1);
		CHECK_INT(next_fd(), before);
	}
	CHECK(send(pair[0], "short", 5, 0) == 5);
	CHECK_INT(protocol_receive_request(pair[1], &(struct protocol_request){0}, fds, room),
		  -EBADMSG);
	close(null);
	close_pair();
}

TEST(replies)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = REPLY_DONE, .id = 3}, got;
	int fd, sealed = protocol_seal("abc", 3), before;

	open_pair();
	before = next_fd();
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), 0);
	CHECK_INT(protocol_send_reply(pair[1], &r, -1), 0);
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), 1);
	CHECK(fd == -1 && got.id == 3);
	r.bytes = 3;
	CHECK_INT(protocol_send_reply(pair[1], &r, sealed), 0);
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), 1);
	CHECK(same_file(fd, sealed));
	close(fd);
	CHECK_INT(protocol_send_reply(pair[1], &r, -1), 0); /* no memfd of 3 bytes */
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), -EBADMSG);
	r.bytes = 0;
	CHECK_INT(protocol_send_reply(pair[1], &r, sealed), 0); /* a memfd of 0 bytes */
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), -EBADMSG);
	memset(r.text, 'x', sizeof(r.text)); /* without an end */
	CHECK_INT(protocol_send_reply(pair[1], &r, -1), 0);
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), -EBADMSG);
	CHECK(send(pair[1], "short", 5, 0) == 5);
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), -EBADMSG);
	CHECK(fd == -1);
	CHECK_INT(next_fd(), before);
	close(pair[1]);
	CHECK_INT(protocol_receive_reply(pair[0], &got, &fd), -EPIPE);
	close(pair[0]);
	close(sealed);
}
