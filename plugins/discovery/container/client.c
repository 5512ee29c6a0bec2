/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <fusee/http_curl.h>
#include <fusee/proto.h>
#include <stdlib.h>

#define READ_BYTES 8192l /* libcurl reads up to 100 times as much in one callback */
/* With a buffer smaller than a frame of HTTP/2, 16 KiB, libcurl 7.88 does not pass on bytes that it
 * has read until the socket has more. */
#define READ_FRAMES 65536l
#define CONNECT (10 * FUSEE_SECOND) /* longest time to connect */
#define MAX_HEADER 262144ul         /* bytes of an answer's header, trailers included */

struct client {
	struct fusee_http_loop loop;
	struct request *requests;
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
	uint64_t began_ns, last_ns; /* last_ns: when the last byte arrived */
	uint64_t silence_ns, most_ns;
	uint64_t header_bytes;
	struct request_result result;
};

/* ---- callbacks of libcurl ---- */

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

	r->last_ns = r->client->loop.now_ns;
	r->header_bytes += line.len;
	if (r->header_bytes > MAX_HEADER) {
		r->stopped = true;
		return 0;
	}
	if (fusee_http_is_header(line, "grpc-status", &value))
		r->result.grpc_status = number_of(value);
	else if (fusee_http_is_header(line, "grpc-message", &value))
		fusee_http_clean(r->result.message, sizeof(r->result.message), value.p, value.len);
	else if (fusee_http_is_header(line, "Libpod-Api-Version", &value))
		r->podman = true;
	return line.len;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	long status = 0;

	r->last_ns = r->client->loop.now_ns;
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
	if (fusee_http_loop_init(&c->loop, self)) {
		free(c);
		return NULL;
	}
	/* a request that does not end occupies a connection, so other gRPC requests use another */
	curl_multi_setopt(c->loop.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	fusee_http_loop_fini(&c->loop);
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
		curl_multi_remove_handle(r->client->loop.multi, r->easy);
	curl_easy_cleanup(r->easy);
	clear(r);
	free(r);
}

/* ---- a request ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(r->easy, option, value))

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
	size_t n = o->message.len;

	r->frame = calloc(1, FUSEE_PROTO_FRAME + n);
	if (!r->frame || !add_header(r, "Content-Type", "application/grpc") ||
	    !add_header(r, "TE", "trailers") || !add_header(r, "Accept", "") ||
	    (*o->space && !add_header(r, "containerd-namespace", o->space)))
		return CURLE_OUT_OF_MEMORY;
	fusee_proto_set_frame(r->frame, (uint32_t)n);
	if (n)
		memcpy(r->frame + FUSEE_PROTO_FRAME, o->message.p, n);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	/* libcurl 7.88 cannot send a second request on such a connection */
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_BUFFERSIZE, READ_FRAMES);
	SET(CURLOPT_POSTFIELDSIZE, (long)(FUSEE_PROTO_FRAME + n));
	SET(CURLOPT_POSTFIELDS, (const char *)r->frame);
	SET(CURLOPT_HTTPHEADER, r->headers);
	return code;
}

static CURLcode set_up(struct request *r, const struct request_options *o)
{
	CURLcode code = fusee_http_set_limits(r->easy, CONNECT, "");
	char url[1024];

	snprintf(url, sizeof(url), "http://localhost%s", o->target);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_UNIX_SOCKET_PATH, o->socket);
	SET(CURLOPT_BUFFERSIZE, READ_BYTES);
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
	r->began_ns = r->last_ns = now_ns;
	if (set_up(r, o) || fusee_http_loop_add(&r->client->loop, r->easy, now_ns))
		return -ENOMEM; /* paths that are too long for a socket were refused before */
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

/* ---- the end of a request ---- */

static void explain(struct request *r, CURLcode code)
{
	long error = 0;

	r->result.end = REQUEST_BROKEN;
	curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &error);
	r->result.error = (int)error;
	fusee_http_explain(r->easy, code, NULL, r->result.message);
}

static void end(struct request *r, CURLcode code)
{
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->result.status);
	if (r->stopped)
		r->result.end = REQUEST_STOPPED;
	else if (code)
		explain(r, code);
	curl_multi_remove_handle(r->client->loop.multi, r->easy);
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

static void on_ended(void *arg, CURL *easy, CURLcode code)
{
	char *of = NULL;
	struct request *r;

	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &of);
	r = (struct request *)(void *)of;
	end(r, code);
	r->calls.ended(r->calls.arg, &r->result);
}

void client_run(struct client *c, int fd, uint32_t events, uint64_t now_ns)
{
	fusee_http_loop_run(&c->loop, fd, events, now_ns, on_ended, NULL);
	for (struct request *r = c->requests; r; r = r->next)
		end_late(r, now_ns);
}

uint64_t client_deadline(const struct client *c)
{
	uint64_t at = c->loop.due_ns;

	for (const struct request *r = c->requests; r; r = r->next) {
		uint64_t silent = r->last_ns + r->silence_ns, endless = r->began_ns + r->most_ns;

		if (r->active && r->silence_ns && silent < at)
			at = silent;
		if (r->active && r->most_ns && endless < at)
			at = endless;
	}
	return at;
}
