/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sink.http share. Include it once in a test program. */
#ifndef HTTP_CASES_H
#define HTTP_CASES_H

#include "lib/fakehost.h"
#include "lib/served.h"

#include "lib/begun.h"
#include "lib/cancel.h"

extern const struct fusee_plugin fusee_plugin;

static int deliver(struct fake *f, uint32_t id, uint32_t stacks)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, id, stacks, "process", "web", NULL);
	int r = fake_consume(f, p, 0);

	builder_free(b);
	return r;
}

static int deliver_one(struct fake *f)
{
	return deliver(f, 1, 3);
}

static void check_cancel_at(const char *url, const char *ca_file)
{
	struct fake *f = begun(fake_new(&fusee_plugin, "url", url, "timeout", "1h",
					"connect_timeout", "1h", "ca_file", ca_file, NULL));

	check_cancel(f, deliver_one);
	fake_free(f);
}
#endif
