/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <fusee/http_curl.h>
#include <stdlib.h>

#define MAX_RETRY_AFTER 300 /* seconds: a server's mistake must not stop us for a day */
#define READ_BYTES 8192l    /* libcurl reads up to 100 times as much in one callback */
#define KEEPALIVE 30l       /* seconds */

struct client {
	const struct fusee_self *self;
	const struct server *server;
	uint64_t silence_ns;
	int (*body)(void *arg, long status, const char *bytes, size_t n);
	void *arg;

	struct fusee_http_loop loop;
	CURL *easy;
	bool active;      /* a request is under way */
	uint64_t last_ns; /* when the last byte came */
	bool stopped;     /* body() has returned an error */
	bool answered;    /* the header of an answer has come */
	bool ended;       /* in the current call */
	CURLcode code;    /* how */
	char error[CURL_ERROR_SIZE];
};

/* ---- callbacks of libcurl ---- */

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
	struct client *c = arg;

	c->last_ns = c->loop.now_ns;
	c->answered |= size * n >= 2 && *p == '\r';
	return size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct client *c = arg;
	long status = 0;

	c->last_ns = c->loop.now_ns;
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (c->body(c->arg, status, p, size * n)) {
		c->stopped = true;
		return 0;
	}
	return size * n;
}

/* ---- one instance ---- */

struct client *client_new(const struct fusee_self *self, const struct server *server,
			  uint64_t silence_ns,
			  int (*body)(void *arg, long status, const char *bytes, size_t n),
			  void *arg)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct client){
		.self = self, .server = server, .silence_ns = silence_ns, .body = body, .arg = arg};
	c->easy = fusee_http_loop_init(&c->loop, self) ? NULL : curl_easy_init();
	if (!c->easy) {
		client_free(c);
		return NULL;
	}
	curl_multi_setopt(c->loop.multi, CURLMOPT_MAXCONNECTS, 1L);
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->active)
		curl_multi_remove_handle(c->loop.multi, c->easy);
	curl_easy_cleanup(c->easy);
	fusee_http_loop_fini(&c->loop);
	free(c);
}

/* ---- a request ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(c->easy, option, value))

static CURLcode set_limits(struct client *c)
{
	CURLcode code = fusee_http_set_limits(c->easy, CLIENT_CONNECT, "");

	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_BUFFERSIZE, READ_BYTES);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE);
	SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE / 3);
	return code;
}

static CURLcode set_tls(struct client *c)
{
	const struct server *s = c->server;
	const struct fusee_http_tls tls = {.ca_file = s->ca_file,
					   .cert_file = s->cert_file,
					   .key_file = s->key_file,
					   .ca = {s->ca.p, s->ca.n},
					   .cert = {s->cert.p, s->cert.n},
					   .key = {s->key.p, s->key.n},
					   .insecure = s->insecure};

	return fusee_http_set_tls(c->easy, &tls);
}

/* Reads the token from the file for each request, because tokens of service accounts change each
 * hour. false: it cannot be read, see *result. */
static bool set_credentials(struct client *c, CURLcode *error, struct client_result *result)
{
	const struct server *s = c->server;
	char token[FUSEE_HTTP_SECRET];
	CURLcode code = CURLE_OK;
	int n;

	if (s->user) {
		SET(CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		SET(CURLOPT_USERNAME, s->user);
		SET(CURLOPT_PASSWORD, s->password ? s->password : "");
	} else if (s->token && !s->token_file) {
		SET(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		SET(CURLOPT_XOAUTH2_BEARER, s->token);
	}
	*error = code;
	if (!s->token_file)
		return true;
	n = fusee_http_secret(c->self, s->token_file, token, result->why);
	SET(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	SET(CURLOPT_XOAUTH2_BEARER, n > 0 ? token : "");
	explicit_bzero(token, sizeof(token));
	*error = code;
	return !*result->why;
}

static CURLcode set_up(struct client *c, const char *url, bool fresh)
{
	CURLcode code = set_limits(c);

	code = code ? code : set_tls(c);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
	SET(CURLOPT_ERRORBUFFER, c->error);
	SET(CURLOPT_HEADERFUNCTION, on_head);
	SET(CURLOPT_HEADERDATA, c);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, c);
	return code;
}

int client_get(struct client *c, const char *url, bool fresh, uint64_t now_ns,
	       struct client_result *result)
{
	CURLcode code, credentials = CURLE_OK;

	*result = (struct client_result){0};
	curl_easy_reset(c->easy);
	*c->error = '\0';
	c->stopped = c->answered = false;
	c->last_ns = now_ns;
	code = set_up(c, url, fresh);
	if (!set_credentials(c, &credentials, result)) {
		result->end = CLIENT_NO_TOKEN;
		return 1;
	}
	code = code ? code : credentials;
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (code) {
		result->end = CLIENT_BROKEN;
		snprintf(result->why, sizeof(result->why), "libcurl refuses the request: %s",
			 curl_easy_strerror(code));
		return 1;
	}
	if (fusee_http_loop_add(&c->loop, c->easy, now_ns))
		return -ENOMEM;
	c->active = true;
	return 0;
}

/* ---- the end of a request ---- */

static void explain(struct client *c, CURLcode code, struct client_result *result)
{
	result->end = code == CURLE_PEER_FAILED_VERIFICATION ? CLIENT_UNTRUSTED : CLIENT_BROKEN;
	if (code == CURLE_SSL_CACERT_BADFILE)
		snprintf(result->why, sizeof(result->why), "cannot read certificates in '%.160s'",
			 c->server->ca_file ? c->server->ca_file : "the kubeconfig");
	else
		fusee_http_explain(c->easy, code, c->error, result->why);
}

static void end(struct client *c, CURLcode code, struct client_result *result)
{
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &result->status);
	result->retry_after = fusee_http_retry_after(c->easy, MAX_RETRY_AFTER);
	if (c->stopped)
		result->end = CLIENT_STOPPED;
	else if (code)
		explain(c, code, result);
	curl_multi_remove_handle(c->loop.multi, c->easy);
	c->active = false;
}

static void on_ended(void *arg, CURL *easy, CURLcode code)
{
	struct client *c = arg;

	(void)easy;
	c->ended = true;
	c->code = code;
}

bool client_run(struct client *c, int fd, uint32_t events, uint64_t now_ns,
		struct client_result *result)
{
	*result = (struct client_result){0};
	c->ended = false;
	fusee_http_loop_run(&c->loop, fd, events, now_ns, on_ended, c);
	if (c->ended) {
		end(c, c->code, result);
		return true;
	}
	if (!c->active || now_ns < c->last_ns + c->silence_ns)
		return false;
	end(c, CURLE_OK, result);
	result->end = CLIENT_SILENT;
	return true;
}

bool client_is_answered(const struct client *c)
{
	return c->active && c->answered;
}

uint64_t client_deadline(const struct client *c)
{
	uint64_t silent = c->active ? c->last_ns + c->silence_ns : UINT64_MAX;

	return c->loop.due_ns < silent ? c->loop.due_ns : silent;
}
