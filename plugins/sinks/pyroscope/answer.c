/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status alone does not decide: a bad profile gets 500 with the code "unknown", a rate limit
 * may get 422, and a profile above the burst limit always gets 429.
 */
#include <fusee/json.h>
#include <stdlib.h>
#include <strings.h>

#include "push.h"

#define TEXT 4096 /* bytes of a message that are read */

static bool is_rate_limit(const char *text)
{
	return strcasestr(text, "rate limit") || strstr(text, "resource_exhausted") ||
	       strstr(text, "ResourceExhausted");
}

/* "push rate limit (4.0 MiB) exceeded while adding 3.0 MiB": a request of this size never fits. */
static bool is_above_burst(const char *text)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"MB", 1e6}, {"kB", 1e3}};
	const char *at = strstr(text, "while adding ");
	char *end;
	double n;

	if (!at)
		return false;
	n = strtod(at + strlen("while adding "), &end);
	end += strspn(end, " ");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strncmp(end, units[i].unit, strlen(units[i].unit)))
			return n * units[i].bytes > (double)PUSH_BURST;
	return false;
}

static bool is_too_large(const char *text)
{
	return strstr(text, "max_profile_size_byte") ||
	       strstr(text, "max_profile_stacktrace_samples,") ||
	       strstr(text, "request body too large");
}

/* Whether the server cannot read the profile, also at a later attempt. */
static bool is_bad_profile(const char *code, const char *text)
{
	return (!*code || !strcmp(code, "unknown")) &&
	       (strstr(text, "gzip") || strstr(text, "EOF") || strstr(text, "unmarshal") ||
		strstr(text, "InvalidArgument"));
}

static enum fusee_http_verdict judge(const struct fusee_http_answer *a, const char *code,
				     const char *text)
{
	enum fusee_http_verdict verdict = fusee_http_verdict(a);

	if (verdict == FUSEE_HTTP_TAKEN)
		return verdict;
	if ((a->status == 429 || a->status == 422) && is_above_burst(text))
		return FUSEE_HTTP_TOO_LARGE;
	if (a->status == 422 && is_rate_limit(text))
		return FUSEE_HTTP_LATER;
	if ((a->status == 400 || a->status == 422) && is_too_large(text))
		return FUSEE_HTTP_TOO_LARGE;
	if (a->status == 501) /* it has no such service */
		return FUSEE_HTTP_DENIED;
	if (a->status == 500 && is_bad_profile(code, text))
		return FUSEE_HTTP_REFUSED;
	return verdict;
}

enum fusee_http_verdict push_verdict(const struct fusee_http_answer *a,
				     char words[FUSEE_HTTP_WORDS])
{
	char code[64], message[TEXT];

	if (fusee_http_verdict(a) == FUSEE_HTTP_TAKEN && fusee_http_is_page(a)) {
		fusee_http_words(words, fusee_text("a page of HTML: this is not Pyroscope"));
		return FUSEE_HTTP_DENIED;
	}
	fusee_json_member(a->body, "code", code, sizeof(code));
	if (!fusee_json_member(a->body, "message", message, sizeof(message)))
		snprintf(message, sizeof(message), "%.*s",
			 (int)(a->body.len < TEXT ? a->body.len : TEXT),
			 a->body.len ? a->body.p : "");
	fusee_http_words(words, fusee_text(*message ? message : code));
	return judge(a, code, message);
}
