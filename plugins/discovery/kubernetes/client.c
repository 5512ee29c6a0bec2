/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define MS 1000000ull       /* ns */
#define MAX_RETRY_AFTER 300 /* seconds: a server's mistake must not stop us for a day */
#define READ_BYTES 8192l    /* libcurl reads up to 100 times as much in one callback */
#define KEEPALIVE 30l       /* seconds */

struct client {
	const struct fusee_self *self;
	const struct server *server;
	uint64_t silence_ns;
	int (*body)(void *arg, long status, const char *bytes, size_t n);
	void *arg;

	CURLM *multi;
	CURL *easy;
	bool active;      /* a request is under way */
	uint64_t due_ns;  /* when libcurl is to be called; UINT64_MAX: never */
	uint64_t last_ns; /* when the last byte came */
	uint64_t now_ns;  /* of the call that runs */
	bool stopped;     /* body() has returned an error */
	bool answered;    /* the header of an answer has come */
	char error[CURL_ERROR_SIZE];
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

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
	struct client *c = arg;

	c->last_ns = c->now_ns;
	c->answered |= size * n >= 2 && *p == '\r';
	return size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct client *c = arg;
	long status = 0;

	c->last_ns = c->now_ns;
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
	*c = (struct client){.self = self,
			     .server = server,
			     .silence_ns = silence_ns,
			     .body = body,
			     .arg = arg,
			     .due_ns = UINT64_MAX};
	/* libcurl counts the calls; there is no cleanup, since plugins are never unloaded */
	if (!curl_global_init(CURL_GLOBAL_DEFAULT)) {
		c->multi = curl_multi_init();
		c->easy = curl_easy_init();
	}
	if (!c->multi || !c->easy) {
		client_free(c);
		return NULL;
	}
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 1L);
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
	if (c->active)
		curl_multi_remove_handle(c->multi, c->easy);
	curl_easy_cleanup(c->easy);
	if (c->multi)
		curl_multi_cleanup(c->multi);
	free(c);
}

/* ---- a request ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(c->easy, option, value))

static CURLcode set_limits(struct client *c)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* without it the end of the instance waits until a name is resolved */
	SET(CURLOPT_QUICK_EXIT, 1L);
	/* the CA's file is read for each connection: it can be changed */
	SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_BUFFERSIZE, READ_BYTES);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(CLIENT_CONNECT / (int64_t)MS));
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE);
	SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE / 3);
	/* "" keeps libcurl from reading proxies from the environment */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "");
	return code;
}

static CURLcode set_blob(struct client *c, CURLoption option, const struct blob *b)
{
	struct curl_blob blob = {.data = b->p, .len = b->n, .flags = CURL_BLOB_NOCOPY};

	return b->p ? curl_easy_setopt(c->easy, option, &blob) : CURLE_OK;
}

static CURLcode set_tls(struct client *c)
{
	const struct server *s = c->server;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, s->insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, s->insecure ? 0L : 2L);
	/* else the system's certificates, which libcurl has in a folder, vouch too */
	if (s->ca_file || s->ca.p)
		SET(CURLOPT_CAPATH, NULL);
	if (s->ca_file)
		SET(CURLOPT_CAINFO, s->ca_file);
	if (s->cert_file)
		SET(CURLOPT_SSLCERT, s->cert_file);
	if (s->cert_file || s->key_file)
		SET(CURLOPT_SSLKEY, s->key_file ? s->key_file : s->cert_file);
	code = code ? code
		    : set_blob(c, CURLOPT_CAINFO_BLOB, s->ca_file ? &(struct blob){0} : &s->ca);
	code = code ? code : set_blob(c, CURLOPT_SSLCERT_BLOB, &s->cert);
	return code ? code : set_blob(c, CURLOPT_SSLKEY_BLOB, &s->key);
}

/* Each request has the token that the file has at its time: tokens of service accounts change
 * each hour. false: *result says why it cannot be read. */
static bool set_credentials(struct client *c, CURLcode *error, struct client_result *result)
{
	const struct server *s = c->server;
	char token[SERVER_TOKEN];
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
	n = c->self->host->read_secret(c->self->in, s->token_file, token, sizeof(token));
	if (n < 0)
		snprintf(result->why, sizeof(result->why), "cannot read the token '%.160s': %s",
			 s->token_file, strerror(-n));
	else if (!n || strpbrk(token, "\r\n") || strlen(token) != (size_t)n)
		snprintf(result->why, sizeof(result->why),
			 "the token '%.160s' is empty or has several lines", s->token_file);
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
	SET(CURLOPT_USERAGENT, "fusee");
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
	c->now_ns = c->last_ns = now_ns;
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
	if (curl_multi_add_handle(c->multi, c->easy))
		return -ENOMEM;
	c->active = true;
	return 0;
}

/* ---- how it ends ---- */

/* libcurl's own texts have times in milliseconds, which differ each time. */
static void explain(struct client *c, CURLcode code, struct client_result *result)
{
	long error = 0;

	result->end = CLIENT_BROKEN;
	curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &error);
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		result->end = CLIENT_UNTRUSTED;
		snprintf(result->why, sizeof(result->why), "%s",
			 *c->error ? c->error : curl_easy_strerror(code));
		break;
	case CURLE_COULDNT_RESOLVE_HOST:
		snprintf(result->why, sizeof(result->why), "its name is not known to DNS");
		break;
	case CURLE_COULDNT_CONNECT:
		snprintf(result->why, sizeof(result->why), "%s",
			 error ? strerror((int)error) : curl_easy_strerror(code));
		break;
	case CURLE_OPERATION_TIMEDOUT:
		snprintf(result->why, sizeof(result->why), "no connection within 10 s");
		break;
	case CURLE_SSL_CACERT_BADFILE:
		snprintf(result->why, sizeof(result->why), "cannot read certificates in '%.160s'",
			 c->server->ca_file ? c->server->ca_file : "the kubeconfig");
		break;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		snprintf(result->why, sizeof(result->why), "%s",
			 *c->error ? c->error : curl_easy_strerror(code));
		break;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
		snprintf(result->why, sizeof(result->why),
			 "the connection ended before the answer was complete");
		break;
	default:
		snprintf(result->why, sizeof(result->why), "%s", curl_easy_strerror(code));
	}
}

static void end(struct client *c, CURLcode code, struct client_result *result)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &result->status);
	curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > 0)
		result->retry_after = (uint64_t)(seconds < MAX_RETRY_AFTER ? seconds
									   : MAX_RETRY_AFTER) *
				      FUSEE_SECOND;
	if (c->stopped)
		result->end = CLIENT_STOPPED;
	else if (code)
		explain(c, code, result);
	curl_multi_remove_handle(c->multi, c->easy);
	c->active = false;
}

bool client_run(struct client *c, int fd, uint32_t events, uint64_t now_ns,
		struct client_result *result)
{
	int running, queued,
		bits = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		       (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		       (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
	CURLMsg *m;

	c->now_ns = now_ns;
	*result = (struct client_result){0};
	if (fd >= 0)
		curl_multi_socket_action(c->multi, fd, bits, &running);
	if (now_ns >= c->due_ns) {
		c->due_ns = UINT64_MAX;
		curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	while ((m = curl_multi_info_read(c->multi, &queued)))
		if (m->msg == CURLMSG_DONE) {
			end(c, m->data.result, result);
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

	return c->due_ns < silent ? c->due_ns : silent;
}
