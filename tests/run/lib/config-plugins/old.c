/* SPDX-License-Identifier: Apache-2.0 */
/* A sink for another fusee. */
#include <fusee/plugin.h>

static const struct fusee_sink_ops ops = {.size = sizeof(ops)};

extern const struct fusee_plugin fusee_plugin;
FUSEE_EXPORT const struct fusee_plugin fusee_plugin = {
	.magic = FUSEE_MAGIC,
	.abi_major = 9,
	.abi_minor = 1,
	.size = sizeof(struct fusee_plugin),
	.kind = FUSEE_SINK,
	.name = "old",
	.ops = &ops,
};
