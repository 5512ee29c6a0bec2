/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SCOPE 256
#define SECRET 256
#define DAY 8 /* bytes of "20150830" */

/* Headers in alphabetical order of their names. */
struct sorted {
	const struct fusee_label *labels[SIGV4_HEADERS];
	uint32_t n;
};

void sigv4_time(char text[SIGV4_TIME], time_t t)
{
	struct tm tm;

	gmtime_r(&t, &tm);
	if (!strftime(text, SIGV4_TIME, "%Y%m%dT%H%M%SZ", &tm))
		*text = '\0'; /* a year of five digits: no server takes it */
}

static void put_hex(char hex[SIGV4_HASH], const uint8_t digest[SHA256_DIGEST_LENGTH])
{
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

int sigv4_hash(char hex[SIGV4_HASH], struct fusee_str bytes)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	unsigned int n;

	if (!EVP_Digest(bytes.len ? bytes.p : "", bytes.len, digest, &n, EVP_sha256(), NULL))
		return -ENOMEM;
	put_hex(hex, digest);
	return 0;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

int sigv4_encode(char *to, size_t size, struct fusee_str text, const char *keep)
{
	size_t n = 0;

	for (uint64_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (size < 4 || n > size - 4)
			return -E2BIG;
		if (is_unreserved(c) || (c && strchr(keep, c)))
			to[n++] = c;
		else
			n += (size_t)snprintf(to + n, 4, "%%%02X", (unsigned char)c);
	}
	if (n >= size)
		return -E2BIG;
	to[n] = '\0';
	return (int)n;
}

/* ---- the request in its canonical form ---- */

static int by_name(const void *a, const void *b)
{
	const struct fusee_label *x = *(const struct fusee_label *const *)a;
	const struct fusee_label *y = *(const struct fusee_label *const *)b;
	size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
	int r = strncasecmp(x->key.p, y->key.p, n);

	return r ? r : (x->key.len > y->key.len) - (x->key.len < y->key.len);
}

static int sort(struct sorted *s, struct fusee_table headers)
{
	s->n = 0;
	FUSEE_FOR_EACH (struct fusee_label, l, headers) {
		if (s->n == SIGV4_HEADERS)
			return -EINVAL;
		s->labels[s->n++] = l;
	}
	qsort(s->labels, s->n, sizeof(*s->labels), by_name);
	return 0;
}

static void put_name(FILE *f, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		fputc(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] - 'A' + 'a' : s.p[i], f);
}

/* Writes a value without blanks around it, and a single blank for several. */
static void put_value(FILE *f, struct fusee_str s)
{
	bool blank = false, begun = false;

	for (uint64_t i = 0; i < s.len; i++) {
		if (s.p[i] == ' ' || s.p[i] == '\t') {
			blank = begun;
			continue;
		}
		if (blank)
			fputc(' ', f);
		fputc(s.p[i], f);
		blank = false;
		begun = true;
	}
}

static void put_names(FILE *f, const struct sorted *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (i)
			fputc(';', f);
		put_name(f, s->labels[i]->key);
	}
}

/* The hash of the request. */
static int canonical(char hex[SIGV4_HASH], const struct sigv4_request *q, const struct sorted *s)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r;

	if (!f)
		return -ENOMEM;
	fprintf(f, "%s\n%s\n%s\n", q->method, q->path, q->query);
	for (uint32_t i = 0; i < s->n; i++) {
		put_name(f, s->labels[i]->key);
		fputc(':', f);
		put_value(f, s->labels[i]->str);
		fputc('\n', f);
	}
	fputc('\n', f);
	put_names(f, s);
	fprintf(f, "\n%s", q->hash);
	r = ferror(f) ? -ENOMEM : 0;
	if (fclose(f))
		r = -ENOMEM;
	if (!r)
		r = sigv4_hash(hex, (struct fusee_str){text, len});
	free(text);
	return r;
}

/* ---- the signature ---- */

static bool sign(uint8_t to[SHA256_DIGEST_LENGTH], const void *key, size_t n, const char *text,
		 size_t len)
{
	unsigned int written;

	return HMAC(EVP_sha256(), key, (int)n, (const uint8_t *)text, len, to, &written);
}

/* The key of a day, a region and a service. */
static bool derive(uint8_t key[SHA256_DIGEST_LENGTH], const struct sigv4_key *k, const char *time)
{
	const size_t n = SHA256_DIGEST_LENGTH;
	char secret[SECRET + 5];
	int len = snprintf(secret, sizeof(secret), "AWS4%s", k->secret);
	bool done = sign(key, secret, (size_t)len, time, DAY) &&
		    sign(key, key, n, k->region, strlen(k->region)) &&
		    sign(key, key, n, k->service, strlen(k->service)) &&
		    sign(key, key, n, "aws4_request", strlen("aws4_request"));

	OPENSSL_cleanse(secret, sizeof(secret));
	return done;
}

static int put_authorization(char value[SIGV4_AUTHORIZATION], const char *id, const char *scope,
			     const struct sorted *s, const char *signature)
{
	FILE *f = fmemopen(value, SIGV4_AUTHORIZATION, "w");
	int r;

	if (!f)
		return -ENOMEM;
	setbuf(f, NULL); /* otherwise only fclose() would report that the text does not fit */
	fprintf(f, ALGORITHM " Credential=%s/%s, SignedHeaders=", id, scope);
	put_names(f, s);
	fprintf(f, ", Signature=%s", signature);
	r = ferror(f) || ftell(f) >= (long)SIGV4_AUTHORIZATION - 1 ? -EINVAL : 0;
	fclose(f);
	return r;
}

int sigv4_authorize(char value[SIGV4_AUTHORIZATION], const struct sigv4_key *k,
		    const struct sigv4_request *q, const char time[SIGV4_TIME])
{
	uint8_t key[SHA256_DIGEST_LENGTH], digest[SHA256_DIGEST_LENGTH];
	char scope[SCOPE], hash[SIGV4_HASH], text[SCOPE + 128];
	struct sorted s;
	int n = snprintf(scope, sizeof(scope), "%.8s/%s/%s/aws4_request", time, k->region,
			 k->service),
	    r = n < (int)sizeof(scope) && strlen(k->secret) < SECRET ? sort(&s, q->headers)
								     : -EINVAL;

	if (!r)
		r = canonical(hash, q, &s);
	if (r)
		return r;
	n = snprintf(text, sizeof(text), ALGORITHM "\n%s\n%s\n%s", time, scope, hash);
	if (!derive(key, k, time) || !sign(digest, key, sizeof(key), text, (size_t)n))
		r = -ENOMEM;
	OPENSSL_cleanse(key, sizeof(key));
	if (r)
		return r;
	put_hex(hash, digest);
	return put_authorization(value, k->id, scope, &s, hash);
}
