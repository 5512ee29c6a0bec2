/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a profile in parts that its server accepts, each only once. */
#include <fusee/bytes.h>

#include "internal.h"

struct parts {
	struct fusee_http *client;
	const struct fusee_delivery *delivery;
	fusee_http_part send;
	void *arg;
	int refused; /* -errno of the first part that is lost */
};

static struct http_part *find(const struct fusee_http *h, const uint8_t *id)
{
	for (uint32_t i = 0; i < h->nparts; i++)
		if (!memcmp(h->parts[i].id, id, HTTP_ID))
			return &h->parts[i];
	return NULL;
}

/* Without memory the next attempt sends the part again. */
static void remember(struct fusee_http *h, const uint8_t *id, bool halved)
{
	struct http_part *part = find(h, id);

	if (!part && !fusee_grow(&h->parts, &h->cap, h->nparts + 1ull, sizeof(*part)))
		return;
	if (!part) {
		part = &h->parts[h->nparts++];
		memcpy(part->id, id, HTTP_ID);
	}
	part->halved = halved;
}

static int send_part(void *arg, const struct fusee_profile *part)
{
	struct parts *p = arg;
	struct fusee_http *h = p->client;
	const struct fusee_sink_host *host = h->self->host->sink;
	const struct http_part *before = find(h, part->id);
	int r;

	if (before && !before->halved)
		return 0;
	r = before ? -E2BIG : p->send(p->arg, p->delivery, part);
	if (r == -EAGAIN || r == -ECANCELED || r == -ENOMEM)
		return r;
	if (r == -E2BIG && part->samples.n > 1) {
		remember(h, part->id, true); /* before a half is delivered */
		r = host->split(p->delivery->out, part, (part->samples.n + 1) / 2, 0, send_part, p);
		if (r)
			return r;
	} else if (r) {
		if (FUSEE_HAS(host, lost))
			host->lost(p->delivery->out, part);
		fusee_count(h->self, "samples_refused", part->samples.n);
		p->refused = p->refused ? p->refused : r;
	}
	remember(h, part->id, false);
	return 0;
}

int fusee_http_each(struct fusee_http *h, const struct fusee_delivery *d,
		    const struct fusee_profile *profile, const struct fusee_http_limits *limits,
		    fusee_http_part send, void *arg)
{
	struct parts p = {.client = h, .delivery = d, .send = send, .arg = arg};
	int r;

	if (memcmp(h->of, d->profile->id, HTTP_ID)) {
		memcpy(h->of, d->profile->id, HTTP_ID);
		h->nparts = 0;
	}
	if (!limits->samples && !limits->bytes)
		r = send_part(&p, profile);
	else
		r = h->self->host->sink->split(d->out, profile, limits->samples, limits->bytes,
					       send_part, &p);
	return r ? r : p.refused;
}
