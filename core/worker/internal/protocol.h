/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between agent and worker, over a SOCK_SEQPACKET pair. The agent sends one request
 * at a time and the worker sends one REPLY_DONE to each. Host byte order, as both ends are the
 * same executable.
 *
 *   kind               direction    descriptors                   follows the struct, or memfd
 *   REQUEST_KEY        to worker    FDS_FILE                      -
 *   REQUEST_INSPECT    to worker    FDS_FILE                      -
 *   REQUEST_SYMBOLIZE  to worker    FDS_FILE [FDS_DEBUG FDS_ALT]  uint64_t addresses[payload / 8]
 *   REQUEST_NAMES      to worker    FDS_FILE [FDS_DEBUG FDS_ALT]  -
 *   REQUEST_STEP       to worker    FDS_FILE                      stack copy: PROTOCOL_INLINE
 *   REPLY_READY        to agent     -                             -
 *   REPLY_DENIED       to agent     -                             -
 *   REPLY_UNWINDER     to agent     -                             -
 *   REPLY_DONE to
 *     KEY, STEP        to agent     -                             -
 *     INSPECT          to agent     a memfd                       struct inspection_block
 *     SYMBOLIZE        to agent     a memfd                       struct symbolize_reply
 *     NAMES            to agent     a memfd                       struct names_head
 *
 * A payload of a request up to PROTOCOL_INLINE bytes follows the struct; a longer payload is a
 * sealed memfd, FDS_PAYLOAD. A block of a reply is always a sealed memfd, which can no longer
 * change or shrink when the agent maps it. The sender keeps its descriptors; the receiver owns, and
 * closes, the copies that it received.
 */
#ifndef WORKER_PROTOCOL_H
#define WORKER_PROTOCOL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define PROTOCOL_MAGIC 0x31776675u
#define PROTOCOL_MAX_FDS 4
#define PROTOCOL_INLINE 65536u /* bytes */
#define PROTOCOL_REGS 17u      /* x86-64 by DWARF number; 16: rip */

enum protocol_request_kind {
	REQUEST_KEY = 1,
	REQUEST_INSPECT,
	REQUEST_SYMBOLIZE,
	REQUEST_STEP,
	REQUEST_NAMES,
};
/* Bit i: descriptor i is sent. */
enum protocol_fds { FDS_FILE = 1, FDS_DEBUG = 2, FDS_ALT = 4, FDS_PAYLOAD = 8 };

struct protocol_request {
	uint32_t magic;
	uint32_t kind;    /* enum protocol_request_kind */
	uint64_t id;      /* the reply's is equal */
	uint32_t fds;     /* enum protocol_fds */
	uint32_t inlines; /* SYMBOLIZE, NAMES: inlined calls too */
	uint64_t payload; /* bytes */
	uint8_t key[32];  /* STEP: of the file's inspection */
	uint64_t skip;    /* INSPECT: bit i: not by unwinder i */
	uint64_t brief;   /* INSPECT: what takes long may be omitted */
	/* STEP: see worker_step(). */
	uint64_t bias, stack_lo, valid, regs[PROTOCOL_REGS];
};
static_assert(sizeof(struct protocol_request) == 240, "without padding");

enum protocol_reply_kind {
	/* First message of a worker, once: its sandbox is closed, or `err` and `text` say why it
	 * cannot be. */
	REPLY_READY = 1,
	REPLY_DONE,
	/* Last message of a worker: it tried the system call `call`. */
	REPLY_DENIED,
	/* During INSPECT: inspect() of unwinder `call`, whose name is `text`, begins. The numbers
	 * of one request grow. */
	REPLY_UNWINDER,
};

struct protocol_reply {
	uint32_t magic;
	uint32_t kind; /* enum protocol_reply_kind */
	uint64_t id;   /* DONE: the request's */
	int32_t err;   /* 0 or -errno; DONE to STEP: 0, 1 or -errno */
	uint32_t call; /* DENIED: the system call; DONE: the last that got EACCES; UNWINDER */
	uint32_t refused_calls; /* system calls that got EACCES since the worker started */
	uint16_t incomplete;    /* DONE to INSPECT: memory was short for a part of it */
	uint16_t late;          /* DONE to INSPECT: time was short for a part of it */
	uint8_t key[32];        /* DONE to KEY */
	uint64_t valid, regs[PROTOCOL_REGS]; /* DONE to STEP */
	uint64_t bytes;                      /* of the memfd; 0: no memfd is sent */
	char text[400];                      /* sentences for people, terminated */
};
static_assert(sizeof(struct protocol_reply) == 616, "without padding");

/* Agent. Sends fds[i] for each bit i of q->fds but FDS_PAYLOAD, whose memfd is made and closed
 * here, and sets q->magic. Never blocks. 0 or -errno. */
int protocol_send_request(int sock, struct protocol_request *q, const int fds[3],
			  const void *payload);
/* Worker. Blocks. payload: room for PROTOCOL_INLINE bytes. fds: -1 where none was sent; set when 1
 * or -EBADMSG is returned. 1; 0: the agent closed its end; -EBADMSG: malformed; -errno. */
int protocol_receive_request(int sock, struct protocol_request *q, int fds[PROTOCOL_MAX_FDS],
			     void *payload);

/* Worker; also safe in a signal handler. fd -1: none. 0 or -errno. */
int protocol_send_reply(int sock, const struct protocol_reply *, int fd);
/* Agent. Never blocks. 1; 0: no message is waiting; -EPIPE: the worker closed its end; -EBADMSG:
 * malformed. *fd: -1 where none was sent. */
int protocol_receive_reply(int sock, struct protocol_reply *, int *fd);

/* A sealed memfd with a copy of these bytes: fd or -errno. */
int protocol_seal(const void *bytes, uint64_t len);
/* Maps a memfd read-only; the caller unmaps it. -EBADMSG: the memfd is not sealed, or not of this
 * size; -errno. */
int protocol_map(int fd, uint64_t len, void **map);
#endif
