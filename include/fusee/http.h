/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/http.h - for plugins that speak HTTP: options, checks, requests, what answers mean.
 * Optional: a plugin links it statically (libfusee-http.a, `pkg-config --libs fusee-http`; in
 * fusee's own tree the plugin's file `uses` has the line "http"), and it calls fusee only through
 * the plugin's struct fusee_self. libcurl makes the requests.
 *
 * A sink makes these calls:
 *
 *	struct mine {
 *		struct fusee_self self;
 *		struct fusee_http_options http;
 *		struct fusee_http *client;
 *	};
 *	static const struct fusee_option options[] = {
 *		FUSEE_HTTP_URL(struct mine, http, "Where profiles are sent: http:// or https://."),
 *		FUSEE_HTTP_OPTIONS(struct mine, http, "30s"),
 *	};
 *	init():    fusee_http_open(&m->client, &m->self, &m->http, NULL)
 *	consume(): fusee_http_each(m->client, d, &limits, send_part, m)
 *	send_part(): host->sink->encode(), fusee_http_send(), fusee_http_verdict(),
 *		     fusee_http_result()
 *	cancel():  fusee_http_cancel(m->client)
 *	fini():    fusee_http_close(m->client)
 *
 * Each function is for the instance's own thread, unless it says otherwise.
 */
#ifndef FUSEE_HTTP_H
#define FUSEE_HTTP_H

#include <stdbool.h>

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ---- */

/* The options that all such plugins have: a member of the plugin's ctx. Texts are "" if unset. */
struct fusee_http_options {
	const char *url;
	struct fusee_table headers; /* struct fusee_label */
	const char *tenant;         /* X-Scope-OrgID */
	const char *bearer_file, *user, *password_file;
	const char *ca_file, *cert_file, *key_file, *proxy;
	uint64_t timeout, connect_timeout; /* ns */
	uint8_t insecure;
};

/* Rows of an option table, which fill `member` of ctx, a struct fusee_http_options. */
#define FUSEE_HTTP_URL(ctx, member, doc) \
	FUSEE_HTTP_ROW(ctx, member, url, FUSEE_STRING, NULL, doc, 0, 0)
/* patience: the default of `timeout`. */
#define FUSEE_HTTP_OPTIONS(ctx, member, patience)                                                  \
	FUSEE_HTTP_ROW(ctx, member, headers, FUSEE_MAP, "",                                        \
		       "More headers of each request; no place for secrets.", 0, 0),               \
		FUSEE_HTTP_ROW(ctx, member, tenant, FUSEE_STRING, "",                              \
			       "The tenant, for the header X-Scope-OrgID; '' for none.", 0, 0),    \
		FUSEE_HTTP_ROW(ctx, member, bearer_file, FUSEE_STRING, "",                         \
			       "File with a bearer token, read for each request; '' for none.", 0, \
			       0),                                                                 \
		FUSEE_HTTP_ROW(ctx, member, user, FUSEE_STRING, "",                                \
			       "User of basic authentication; '' for none.", 0, 0),                \
		FUSEE_HTTP_ROW(ctx, member, password_file, FUSEE_STRING, "",                       \
			       "File with that user's password, read for each request.", 0, 0),    \
		FUSEE_HTTP_CONNECTION(ctx, member, patience)
/* Only the options of the connection, for a plugin with other headers or secrets: the texts of the
 * others must be "" before fusee_http_open(). */
#define FUSEE_HTTP_CONNECTION(ctx, member, patience)                                               \
	FUSEE_HTTP_ROW(ctx, member, timeout, FUSEE_DURATION, patience,                             \
		       "Longest time of a request; a longer request has failed.",                  \
		       FUSEE_SECOND / 10, FUSEE_HOUR),                                             \
		FUSEE_HTTP_ROW(ctx, member, connect_timeout, FUSEE_DURATION, "10s",                \
			       "Longest time to find the server and to connect to it.",            \
			       FUSEE_SECOND / 10, FUSEE_HOUR),                                     \
		FUSEE_HTTP_ROW(                                                                    \
			ctx, member, ca_file, FUSEE_STRING, "",                                    \
			"Certificates (PEM) that vouch for the server's; '' for the system's.", 0, \
			0),                                                                        \
		FUSEE_HTTP_ROW(ctx, member, cert_file, FUSEE_STRING, "",                           \
			       "Certificate (PEM) of this client, if the server requires it.", 0,  \
			       0),                                                                 \
		FUSEE_HTTP_ROW(ctx, member, key_file, FUSEE_STRING, "",                            \
			       "Key (PEM) of cert_file; '' if cert_file contains it.", 0, 0),      \
		FUSEE_HTTP_ROW(                                                                    \
			ctx, member, insecure, FUSEE_BOOL, "false",                                \
			"Accepts any certificate: everyone on the way can read and change all.",   \
			0, 0),                                                                     \
		FUSEE_HTTP_ROW(ctx, member, proxy, FUSEE_STRING, "",                               \
			       "Proxy, http://, https:// or socks5h://; the environment's "        \
			       "proxies are ignored.",                                             \
			       0, 0)
#define FUSEE_HTTP_ROW(ctx, member, field, kind, text, sentence, low, high)       \
	{                                                                         \
		.name = #field, .def = (text), .doc = (sentence), .type = (kind), \
		.offset = (uint32_t)(offsetof(ctx, member) +                      \
				     offsetof(struct fusee_http_options, field)), \
		.min = (low), .max = (high), .choices = NULL,                     \
	}

/* ---- a client: the connection to one server ---- */

struct fusee_http;

/* Checks the options and makes a client, which connects with its first request. own: names of
 * headers in lower case that the plugin sets itself and `headers` must not have, NULL at the end;
 * NULL: none but those of this library. The options and own are borrowed until fusee_http_close().
 * 0, or -errno after host->fail(); *ret is then NULL. In init(). */
int fusee_http_open(struct fusee_http **ret, const struct fusee_self *self,
		    const struct fusee_http_options *options, const char *const *own);
void fusee_http_close(struct fusee_http *); /* NULL is valid */
/* [any thread] A request that waits ends with -ECANCELED, and so do all later requests. */
void fusee_http_cancel(struct fusee_http *);
/* The url for sentences: without its query, which may have a key in it. */
const char *fusee_http_shown(const struct fusee_http *);

/* ---- a request ---- */

enum fusee_http_flags {
	FUSEE_HTTP_PUT = 1,  /* else POST */
	FUSEE_HTTP_GZIP = 2, /* the body is sent with gzip, and the answer may be */
	FUSEE_HTTP_DELETE = 4,
	FUSEE_HTTP_NO_REDIRECT = 8, /* an answer that redirects is the answer: a signature of the
				     * address would not be valid for another */
	FUSEE_HTTP_GRPC = 16,       /* by HTTP/2, whose trailers follow the answer's `head` */
	FUSEE_HTTP_GET = 32,        /* without a body */
};

/* A body that is read while it is sent: a file, a stream of messages. */
struct fusee_http_source {
	/* Fills buf with up to n bytes of the body; their number, not 0 before `len` bytes have
	 * been read; -errno ends the request. */
	int64_t (*read)(void *arg, void *buf, uint64_t n);
	void *arg;
	uint64_t len;
	uint64_t rate; /* bytes a second, at most */
};

/* All of it is borrowed until fusee_http_send() returns. */
struct fusee_http_request {
	uint32_t flags, pad;
	const char *path;  /* after the url's path: "/push.v1.PusherService/Push"; NULL: none */
	const char *query; /* more of the url's query, encoded: "name=a%20b"; NULL: none */
	const char *content_type;
	struct fusee_str body;
	struct fusee_table headers; /* struct fusee_label: of this request alone */
	/* In place of `body`; NULL: none. The request may take the time that the rate takes, and
	 * the option's `timeout` in addition. It also ends if nothing is sent or received for a
	 * `timeout`. No redirect is followed. */
	const struct fusee_http_source *source;
	/* An address that a server gave, in place of the option's with path and query; NULL: none.
	 * The request then has no header, secret or certificate of the options, and no redirect is
	 * followed. */
	const char *url;
	/* Where the body of a 2xx is received, in place of the client's own memory; NULL: there. */
	void *into;
	uint64_t room; /* bytes of it: a longer body is not complete */
	/* Called before each n bytes are received there: false, and the body is not complete. NULL:
	 * none. */
	bool (*take)(void *arg, uint64_t n);
	void *take_arg;
	/* The delivery that the request is a part of: fusee_http_send() calls host->denied() for it
	 * if the options must be fixed; NULL: none. */
	struct fusee_sink_out *out;
};

#define FUSEE_HTTP_BODY 65536u /* bytes of an answer that are kept, at most */

/* What came. The bytes are the client's until its next request. */
struct fusee_http_answer {
	long status;           /* 0: no complete header came, `error` says why */
	uint64_t retry_after;  /* ns, an hour at most; 0: the answer has no Retry-After */
	struct fusee_str head; /* its lines, "Name: value\r\n" */
	struct fusee_str body; /* without its content encoding; a NUL follows, but not in `into` */
	const char *error;     /* "" with a status */
	bool complete;         /* the body came up to its end; not if it is longer than what is
				* kept */
};

/* Sends a request with the options' headers and secrets, and waits for its answer. Redirects within
 * the same server are followed (unless FUSEE_HTTP_NO_REDIRECT), others never. Counts
 * fusee_plugin_requests_total{status}. 0: *answer says what came, which may be nothing; -ECANCELED;
 * -EAGAIN: a secret cannot be read now, or the server redirects to another; another -errno: the
 * request cannot be sent; each after host->fail(). */
int fusee_http_send(struct fusee_http *, const struct fusee_http_request *,
		    struct fusee_http_answer *answer);
/* May the text be a header's value? A line break in it would begin another header. */
bool fusee_http_is_value(struct fusee_str);
/* The value of a header of the answer, without blanks around it. false: there is no such header. */
bool fusee_http_header(const struct fusee_http_answer *, const char *name, struct fusee_str *value);

/* ---- what an answer means ---- */

enum fusee_http_verdict {
	FUSEE_HTTP_TAKEN,
	FUSEE_HTTP_LATER,     /* it may be taken at the next attempt */
	FUSEE_HTTP_REFUSED,   /* never */
	FUSEE_HTTP_TOO_LARGE, /* perhaps in smaller parts */
	FUSEE_HTTP_DENIED,    /* whatever is sent, until a person fixes a token, a right or an
			       * address */
};

/* By the status alone: 2xx is taken; none, 408, 429 and 5xx are for later; 413 is too large. 3xx,
 * 401 to 405, 407, 410 and 415 are denied: the token, the right, the address or the kind of server
 * is wrong, not this profile. All else is refused. A plugin that knows its server better decides
 * for itself. */
enum fusee_http_verdict fusee_http_verdict(const struct fusee_http_answer *);
/* Is it a page for people (text/html)? A proxy, or a server of another kind, also sends such a page
 * with 200, and the service has not seen what was sent. */
bool fusee_http_is_page(const struct fusee_http_answer *);

#define FUSEE_HTTP_WORDS 201 /* bytes of a server's words in a sentence, with the NUL */

/* The first non-empty line of a server's text, for a sentence; '?' replaces what is not
 * printable. */
void fusee_http_words(char words[FUSEE_HTTP_WORDS], struct fusee_str text);
/* s in base64 (RFC 4648), terminated; `to` has room for 4 bytes of each 3 that are begun, and one.
 */
void fusee_http_base64(char *to, struct fusee_str s);
/* What consume() returns: 0, -EAGAIN after host->retry_after() if the answer named a time, and
 * after host->denied() if it is denied, -EBADMSG, or -E2BIG; the last three after host->fail().
 * words: the server's own, "": none; NULL: the first line of the body. Without a delivery (NULL)
 * nothing is called but host->fail(). */
int fusee_http_result(struct fusee_http *, struct fusee_sink_out *,
		      const struct fusee_http_answer *, enum fusee_http_verdict, const char *words);

/* ---- parts of a profile ---- */

struct fusee_http_limits {
	uint64_t samples, bytes; /* of a part, bytes of FUSEE_PPROF; 0: no limit */
};

typedef int (*fusee_http_part)(void *arg, const struct fusee_delivery *,
			       const struct fusee_profile *part);

/*
 * Calls send() for each part of `profile`, which is the delivered profile or made of it, with an id
 * that is the same at each attempt. The result of send() decides:
 *	0: the part is taken;
 *	-E2BIG: it is tried in halves, down to one sample;
 *	-EAGAIN, -ECANCELED, -ENOMEM: returned at once;
 *	another -errno: the part is lost, the others are sent; the first such error is returned.
 * Parts that were taken or lost are not sent again when the delivery is attempted again: their ids
 * are remembered until another profile is delivered. Samples of lost parts are counted by
 * host->lost(), and their entries in fusee_plugin_samples_refused_total.
 */
int fusee_http_each(struct fusee_http *, const struct fusee_delivery *,
		    const struct fusee_profile *profile, const struct fusee_http_limits *,
		    fusee_http_part send, void *arg);

/* ---- addresses ---- */

enum fusee_http_url_flags {
	FUSEE_HTTP_URL_VALID = 1,    /* http:// or https:// with a host; without it no other flag */
	FUSEE_HTTP_URL_PLAIN = 2,    /* http:// */
	FUSEE_HTTP_URL_LOOPBACK = 4, /* the host is "localhost", in 127.0.0.0/8 or [::1]; a name
				      * that only begins like that is not */
	FUSEE_HTTP_URL_USER = 8,     /* it has a user or password */
	FUSEE_HTTP_URL_QUERY = 16,   /* it has a query or fragment */
};

/* What a URL is: enum fusee_http_url_flags. */
uint32_t fusee_http_url_flags(const char *url);

#ifdef __cplusplus
}
#endif
#endif
