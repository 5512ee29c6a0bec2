/* SPDX-License-Identifier: Apache-2.0 */
/* Sends profiles to Parca: a request for each series of a profile, in parts that it takes. */
#include <fusee/series.h>
#include <stdlib.h>

#include "uploads.h"
#include "write.h"

enum upload_choice { UPLOAD_NONE, UPLOAD_EXECUTABLES };

static const char *const protocols[] = {[WRITE_GRPC_WEB] = "grpc-web", [WRITE_JSON] = "json", NULL};
static const char *const choices[] = {
	[UPLOAD_NONE] = "none", [UPLOAD_EXECUTABLES] = "executables", NULL};

struct parca {
	struct fusee_self self;
	struct fusee_http_options http;
	int64_t protocol; /* enum write_protocol */
	struct fusee_table without;
	int64_t max_samples;
	uint64_t max_bytes;
	int64_t upload; /* enum upload_choice */
	uint64_t upload_rate, upload_size;

	struct fusee_http *client;
	struct uploads *uploads; /* NULL: nothing is uploaded */
	/* while a profile is sent */
	const struct fusee_delivery *delivery;
	struct fusee_table labels; /* of the series */
	int refused;               /* -errno of the first series that is lost */
	struct fusee_bytes body;   /* of the request */
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct parca, http,
		       "The server, http:// or https://, with the path before its services: "
		       "http://HOST:7070."),
	FUSEE_OPTION_ENUM(struct parca, protocol, "grpc-web", protocols,
			  "How requests are made: gRPC-web, or the JSON of Parca's gateway."),
	FUSEE_OPTION_LIST(struct parca, without, "thread",
			  "Labels that make no series of their own and are not sent."),
	FUSEE_OPTION_INT(struct parca, max_samples, "8000", 1, 10000000,
			 "Samples of a request; more are sent in several."),
	FUSEE_OPTION_SIZE(struct parca, max_bytes, "4MiB", 10000, 60 << 20,
			  "Bytes of a request's profile, uncompressed; more are sent in several."),
	FUSEE_OPTION_ENUM(struct parca, upload, "none", choices,
			  "executables: with names = \"server\", programs and libraries that the "
			  "server lacks are uploaded, each once; of stripped programs their debug "
			  "files."),
	FUSEE_OPTION_SIZE(struct parca, upload_rate, "2MiB", 16 << 10, 1ll << 40,
			  "Bytes a second of uploads, on average."),
	FUSEE_OPTION_SIZE(struct parca, upload_size, "512MiB", 1, 1ll << 40,
			  "The largest file that is uploaded."),
	FUSEE_HTTP_OPTIONS(struct parca, http, "120s"),
};

/* ---- a part of a series ---- */

/* The first part of a profile's type; Parca's pages show readable names for known parts. */
static const char *name_of(const struct fusee_profile *p)
{
	static const struct {
		const char *kind, *name;
	} all[] = {{"off_cpu", "off_cpu"},
		   {"alloc", "memory"},
		   {"mutex", "mutex"},
		   {"block", "block"},
		   {"goroutine", "goroutine"}};
	struct fusee_str kind = *FUSEE_AT(struct fusee_str, p->strings, p->kind);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (fusee_text_is(kind, all[i].kind))
			return all[i].name;
	return "process_cpu";
}

/* With a single profile without a period type, a server fails all queries of types. */
static void set_period_type(struct fusee_profile *p)
{
	uint32_t i = p->default_type < p->types.n ? p->default_type : 0;

	if (!p->types.n || FUSEE_AT(struct fusee_str, p->strings, p->period_type)->len)
		return;
	p->period_type = FUSEE_AT(struct fusee_value_type, p->types, i)->type;
	p->period_unit = FUSEE_AT(struct fusee_value_type, p->types, i)->unit;
}

static int request_of(struct parca *c, const struct fusee_profile *part,
		      struct fusee_http_request *q)
{
	bool json = c->protocol == WRITE_JSON;
	struct fusee_profile typed;
	struct fusee_str pprof;
	int r;

	memset(&typed, 0, sizeof(typed));
	memcpy(&typed, part, part->size < sizeof(typed) ? part->size : sizeof(typed));
	set_period_type(&typed);
	r = c->self.host->sink->encode(c->delivery->out, &typed, FUSEE_PPROF_GZ, &pprof);
	if (!r)
		r = write_encode((enum write_protocol)c->protocol, name_of(part), c->labels, pprof,
				 &c->body);
	if (r)
		return fusee_fail(&c->self, r, "cannot encode a profile: %s", strerror(-r));
	*q = (struct fusee_http_request){.path = json ? WRITE_PATH_JSON : WRITE_PATH_GRPC,
					 .content_type = json ? "application/json"
							      : "application/grpc-web+proto",
					 .body = fusee_bytes_str(&c->body)};
	return 0;
}

static int send_part(void *arg, const struct fusee_delivery *d, const struct fusee_profile *part)
{
	static const struct fusee_label web = {.key = FUSEE_TEXT("X-Grpc-Web"),
					       .str = FUSEE_TEXT("1")};
	struct parca *c = arg;
	char words[FUSEE_HTTP_WORDS];
	enum fusee_http_verdict verdict;
	struct fusee_http_request q;
	struct fusee_http_answer a;
	int r = request_of(c, part, &q);

	if (!r)
		q.out = d->out;
	if (!r && c->protocol == WRITE_GRPC_WEB)
		q.headers = (struct fusee_table){&web, 1, sizeof(web)};
	if (!r)
		r = fusee_http_send(c->client, &q, &a);
	if (!r) {
		verdict = write_verdict((enum write_protocol)c->protocol, &a, words);
		r = fusee_http_result(c->client, d->out, &a, verdict, words);
	}
	if (!r)
		fusee_count(&c->self, "bytes_sent", q.body.len);
	fusee_bytes_fini(&c->body);
	return r;
}

/* ---- a series ---- */

/* Omits labels that begin with "__", which Parca reserves. */
static int send_series(void *arg, const struct fusee_series *s)
{
	struct parca *c = arg;
	struct fusee_http_limits limits = {(uint64_t)c->max_samples, c->max_bytes};
	struct fusee_label *labels = malloc((s->labels.n + 1) * sizeof(*labels));
	uint32_t n = 0;
	int r;

	if (!labels)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_label, l, s->labels) {
		if (l->key.len < 2 || memcmp(l->key.p, "__", 2))
			labels[n++] = *l;
	}
	c->labels = (struct fusee_table){labels, n, sizeof(*labels)};
	r = fusee_http_each(c->client, c->delivery, s->profile, &limits, send_part, c);
	free(labels);
	if (r == -EAGAIN || r == -ECANCELED || r == -ENOMEM)
		return r;
	c->refused = c->refused ? c->refused : r;
	return 0;
}

/* ---- a profile ---- */

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct parca *c = ctx;
	const struct fusee_series_options o = {.without = c->without};
	int r;

	if (c->uploads)
		uploads_add(c->uploads, d->profile);
	c->delivery = d;
	c->refused = 0;
	r = fusee_series_each(d->profile, &o, send_series, c);
	if (r == -ENOMEM)
		return fusee_fail(&c->self, -ENOMEM, "no memory for the series of a profile");
	return r ? r : c->refused;
}

static void cancel(void *ctx)
{
	struct parca *c = ctx;

	fusee_http_cancel(c->client);
	if (c->uploads)
		uploads_cancel(c->uploads);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	static const char *const own[] = {"x-grpc-web", NULL};
	struct parca *c = ctx;
	const struct uploads_options o = {
		.rate = c->upload_rate, .max_bytes = c->upload_size, .http = &c->http, .own = own};
	int r;

	fusee_self_init(ctx, in, host);
	r = fusee_http_open(&c->client, &c->self, &c->http, own);
	if (r || c->upload == UPLOAD_NONE)
		return r;
	if (c->protocol == WRITE_JSON)
		return fusee_fail(
			&c->self, -EINVAL,
			"'upload' needs protocol = \"grpc-web\": Parca's gateway takes no "
			"files");
	return uploads_new(&c->uploads, &c->self, &o);
}

static void fini(void *ctx)
{
	struct parca *c = ctx;

	uploads_free(c->uploads);
	fusee_http_close(c->client);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(parca, FUSEE_SINK, .version = "0.1", .doc = "Sends profiles to Parca.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct parca), .init = init,
	     .fini = fini, .ops = &ops);
