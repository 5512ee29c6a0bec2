/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include <fusee/http_curl.h>

void fusee_http_clean(char *to, size_t size, const char *text, size_t n)
{
	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	to[n] = '\0';
}

bool fusee_http_is_header(struct fusee_str line, const char *name, struct fusee_str *value)
{
	size_t n = strlen(name);

	if (line.len <= n || strncasecmp(line.p, name, n) || line.p[n] != ':')
		return false;
	*value = (struct fusee_str){line.p + n + 1, line.len - n - 1};
	while (value->len && strchr(" \t", *value->p)) {
		value->p++;
		value->len--;
	}
	while (value->len && strchr(" \t\r\n", value->p[value->len - 1]))
		value->len--;
	return true;
}

/* The step that did not end in time. */
static const char *late(CURL *c)
{
	curl_off_t sending = 0;

	curl_easy_getinfo(c, CURLINFO_PRETRANSFER_TIME_T, &sending);
	return sending ? "no answer in time" : "no connection in time";
}

/* Why there is no TLS. The numbers are X509_V_ERR_.. of OpenSSL; other errors get libcurl's
 * text. */
static const char *no_tls(CURL *c, CURLcode code, const char *error)
{
	long number = 0;

	curl_easy_getinfo(c, CURLINFO_SSL_VERIFYRESULT, &number);
	switch (number) {
	case 9:
		return "its certificate is not valid yet, by the clock of this machine";
	case 10:
		return "its certificate has expired";
	case 18: /* self-signed */
	case 19:
	case 20: /* by an unknown authority */
	case 21:
		return "no trusted authority vouches for its certificate";
	default:
		break;
	}
	if (!error || !*error)
		return curl_easy_strerror(code);
	if (strstr(error, "wrong version number")) /* the server answered with text */
		return "it does not speak TLS";
	/* ended or reset: libcurl's text depends on the call that noticed it */
	if (strstr(error, "SSL_ERROR_SYSCALL") || strstr(error, "Recv failure") ||
	    strstr(error, "Send failure"))
		return "the connection ended before TLS began";
	return error;
}

static const char *reason(CURL *c, CURLcode code, const char *error)
{
	long number = 0;

	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		return no_tls(c, code, error);
	case CURLE_COULDNT_RESOLVE_HOST:
		return "DNS does not know its name, or does not answer";
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "DNS does not know the proxy's name, or does not answer";
	case CURLE_PROXY:
		return "the proxy refuses";
	case CURLE_COULDNT_CONNECT:
		curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &number);
		return number ? strerror((int)number) : curl_easy_strerror(code);
	case CURLE_OPERATION_TIMEDOUT:
		return late(c);
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_HTTP2_STREAM:
		return "the connection ended before the answer was complete";
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_HTTP2:
		return "the answer is not HTTP";
	default:
		return curl_easy_strerror(code);
	}
}

/* Avoids libcurl's own texts where they contain times in milliseconds, which differ each time. */
void fusee_http_explain(CURL *c, CURLcode code, const char *error, char why[FUSEE_HTTP_WHY])
{
	const char *text;
	long proxy = 0;

	curl_easy_getinfo(c, CURLINFO_HTTP_CONNECTCODE, &proxy);
	if (proxy >= 300) {
		snprintf(why, FUSEE_HTTP_WHY, "the proxy answered %ld", proxy);
		return;
	}
	text = reason(c, code, error);
	fusee_http_clean(why, FUSEE_HTTP_WHY, text, strlen(text));
}

uint64_t fusee_http_retry_after(CURL *c, uint64_t most_seconds)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds <= 0)
		return 0;
	return ((uint64_t)seconds < most_seconds ? (uint64_t)seconds : most_seconds) * FUSEE_SECOND;
}
