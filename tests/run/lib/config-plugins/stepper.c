/* SPDX-License-Identifier: Apache-2.0 */
/* An unwinder of a language that nobody speaks. */
#include <fusee/plugin.h>

static const struct fusee_unwinder_ops ops = {.size = sizeof(ops), .order = 50};

FUSEE_PLUGIN(stepper, FUSEE_UNWINDER, .version = "1", .doc = "Unwinds nothing.", .ops = &ops);
