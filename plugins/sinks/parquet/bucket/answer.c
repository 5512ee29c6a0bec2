/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets answers of a bucket's server. */
#include <curl/curl.h>
#include <stdlib.h>
#include <time.h>

#include "bucket.h"

#define WORDS 600
#define CODE 64

struct fusee_str bucket_xml(struct fusee_str xml, const char *name)
{
	struct fusee_str none = {NULL, 0};
	char open[32], close[32];
	const char *from, *to;

	snprintf(open, sizeof(open), "<%s>", name);
	snprintf(close, sizeof(close), "</%s>", name);
	from = xml.len ? memmem(xml.p, xml.len, open, strlen(open)) : NULL;
	if (!from)
		return none;
	from += strlen(open);
	to = memmem(from, xml.len - (uint64_t)(from - xml.p), close, strlen(close));
	return to ? (struct fusee_str){from, (uint64_t)(to - from)} : none;
}

/* ---- sentences ---- */

typedef void (*advice)(const struct bucket *, const struct fusee_http_answer *, char words[WORDS]);

static void no_bucket(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	(void)a;
	snprintf(words, WORDS, "there is no bucket '%s'", b->name);
}

static void no_right(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	(void)a;
	if (b->reads)
		snprintf(words, WORDS,
			 "the access key may not read the bucket '%s': it needs s3:ListBucket and "
			 "s3:GetObject",
			 b->name);
	else
		snprintf(words, WORDS,
			 "the access key may not write to the bucket '%s': it needs s3:PutObject, "
			 "and s3:AbortMultipartUpload",
			 b->name);
}

static void no_key(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	(void)b;
	(void)a;
	snprintf(words, WORDS, "the server does not know the access key");
}

static void no_match(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	(void)a;
	snprintf(words, WORDS,
		 "the secret key is not that of the access key, 'region' (%s) is wrong, or a "
		 "proxy changes requests",
		 b->region);
}

static void expired(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	(void)b;
	(void)a;
	snprintf(words, WORDS, "the session's keys have expired: renew them");
}

static void skewed(const struct bucket *b, const struct fusee_http_answer *a, char words[WORDS])
{
	struct fusee_str date;
	char text[64] = "";
	time_t then;
	long long by;

	(void)b;
	if (fusee_http_header(a, "Date", &date))
		snprintf(text, sizeof(text), "%.*s", (int)(date.len < 63 ? date.len : 63), date.p);
	then = *text ? curl_getdate(text, NULL) : -1;
	by = (long long)time(NULL) - (long long)then;
	if (then == -1)
		snprintf(words, WORDS, "the clock of this machine is wrong: set it");
	else
		snprintf(words, WORDS,
			 "the clock of this machine is %lld s %s that of the server: "
			 "set it",
			 llabs(by), by < 0 ? "behind" : "ahead of");
}

static void other_region(const struct bucket *b, const struct fusee_http_answer *a,
			 char words[WORDS])
{
	struct fusee_str region = bucket_xml(a->body, "Region");
	char text[FUSEE_HTTP_WORDS] = "";

	if (region.len || fusee_http_header(a, "x-amz-bucket-region", &region))
		fusee_http_words(text, region);
	if (*text)
		snprintf(words, WORDS, "the bucket '%s' is in the region '%s': set 'region'",
			 b->name, text);
	else
		snprintf(words, WORDS,
			 "the bucket '%s' is at another server, or in another region than '%s': "
			 "set 'endpoint' or 'region'",
			 b->name, b->region);
}

/* By the code of the answer. Other codes are judged by the status alone. */
static const struct known {
	const char *code;
	advice explain; /* denied: a person must act; NULL: another attempt may succeed */
} all_known[] = {
	{"RequestTimeTooSkewed", skewed},
	{"ExpiredToken", expired},
	{"RequestTimeout", NULL},
	{"OperationAborted", NULL}, /* another upload of this object */
	{"NoSuchUpload", NULL},     /* the upload begins again */
	{"InternalError", NULL},    /* may come with the status 200 */
	{"SlowDown", NULL},
	{"ServiceUnavailable", NULL},
	{"NoSuchBucket", no_bucket},
	{"AccessDenied", no_right},
	{"AllAccessDisabled", no_right},
	{"InvalidAccessKeyId", no_key},
	{"SignatureDoesNotMatch", no_match},
	{"AuthorizationHeaderMalformed", other_region},
	{"PermanentRedirect", other_region},
	{"TemporaryRedirect", other_region},
	{"IllegalLocationConstraintException", other_region},
};

static const struct known *find(const char *code)
{
	for (size_t i = 0; i < sizeof(all_known) / sizeof(*all_known); i++)
		if (!strcmp(all_known[i].code, code))
			return &all_known[i];
	return NULL;
}

static enum fusee_http_verdict judge(const struct fusee_http_answer *a, const struct known *k)
{
	enum fusee_http_verdict verdict = fusee_http_verdict(a);

	if (k)
		return k->explain ? FUSEE_HTTP_DENIED : FUSEE_HTTP_LATER;
	return verdict == FUSEE_HTTP_TOO_LARGE ? FUSEE_HTTP_REFUSED : verdict;
}

int bucket_result(struct bucket *b, struct fusee_sink_out *out, const struct fusee_http_answer *a)
{
	char code[FUSEE_HTTP_WORDS], message[FUSEE_HTTP_WORDS], words[WORDS],
		line[WORDS + FUSEE_HTTP_WORDS + 4];
	enum fusee_http_verdict verdict;
	const struct known *k;

	/* an object that is read may contain anything */
	if (b->reads && a->status / 100 == 2)
		return 0;
	fusee_http_words(code, bucket_xml(a->body, "Code"));
	if (strlen(code) >= CODE)
		*code = '\0';
	if (b->reads && a->status == 404 && (!*code || !strcmp(code, "NoSuchKey")))
		return -ENOENT;
	if (b->reads && a->status == 416)
		return -ESTALE;
	k = find(code);
	verdict = judge(a, k);
	if (b->reads && verdict == FUSEE_HTTP_DENIED) /* a person waits for the command */
		verdict = FUSEE_HTTP_REFUSED;
	if (verdict == FUSEE_HTTP_TAKEN && *code) /* an error of another code */
		verdict = FUSEE_HTTP_REFUSED;
	fusee_http_words(message, bucket_xml(a->body, "Message"));
	snprintf(words, sizeof(words), "%s", message);
	if (k && k->explain)
		k->explain(b, a, words);
	else if (!*code && a->status >= 300 && a->status < 400)
		other_region(b, a, words);
	snprintf(line, sizeof(line), "%s%s%s", code, *code && *words ? ": " : "", words);
	return fusee_http_result(b->client, out, a, verdict, *line ? line : NULL);
}
