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
	uint64_t max_bytes, folder_bytes; /* limits of the file, and of the folder with it */
	uint32_t id_len;
	uint8_t id[FETCHER_ID_MAX];
	char folder[PATH_MAX];             /* texts are terminated */
	char servers[FETCHER_MAX_SERVERS]; /* separated by blanks */
};

/*
 * err: 0: it is in the folder; -ENOENT: no server has it; -EBADMSG: the server sent another file;
 * -EFBIG; -ETIMEDOUT; -ECONNREFUSED: no server can be reached; -ENOSPC; -ENOPKG, -ENOSYS: this
 * machine can fetch no file.
 */
struct fetcher_reply_message {
	uint32_t magic;
	int32_t err;
	uint64_t bytes;
	char text[200]; /* about the error, terminated */
};

/* For the fetcher process. */

/* Gives up all rights except the network, reads that the resolver and TLS need, and writes below
 * the folder. 0 or -errno; -ENOSYS: the user is root and the kernel lacks Landlock. */
int fetcher_confine(const struct fetcher_request_message *);
/* Removes files of killed processes, and the longest unused files until a file of `max_bytes` fits
 * into `folder_bytes`. Returns the maximum size of the new file: max_bytes, but at most half of the
 * free disk space. */
uint64_t fetcher_tidy(const struct fetcher_request_message *);
/* Whether an ELF file is complete and has this build ID. 0; -EBADMSG; -errno. */
int fetcher_judge(int fd, const uint8_t *id, uint32_t len);
#endif
