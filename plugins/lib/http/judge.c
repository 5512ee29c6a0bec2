/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from an answer what happens to the profile that was sent. */
#include <strings.h>

#include <fusee/http_curl.h>

#include "internal.h"

bool fusee_http_header(const struct fusee_http_answer *a, const char *name, struct fusee_str *value)
{
	const char *at = a->head.len ? a->head.p : "", *end = at + a->head.len, *next;

	for (; at < end; at = next) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct fusee_str line = {at, 0};

		next = newline ? newline + 1 : end;
		line.len = (uint64_t)(next - at);
		if (fusee_http_is_header(line, name, value))
			return true;
	}
	return false;
}

void fusee_http_words(char words[FUSEE_HTTP_WORDS], struct fusee_str text)
{
	size_t n = 0;

	for (uint64_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (c == '\n' || c == '\r') {
			if (n)
				break;
			continue;
		}
		if (n == FUSEE_HTTP_WORDS - 1)
			break;
		words[n++] = c >= ' ' && c <= '~' ? c : '?';
	}
	words[n] = '\0';
}

enum fusee_http_verdict fusee_http_verdict(const struct fusee_http_answer *a)
{
	if (a->status >= 200 && a->status < 300)
		return FUSEE_HTTP_TAKEN;
	if (!a->status || a->status == 408 || a->status == 429 || a->status >= 500)
		return FUSEE_HTTP_LATER;
	switch (a->status) {
	case 401: /* token */
	case 402: /* account */
	case 403: /* right */
	case 404: /* address */
	case 405: /* method */
	case 407: /* proxy */
	case 410: /* address */
	case 415: /* content type, the same for all profiles */
		return FUSEE_HTTP_DENIED;
	case 413:
		return FUSEE_HTTP_TOO_LARGE;
	default:
		return a->status >= 300 && a->status < 400 ? FUSEE_HTTP_DENIED : FUSEE_HTTP_REFUSED;
	}
}

bool fusee_http_is_page(const struct fusee_http_answer *a)
{
	static const char *const begins[] = {"<!doctype html", "<html"};
	struct fusee_str type;

	if (fusee_http_header(a, "content-type", &type))
		return type.len >= 9 && !strncasecmp(type.p, "text/html", 9);
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (a->body.len >= strlen(begins[i]) &&
		    !strncasecmp(a->body.p, begins[i], strlen(begins[i])))
			return true;
	return false;
}

void http_denied(struct fusee_http *h, struct fusee_sink_out *out)
{
	const struct fusee_sink_host *host = h->self->host->sink;

	h->denied = true;
	if (out && FUSEE_HAS(host, denied))
		host->denied(out);
}

static int error_of(enum fusee_http_verdict verdict)
{
	switch (verdict) {
	case FUSEE_HTTP_LATER:
	case FUSEE_HTTP_DENIED:
		return -EAGAIN;
	case FUSEE_HTTP_TOO_LARGE:
		return -E2BIG;
	default:
		return -EBADMSG;
	}
}

int fusee_http_result(struct fusee_http *h, struct fusee_sink_out *out,
		      const struct fusee_http_answer *a, enum fusee_http_verdict verdict,
		      const char *words)
{
	char line[FUSEE_HTTP_WORDS], again[64] = "";
	const char *proxy = h->options->proxy, *colon;
	const char *open = *proxy ? " (proxy '" : "", *close = *proxy ? "')" : "";
	int err = error_of(verdict);

	if (verdict == FUSEE_HTTP_TAKEN)
		return 0;
	if (verdict == FUSEE_HTTP_DENIED)
		http_denied(h, out);
	if (err == -EAGAIN && a->retry_after && out) {
		h->self->host->sink->retry_after(out, a->retry_after);
		snprintf(again, sizeof(again), ", again in %llu s",
			 (unsigned long long)a->retry_after / FUSEE_SECOND);
	}
	if (!a->status)
		return fusee_fail(h->self, err, "no answer from '%s'%s%s%s: %s", h->shown, open,
				  proxy, close, a->error);
	if (!words) {
		fusee_http_words(line, a->body);
		words = line;
	}
	colon = *words ? ": " : "";
	return fusee_fail(h->self, err, "'%s'%s%s%s answered %ld%s%s%s", h->shown, open, proxy,
			  close, a->status, again, colon, words);
}
