/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in parts that its server takes, each sent once. */
#include <stdlib.h>

#include "internal.h"

struct parts {
	struct fusee_http *client;
	const struct fusee_delivery *delivery;
	fusee_http_part send;
	void *arg;
	int refused; /* -errno of the first part that is lost */
};

static bool is_done(const struct fusee_http *h, const uint8_t *id)
{
	for (uint32_t i = 0; i < h->ndone; i++)
		if (!memcmp(h->done + HTTP_ID * i, id, HTTP_ID))
			return true;
	return false;
}

/* Without memory for it the part is sent again, if there is another attempt. */
static void remember(struct fusee_http *h, const uint8_t *id)
{
	if (h->ndone == h->cap) {
		uint32_t cap = h->cap ? 2 * h->cap : 16;
		uint8_t *more = realloc(h->done, (size_t)cap * HTTP_ID);

		if (!more)
			return;
		h->done = more;
		h->cap = cap;
	}
	memcpy(h->done + HTTP_ID * h->ndone++, id, HTTP_ID);
}

static int send_part(void *arg, const struct fusee_profile *part)
{
	struct parts *p = arg;
	struct fusee_http *h = p->client;
	const struct fusee_sink_host *host = h->self->host->sink;
	int r;

	if (is_done(h, part->id))
		return 0;
	r = p->send(p->arg, p->delivery, part);
	if (r == -EAGAIN || r == -ECANCELED || r == -ENOMEM)
		return r;
	if (r == -E2BIG && part->samples.n > 1) {
		r = host->split(p->delivery->out, part, (part->samples.n + 1) / 2, 0, send_part, p);
		if (r)
			return r;
	} else if (r) {
		fusee_count(h->self, "samples_refused", part->samples.n);
		p->refused = p->refused ? p->refused : r;
	}
	remember(h, part->id);
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
		h->ndone = 0;
	}
	if (!limits->samples && !limits->bytes)
		r = send_part(&p, profile);
	else
		r = h->self->host->sink->split(d->out, profile, limits->samples, limits->bytes,
					       send_part, &p);
	return r ? r : p.refused;
}
