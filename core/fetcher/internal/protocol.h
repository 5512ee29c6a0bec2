/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between agent and fetcher, over a SOCK_SEQPACKET pair: one request, one reply. Host
 * byte order, as both ends are the same executable. */
#ifndef FETCHER_PROTOCOL_H
#define FETCHER_PROTOCOL_H

#include <limits.h>
#include <stdint.h>

#include "fetcher/fetcher.h"

#define FETCHER_MAGIC 0x31746566u
#define FETCHER_ID_MAX 64u /* bytes of a build ID */

struct fetcher_request_message {
	uint32_t magic;
	uint32_t seconds;                 /* for the file */
	uint64_t max_bytes, folder_bytes; /* of the file; of the folder with it */
	uint32_t id_len;
	uint8_t id[FETCHER_ID_MAX];
	char folder[PATH_MAX];             /* texts are terminated */
	char servers[FETCHER_MAX_SERVERS]; /* separated by blanks */
};

/*
 * err: 0: it is in the folder; -ENOENT: no server has it; -EBADMSG: it is another file; -EFBIG;
 * -ETIMEDOUT; -ECONNREFUSED: no server can be reached; -ENOSPC; -ENOPKG, -ENOSYS: no file can be
 * fetched on this machine.
 */
struct fetcher_reply_message {
	uint32_t magic;
	int32_t err;
	uint64_t bytes;
	char text[200]; /* about the error, terminated */
};

/* In the fetcher. */

/* Gives up every right but the network, reading what the resolver and TLS need, and writing below
 * the folder. 0 or -errno; -ENOSYS: of root, on a kernel without Landlock. */
int fetcher_confine(const struct fetcher_request_message *);
/* Removes what remains of processes that were killed, and files that were not used for long
 * until `folder_bytes` are enough with a file of `max_bytes` in it. Returns the bytes that a file
 * may have: at most max_bytes, and half of what the disk has. */
uint64_t fetcher_tidy(const struct fetcher_request_message *);
/* Whether an ELF file is complete and has this build ID. 0; -EBADMSG; -errno. */
int fetcher_judge(int fd, const uint8_t *id, uint32_t len);
#endif
