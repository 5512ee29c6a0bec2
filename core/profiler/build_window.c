/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a window's profile besides the samples of its collector. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "profiler/build_profile.h"
#include "profiler/profiler.h"

bool build_omits(const struct build_options *o, struct fusee_str name)
{
	for (const char *const *omit = o->omit; omit && *omit; omit++)
		if (fusee_text_is(name, *omit))
			return true;
	return false;
}

void build_host(struct builder *b)
{
	char host[256] = "";

	if (!gethostname(host, sizeof(host) - 1) && *host)
		builder_resource(b, "host", host);
}

void build_window_losses(struct builder *b, const struct profiler_window *w, uint64_t period_ns)
{
	const struct collector *c = w->collector;

	build_losses(b, &w->losses, c->count ? c->weight_ns / c->count : period_ns);
}

int build_end(struct builder *b, const struct collector *c, const struct fusee_profile **ret)
{
	struct fusee_profile *p = builder_profile(b);

	if (c->share)
		builder_comment(b,
				"fusee: rates were lowered by the budget, to %.0f %% at the "
				"lowest; values are scaled",
				c->share / 2.56);
	if (getrandom(p->id, sizeof(p->id), 0) != sizeof(p->id))
		return -EIO;
	return builder_finish(b, ret);
}
