/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status is 500 for most errors, and 404 or 400 for some, so the number of the exception
 * decides. It is in a header from about 2020 on, and begins the body in all versions.
 */
#include "answer.h"

#include <stdlib.h>

/* ClickHouse's numbers of exceptions, and what the sink does. */
static const struct {
	uint32_t code;
	enum fusee_http_verdict verdict;
} verdicts[] = {
	{74, FUSEE_HTTP_LATER},      /* a file is not read, */
	{75, FUSEE_HTTP_LATER},      /* or not written: also a full disk */
	{76, FUSEE_HTTP_LATER},      /* or not opened */
	{159, FUSEE_HTTP_LATER},     /* a timeout */
	{160, FUSEE_HTTP_LATER},     /* too slow */
	{173, FUSEE_HTTP_LATER},     /* no memory */
	{198, FUSEE_HTTP_LATER},     /* DNS, of a shard */
	{201, FUSEE_HTTP_LATER},     /* quota, of an interval */
	{202, FUSEE_HTTP_LATER},     /* too many simultaneous queries */
	{203, FUSEE_HTTP_LATER},     /* no free connection */
	{209, FUSEE_HTTP_LATER},     /* a socket's timeout */
	{210, FUSEE_HTTP_LATER},     /* network */
	{225, FUSEE_HTTP_LATER},     /* no keeper */
	{236, FUSEE_HTTP_LATER},     /* aborted, as at the end of the server */
	{241, FUSEE_HTTP_LATER},     /* limit of memory */
	{242, FUSEE_HTTP_LATER},     /* the replica is read-only */
	{243, FUSEE_HTTP_LATER},     /* no space */
	{252, FUSEE_HTTP_LATER},     /* too many parts: merges are behind */
	{254, FUSEE_HTTP_LATER},     /* no active replica */
	{279, FUSEE_HTTP_LATER},     /* no connection to a shard */
	{285, FUSEE_HTTP_LATER},     /* too few replicas for a quorum */
	{286, FUSEE_HTTP_LATER},     /* the quorum before this one */
	{319, FUSEE_HTTP_LATER},     /* not known: it is deduplicated */
	{364, FUSEE_HTTP_LATER},     /* too many requests, of the storage */
	{394, FUSEE_HTTP_LATER},     /* cancelled */
	{425, FUSEE_HTTP_LATER},     /* an error of the system */
	{439, FUSEE_HTTP_LATER},     /* no thread */
	{473, FUSEE_HTTP_LATER},     /* locks */
	{499, FUSEE_HTTP_LATER},     /* S3 */
	{745, FUSEE_HTTP_LATER},     /* overloaded */
	{999, FUSEE_HTTP_LATER},     /* keeper */
	{1000, FUSEE_HTTP_LATER},    /* network and files */
	{1001, FUSEE_HTTP_LATER},    /* the C++ library: memory, threads, files */
	{229, FUSEE_HTTP_TOO_LARGE}, /* a limit of rows or bytes */
	{158, FUSEE_HTTP_TOO_LARGE}, /* likewise */
	{307, FUSEE_HTTP_TOO_LARGE}, /* likewise */
	{396, FUSEE_HTTP_TOO_LARGE}, /* likewise */
	{164, FUSEE_HTTP_DENIED},    /* a user that may only read */
	{192, FUSEE_HTTP_DENIED},    /* an unknown user, */
	{193, FUSEE_HTTP_DENIED},    /* a wrong password, */
	{194, FUSEE_HTTP_DENIED},    /* none, */
	{195, FUSEE_HTTP_DENIED},    /* an address that the user may not come from, */
	{516, FUSEE_HTTP_DENIED},    /* and any of these from about 2020 on */
	{291, FUSEE_HTTP_DENIED},    /* a database that the user may not use */
	{497, FUSEE_HTTP_DENIED},    /* a right that the user does not have */
};

static bool is_missing(uint32_t code)
{
	return code == ANSWER_UNKNOWN_TABLE || code == ANSWER_UNKNOWN_DATABASE;
}

static enum fusee_http_verdict verdict_of(uint32_t code, const struct fusee_http_answer *http)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
		if (verdicts[i].code == code)
			return verdicts[i].verdict;
	/* a code of later versions */
	if (http->status == 429 || (http->status >= 502 && http->status <= 504))
		return fusee_http_verdict(http);
	return FUSEE_HTTP_REFUSED;
}

static uint32_t number(struct fusee_str s)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < s.len && i < 5 && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n = n * 10 + (uint32_t)(s.p[i] - '0');
	return n;
}

static uint32_t code_of(const struct fusee_http_answer *http)
{
	static const char begin[] = "Code: ";
	const uint64_t n = sizeof(begin) - 1;
	struct fusee_str value;

	if (fusee_http_header(http, "X-ClickHouse-Exception-Code", &value))
		return number(value);
	if (http->body.len < n || memcmp(http->body.p, begin, n))
		return 0;
	return number((struct fusee_str){http->body.p + n, http->body.len - n});
}

static const char *hint_of(uint32_t code)
{
	switch (code) {
	case ANSWER_UNKNOWN_DATABASE:
		return " (CREATE DATABASE makes it)";
	case 192: /* unknown user, wrong password, and both from about 2020 on */
	case 193:
	case 194:
	case 516:
		return " ('user' and 'password_file')";
	default:
		return "";
	}
}

void answer_read(const struct fusee_http_answer *http, bool silent, struct answer *to)
{
	bool good = http->status >= 200 && http->status < 300;
	bool early = !http->complete && http->body.len < FUSEE_HTTP_BODY;
	char words[FUSEE_HTTP_WORDS];

	*to = (struct answer){.verdict = fusee_http_verdict(http), .code = code_of(http)};
	if (to->code)
		to->verdict = verdict_of(to->code, http);
	else if (good && early)
		to->verdict = FUSEE_HTTP_LATER; /* columns or an exception may be missing */
	else if (good && silent && http->body.len)
		to->verdict = fusee_http_is_page(http) ? FUSEE_HTTP_DENIED : FUSEE_HTTP_REFUSED;
	if (is_missing(to->code) && !silent)
		to->verdict = FUSEE_HTTP_DENIED;
	if (to->verdict == FUSEE_HTTP_TAKEN)
		return;
	fusee_http_words(words, http->body);
	if (good && !to->code && early)
		snprintf(words, sizeof(words), "the answer ended early");
	else if (good && !to->code)
		snprintf(words, sizeof(words), "but not as ClickHouse does: is 'url' right?");
	snprintf(to->words, sizeof(to->words), "%s%s", words, hint_of(to->code));
}
