/* SPDX-License-Identifier: Apache-2.0 */
/* A discovery plugin that states the names of the test's completion: NAME is its own. */
#include <fusee/helpers.h>

static const char *const units[] = {"plain.service", "getty@tty1.service",
				    "machine-my\\x2dbox.scope"};

static int put(struct fusee_self *self, const char *key, const char *label, const char *value,
	       const char *space)
{
	struct fusee_label labels[2] = {fusee_text_label(label, value)};
	struct fusee_target t = FUSEE_SIZED(
		struct fusee_target, .match = FUSEE_MATCH_CGROUP, .key = fusee_text(key),
		.cgroup = fusee_text("/nowhere"), .labels = {labels, 1, sizeof(labels[0])});

	if (space)
		labels[t.labels.n++] = fusee_text_label("namespace", space);
	return self->host->discovery->put(self->in, &t);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	fusee_self_init(ctx, in, host);
	return 0;
}

static int start(void *ctx)
{
	struct fusee_self *self = ctx;
	int r = self->host->discovery->begin(self->in);

	for (unsigned int i = 0; !r && i < 3; i++)
		r = put(self, units[i], "unit", units[i], NULL);
	if (!r)
		r = put(self, "pod", "pod", "web-0", "shop");
	if (!r)
		r = put(self, "container", "container", "database", NULL);
	return r ? r : self->host->discovery->commit(self->in);
}

static const struct fusee_discovery_ops ops = {.size = sizeof(ops), .start = start};

#define PLUGIN(name)                                                                      \
	FUSEE_PLUGIN(name, FUSEE_DISCOVERY, .version = "1.0", .doc = "Names for a test.", \
		     .ctx_size = sizeof(struct fusee_self), .init = init, .ops = &ops)

PLUGIN(NAME);
