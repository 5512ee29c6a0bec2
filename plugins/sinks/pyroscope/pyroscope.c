/* SPDX-License-Identifier: Apache-2.0 */
/* Sends profiles to Pyroscope: a request for each series of a profile, in parts that it takes. */
#include <stdlib.h>

#include "push.h"

enum api { PUSH, INGEST };

static const char *const apis[] = {[PUSH] = "push", [INGEST] = "ingest", NULL};

struct pyroscope {
	struct fusee_self self;
	struct fusee_http_options http;
	int64_t api; /* enum api */
	struct fusee_table service, without;
	int64_t max_samples;
	uint64_t max_bytes, max_age;

	struct fusee_http *client;
	/* while a profile is sent */
	const struct fusee_delivery *delivery;
	struct fusee_table labels; /* of the series */
	int refused;               /* -errno of the first series that is lost */
	bool sent;                 /* a part of the series, in this attempt */
	struct fusee_bytes body;   /* of the request to push */
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct pyroscope, http,
		       "The server, http:// or https://, with the path before its services."),
	FUSEE_OPTION_ENUM(struct pyroscope, api, "push", apis,
			  "The service: push, or ingest of servers before 1.0."),
	FUSEE_OPTION_LIST(struct pyroscope, service,
			  "service_name,service,workload,container,unit,process",
			  "Labels: the first that a series has is its service_name."),
	FUSEE_OPTION_LIST(struct pyroscope, without, "thread",
			  "Labels that make no series of their own and are not sent."),
	FUSEE_OPTION_INT(struct pyroscope, max_samples, "16000", 1, 10000000,
			 "Samples of a request; more are sent in several."),
	FUSEE_OPTION_SIZE(struct pyroscope, max_bytes, "1900KiB", 10000, 1ll << 30,
			  "Bytes of a request's profile, uncompressed; more are sent in several."),
	FUSEE_OPTION_DURATION(struct pyroscope, max_age, "1h", 0, 8760 * FUSEE_HOUR,
			      "Older profiles are dropped, as the server would; 0 for no limit."),
	FUSEE_HTTP_OPTIONS(struct pyroscope, http, "30s"),
};

/* A server's default limits for a series: 30 labels, including __name__ and service_name. */
static const uint32_t most_labels = 28, most_name = 1024, most_value = 2048;

/* ---- a part of a series ---- */

static const char *metric_of(const struct fusee_profile *p)
{
	static const struct {
		const char *kind, *name;
	} all[] = {{"cpu", "process_cpu"}, {"off_cpu", "off_cpu"}, {"alloc", "memory"},
		   {"mutex", "mutex"},     {"block", "block"},     {"goroutine", "goroutine"}};
	struct fusee_str kind = *FUSEE_AT(struct fusee_str, p->strings, p->kind);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (fusee_text_is(kind, all[i].kind))
			return all[i].name;
	return "process_cpu";
}

static int request_of(struct pyroscope *y, const struct fusee_profile *part,
		      struct fusee_http_request *q, char **query)
{
	struct fusee_str pprof;
	int r = y->self.host->sink->encode(y->delivery->out, part, FUSEE_PPROF_GZ, &pprof);

	*query = NULL;
	if (!r && y->api == PUSH) {
		r = push_encode(metric_of(part), y->labels, part, pprof, &y->body);
		*q = (struct fusee_http_request){.path = PUSH_PATH,
						 .content_type = "application/proto",
						 .body = fusee_bytes_str(&y->body)};
	} else if (!r) {
		r = ingest_query(y->labels, part, query);
		*q = (struct fusee_http_request){.path = INGEST_PATH,
						 .query = *query,
						 .content_type = "application/octet-stream",
						 .body = pprof};
	}
	return r ? fusee_fail(&y->self, r, "cannot encode a profile: %s", strerror(-r)) : 0;
}

static int judge(struct pyroscope *y, const struct fusee_http_answer *a)
{
	char words[FUSEE_HTTP_WORDS], hint[FUSEE_HTTP_WORDS + 64];
	enum fusee_http_verdict verdict = push_verdict(a, words);
	bool old = y->api == PUSH && a->status == 404;

	snprintf(hint, sizeof(hint), "%s%s", words,
		 old ? " (a Pyroscope before 1.0 needs api = 'ingest')" : "");
	return fusee_http_result(y->client, y->delivery->out, a, verdict, hint);
}

static int send_part(void *arg, const struct fusee_delivery *d, const struct fusee_profile *part)
{
	static const struct fusee_label protocol = {.key = FUSEE_TEXT("Connect-Protocol-Version"),
						    .str = FUSEE_TEXT("1")};
	struct pyroscope *y = arg;
	struct fusee_http_request q;
	struct fusee_http_answer a;
	char *query;
	int r = request_of(y, part, &q, &query);

	y->sent = true;
	if (!r)
		q.out = d->out;
	if (!r && y->api == PUSH)
		q.headers = (struct fusee_table){&protocol, 1, sizeof(protocol)};
	if (!r)
		r = fusee_http_send(y->client, &q, &a);
	if (!r)
		r = judge(y, &a);
	if (!r)
		fusee_count(&y->self, "bytes_sent", q.body.len);
	fusee_bytes_fini(&y->body);
	free(query);
	return r;
}

/* ---- a series ---- */

static const struct fusee_label *service_of(struct pyroscope *y, const struct fusee_series *s)
{
	FUSEE_FOR_EACH (struct fusee_str, name, y->service) {
		const struct fusee_label *l = fusee_series_label(s, name->p);

		if (l)
			return l;
	}
	return NULL;
}

/* The labels of a series for the server: with service_name, and without those that are reserved. */
static uint32_t take_labels(struct pyroscope *y, const struct fusee_series *s,
			    struct fusee_label *to)
{
	const struct fusee_label *service = service_of(y, s);
	uint32_t n = 1;

	to[0] = fusee_text_label("service_name", "unknown_service");
	if (service)
		to[0].str = service->str;
	FUSEE_FOR_EACH (struct fusee_label, l, s->labels) {
		bool reserved = l->key.len >= 2 && !memcmp(l->key.p, "__", 2);

		if (!reserved && !fusee_text_is(l->key, "service_name"))
			to[n++] = *l;
	}
	return n;
}

static int send_series(void *arg, const struct fusee_series *s)
{
	struct pyroscope *y = arg;
	struct fusee_http_limits limits = {(uint64_t)y->max_samples, y->max_bytes};
	struct fusee_label *labels = malloc((s->labels.n + 1) * sizeof(*labels));
	int r;

	if (!labels)
		return -ENOMEM;
	y->labels = (struct fusee_table){labels, take_labels(y, s, labels), sizeof(*labels)};
	y->sent = false;
	r = fusee_http_each(y->client, y->delivery, s->profile, &limits, send_part, y);
	free(labels);
	if (r == -EAGAIN || r == -ECANCELED || r == -ENOMEM)
		return r;
	if (y->sent) /* otherwise an earlier attempt has sent and counted all parts */
		fusee_count(&y->self, "labels_dropped", s->dropped);
	y->refused = y->refused ? y->refused : r;
	return 0;
}

/* ---- a profile ---- */

static int check_age(struct pyroscope *y, const struct fusee_profile *p)
{
	uint64_t ns = fusee_now(CLOCK_REALTIME);

	if (!y->max_age || ns < p->start_ns || ns - p->start_ns <= y->max_age)
		return 0;
	return fusee_fail(&y->self, -EBADMSG,
			  "a profile of %llu min ago is older than 'max_age': the server would "
			  "drop it",
			  (unsigned long long)(ns - p->start_ns) / FUSEE_MINUTE);
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct pyroscope *y = ctx;
	const struct fusee_series_options o = {.without = y->without,
					       .max_labels = most_labels,
					       .max_name = most_name,
					       .max_value = most_value,
					       .first = y->service};
	int r = check_age(y, d->profile);

	if (r)
		return r;
	y->delivery = d;
	y->refused = 0;
	r = fusee_series_each(d->profile, &o, send_series, y);
	if (r == -ENOMEM)
		return fusee_fail(&y->self, -ENOMEM, "no memory for the series of a profile");
	return r ? r : y->refused;
}

static void cancel(void *ctx)
{
	fusee_http_cancel(((struct pyroscope *)ctx)->client);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	static const char *const own[] = {"connect-protocol-version", NULL};
	struct pyroscope *y = ctx;

	fusee_self_init(ctx, in, host);
	return fusee_http_open(&y->client, &y->self, &y->http, own);
}

static void fini(void *ctx)
{
	fusee_http_close(((struct pyroscope *)ctx)->client);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(pyroscope, FUSEE_SINK, .version = "0.1", .doc = "Sends profiles to Pyroscope.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct pyroscope), .init = init,
	     .fini = fini, .ops = &ops);
