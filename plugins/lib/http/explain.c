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

/* libcurl's own texts have times in milliseconds, which differ each time. */
void fusee_http_explain(CURL *c, CURLcode code, const char *error, char why[FUSEE_HTTP_WHY])
{
	const char *text = curl_easy_strerror(code);
	long number = 0;

	curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &number);
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		text = error && *error ? error : text;
		break;
	case CURLE_COULDNT_RESOLVE_HOST:
		text = "its name is not known to DNS";
		break;
	case CURLE_COULDNT_CONNECT:
		text = number ? strerror((int)number) : text;
		break;
	case CURLE_OPERATION_TIMEDOUT:
		text = "no connection in time";
		break;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_HTTP2_STREAM:
		text = "the connection ended before the answer was complete";
		break;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_HTTP2:
		text = "the answer is not HTTP";
		break;
	default:
		break;
	}
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
