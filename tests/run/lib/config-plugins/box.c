/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that takes everything and has an option of every type, for tests of scripts. */
#include <fusee/plugin.h>

struct box {
	const char *dir, *token;
	uint64_t keep, size;
	int64_t level, share, mode;
	uint8_t gzip;
	struct fusee_table tags, headers;
};

static const char *const modes[] = {"fast", "slow", "careful", NULL};

#define OPTION(field, kind, ...)                                                                   \
	{                                                                                          \
		.name = #field, .type = (kind), .offset = offsetof(struct box, field), __VA_ARGS__ \
	}
static const struct fusee_option options[] = {
	OPTION(dir, FUSEE_STRING, .doc = "Where it is."),
	OPTION(token, FUSEE_SECRET, .def = "", .doc = "What nobody sees."),
	OPTION(keep, FUSEE_DURATION, .def = "7d", .min = 1000000000, .max = 864000000000000,
	       .doc = "How long."),
	OPTION(size, FUSEE_SIZE, .def = "1MiB", .min = 4096, .max = 1 << 30, .doc = "How much."),
	OPTION(level, FUSEE_INT, .def = "6", .min = 1, .max = 9, .doc = "How hard."),
	OPTION(share, FUSEE_PERCENT, .def = "5%", .max = 1000000, .doc = "How many."),
	OPTION(mode, FUSEE_ENUM, .def = "fast", .choices = modes, .doc = "In which way."),
	OPTION(gzip, FUSEE_BOOL, .def = "true", .doc = "Whether it is made small."),
	OPTION(tags, FUSEE_LIST, .def = "", .doc = "Words."),
	OPTION(headers, FUSEE_MAP, .def = "", .doc = "Words with names."),
};

static int consume(void *ctx, const struct fusee_delivery *d)
{
	(void)ctx;
	(void)d;
	return 0;
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = consume};

FUSEE_PLUGIN(box, FUSEE_SINK, .version = "1", .doc = "Takes everything.",
	     .options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	     .ctx_size = sizeof(struct box), .ops = &ops);
