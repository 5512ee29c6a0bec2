/* SPDX-License-Identifier: Apache-2.0 */
#include "net/internal/http_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_HOST 255u

/* Parses an address; IPv4 becomes IPv4-mapped IPv6, so that both forms are equal. */
static bool parse_address(const char *text, struct in6_addr *to)
{
	struct in_addr four;

	if (inet_pton(AF_INET6, text, to) == 1)
		return true;
	if (inet_pton(AF_INET, text, &four) != 1)
		return false;
	*to = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	memcpy(&to->s6_addr[12], &four, sizeof(four));
	return true;
}

static bool is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static bool is_local(const struct in6_addr *a, const struct sockaddr *local)
{
	if (local->sa_family == AF_INET6)
		return !memcmp(a, &((const struct sockaddr_in6 *)(const void *)local)->sin6_addr,
			       sizeof(*a));
	return local->sa_family == AF_INET && IN6_IS_ADDR_V4MAPPED(a) &&
	       !memcmp(&a->s6_addr[12],
		       &((const struct sockaddr_in *)(const void *)local)->sin_addr, 4);
}

static bool is_below_localhost(const char *host)
{
	static const char name[] = "localhost";
	size_t len = strlen(host), n = sizeof(name) - 1;

	if (len && host[len - 1] == '.')
		len--;
	return len >= n && !strncasecmp(host + len - n, name, n) &&
	       (len == n || host[len - n - 1] == '.');
}

/* The machine's name, with or without its domain. */
static bool is_machine(const char *host)
{
	char name[MAX_HOST + 1] = "";

	if (gethostname(name, sizeof(name) - 1) || !*name)
		return false;
	if (!strcasecmp(host, name))
		return true;
	name[strcspn(name, ".")] = '\0';
	return *name && !strcasecmp(host, name);
}

static bool is_good(const char *host, const struct sockaddr *local, const struct fusee_table *hosts)
{
	struct in6_addr a;

	for (uint32_t i = 0; i < hosts->n; i++) {
		const char *name = FUSEE_AT(struct fusee_str, *hosts, i)->p;

		if (!strcmp(name, "*") || !strcasecmp(name, host))
			return true;
	}
	if (parse_address(host, &a))
		return is_loopback(&a) || is_local(&a, local);
	return is_below_localhost(host) || is_machine(host);
}

/* The value of the next line of this header ("host:") in [p, end), without spaces around it; NULL:
 * there is none. Advances *p past its line. */
static const char *next_line(const char **p, const char *end, const char *name, size_t *len)
{
	const char *line = *p, *eol;
	size_t n = strlen(name);

	for (; line < end && (eol = memchr(line, '\n', (size_t)(end - line))); line = eol + 1) {
		const char *from = line + n, *to = eol;

		if ((size_t)(to - line) < n || strncasecmp(line, name, n))
			continue;
		while (from < to && (*from == ' ' || *from == '\t'))
			from++;
		while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
			to--;
		*p = eol + 1;
		*len = (size_t)(to - from);
		return from;
	}
	return NULL;
}

/* "name:9190", "[::1]:9190": the host without port and brackets. false: it has neither form. */
static bool split(const char *from, size_t len, char host[MAX_HOST + 1])
{
	const char *end = from + len, *close = *from == '[' ? memchr(from, ']', len) : NULL;
	const char *colon = memchr(close ? close : from, ':',
				   (size_t)(end - (close ? close : from)));
	size_t n = (size_t)((colon ? colon : end) - from);

	if (*from == '[') {
		if (!close || close + 1 != from + n)
			return false;
		from++;
		n -= 2;
	}
	for (const char *p = colon ? colon + 1 : end; p < end; p++)
		if (*p < '0' || *p > '9')
			return false;
	if (n > MAX_HOST || memchr(from, '\0', n))
		return false;
	memcpy(host, from, n);
	host[n] = '\0';
	return true;
}

enum http_host http_host_check(const char *head, size_t len, const struct sockaddr *local,
			       const struct fusee_table *hosts)
{
	const char *at = memchr(head, '\n', len), *end = head + len, *value;
	char host[MAX_HOST + 1];
	size_t value_len, ignored;

	if (!at)
		return HTTP_HOST_WRONG;
	at++;
	value = next_line(&at, end, "host:", &value_len);
	if (!value || !value_len)
		return HTTP_HOST_GOOD;
	if (next_line(&at, end, "host:", &ignored) || !split(value, value_len, host))
		return HTTP_HOST_WRONG;
	return is_good(host, local, hosts) ? HTTP_HOST_GOOD : HTTP_HOST_FOREIGN;
}

bool http_origin_is_own(const char *head, size_t len)
{
	static const char scheme[] = "http://";
	const char *at = memchr(head, '\n', len), *end = head + len, *origin, *host;
	size_t n, host_len = 0, skip = sizeof(scheme) - 1;

	if (!at)
		return false;
	host = ++at;
	origin = next_line(&at, end, "origin:", &n);
	if (!origin)
		return true;
	at = host;
	host = next_line(&at, end, "host:", &host_len);
	return host && n == skip + host_len && !strncasecmp(origin, scheme, skip) &&
	       !strncasecmp(origin + skip, host, host_len);
}
