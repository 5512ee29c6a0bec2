/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol: kubernetes.io/docs/reference/using-api/api-concepts, "Efficient detection of
 * changes". A list has a version; a watch from this version reports all later changes. The server
 * ends each watch after some minutes, and forgets old versions: then it answers 410, and the pods
 * are listed again.
 */
#include "follow.h"

#include <fusee/http_curl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client.h"
#include "parse.h"

#define PAGE "100"            /* pods in a page of a list */
#define WATCH_SECONDS 240u    /* of a watch, plus a random time of up to as many more */
#define MAX_PAGES 1000u       /* of a list */
#define MAX_ERROR (64u << 10) /* bytes of an answer that is an error */
#define PAUSE_FIRST FUSEE_SECOND
#define PAUSE_MOST (30 * FUSEE_SECOND)
#define MAX_PAUSE 300             /* seconds that the server may request */
#define STABLE (5 * FUSEE_SECOND) /* a watch that ended earlier is begun again after a pause */

enum follow_state { PAUSED, LISTING, WATCHING };

struct follow {
	struct follow_options o;
	struct pods *pods;
	struct parser *parser;
	struct client *client;
	char *node; /* of curl_easy_escape(), as a part of a URL */
	int timer;  /* timerfd of the next deadline */

	enum follow_state state;
	char version[POD_NAME]; /* of the last event, or list; "": a list is due */
	char *next; /* of curl_easy_escape(); the token of the list's next page, NULL: the first */
	uint32_t pages; /* of the list so far */
	bool newest;    /* a version was too old; a list from the cache may be as well */
	bool fresh;     /* the next request is on a new connection */
	bool committed;
	uint64_t began_ns, retry_ns, pause_ns;
	uint64_t listed_ns; /* when the last list was complete */

	/* of the request */
	uint64_t now_ns;        /* of the callback that runs */
	uint64_t error_bytes;   /* of an answer that is an error, whatever pods it has */
	bool watch_failed;      /* an event ERROR came */
	bool heard;             /* an event or a bookmark arrived */
	bool settled;           /* the watch was answered and has lasted for STABLE */
	int parse_error, error; /* error: of the host */
	char said[1024];        /* the last failure that was logged; "": none since a success */
};

static uint64_t random_below(uint64_t n)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		bits = fusee_now(CLOCK_MONOTONIC);
	return bits % n;
}

/* ---- reading answers ---- */

static int on_pod(void *arg, enum parse_event event, const struct pod *pod)
{
	struct follow *f = arg;
	bool ours = f->o.server->kubelet || !strcmp(pod->node, f->o.node);
	int r = 0;

	if (event == PARSE_ERROR) {
		f->watch_failed = true;
		return 1; /* the last event */
	}
	if ((event == PARSE_ITEM) != (f->state == LISTING) || f->error_bytes)
		return 0;
	f->heard = true;
	if (ours && (event == PARSE_ITEM || event == PARSE_PUT))
		r = pods_put(f->pods, pod, f->now_ns);
	else if (event == PARSE_DELETE)
		pods_delete(f->pods, pod->uid, f->now_ns);
	if (f->state == WATCHING && *pod->version)
		memcpy(f->version, pod->version, sizeof(f->version));
	if (event == PARSE_PUT || event == PARSE_DELETE)
		fusee_count(f->o.self, "pod_events", 1);
	f->error = r;
	return r;
}

/* The answer of an error has a sentence, if it is JSON. */
static int on_body(void *arg, long status, const char *bytes, size_t n)
{
	struct follow *f = arg;
	int r;

	if (status != 200) {
		f->error_bytes += n;
		if (!f->parse_error)
			f->parse_error = parser_feed(f->parser, bytes, n);
		return f->error_bytes > MAX_ERROR;
	}
	r = parser_feed(f->parser, bytes, n);
	if (r && !f->watch_failed && !f->error)
		f->parse_error = r;
	return r;
}

/* ---- requests ---- */

static int url_of_list(struct follow *f, char **url)
{
	const char *base = f->o.server->url;

	if (f->o.server->kubelet)
		return asprintf(url, "%s/pods", base);
	/* version 0: from the server's memory. Pages after the first have no version. */
	return asprintf(url, "%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&limit=" PAGE "%s%s",
			base, f->node,
			f->next     ? "&continue="
			: f->newest ? ""
				    : "&resourceVersion=0",
			f->next ? f->next : "");
}

static int url_of_watch(struct follow *f, char **url)
{
	char *version = curl_easy_escape(NULL, f->version, 0);
	int r = -1;

	if (version)
		r = asprintf(url,
			     "%s/api/v1/pods?watch=1&allowWatchBookmarks=true&fieldSelector=spec."
			     "nodeName%%3D%s&timeoutSeconds=%u&resourceVersion=%s",
			     f->o.server->url, f->node,
			     WATCH_SECONDS + (unsigned int)random_below(WATCH_SECONDS), version);
	curl_free(version);
	return r;
}

static void finished(struct follow *f, const struct client_result *result);

static int request(struct follow *f)
{
	struct client_result result;
	char *url = NULL;
	int r;

	f->state = *f->version ? WATCHING : LISTING;
	r = f->state == WATCHING ? url_of_watch(f, &url) : url_of_list(f, &url);
	if (r < 0)
		return -ENOMEM;
	if (f->state == LISTING && !f->next) {
		f->pages = 0;
		pods_begin_list(f->pods);
	}
	f->began_ns = f->now_ns;
	f->error_bytes = 0;
	f->parse_error = 0;
	f->watch_failed = f->heard = f->settled = false;
	r = parser_begin(f->parser);
	if (!r)
		r = client_get(f->client, url, f->fresh, f->now_ns, &result);
	f->fresh = false;
	free(url);
	if (r == 1)
		finished(f, &result);
	return r < 0 ? r : 0;
}

/* Schedules the next request after a pause, which doubles each time. */
static void pause_until(struct follow *f, uint64_t at_least_ns)
{
	uint64_t pause = f->pause_ns / 2 + random_below(f->pause_ns / 2);

	f->state = PAUSED;
	f->retry_ns = f->now_ns + (pause > at_least_ns ? pause : at_least_ns + pause / 10);
	f->pause_ns = 2 * f->pause_ns < PAUSE_MOST ? 2 * f->pause_ns : PAUSE_MOST;
}

static void again_after(struct follow *f, uint64_t ns)
{
	f->state = PAUSED;
	f->retry_ns = f->now_ns + ns;
}

static void list_anew(struct follow *f)
{
	*f->version = '\0';
	curl_free(f->next);
	f->next = NULL;
}

/* ---- failures ---- */

/* The pause that the server requests, in the header or in the answer itself. */
static uint64_t requested_pause(const struct follow *f, const struct client_result *result)
{
	int64_t seconds = parser_answer(f->parser)->retry_after;

	if (result->retry_after || seconds <= 0)
		return result->retry_after;
	return (uint64_t)(seconds < MAX_PAUSE ? seconds : MAX_PAUSE) * FUSEE_SECOND;
}

__attribute__((format(printf, 3, 4))) static void
failed(struct follow *f, const struct client_result *result, const char *format, ...)
{
	char text[sizeof(f->said)];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fusee_count(f->o.self, "failures", 1);
	if (strcmp(text, f->said))
		fusee_log(f->o.self, FUSEE_WARNING, "%s%s", text,
			  f->committed ? "; pods keep the labels that they have, and new pods have "
					 "none until it works"
				       : "; pods have no labels until it works");
	memcpy(f->said, text, sizeof(f->said));
	pause_until(f, requested_pause(f, result));
}

static void failed_with_status(struct follow *f, const struct client_result *result, int64_t status)
{
	const struct server *s = f->o.server;
	const char *text = parser_answer(f->parser)->message, *colon = *text ? ": " : "";
	bool credentials = s->token || s->token_file || s->user || s->cert_file || s->cert.p;

	if (status == 401 && !credentials)
		failed(f, result, "'%s' requires credentials (401): set 'token_file'%s", s->url,
		       s->kubelet ? "" : ", or 'kubeconfig'");
	else if (status == 401)
		failed(f, result, "'%s' refuses the %s%s%s (401)%s%s", s->url,
		       s->token_file ? "token of '"
		       : s->token    ? "token of the kubeconfig"
		       : s->user     ? "password of the kubeconfig"
				     : "client certificate",
		       s->token_file ? s->token_file : "", s->token_file ? "'" : "", colon, text);
	else if (status == 403)
		failed(f, result,
		       "'%s' does not allow to %s pods (403)%s%s; the account needs a "
		       "ClusterRole with %s",
		       s->url, s->kubelet ? "list" : "list and watch", colon, text,
		       s->kubelet ? "the verb get on nodes/proxy"
				  : "the verbs list and watch on pods");
	else if (status == 404)
		failed(f, result, "'%s' is no %s (404)", s->url,
		       s->kubelet ? "kubelet: it has no /pods"
				  : "Kubernetes API server: it has no /api/v1/pods");
	else
		failed(f, result, "'%s' answered %lld%s%s", s->url, (long long)status, colon, text);
}

static void broken(struct follow *f, const struct client_result *result)
{
	const struct server *s = f->o.server;

	if (result->end == CLIENT_NO_TOKEN)
		failed(f, result, "%s", result->why);
	else if (result->end == CLIENT_UNTRUSTED)
		failed(f, result,
		       "the certificate of '%s' is not accepted: %s; it must be of the CA in "
		       "%s%s%s, "
		       "for this name",
		       s->url, result->why, s->ca_file ? "'" : "",
		       s->ca_file   ? s->ca_file
		       : s->ca.p    ? "the kubeconfig"
		       : s->kubelet ? "the system's store (set 'ca_file', or 'insecure')"
				    : "the system's store (set 'ca_file')",
		       s->ca_file ? "'" : "");
	else if (result->end == CLIENT_SILENT)
		failed(f, result, "'%s' does not answer", s->url);
	else
		failed(f, result, "no answer from '%s': %s", s->url, result->why);
}

/* ---- ends of requests ---- */

static void succeeded(struct follow *f)
{
	if (*f->said)
		fusee_log(f->o.self, FUSEE_INFO, "'%s' answers: pods have their labels",
			  f->o.server->url);
	*f->said = '\0';
	f->pause_ns = PAUSE_FIRST;
}

static void end_list(struct follow *f, const struct answer *a)
{
	pods_end_list(f->pods, f->now_ns);
	f->listed_ns = f->now_ns;
	fusee_count(f->o.self, "lists", 1);
	if (!f->o.server->kubelet)
		memcpy(f->version, a->version, sizeof(f->version));
	f->newest = false;
	if (!f->committed && !pods_count(f->pods) && !f->o.server->kubelet)
		fusee_log(f->o.self, FUSEE_WARNING,
			  "node '%s' has no pods: if that is not the name of this node, set 'node'",
			  f->o.node);
	if (!f->committed)
		f->error = f->o.self->host->discovery->commit(f->o.self->in);
	f->committed = true;
	if (f->o.server->kubelet)
		succeeded(f);
	again_after(f, f->o.server->kubelet ? f->o.period_ns : 0);
}

/* A kubelet's list has no version. */
static bool is_list(const struct follow *f)
{
	const struct answer *a = parser_answer(f->parser);

	return !parser_end(f->parser) && (f->o.server->kubelet ? a->list : *a->version != '\0');
}

static void listed(struct follow *f, const struct client_result *result)
{
	const struct answer *a = parser_answer(f->parser);
	bool more = *a->next && !f->o.server->kubelet;

	if (result->status == 410) { /* the list's next page has expired */
		list_anew(f);
		f->newest = true;
		pause_until(f, result->retry_after);
		return;
	}
	list_anew(f);
	if (result->status && result->status != 200) {
		failed_with_status(f, result, result->status);
	} else if (f->parse_error || f->watch_failed || (!result->end && !is_list(f))) {
		failed(f, result, "'%s' does not answer with a list of pods", f->o.server->url);
	} else if (result->end) {
		broken(f, result);
	} else if (more && ++f->pages == MAX_PAGES) {
		failed(f, result, "the list of pods of '%s' does not end", f->o.server->url);
	} else if (more) {
		f->next = curl_easy_escape(NULL, a->next, 0);
		again_after(f, 0);
		if (!f->next)
			f->error = -ENOMEM;
	} else {
		end_list(f, a);
	}
}

/* Each watch ends after some minutes. If it had no event, not even a bookmark, the server may never
 * reach its version: data that were restored from a backup have older versions. */
static void end_watch(struct follow *f, bool silent, bool stable)
{
	if (silent) { /* half open: the server or a middlebox has lost the connection */
		fusee_count(f->o.self, "silent_watches", 1);
		f->fresh = true;
	}
	if (!f->heard)
		list_anew(f);
	if (stable)
		again_after(f, 0);
	else
		pause_until(f, 0);
}

static void watched(struct follow *f, const struct client_result *result)
{
	const struct answer *a = parser_answer(f->parser);
	bool stable = result->status && f->now_ns >= f->began_ns + STABLE;

	if (f->heard)
		f->pause_ns = PAUSE_FIRST;
	if (result->status == 410 || (f->watch_failed && a->code == 410)) {
		fusee_count(f->o.self, "versions_expired", 1);
		list_anew(f);
		f->newest = true;
		if (f->now_ns >= f->listed_ns + STABLE) /* avoids one list right after another */
			again_after(f, 0);
		else
			pause_until(f, 0);
	} else if (f->watch_failed) {
		list_anew(f);
		failed_with_status(f, result, a->code);
	} else if (result->status && result->status != 200) {
		failed_with_status(f, result, result->status);
	} else if (f->parse_error) {
		list_anew(f);
		failed(f, result, "'%s' does not answer with events of pods", f->o.server->url);
	} else if (result->end && !stable && !(result->end == CLIENT_SILENT && result->status)) {
		broken(f, result);
	} else {
		end_watch(f, result->end == CLIENT_SILENT, stable);
	}
}

static void count_request(struct follow *f, const struct client_result *result)
{
	static const char *const kinds[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

	fusee_count_by(f->o.self, "requests", "status",
		       result->status >= 0 && result->status < 600 ? kinds[result->status / 100]
								   : "other",
		       1);
}

static void finished(struct follow *f, const struct client_result *result)
{
	uint32_t ignored = parser_answer(f->parser)->containers_ignored;

	count_request(f, result);
	fusee_count(f->o.self, "containers_ignored", ignored);
	if (f->error || f->parse_error == -ENOMEM) {
		/* the host refused a target, or there is no memory: all pods are listed again */
		f->error = f->error ? f->error : -ENOMEM;
		list_anew(f);
		pause_until(f, 0);
	} else if (f->state == LISTING) {
		listed(f, result);
	} else {
		watched(f, result);
	}
}

/* ---- the host's callbacks ---- */

static int arm(struct follow *f)
{
	uint64_t at = client_deadline(f->client), sweep = pods_sweep(f->pods, f->now_ns);

	at = at < sweep ? at : sweep;
	if (f->state == PAUSED && f->retry_ns < at)
		at = f->retry_ns;
	if (f->state == WATCHING && f->now_ns < f->began_ns + STABLE && f->began_ns + STABLE < at)
		at = f->began_ns + STABLE;
	return fusee_http_loop_arm(f->timer, at);
}

/* Sends what is due, and sets the timer. */
static int go_on(struct follow *f)
{
	int r = 0;

	if (f->state == WATCHING && !f->settled && f->now_ns >= f->began_ns + STABLE &&
	    client_is_answered(f->client)) {
		f->settled = true;
		succeeded(f);
	}
	if (f->state == PAUSED && f->now_ns >= f->retry_ns)
		r = request(f);
	if (r) /* no memory */
		pause_until(f, 0);
	if (!r) {
		r = f->error;
		f->error = 0;
	}
	return arm(f) ? -EIO : r;
}

int follow_start(struct follow *f)
{
	int r = f->o.self->host->discovery->watch_fd(f->o.self->in, f->timer, EPOLLIN);

	f->now_ns = fusee_now(CLOCK_MONOTONIC);
	if (!r)
		r = f->o.self->host->discovery->begin(f->o.self->in);
	return r ? r : go_on(f);
}

int follow_ready(struct follow *f, int fd, uint32_t events)
{
	struct client_result result;
	uint64_t n;

	f->now_ns = fusee_now(CLOCK_MONOTONIC);
	if (fd == f->timer && read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return -errno;
	if (client_run(f->client, fd == f->timer ? -1 : fd, events, f->now_ns, &result))
		finished(f, &result);
	return go_on(f);
}

/* ---- one instance ---- */

struct follow *follow_open(const struct follow_options *o)
{
	struct follow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->o = *o;
	f->pause_ns = PAUSE_FIRST;
	f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	f->node = curl_easy_escape(NULL, o->node, 0);
	f->pods = pods_open(o->self, o->chosen, o->nchosen);
	f->parser = parser_new(o->chosen, o->nchosen, on_pod, f);
	f->client = client_new(o->self, o->server, o->silence_ns, on_body, f);
	if (f->timer < 0 || !f->node || !f->pods || !f->parser || !f->client) {
		follow_close(f);
		return NULL;
	}
	return f;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	client_free(f->client);
	parser_free(f->parser);
	pods_close(f->pods);
	curl_free(f->node);
	curl_free(f->next);
	if (f->timer >= 0)
		close(f->timer);
	free(f);
}
