/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/stream_cpu.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
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

/* Where the records of a new output event go: into *ring, or, size 0, into that of the events. */
static int choose_ring(struct stream_cpu *c, int fd, int epoll, uint64_t size, struct ring *ring)
{
	struct epoll_event e = {.events = EPOLLIN};
	int r = size ? ring_open(ring, fd, &size) : 0;

	if (!r && size && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		r = -errno;
	if (!size && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->ring_fd))
		r = -errno;
	return r;
}

int stream_cpu_open_output(struct stream_cpu *c, const struct event_form *form,
			   struct bpf_sampler *bpf, int epoll, uint64_t size)
{
	struct ring ring = {0};
	uint64_t id;
	int fd, r;

	if (c->ring_fd < 0)
		return 0;
	fd = event_open_output(form, c->number, size ? ring_wake_bytes(OUTPUT_LEAST) : 0);
	if (fd < 0)
		return fd;
	r = event_id(fd, &id);
	r = r ? r : choose_ring(c, fd, epoll, size, &ring);
	r = r ? r : bpf_sampler_set_output(bpf, c->number, fd);
	if (r) {
		ring_close(&ring);
		close(fd);
		return r;
	}
	if (c->out.ring.page || size)
		output_ring_exchange(&c->out, &ring, c->output, clock_now());
	else if (c->output >= 0)
		close(c->output);
	c->old_output_id = c->output_id;
	c->output = fd;
	c->output_id = id;
	return 0;
}

bool stream_cpu_is_output(const struct stream_cpu *c, const struct perf_event_header *h)
{
	uint64_t id = event_sample_id(h);

	return c->output >= 0 && (id == c->output_id || id == c->old_output_id);
}

void stream_cpu_close(struct stream_cpu *c)
{
	ring_close(&c->ring);
	output_ring_close(&c->out);
	if (c->output >= 0)
		close(c->output);
}
