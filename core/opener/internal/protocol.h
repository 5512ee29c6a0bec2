/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the agent and its opener, over a socket pair of type SOCK_SEQPACKET. An
 * opener has one request at a time. Its first message has the id 0: the opener is ready. */
#ifndef OPENER_PROTOCOL_H
#define OPENER_PROTOCOL_H

#include "opener/opener.h"

#define OPENER_MAGIC 0x6f706e31u
#define OPENER_MAX_PATH 4352u /* with its 0 */
#define OPENER_MAX_LINK 256u

/* Followed by path and link, each terminated. OPENER_COMPARE has a descriptor. */
struct opener_request {
	uint32_t magic, kind;
	uint64_t id;
	int32_t pid;
	uint32_t dev_major, dev_minor, len;
	uint64_t lo, hi, ino, generation, address, most_copied, offset, bytes;
	uint32_t build_id_len, path_len, link_len; /* lengths with the 0 */
	uint8_t build_id[64];
};

/* Followed by `len` bytes; with a descriptor if has_fd. */
struct opener_reply {
	uint32_t magic;
	int32_t err;
	uint64_t id;
	struct opener_stat st;
	uint32_t len, has_fd;
	uint64_t took_ns; /* from the request's arrival to the answer */
};

/* The largest messages. */
struct opener_request_message {
	struct opener_request q;
	char texts[OPENER_MAX_PATH + OPENER_MAX_LINK];
};
struct opener_reply_message {
	struct opener_reply r;
	char data[OPENER_MAX_BYTES];
};

/* 0 or -errno. -ENAMETOOLONG: the query does not fit. */
int opener_send_request(int sock, uint64_t id, const struct opener_query *, uint64_t most_copied);
/* Waits. 1, with *fd >= 0 exactly if the request has one; 0: the agent closed its end; -EBADMSG and
 * other -errno: the opener is to end. */
int opener_receive_request(int sock, struct opener_request_message *, int *fd);
int opener_send_reply(int sock, const struct opener_reply *, const void *data, int fd);
/* 1, with *fd >= 0 exactly if the reply has one; 0: no message is waiting; -EPIPE, -EBADMSG. */
int opener_receive_reply(int sock, struct opener_reply_message *, int *fd);

/* OPENER_CONTEXT. 0 or -errno. */
int opener_read_context(const struct opener_query *, struct opener_answer *);
/* OPENER_COMPARE. 0 or -errno. */
int opener_compare(const struct opener_query *);
/* Makes the calls of a query in the calling process. */
void opener_serve(const struct opener_query *, struct opener_answer *);
/* Replaces the descriptor of a file by the descriptor of a copy in memory, if closing the file can
 * wait for its file system. Sets copied and remote of the stat. 0 or -errno. */
int opener_detach(int *fd, pid_t, uint64_t most_copied, struct opener_stat *);
/* Whether the file system of this folder keeps no process waiting. */
bool opener_is_prompt(int fd, pid_t);
/* Confines the calling process: capabilities, limits, system calls. 0 or -errno. */
int opener_confine(void);
#endif
