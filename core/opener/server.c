// SPDX-License-Identifier: Apache-2.0
/* The opener process: one request after the other. */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "opener/internal/protocol.h"

static void serve(const struct opener_request_message *m, int fd, struct opener_answer *a,
		  char *data)
{
	const struct opener_request *r = &m->q;
	const struct opener_query q = {.kind = r->kind,
				       .pid = r->pid,
				       .mapping = {.lo = r->lo,
						   .hi = r->hi,
						   .ino = r->ino,
						   .generation = r->generation,
						   .dev_major = r->dev_major,
						   .dev_minor = r->dev_minor,
						   .name = m->texts},
				       .path = m->texts,
				       .link = m->texts + r->path_len,
				       .build_id = r->build_id,
				       .build_id_len = r->build_id_len,
				       .address = r->address,
				       .len = r->len,
				       .buf = data,
				       .offset = r->offset,
				       .bytes = r->bytes,
				       .fd = fd};

	opener_serve(&q, a);
	if (a->fd < 0)
		return;
	if (q.kind != OPENER_FOLDER)
		a->err = opener_detach(&a->fd, q.pid, r->most_copied, &a->st);
	else if (!opener_is_prompt(a->fd, q.pid))
		a->err = -EREMOTE;
	if (a->err) {
		close(a->fd);
		a->fd = -1;
	}
}

int opener_run(int sock)
{
	static struct opener_request_message m;
	static char data[OPENER_MAX_BYTES];
	struct opener_reply r = {.magic = OPENER_MAGIC};
	int err = opener_confine(), fd;

	r.err = err;
	if (!err)
		err = opener_send_reply(sock, &r, NULL, -1);
	while (!err && (err = opener_receive_request(sock, &m, &fd)) == 1) {
		uint64_t began = clock_now();
		struct opener_answer a;

		serve(&m, fd, &a, data);
		if (fd >= 0)
			close(fd);
		r = (struct opener_reply){.magic = OPENER_MAGIC,
					  .id = m.q.id,
					  .err = a.err,
					  .st = a.st,
					  .len = a.len,
					  .has_fd = a.fd >= 0,
					  .took_ns = clock_now() - began};
		err = opener_send_reply(sock, &r, data, a.fd);
		if (a.fd >= 0)
			close(a.fd);
	}
	return err;
}
