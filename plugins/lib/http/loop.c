/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <fusee/http_curl.h>

#define MS 1000000ull /* ns */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct fusee_http_loop *l = arg;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

	(void)easy;
	(void)of_socket;
	l->self->host->discovery->watch_fd(l->self->in, fd, what == CURL_POLL_REMOVE ? 0 : events);
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct fusee_http_loop *l = arg;

	(void)multi;
	l->due_ns = ms < 0 ? UINT64_MAX : l->now_ns + (uint64_t)ms * MS;
	return 0;
}

int fusee_http_loop_init(struct fusee_http_loop *l, const struct fusee_self *self)
{
	*l = (struct fusee_http_loop){.self = self, .due_ns = UINT64_MAX};
	/* libcurl counts the calls; there is no cleanup, since plugins are never unloaded */
	if (!curl_global_init(CURL_GLOBAL_DEFAULT))
		l->multi = curl_multi_init();
	if (!l->multi)
		return -ENOMEM;
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
	return 0;
}

void fusee_http_loop_fini(struct fusee_http_loop *l)
{
	if (l->multi)
		curl_multi_cleanup(l->multi);
	l->multi = NULL;
}

int fusee_http_loop_add(struct fusee_http_loop *l, CURL *easy, uint64_t now_ns)
{
	l->now_ns = now_ns;
	return curl_multi_add_handle(l->multi, easy) ? -ENOMEM : 0;
}

void fusee_http_loop_run(struct fusee_http_loop *l, int fd, uint32_t events, uint64_t now_ns,
			 void (*ended)(void *arg, CURL *, CURLcode), void *arg)
{
	int running, queued,
		bits = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		       (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		       (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
	CURLMsg *m;

	l->now_ns = now_ns;
	if (fd >= 0)
		curl_multi_socket_action(l->multi, fd, bits, &running);
	if (now_ns >= l->due_ns) {
		l->due_ns = UINT64_MAX;
		curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	while ((m = curl_multi_info_read(l->multi, &queued)))
		if (m->msg == CURLMSG_DONE)
			ended(arg, m->easy_handle, m->data.result);
}

int fusee_http_loop_arm(int timer, uint64_t at_ns)
{
	struct itimerspec t = {0};

	if (at_ns != UINT64_MAX) {
		at_ns = at_ns ? at_ns : 1; /* 0 would stop it */
		t.it_value.tv_sec = (time_t)(at_ns / FUSEE_SECOND);
		t.it_value.tv_nsec = (long)(at_ns % FUSEE_SECOND);
	}
	return timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL) ? -errno : 0;
}
