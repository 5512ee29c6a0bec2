// SPDX-License-Identifier: Apache-2.0
/* Compares memory of a target with a file, whose pages may have to come from a disk. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "opener/internal/protocol.h"

#define PIECE 16384u
#define PIECES (OPENER_COMPARED / PIECE)

/* 0: memory and file are equal; -EILSEQ: they are not; -errno. *telling becomes true if the bytes
 * are not all of one value. */
static int compare_piece(const struct opener_query *q, uint64_t at, size_t len, bool *telling)
{
	static char memory[PIECE], file[PIECE];
	struct iovec to = {memory, len}, from = {(void *)(uintptr_t)(q->address + at), len};
	ssize_t n = process_vm_readv(q->pid, &to, 1, &from, 1, 0);

	if (n != (ssize_t)len)
		return n < 0 ? -errno : -EFAULT;
	n = pread(q->fd, file, len, (off_t)(q->offset + at));
	if (n < 0)
		return -errno;
	*telling |= memcmp(memory, memory + 1, len - 1) != 0;
	return n == (ssize_t)len && !memcmp(memory, file, len) ? 0 : -EILSEQ;
}

int opener_compare(const struct opener_query *q)
{
	uint64_t pieces = (q->bytes + PIECE - 1) / PIECE, n = pieces < PIECES ? pieces : PIECES;
	bool telling = false;
	int err = 0;

	if (q->bytes > INT64_MAX || q->offset > INT64_MAX - q->bytes)
		return -EINVAL;
	for (uint64_t i = 0; i < n && !err; i++) {
		uint64_t at = (n > 1 ? i * (pieces - 1) / (n - 1) : 0) * PIECE;
		uint64_t rest = q->bytes - at;

		err = compare_piece(q, at, rest < PIECE ? rest : PIECE, &telling);
	}
	return !err && !telling ? -EILSEQ : err;
}
