/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <fusee/http_curl.h>

#include "internal.h"

static int append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer ? 0 : -ENOMEM;
}

static int add(struct curl_slist **list, const char *name, const char *value, uint64_t len)
{
	char *line = NULL;
	int n, r;

	/* "Name;" is libcurl's form of an empty header; "Name:" would remove the header */
	n = len ? asprintf(&line, "%s: %.*s", name, (int)len, value) : asprintf(&line, "%s;", name);
	if (n < 0)
		return -ENOMEM;
	r = append(list, line);
	explicit_bzero(line, (size_t)n);
	free(line);
	return r;
}

/* The length, or -EAGAIN after host->fail(): a token that is missing now may be written later. */
static int read_secret(struct fusee_http *h, const char *path, char buf[FUSEE_HTTP_SECRET])
{
	char why[FUSEE_HTTP_WHY];
	int n = fusee_http_secret(h->self, path, buf, why);

	return n < 0 ? fusee_fail(h->self, -EAGAIN, "%s", why) : n;
}

static int add_authorization(struct fusee_http *h, struct curl_slist **list)
{
	char secret[FUSEE_HTTP_SECRET], both[2 * FUSEE_HTTP_SECRET + 256],
		text[3 * FUSEE_HTTP_SECRET + 512];
	int r = read_secret(
		h, *h->options->bearer_file ? h->options->bearer_file : h->options->password_file,
		secret);
	size_t user = strlen(h->options->user), n;

	if (r < 0)
		goto out;
	if (*h->options->bearer_file) {
		n = (size_t)snprintf(text, sizeof(text), "Bearer %s", secret);
	} else {
		n = (size_t)snprintf(both, sizeof(both), "%s:%s", h->options->user, secret);
		if (user > FUSEE_HTTP_SECRET || n >= sizeof(both)) {
			r = fusee_fail(h->self, -EINVAL, "option 'user' is too long");
			goto out;
		}
		memcpy(text, "Basic ", 6);
		fusee_http_base64(text + 6, (struct fusee_str){both, n});
		n = strlen(text);
	}
	r = add(list, "Authorization", text, n);
out:
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(both, sizeof(both));
	explicit_bzero(text, sizeof(text));
	return r;
}

static int add_all(struct curl_slist **list, struct fusee_table labels)
{
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		char name[256];
		int n = snprintf(name, sizeof(name), "%.*s", (int)l->key.len, l->key.p);
		int r = n < (int)sizeof(name) ? add(list, name, l->str.p, l->str.len) : -EINVAL;

		if (r)
			return r;
	}
	return 0;
}

int http_headers(struct fusee_http *h, const struct fusee_http_request *q, struct curl_slist **ret)
{
	const struct fusee_http_options *o = h->options;
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	int r = list ? 0 : -ENOMEM;

	if (!r && q->url && !q->content_type) /* otherwise libcurl sets that of a form */
		r = append(&list, "Content-Type:");
	if (!r && q->content_type)
		r = add(&list, "Content-Type", q->content_type, strlen(q->content_type));
	if (!r && q->flags & FUSEE_HTTP_GZIP)
		r = add(&list, "Content-Encoding", "gzip", 4);
	if (!r)
		r = add_all(&list, q->headers);
	if (!r && !q->url && *o->tenant)
		r = add(&list, HTTP_TENANT, o->tenant, strlen(o->tenant));
	if (!r && !q->url)
		r = add_all(&list, o->headers);
	if (r)
		fusee_fail(h->self, r, "cannot make the headers of a request: %s", strerror(-r));
	else if (!q->url && (*o->bearer_file || *o->user))
		r = add_authorization(h, &list);
	if (r)
		http_headers_free(list);
	*ret = r ? NULL : list;
	return r;
}

void http_headers_free(struct curl_slist *list)
{
	for (struct curl_slist *l = list; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(list);
}
