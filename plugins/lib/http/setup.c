/* SPDX-License-Identifier: Apache-2.0 */
/* Options of every request, also of those that other sources make. */
#include <fusee/http.h>
#include <fusee/http_curl.h>

#define MS 1000000ull /* ns */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(c, option, value))

CURLcode fusee_http_set_limits(CURL *c, uint64_t connect_ns, const char *proxy)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* without it a cancelled request waits until its name is resolved */
	SET(CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_USERAGENT, "fusee");
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ns / MS));
	/* "" keeps libcurl from reading proxies from the environment */
	SET(CURLOPT_PROXY, proxy);
	SET(CURLOPT_NOPROXY, "");
	return code;
}

static bool is_set(const char *text)
{
	return text && *text;
}

static CURLcode set_blob(CURL *c, CURLoption option, struct fusee_str s)
{
	struct curl_blob blob = {
		.data = (void *)(uintptr_t)s.p, .len = s.len, .flags = CURL_BLOB_NOCOPY};

	return s.len ? curl_easy_setopt(c, option, &blob) : CURLE_OK;
}

CURLcode fusee_http_set_tls(CURL *c, const struct fusee_http_tls *t)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
#if LIBCURL_VERSION_NUM >= 0x075700
	SET(CURLOPT_CA_CACHE_TIMEOUT, 0L); /* the file can be changed */
#endif
	/* otherwise the system's certificates, in libcurl's default folder, are trusted too */
	if (is_set(t->ca_file) || t->ca.len)
		SET(CURLOPT_CAPATH, NULL);
	if (is_set(t->ca_file))
		SET(CURLOPT_CAINFO, t->ca_file);
	else if (!code)
		code = set_blob(c, CURLOPT_CAINFO_BLOB, t->ca);
	if (is_set(t->cert_file)) {
		SET(CURLOPT_SSLCERT, t->cert_file);
		/* a resumed session would use the old certificate of the file */
		SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
	}
	if (is_set(t->cert_file) || is_set(t->key_file))
		SET(CURLOPT_SSLKEY, is_set(t->key_file) ? t->key_file : t->cert_file);
	code = code ? code : set_blob(c, CURLOPT_SSLCERT_BLOB, t->cert);
	return code ? code : set_blob(c, CURLOPT_SSLKEY_BLOB, t->key);
}

/* ---- headers ---- */

bool fusee_http_is_value(struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return true;
}

void fusee_http_base64(char *to, struct fusee_str s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (uint64_t i = 0; i < s.len; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < s.len ? (uint8_t)s.p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*to++ = i + k > s.len ? '=' : digits[v >> (18 - 6 * k) & 63];
	}
	*to = '\0';
}

int fusee_http_secret(const struct fusee_self *self, const char *path, char buf[FUSEE_HTTP_SECRET],
		      char why[FUSEE_HTTP_WHY])
{
	int n = self->host->read_secret(self->in, path, buf, FUSEE_HTTP_SECRET);

	if (n < 0) {
		snprintf(why, FUSEE_HTTP_WHY, "cannot read '%.160s': %s", path, strerror(-n));
		return n;
	}
	if (n && fusee_http_is_value((struct fusee_str){buf, (uint64_t)n}))
		return n;
	snprintf(why, FUSEE_HTTP_WHY, "'%.160s' is empty or has several lines", path);
	return -EINVAL;
}
