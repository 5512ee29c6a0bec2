/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/sink_out.h"

#include <errno.h>
#include <stdlib.h>

#include "delivery/internal/state.h"
#include "pprof/pprof.h"
#include "report/report.h"
#include "pprof/split.h"

static int encode_to(const struct fusee_profile *p, uint32_t format, struct buf *b)
{
	const struct render_options none = {0};

	return format == FUSEE_FOLDED ? render_folded(p, NULL, &none, b)
				      : pprof_encode(p, format == FUSEE_PPROF_GZ, b);
}

/* An empty buffer, freed after consume(). NULL: no memory. */
static struct buf *add_other(struct fusee_sink_out *out)
{
	struct buf *more = realloc(out->others, (out->nothers + 1) * sizeof(*more));

	if (!more)
		return NULL;
	out->others = more;
	more[out->nothers] = (struct buf){0};
	return &more[out->nothers++];
}

static int encode(struct fusee_sink_out *out, const struct fusee_profile *p, uint32_t format,
		  struct fusee_str *bytes)
{
	bool own = p == out->profile;
	struct buf *b;
	int err;

	if (format < FUSEE_PPROF_GZ || format > FUSEE_FOLDED)
		return -EINVAL;
	b = own ? &out->encoded->bytes[format] : add_other(out);
	if (!b)
		return -ENOMEM;
	if (!own || !out->encoded->made[format]) {
		err = encode_to(p, format, b);
		if (err) {
			buf_fini(b);
			return err;
		}
		if (own)
			out->encoded->made[format] = true;
	}
	*bytes = (struct fusee_str){b->p, b->len};
	return 0;
}

static int split(struct fusee_sink_out *out, const struct fusee_profile *p, uint64_t max_samples,
		 uint64_t max_bytes, int (*each)(void *arg, const struct fusee_profile *part),
		 void *arg)
{
	(void)out;
	return profile_split(p, max_samples, max_bytes, each, arg);
}

static void retry_after(struct fusee_sink_out *out, uint64_t ns)
{
	out->retry_named = true;
	out->retry_after = ns;
}

static void denied(struct fusee_sink_out *out)
{
	out->denied = true;
}

static void lost(struct fusee_sink_out *out, const struct fusee_profile *part)
{
	out->lost = true;
	out->samples += profile_samples(part);
}

static int open_file(struct fusee_instance *in, struct fusee_str build_id, uint64_t max_bytes)
{
	const struct delivery *d = in->owner; /* NULL: a command that delivers without a delivery */

	return d && d->files.open ? d->files.open(d->files.arg, build_id, max_bytes) : -EOPNOTSUPP;
}

const struct fusee_sink_host delivery_host = {
	.size = sizeof(delivery_host),
	.encode = encode,
	.split = split,
	.retry_after = retry_after,
	.open_file = open_file,
	.denied = denied,
	.lost = lost,
};

void sink_out_fini(struct fusee_sink_out *out)
{
	for (uint32_t i = 0; i < out->nothers; i++)
		buf_fini(&out->others[i]);
	free(out->others);
}

void delivery_encoded_fini(struct delivery_encoded *e)
{
	for (uint32_t i = 0; i < DELIVERY_FORMATS; i++)
		buf_fini(&e->bytes[i]);
}

uint64_t delivery_encoded_bytes(const struct delivery_encoded *e)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < DELIVERY_FORMATS; i++)
		sum += e->bytes[i].cap;
	return sum;
}
