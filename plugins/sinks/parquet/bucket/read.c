/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a bucket, and reads ranges of its objects. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "bucket.h"
#include "sigv4.h"

#define FIRST_PAUSE (FUSEE_SECOND / 4) /* doubled each time */
#define MOST_PAUSE (30 * FUSEE_SECOND) /* of the pause that a server requests */
#define PATIENCE (60 * FUSEE_SECOND)   /* no request is repeated after this time */
#define UNANSWERED (15 * FUSEE_SECOND) /* the same, while no server answers */
#define PAGE (4u << 20)                /* bytes of a page of a list */
#define PAGES 10000u                   /* of 1,000 names each */
#define NAME 1025                      /* bytes of a key with its NUL: the protocol's limit */
#define QUERY 16384

/* ---- a request and its repetitions ---- */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * FUSEE_SECOND + (uint64_t)t.tv_nsec;
}

static void pause_for(const struct bucket *b, const struct fusee_http_answer *a, uint64_t ns)
{
	struct timespec t = {(time_t)(ns / FUSEE_SECOND), (long)(ns % FUSEE_SECOND)};

	if (a->status / 100 == 2)
		fusee_log(b->self, FUSEE_INFO, "a truncated answer: trying again in %" PRIu64 " ms",
			  ns / 1000000);
	else if (a->status)
		fusee_log(b->self, FUSEE_INFO, "answered %ld: trying again in %" PRIu64 " ms",
			  a->status, ns / 1000000);
	else
		fusee_log(b->self, FUSEE_INFO, "no answer (%s): trying again in %" PRIu64 " ms",
			  a->error, ns / 1000000);
	nanosleep(&t, NULL);
}

/* Checks a 2xx: 0; -EAGAIN, or another error, after host->fail(). */
typedef int (*check)(struct bucket *, const struct bucket_request *,
		     const struct fusee_http_answer *);

/* Sends a request until it has an answer that counts. 0, -ENOENT, or -errno after host->fail(). */
static int ask(struct bucket *b, const struct bucket_request *q, check fits,
	       struct fusee_http_answer *a)
{
	uint64_t begin = now(), wait = FIRST_PAUSE;
	int r;

	b->reads = true;
	for (;; wait *= 2) {
		uint64_t ns = wait;

		*a = (struct fusee_http_answer){.error = ""};
		r = bucket_send(b, q, a);
		if (!r)
			r = bucket_result(b, NULL, a);
		if (!r)
			r = fits(b, q, a);
		if (a->retry_after)
			ns = a->retry_after < MOST_PAUSE ? a->retry_after : MOST_PAUSE;
		/* neither a status nor an error: no request was sent, as keys could not be read */
		if (r != -EAGAIN || (!a->status && !*a->error) ||
		    now() - begin + ns > (a->status ? PATIENCE : UNANSWERED))
			break;
		pause_for(b, a, ns);
	}
	return r == -EAGAIN ? -EIO : r;
}

/* ---- ranges ---- */

/* "bytes 0-99/1000" */
static bool parse_range(struct fusee_str text, uint64_t *at, uint64_t *end, uint64_t *all)
{
	char copy[96];

	if (text.len >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.len);
	copy[text.len] = '\0';
	return sscanf(copy, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, at, end, all) == 3 &&
	       *at <= *end && *end < *all && *all <= INT64_MAX;
}

/* Reads which bytes an answer contains. -EBADMSG: its headers do not tell. */
static int which(const struct fusee_http_answer *a, uint64_t *at, uint64_t *n, uint64_t *all)
{
	struct fusee_str range;
	uint64_t end;

	*at = *n = *all = 0;
	if (a->status == 200) { /* a server without ranges, or an empty object */
		*n = *all = a->body.len;
		return a->complete ? 0 : -EBADMSG;
	}
	if (a->status != 206 || !fusee_http_header(a, "Content-Range", &range) ||
	    !parse_range(range, at, &end, all))
		return -EBADMSG;
	*n = end - *at + 1;
	return 0;
}

static int check_range(struct bucket *b, const struct bucket_request *q,
		       const struct fusee_http_answer *a)
{
	uint64_t at, n, all;

	if (which(a, &at, &n, &all))
		return fusee_fail(b->self, -EBADMSG,
				  "'%s' does not answer ranges of objects ('%s')",
				  fusee_http_shown(b->client), q->key);
	if (a->complete && a->body.len == n)
		return 0;
	return fusee_fail(b->self, -EAGAIN,
			  "'%s' sent %" PRIu64 " of %" PRIu64 " bytes of '%s': the answer is "
			  "truncated",
			  fusee_http_shown(b->client), a->body.len, n, q->key);
}

int64_t bucket_read(struct bucket *b, const char *key, uint64_t at, void *to, uint64_t n,
		    uint64_t *all)
{
	char range[64];
	const struct bucket_request q = {.flags = FUSEE_HTTP_GET,
					 .key = key,
					 .query = "",
					 .range = range,
					 .into = to,
					 .room = n};
	struct fusee_http_answer a;
	uint64_t from, got;
	int r;

	if (at == UINT64_MAX)
		snprintf(range, sizeof(range), "bytes=-%" PRIu64, n);
	else
		snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, at, at + n - 1);
	r = ask(b, &q, check_range, &a);
	if (r == -ESTALE && at == UINT64_MAX) /* an empty object has no range */
		*all = 0;
	if (r)
		return r == -ESTALE && at == UINT64_MAX ? 0 : r;
	which(&a, &from, &got, all);
	if (at != UINT64_MAX && from == at && got < n && from + got == *all)
		return -ESTALE;
	if (at == UINT64_MAX ? from + got != *all : from != at || got < n)
		return fusee_fail(b->self, -EBADMSG, "'%s' answered another range of '%s'",
				  fusee_http_shown(b->client), key);
	return (int64_t)got;
}

/* ---- lists ---- */

struct list {
	struct bucket *bucket;
	const struct fusee_listing *of;
	bool encoded;      /* names are URL-encoded */
	char token[QUERY]; /* encoded; of the next page; "": no more pages */
};

static int no_list(struct bucket *b, const char *why)
{
	return fusee_fail(b->self, -EBADMSG, "'%s' answered no list of objects: %s",
			  fusee_http_shown(b->client), why);
}

static int check_list(struct bucket *b, const struct bucket_request *q,
		      const struct fusee_http_answer *a)
{
	static const char begin[] = "<ListBucketResult", end[] = "</ListBucketResult>";

	if (!a->complete)
		return a->body.len == q->room
			       ? no_list(b, "a page has more than 4 MiB")
			       : fusee_fail(b->self, -EAGAIN,
					    "'%s' sent a list of objects that is truncated",
					    fusee_http_shown(b->client));
	if (!memmem(a->body.p, a->body.len, begin, strlen(begin)) ||
	    !memmem(a->body.p, a->body.len, end, strlen(end)))
		return no_list(b, "it is not the XML of S3");
	return 0;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A reference such as "&amp;" at the text's begin: its character, and its length in *n; 0: none. */
static char reference(const char *p, uint64_t len, uint64_t *n)
{
	static const struct {
		const char *text;
		char c;
	} all[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		*n = strlen(all[i].text);
		if (*n <= len && !memcmp(p, all[i].text, *n))
			return all[i].c;
	}
	return 0;
}

/* Decodes a key. -1: it is too long or malformed. */
static int decode(const struct list *l, struct fusee_str s, char to[NAME])
{
	uint64_t i = 0, step;
	int n = 0;

	for (; i < s.len && n < NAME - 1; i += step) {
		char c = s.p[i];

		step = 1;
		if (c == '&' && !(c = reference(s.p + i, s.len - i, &step)))
			return -1;
		if (l->encoded && c == '+')
			c = ' ';
		if (l->encoded && c == '%') {
			if (s.len - i < 3 || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
				return -1;
			c = (char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
			step = 3;
		}
		if (!c)
			return -1;
		to[n++] = c;
	}
	to[n] = '\0';
	return i == s.len ? n : -1;
}

static int take_name(const struct list *l, struct fusee_str text)
{
	size_t skip = strlen(l->bucket->prefix), prefix = strlen(l->of->prefix);
	char name[NAME];
	int n = decode(l, text, name);

	if (n < 0)
		return no_list(l->bucket, "a name in it is not that of an object");
	if ((size_t)n < skip + prefix || memcmp(name, l->bucket->prefix, skip) ||
	    memcmp(name + skip, l->of->prefix, prefix))
		return no_list(l->bucket, "it has other names than those that were requested");
	return l->of->each(l->of->arg, (struct fusee_str){name + skip, (uint64_t)n - skip});
}

/* Takes the name in <inner> of each <outer>. */
static int take_names(const struct list *l, struct fusee_str page, const char *outer,
		      const char *inner)
{
	struct fusee_str s;
	int r = 0;

	while (!r && (s = bucket_xml(page, outer)).p) {
		struct fusee_str name = bucket_xml(s, inner);

		if (!name.p)
			return no_list(l->bucket, "an object in it has no name");
		page.len -= (uint64_t)(s.p + s.len - page.p);
		page.p = s.p + s.len;
		r = take_name(l, name);
	}
	return r;
}

/* Finds the token of the next page. */
static int find_next(struct list *l, struct fusee_str page)
{
	struct fusee_str more = bucket_xml(page, "IsTruncated"),
			 token = bucket_xml(page, "NextContinuationToken");
	char before[QUERY];

	memcpy(before, l->token, sizeof(before));
	*l->token = '\0';
	if (!fusee_text_is(more, "true"))
		return 0;
	if (!token.len || sigv4_encode(l->token, sizeof(l->token), token, "") < 0 ||
	    !strcmp(before, l->token))
		return no_list(l->bucket, "it does not end, and says not where it goes on");
	return 0;
}

static int make_query(const struct list *l, char query[QUERY])
{
	char text[NAME + 64], prefix[3 * sizeof(text)];
	int n;

	snprintf(text, sizeof(text), "%s%s", l->bucket->prefix, l->of->prefix);
	if (sigv4_encode(prefix, sizeof(prefix), fusee_text(text), "") < 0)
		return -E2BIG;
	n = snprintf(query, QUERY, "%s%s%s%sencoding-type=url&list-type=2&prefix=%s",
		     *l->token ? "continuation-token=" : "", l->token, *l->token ? "&" : "",
		     l->of->flags & FUSEE_LISTING_FOLDERS ? "delimiter=%2F&" : "", prefix);
	return n < QUERY ? 0 : -E2BIG;
}

static int take_page(struct list *l)
{
	struct bucket *b = l->bucket;
	char query[QUERY];
	const struct bucket_request q = {
		.flags = FUSEE_HTTP_GET, .query = query, .into = b->page, .room = PAGE};
	struct fusee_http_answer a;
	int r = make_query(l, query);

	if (r)
		return fusee_fail(b->self, r, "the prefix is too long for a list");
	r = ask(b, &q, check_list, &a);
	if (r == -ENOENT)
		r = no_list(b, "it answered 404");
	if (r)
		return r;
	l->encoded = fusee_text_is(bucket_xml(a.body, "EncodingType"), "url");
	r = find_next(l, a.body);
	if (!r && l->of->flags & FUSEE_LISTING_FOLDERS)
		return take_names(l, a.body, "CommonPrefixes", "Prefix");
	return r ? r : take_names(l, a.body, "Contents", "Key");
}

int bucket_list(struct bucket *b, const struct fusee_listing *of)
{
	struct list *l = calloc(1, sizeof(*l));
	int r = 0;

	if (!b->page)
		b->page = malloc(PAGE);
	if (!l || !b->page) {
		free(l);
		return fusee_fail(b->self, -ENOMEM, "no memory for a list");
	}
	*l = (struct list){.bucket = b, .of = of};
	for (uint32_t i = 0; !r && (!i || *l->token); i++)
		r = i < PAGES ? take_page(l) : no_list(b, "it has more than 10,000 pages");
	free(l);
	return r;
}
