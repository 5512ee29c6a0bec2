/* SPDX-License-Identifier: Apache-2.0 */
#include "base/poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

int poller_open(struct poller *p)
{
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return p->epoll < 0 || p->timer < 0 ? -errno : poller_add(p, p->timer);
}

void poller_close(struct poller *p)
{
	if (p->epoll >= 0)
		close(p->epoll);
	if (p->timer >= 0)
		close(p->timer);
}

int poller_add(struct poller *p, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

void poller_remove(struct poller *p, int fd)
{
	epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void poller_set(struct poller *p, uint64_t at)
{
	struct itimerspec t = {.it_value = clock_until(at)};

	timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void poller_clear(struct poller *p)
{
	uint64_t expirations;

	while (read(p->timer, &expirations, sizeof(expirations)) > 0)
		;
}
