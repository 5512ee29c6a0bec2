/* SPDX-License-Identifier: Apache-2.0 */
#include "bucket.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "credentials.h"
#include "sigv4.h"

#define PART (8u << 20)
#define PREFIX 512 /* bytes of a prefix, at most: of 1024 of a key */
#define REGION 64
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool consists_of(const char *s, size_t len, const char *chars)
{
	return len && strspn(s, chars) >= len;
}

/* ---- s3://NAME/PREFIX ---- */

/* Whether the prefix is names between slashes; '.' and '..' would be removed from the URL. */
static bool is_prefix(const char *s)
{
	if (strlen(s) > PREFIX || !fusee_http_is_value(fusee_text(s)))
		return false;
	while (*s) {
		size_t n = strcspn(s, "/");

		if (!n || (n == 1 && *s == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += n;
		if (*s == '/' && !*++s)
			return false;
	}
	return true;
}

/* Sets b->name and the prefix, which the caller frees. */
static int parse(struct bucket *b, const char *text, char **prefix)
{
	const char *at = text + strlen("s3://"), *rest;
	size_t n, len;

	if (strncmp(text, "s3://", strlen("s3://")))
		return fusee_fail(b->self, -EINVAL,
				  "option 'bucket': '%s' is not of the form s3://NAME/PREFIX",
				  text);
	n = strcspn(at, "/");
	if (n < 3 || n > 63 || !consists_of(at, n, LETTERS DIGITS "-._"))
		return fusee_fail(b->self, -EINVAL,
				  "option 'bucket': '%.*s' is not the name of a bucket: 3 to 63 "
				  "letters, digits, '-', '.', '_'",
				  (int)(n < 80 ? n : 80), at);
	rest = at + n + (at[n] == '/');
	len = strlen(rest);
	b->name = strndup(at, n);
	*prefix = strndup(rest, len && rest[len - 1] == '/' ? len - 1 : len);
	if (!b->name || !*prefix)
		return -ENOMEM;
	if (!is_prefix(*prefix))
		return fusee_fail(b->self, -EINVAL,
				  "option 'bucket': the prefix '%.80s' has empty names, '.', '..' "
				  "or control characters, or more than %d bytes",
				  *prefix, PREFIX);
	return 0;
}

static int set_region(struct bucket *b, const char *text)
{
	static const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};

	for (size_t i = 0; !*text && i < sizeof(variables) / sizeof(*variables); i++)
		text = getenv(variables[i]) ? getenv(variables[i]) : "";
	if (!*text)
		text = "us-east-1";
	if (strlen(text) > REGION || !consists_of(text, strlen(text), LETTERS DIGITS "-_"))
		return fusee_fail(b->self, -EINVAL, "'%.80s' is not the name of a region", text);
	b->region = strdup(text);
	return b->region ? 0 : -ENOMEM;
}

/* ---- the server ---- */

static int check_endpoint(struct bucket *b, const char *endpoint)
{
	const char *at = endpoint + strcspn(endpoint, ":");
	uint32_t flags = fusee_http_url_flags(endpoint);

	/* libcurl takes other numbers of slashes, too */
	if (!flags || strncmp(at, "://", 3) || at[3] == '/')
		return fusee_fail(b->self, -EINVAL,
				  "option 'endpoint': '%s' is not an http:// or https:// address",
				  endpoint);
	if (flags & (FUSEE_HTTP_URL_USER | FUSEE_HTTP_URL_QUERY) ||
	    !consists_of(endpoint, strlen(endpoint), LETTERS DIGITS ":/[].-_~") ||
	    strstr(endpoint, "/."))
		return fusee_fail(b->self, -EINVAL,
				  "option 'endpoint': only a server and a path of plain letters, "
				  "without user, password or query");
	return 0;
}

/* The server's address, and whether the bucket's name is in it. A name with dots would not be
 * covered by the certificate. */
static int set_url(struct bucket *b, const char *endpoint, bool *named)
{
	const char *end = strncmp(b->region, "cn-", 3) ? "amazonaws.com" : "amazonaws.com.cn";
	size_t len = strlen(endpoint);
	int n;

	*named = !len && !strchr(b->name, '.') && !strchr(b->name, '_');
	while (len && endpoint[len - 1] == '/')
		len--;
	if (len)
		n = asprintf(&b->url, "%.*s", (int)len, endpoint);
	else
		n = asprintf(&b->url, "https://%s%ss3.%s.%s", *named ? b->name : "",
			     *named ? "." : "", b->region, end);
	if (n >= 0)
		return 0;
	b->url = NULL;
	return -ENOMEM;
}

/* Sets the text of the header Host, which is signed: without the port if it is the scheme's
 * default. */
static int set_host(struct bucket *b)
{
	const char *at = strstr(b->url, "//") + 2;
	size_t n = strcspn(at, "/"), port;
	bool plain = fusee_http_url_flags(b->url) & FUSEE_HTTP_URL_PLAIN;
	const char *usual = plain ? ":80" : ":443";

	b->above = strdup(at + n);
	port = strlen(usual);
	if (n > port && !strncmp(at + n - port, usual, port))
		n -= port;
	b->host = strndup(at, n);
	return b->above && b->host ? 0 : -ENOMEM;
}

static int set_path(struct bucket *b, bool named, const char *prefix)
{
	char encoded[3 * PREFIX + 4];
	int n = sigv4_encode(encoded, sizeof(encoded), fusee_text(prefix), "/");

	if (n < 0)
		return n;
	b->named = named;
	if (asprintf(&b->path, "%s%s%s%s", named ? "" : "/", named ? "" : b->name,
		     *prefix ? "/" : "", encoded) < 0)
		b->path = NULL;
	if (asprintf(&b->prefix, "%s%s", prefix, *prefix ? "/" : "") < 0)
		b->prefix = NULL;
	return b->path && b->prefix ? 0 : -ENOMEM;
}

/* ---- opening ---- */

static int set_place(struct bucket *b, const struct bucket_options *o)
{
	char *prefix = NULL;
	bool named = false;
	int r = parse(b, o->bucket, &prefix);

	if (!r)
		r = set_region(b, o->region);
	if (!r && *o->endpoint)
		r = check_endpoint(b, o->endpoint);
	if (!r)
		r = set_url(b, o->endpoint, &named);
	if (!r)
		r = set_host(b);
	if (!r)
		r = set_path(b, named, prefix);
	free(prefix);
	return r;
}

static int set_client(struct bucket *b, const struct fusee_http_options *o)
{
	static const char *const own[] = {"authorization",        "host",
					  "x-amz-content-sha256", "x-amz-date",
					  "x-amz-security-token", NULL};
	int r;

	b->http = *o;
	b->http.url = b->url;
	b->http.tenant = b->http.bearer_file = b->http.user = b->http.password_file = "";
	if (o->headers.n > BUCKET_HEADERS)
		return fusee_fail(b->self, -EINVAL, "option 'headers': more than %u",
				  BUCKET_HEADERS);
	r = fusee_http_open(&b->client, b->self, &b->http, own);
	/* checked before; not sent with all requests */
	b->headers = o->headers;
	b->http.headers.n = 0;
	return r;
}

int bucket_open(struct bucket **ret, const struct fusee_self *self, const struct bucket_options *o)
{
	struct bucket *b = calloc(1, sizeof(*b));
	struct credentials keys;
	char why[FUSEE_HTTP_WHY];
	int r;

	*ret = NULL;
	if (!b)
		return -ENOMEM;
	b->self = self;
	b->credentials_file = o->credentials_file;
	b->part_bytes = PART;
	r = set_place(b, o);
	if (!r)
		r = set_client(b, o->http);
	if (!r) {
		r = credentials_read(&keys, self, b->credentials_file, why);
		if (r)
			fusee_fail(self, r, "%s", why);
		credentials_clear(&keys);
	}
	if (r) {
		bucket_close(b);
		return r;
	}
	*ret = b;
	return 0;
}

void bucket_close(struct bucket *b)
{
	if (!b)
		return;
	fusee_http_close(b->client);
	free(b->name);
	free(b->region);
	free(b->url);
	free(b->host);
	free(b->above);
	free(b->path);
	free(b->prefix);
	free(b->page);
	free(b);
}

void bucket_cancel(struct bucket *b)
{
	fusee_http_cancel(b->client);
}

static int unnamed_file(const char *folder)
{
	char *name;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd >= 0 ? fd : -errno;
	/* not every file system has files without names */
	if (asprintf(&name, "%s/fusee-XXXXXX", folder) < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		unlink(name);
	free(name);
	return fd;
}

int bucket_temporary(const char *folder)
{
	const char *other = getenv("TMPDIR");
	int fd = *folder ? unnamed_file(folder) : -ENOENT;

	return fd >= 0 ? fd : unnamed_file(other && *other == '/' ? other : "/tmp");
}
