/* SPDX-License-Identifier: Apache-2.0 */
/* A discovery that finds nothing, for tests of scripts. */
#include <fusee/plugin.h>

struct crowd {
	const char *node;
};

static const struct fusee_option options[] = {
	{.name = "node",
	 .def = "",
	 .doc = "Which crowd.",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct crowd, node)},
};

static const struct fusee_discovery_ops ops = {.size = sizeof(ops)};

FUSEE_PLUGIN(crowd, FUSEE_DISCOVERY, .version = "1", .doc = "Finds nobody.",
	     .options = {options, 1, sizeof(*options)}, .ctx_size = sizeof(struct crowd),
	     .ops = &ops);
