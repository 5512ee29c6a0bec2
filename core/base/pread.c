// SPDX-License-Identifier: Apache-2.0
#include "base/pread.h"

#include <errno.h>
#include <unistd.h>

int pread_all(int fd, void *to, uint64_t len, uint64_t at)
{
	char *p = to;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		p += n;
		at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}
