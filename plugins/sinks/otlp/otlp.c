/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends profiles to a receiver of OTLP's profiles signal. encode.c makes requests, proto.c depends
 * on the version of the signal, answer.c interprets answers.
 */
#include <fusee/http.h>

#include "answer.h"
#include "encode.h"
#include "proto.h"

struct otlp {
	struct fusee_self self;
	struct fusee_http_options http;
	const char *path;
	struct fusee_table attributes; /* struct fusee_label */
	uint64_t max_bytes;
	uint8_t gzip;

	struct fusee_http *client;
	struct fusee_bytes body;
	char warned[ANSWER_WORDS]; /* the last words of an answer that were logged */
};

static const struct fusee_option options[] = {
	FUSEE_HTTP_URL(struct otlp, http, "The receiver, without the path: http://HOST:4318."),
	FUSEE_OPTION_STRING(struct otlp, path, PROTO_PATH,
			    "The path of the signal, appended to that of 'url'; '' for none."),
	FUSEE_OPTION_MAP(
		struct otlp, attributes, "",
		"More attributes of each resource: { [\"service.namespace\"] = \"shop\" }."),
	FUSEE_OPTION_SIZE(struct otlp, max_bytes, "3584KiB", 64 << 10, 1 << 30,
			  "About the largest request, before compression; larger profiles are "
			  "sent in parts."),
	FUSEE_OPTION_BOOL(struct otlp, gzip, "true", "Compresses requests."),
	FUSEE_HTTP_OPTIONS(struct otlp, http, "30s"),
};

/* Logs a receiver's warning about a request that it accepted, if the warning has changed. */
static void warn(struct otlp *o, const char *words)
{
	if (!*words || !strcmp(words, o->warned))
		return;
	strcpy(o->warned, words);
	fusee_log(&o->self, FUSEE_WARNING, "'%s': %s", fusee_http_shown(o->client), words);
}

static int judge(struct otlp *o, const struct fusee_delivery *d,
		 const struct fusee_http_answer *http, uint32_t profiles)
{
	struct answer a;

	answer_read(http, profiles, &a);
	fusee_count(&o->self, "profiles_rejected", a.rejected);
	if (a.verdict == FUSEE_HTTP_TAKEN) {
		fusee_count(&o->self, "bytes_sent", o->body.len);
		warn(o, a.words);
	}
	return fusee_http_result(o->client, d->out, http, a.verdict, a.words);
}

static int send_part(void *arg, const struct fusee_delivery *d, const struct fusee_profile *part)
{
	struct otlp *o = arg;
	struct fusee_label version = fusee_text_label(PROTO_VERSION_HEADER, PROTO_VERSION);
	struct fusee_http_request q = {.flags = o->gzip ? FUSEE_HTTP_GZIP : 0,
				       .path = *o->path ? o->path : NULL,
				       .content_type = PROTO_CONTENT_TYPE,
				       .headers = {&version, 1, sizeof(version)},
				       .out = d->out};
	struct fusee_http_answer a;
	uint32_t profiles;
	int r;

	fusee_bytes_reset(&o->body);
	r = encode_request(part, o->attributes, &o->body, &profiles);
	if (r)
		return fusee_fail(&o->self, r, "cannot encode a profile: %s", strerror(-r));
	if (!profiles)
		return 0; /* no samples: receivers refuse a request without profiles */
	q.body = (struct fusee_str){o->body.p, o->body.len};
	r = fusee_http_send(o->client, &q, &a);
	return r ? r : judge(o, d, &a, profiles);
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct otlp *o = ctx;
	struct fusee_http_limits limits = {.bytes = o->max_bytes};

	return fusee_http_each(o->client, d, d->profile, &limits, send_part, o);
}

static void cancel(void *ctx)
{
	fusee_http_cancel(((struct otlp *)ctx)->client);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	static const char *const own[] = {"content-encoding", "otlp-profiles-development-version",
					  NULL};
	struct otlp *o = ctx;

	fusee_self_init(ctx, in, host);
	if (*o->path && *o->path != '/')
		return fusee_fail(&o->self, -EINVAL, "option 'path': '%s' does not begin with '/'",
				  o->path);
	return fusee_http_open(&o->client, &o->self, &o->http, own);
}

static void fini(void *ctx)
{
	struct otlp *o = ctx;

	fusee_http_close(o->client);
	fusee_bytes_fini(&o->body);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(otlp, FUSEE_SINK, .version = "0.1",
	     .doc = "Sends profiles to a receiver of OpenTelemetry's profiles signal (OTLP).",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct otlp), .init = init,
	     .fini = fini, .ops = &ops);
