/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define MS 1000000ull    /* ns */
#define READ_BYTES 8192l /* libcurl reads up to 100 times as much in one callback */
/* With less than a frame of HTTP/2, 16 KiB, libcurl 7.88 forgets what it has read already, until
 * the socket has more. */
#define READ_FRAMES 65536l
#define CONNECT_MS 10000l   /* longest time to connect */
#define MAX_HEADER 262144ul /* bytes of an answer's header, trailers included */
#define FRAME 5u            /* bytes that gRPC has before a message */

struct client {
	const struct fusee_self *self;
	CURLM *multi;
	struct request *requests;
	uint64_t due_ns; /* when libcurl is to be called; UINT64_MAX: never */
	uint64_t now_ns; /* of the call that runs */
};

struct request {
	struct request *next; /* of the client */
	struct client *client;
	struct request_calls calls;
	CURL *easy;
	struct curl_slist *headers;
	uint8_t *frame; /* of gRPC's request */
	bool active;    /* a request is under way */
	bool podman;    /* answers */
	bool stopped;
	uint64_t began_ns, last_ns; /* last_ns: when the last byte came */
	uint64_t silence_ns, most_ns;
	uint64_t header_bytes;
	struct request_result result;
};

/* ---- callbacks of libcurl ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct client *c = arg;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

	(void)easy;
	(void)of_socket;
	c->self->host->discovery->watch_fd(c->self->in, fd, what == CURL_POLL_REMOVE ? 0 : events);
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct client *c = arg;

	(void)multi;
	c->due_ns = ms < 0 ? UINT64_MAX : c->now_ns + (uint64_t)ms * MS;
	return 0;
}

/* A text of an answer, as it can be printed. */
static void set_clean(char *to, size_t size, const char *text, size_t n)
{
	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	to[n] = '\0';
}

/* "Name: value\r\n". true: it is this header; *value is without blanks around it. */
static bool is_header(struct fusee_str line, const char *name, struct fusee_str *value)
{
	size_t n = strlen(name);

	if (line.len <= n || strncasecmp(line.p, name, n) || line.p[n] != ':')
		return false;
	*value = (struct fusee_str){line.p + n + 1, line.len - n - 1};
	while (value->len && strchr(" \t", *value->p)) {
		value->p++;
		value->len--;
	}
	while (value->len && strchr(" \t\r\n", value->p[value->len - 1]))
		value->len--;
	return true;
}

static int number_of(struct fusee_str s)
{
	int n = 0;

	for (uint64_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || n > 100000)
			return 2; /* gRPC's "unknown" */
		n = 10 * n + (s.p[i] - '0');
	}
	return s.len ? n : 2;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	struct fusee_str line = {p, size * n}, value;

	r->last_ns = r->client->now_ns;
	r->header_bytes += line.len;
	if (r->header_bytes > MAX_HEADER) {
		r->stopped = true;
		return 0;
	}
	if (is_header(line, "grpc-status", &value))
		r->result.grpc_status = number_of(value);
	else if (is_header(line, "grpc-message", &value))
		set_clean(r->result.message, sizeof(r->result.message), value.p, value.len);
	else if (is_header(line, "Libpod-Api-Version", &value))
		r->podman = true;
	return line.len;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	long status = 0;

	r->last_ns = r->client->now_ns;
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	if (r->calls.body(r->calls.arg, status, p, size * n)) {
		r->stopped = true;
		return 0;
	}
	return size * n;
}

/* ---- one instance ---- */

struct client *client_new(const struct fusee_self *self)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->self = self;
	c->due_ns = UINT64_MAX;
	/* libcurl counts the calls; there is no cleanup, since plugins are never unloaded */
	if (!curl_global_init(CURL_GLOBAL_DEFAULT))
		c->multi = curl_multi_init();
	if (!c->multi) {
		free(c);
		return NULL;
	}
	/* a request without an end keeps a connection: gRPC's others have one of their own */
	curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	curl_multi_cleanup(c->multi);
	free(c);
}

struct request *request_new(struct client *c, const struct request_calls *calls)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->client = c;
	r->calls = *calls;
	r->easy = curl_easy_init();
	if (!r->easy) {
		free(r);
		return NULL;
	}
	r->next = c->requests;
	c->requests = r;
	return r;
}

static void clear(struct request *r)
{
	curl_slist_free_all(r->headers);
	free(r->frame);
	r->headers = NULL;
	r->frame = NULL;
}

void request_free(struct request *r)
{
	struct request **at;

	if (!r)
		return;
	for (at = &r->client->requests; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	if (r->active)
		curl_multi_remove_handle(r->client->multi, r->easy);
	curl_easy_cleanup(r->easy);
	clear(r);
	free(r);
}

/* ---- a request ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(r->easy, option, value))

static CURLcode set_limits(struct request *r)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http");
#else
	SET(CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTP);
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_BUFFERSIZE, READ_BYTES);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	/* "" keeps libcurl from reading proxies from the environment */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "");
	return code;
}

/* false: no memory. */
static bool add_header(struct request *r, const char *name, const char *value)
{
	char line[512];
	struct curl_slist *list;

	snprintf(line, sizeof(line), "%s: %s", name, value);
	list = curl_slist_append(r->headers, line);
	if (list)
		r->headers = list;
	return list;
}

static CURLcode set_grpc(struct request *r, const struct request_options *o)
{
	CURLcode code = CURLE_OK;
	size_t n = o->nmessage;

	r->frame = calloc(1, FRAME + n);
	if (!r->frame || !add_header(r, "Content-Type", "application/grpc") ||
	    !add_header(r, "TE", "trailers") || !add_header(r, "Accept", "") ||
	    (*o->space && !add_header(r, "containerd-namespace", o->space)))
		return CURLE_OUT_OF_MEMORY;
	for (int i = 0; i < 4; i++)
		r->frame[1 + i] = (uint8_t)(n >> (24 - 8 * i));
	if (n)
		memcpy(r->frame + FRAME, o->message, n);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	/* libcurl 7.88 cannot send a second request on such a connection */
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_BUFFERSIZE, READ_FRAMES);
	SET(CURLOPT_POSTFIELDSIZE, (long)(FRAME + n));
	SET(CURLOPT_POSTFIELDS, (const char *)r->frame);
	SET(CURLOPT_HTTPHEADER, r->headers);
	return code;
}

static CURLcode set_up(struct request *r, const struct request_options *o)
{
	CURLcode code = set_limits(r);
	char url[1024];

	snprintf(url, sizeof(url), "http://localhost%s", o->target);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_UNIX_SOCKET_PATH, o->socket);
	SET(CURLOPT_USERAGENT, "fusee");
	SET(CURLOPT_PRIVATE, r);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, r);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, r);
	if (o->grpc)
		return code ? code : set_grpc(r, o);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	return code;
}

int request_begin(struct request *r, const struct request_options *o, uint64_t now_ns)
{
	curl_easy_reset(r->easy);
	clear(r);
	r->result = (struct request_result){.grpc_status = -1};
	r->podman = r->stopped = false;
	r->header_bytes = 0;
	r->silence_ns = o->silence_ns;
	r->most_ns = o->most_ns;
	r->began_ns = r->last_ns = r->client->now_ns = now_ns;
	if (set_up(r, o) || curl_multi_add_handle(r->client->multi, r->easy))
		return -ENOMEM; /* a path that is too long for a socket was refused before */
	r->active = true;
	return 0;
}

bool request_is_active(const struct request *r)
{
	return r->active;
}

bool request_is_podmans(const struct request *r)
{
	return r->podman;
}

/* ---- how it ends ---- */

static void explain(struct request *r, CURLcode code)
{
	struct request_result *result = &r->result;
	long error = 0;
	const char *why = curl_easy_strerror(code);

	result->end = REQUEST_BROKEN;
	curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &error);
	result->error = (int)error;
	if (code == CURLE_COULDNT_CONNECT && error)
		why = strerror((int)error);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		why = "no connection within 10 s";
	else if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING ||
		 code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_HTTP2_STREAM)
		why = "the connection ended before the answer was complete";
	else if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY ||
		 code == CURLE_HTTP2)
		why = "the answer is not HTTP";
	set_clean(result->message, sizeof(result->message), why, strlen(why));
}

static void end(struct request *r, CURLcode code)
{
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->result.status);
	if (r->stopped)
		r->result.end = REQUEST_STOPPED;
	else if (code)
		explain(r, code);
	curl_multi_remove_handle(r->client->multi, r->easy);
	r->active = false;
	clear(r);
}

static void end_late(struct request *r, uint64_t now_ns)
{
	enum request_end how;

	if (!r->active)
		return;
	if (r->silence_ns && now_ns >= r->last_ns + r->silence_ns)
		how = REQUEST_SILENT;
	else if (r->most_ns && now_ns >= r->began_ns + r->most_ns)
		how = REQUEST_ENDLESS;
	else
		return;
	end(r, CURLE_OK);
	r->result.end = how;
	r->calls.ended(r->calls.arg, &r->result);
}

static void end_done(struct client *c)
{
	CURLMsg *m;
	int queued;

	while ((m = curl_multi_info_read(c->multi, &queued))) {
		char *of = NULL;
		struct request *r;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &of);
		r = (struct request *)(void *)of;
		end(r, m->data.result);
		r->calls.ended(r->calls.arg, &r->result);
	}
}

void client_run(struct client *c, int fd, uint32_t events, uint64_t now_ns)
{
	int running, bits = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
			    (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (events & EPOLLERR ? CURL_CSELECT_ERR : 0);

	c->now_ns = now_ns;
	if (fd >= 0)
		curl_multi_socket_action(c->multi, fd, bits, &running);
	if (now_ns >= c->due_ns) {
		c->due_ns = UINT64_MAX;
		curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	end_done(c);
	for (struct request *r = c->requests; r; r = r->next)
		end_late(r, now_ns);
}

uint64_t client_deadline(const struct client *c)
{
	uint64_t at = c->due_ns;

	for (const struct request *r = c->requests; r; r = r->next) {
		uint64_t silent = r->last_ns + r->silence_ns, endless = r->began_ns + r->most_ns;

		if (r->active && r->silence_ns && silent < at)
			at = silent;
		if (r->active && r->most_ns && endless < at)
			at = endless;
	}
	return at;
}
