/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statuses are those of the OTLP specification ("Failures", "OTLP/HTTP response"), and
 * deviations of receivers: the Collector answers 400 to a body that is too large, Pyroscope 500
 * with the failure's gRPC code in the text.
 */
#include "answer.h"

#include "proto.h"

static bool has_text(struct fusee_str s, const char *text)
{
	size_t n = strlen(text);

	return s.p && s.len >= n && memmem(s.p, s.len, text, n);
}

static bool has_any(struct fusee_str s, const char *const *texts)
{
	for (; *texts; texts++)
		if (has_text(s, *texts))
			return true;
	return false;
}

/* Whether the body is an OTLP receiver's answer. Another server's page under this path would
 * otherwise count as success. */
static bool is_ours(const struct fusee_http_answer *http, struct proto_answer *a)
{
	static const char type[] = PROTO_CONTENT_TYPE;
	struct fusee_str value;

	*a = (struct proto_answer){.rejected = 0};
	if (!http->body.len)
		return true;
	if (fusee_http_header(http, "Content-Type", &value) &&
	    (value.len < sizeof(type) - 1 || strncasecmp(value.p, type, sizeof(type) - 1)))
		return false;
	return proto_read_answer(http->body, a);
}

static void read_success(const struct fusee_http_answer *http, uint32_t profiles, struct answer *to)
{
	char words[FUSEE_HTTP_WORDS];
	struct proto_answer a;

	if (!is_ours(http, &a)) {
		/* another body than a page may mean that it took the profile */
		to->verdict = fusee_http_is_page(http) ? FUSEE_HTTP_DENIED : FUSEE_HTTP_REFUSED;
		snprintf(to->words, sizeof(to->words),
			 "but not as a receiver of OTLP does: is 'url' right?");
		return;
	}
	to->verdict = FUSEE_HTTP_TAKEN;
	fusee_http_words(words, a.message);
	if (a.rejected > 0)
		to->rejected = a.rejected < profiles ? (uint32_t)a.rejected : profiles;
	if (to->rejected)
		snprintf(to->words, sizeof(to->words), "rejected %u of %u profiles%s%s",
			 to->rejected, profiles, *words ? ": " : "", words);
	else
		snprintf(to->words, sizeof(to->words), "%s", words);
	if (to->rejected && to->rejected == profiles)
		to->verdict = FUSEE_HTTP_REFUSED;
}

static enum fusee_http_verdict verdict_of(const struct fusee_http_answer *http,
					  struct fusee_str words)
{
	static const char *const too_large[] = {"request body too large", "message too large",
						"larger than max", NULL};
	static const char *const temporary[] = {
		"code = Unavailable",       "code = DeadlineExceeded",
		"code = Canceled",          "code = Aborted",
		"code = OutOfRange",        "code = DataLoss",
		"code = ResourceExhausted", NULL};
	static const char *const denied[] = {"code = Unauthenticated", "code = PermissionDenied",
					     "code = Unimplemented", NULL};
	long status = http->status;

	if (!status || status == 408 || status == 429 || (status >= 502 && status <= 504))
		return FUSEE_HTTP_LATER;
	if (status == 413 || (status == 400 && has_any(words, too_large)))
		return FUSEE_HTTP_TOO_LARGE;
	if (status == 500 && has_any(words, temporary))
		return FUSEE_HTTP_LATER;
	if (status == 501 || (status == 500 && has_any(words, denied)))
		return FUSEE_HTTP_DENIED;
	return status >= 500 ? FUSEE_HTTP_REFUSED : fusee_http_verdict(http);
}

/* A hint for the reader of the log. */
static const char *hint_of(long status, struct fusee_str words)
{
	if (status == 404)
		return " (no receiver of profiles: a Collector needs a pipeline 'profiles' and "
		       "--feature-gates=service.profilesSupport)";
	if (status == 415)
		return " (the server takes no OTLP in protobuf)";
	if (has_text(words, "wrong wireType"))
		return " (the receiver is older than opentelemetry-proto 1.10)";
	if (has_text(words, "evelopment version") || has_text(words, "evelopment-version"))
		return " (the receiver has another version of the signal than " PROTO_VERSION ")";
	return "";
}

void answer_read(const struct fusee_http_answer *http, uint32_t profiles, struct answer *to)
{
	struct fusee_str message = proto_read_error(http->body);
	struct fusee_str text = message.len ? message : http->body;
	char words[FUSEE_HTTP_WORDS];

	*to = (struct answer){.rejected = 0};
	if (http->status >= 200 && http->status < 300) {
		read_success(http, profiles, to);
		return;
	}
	to->verdict = verdict_of(http, text);
	fusee_http_words(words, text);
	snprintf(to->words, sizeof(to->words), "%s%s", words, hint_of(http->status, text));
}
