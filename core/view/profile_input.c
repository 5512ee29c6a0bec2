/* SPDX-License-Identifier: Apache-2.0 */
#include "view/profile_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"

int profile_input(const char *path, size_t max, struct profile_file **ret)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err;
	const char *text = "";
	struct buf b = {0};

	if (fd < 0) {
		log_error("cannot open '%s': %s", path, strerror(errno));
		return EX_NOINPUT;
	}
	err = buf_read_fd(&b, fd, max);
	if (!is_stdin)
		close(fd);
	if (err) {
		log_error("cannot read '%s': %s", path, strerror(-err));
		err = EX_IOERR;
	} else if (profile_read(b.p, b.len, ret, &text)) {
		log_error("cannot read '%s' as a profile: %s", path, text);
		err = EX_DATAERR;
	}
	buf_fini(&b);
	return err;
}
