/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agent and worker say to each other over a SOCK_SEQPACKET pair: one request, one answer, in
 * turn. Files go as descriptors; answers of any size as sealed memfds: the agent maps only what can
 * no longer change or shrink.
 */
#ifndef WORKER_PROTOCOL_H
#define WORKER_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define PROTOCOL_MAGIC 0x31776675u
#define PROTOCOL_MAX_FDS 4
#define PROTOCOL_INLINE 65536u /* bytes that follow a request; more go as a memfd */

enum protocol_request_type { REQUEST_KEY = 1, REQUEST_INSPECT, REQUEST_SYMBOLIZE, REQUEST_STEP };
/* Which descriptors come along, in this order. */
enum protocol_fds { FDS_FILE = 1, FDS_DEBUG = 2, FDS_ALT = 4, FDS_PAYLOAD = 8 };

struct protocol_request {
	uint32_t magic, type;
	uint64_t id; /* the answer's */
	uint32_t fds, inlines;
	uint64_t payload; /* bytes: addresses, the stack */
	uint8_t key[32];  /* STEP */
	uint64_t bias, stack_lo, valid, regs[17];
};

enum protocol_reply_type {
	REPLY_READY = 1, /* once, unasked: the sandbox is closed; or err and text: it can't be */
	REPLY_DONE,
	REPLY_DENIED, /* unasked: about to end, since it tried the system call `call` */
};

struct protocol_reply {
	uint32_t magic, type;
	uint64_t id;
	int32_t err;   /* 0, -errno; STEP: 0 or 1 */
	uint32_t call; /* number of a denied system call; DONE: the last that only got an error, or
			  0 */
	uint32_t refused_calls;   /* how many of those */
	uint32_t cacheable;       /* INSPECT */
	uint32_t incomplete, pad; /* INSPECT: there was no memory for some of it */
	uint8_t key[32];          /* KEY */
	uint64_t valid, regs[17]; /* STEP */
	uint64_t bytes;           /* of the memfd that comes along; 0: none does */
	char text[400];
};

/* fds[i] for each bit of q->fds, FDS_PAYLOAD left out: that one is made here. Never blocks. 0 or
 * -errno. */
int protocol_send_request(int sock, struct protocol_request *q, const int *fds,
			  const void *payload);
/* Blocks. 1, 0: the agent is gone, -errno. `inline_` holds PROTOCOL_INLINE bytes; fds: -1 where
 * there is none. */
int protocol_receive_request(int sock, struct protocol_request *q, int fds[PROTOCOL_MAX_FDS],
			     void *inline_);

/* fd -1: none. */
int protocol_send_reply(int sock, const struct protocol_reply *, int fd);
/* Never blocks. 1; 0: nothing there; -EPIPE: the worker is gone; -EBADMSG: nonsense. *fd: -1 where
 * there is none. */
int protocol_receive_reply(int sock, struct protocol_reply *, int *fd);

/* A sealed memfd of these bytes: fd or -errno. */
int protocol_seal(const void *bytes, uint64_t len);
/* Maps a sealed memfd read-only; -EBADMSG: it is not what it was said to be. */
int protocol_map(int fd, uint64_t len, void **map);
#endif
