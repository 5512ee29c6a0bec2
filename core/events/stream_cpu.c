/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/stream_cpu.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bpf/sampler_events.h"

int stream_cpu_open_ring(struct stream_cpu *c, int epoll, int fd, uint64_t size)
{
	struct epoll_event e = {.events = EPOLLIN};
	int r = ring_open(&c->ring, fd, &size);

	c->ring_fd = fd;
	if (!r && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		r = -errno;
	return r;
}

int stream_cpu_open_output(struct stream_cpu *c, const struct event_form *form,
			   struct bpf_sampler *bpf)
{
	int r;

	if (c->ring_fd < 0)
		return 0;
	if (c->output >= 0)
		close(c->output);
	c->old_output_id = c->output_id;
	c->output = event_open_output(form, c->number);
	if (c->output < 0)
		return c->output;
	r = event_id(c->output, &c->output_id);
	if (!r && ioctl(c->output, PERF_EVENT_IOC_SET_OUTPUT, c->ring_fd))
		r = -errno;
	return r ? r : bpf_sampler_set_output(bpf, c->number, c->output);
}

bool stream_cpu_is_output(const struct stream_cpu *c, const struct perf_event_header *h)
{
	uint64_t id = event_sample_id(h);

	return c->output >= 0 && (id == c->output_id || id == c->old_output_id);
}

void stream_cpu_close(struct stream_cpu *c)
{
	ring_close(&c->ring);
	if (c->output >= 0)
		close(c->output);
}
