/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sink.http share. Include it once in a test program. */
#ifndef HTTP_SINK_H
#define HTTP_SINK_H

#include <pthread.h>
#include <unistd.h>

#include "lib/fakehost.h"
#include "lib/served.h"

extern const struct fusee_plugin fusee_plugin;

static int deliver(struct fake *f, uint32_t id, uint32_t stacks)
{
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, id, stacks, "process", "web", NULL);
	int r = fake_consume(f, p, 0);

	builder_free(b);
	return r;
}

static void *cancel_soon(void *arg)
{
	struct fake *f = arg;

	usleep(300000);
	((const struct fusee_sink_ops *)f->plugin->ops)->cancel(f->ctx);
	return NULL;
}

/* cancel() ends a blocked delivery within a second, and each later delivery at once. */
static void check_cancel(const char *url, const char *ca_file)
{
	struct fake *f = fake_new(&fusee_plugin, "url", url, "timeout", "1h", "connect_timeout",
				  "1h", "ca_file", ca_file, NULL);
	uint64_t from = ms(), took;
	pthread_t t;

	CHECK_INT(fake_init(f), 0);
	CHECK(!pthread_create(&t, NULL, cancel_soon, f));
	CHECK_INT(deliver(f, 1, 3), -ECANCELED);
	took = ms() - from;
	CHECK(took >= 200 && took < 1300);
	pthread_join(t, NULL);
	from = ms();
	CHECK_INT(deliver(f, 2, 3), -ECANCELED);
	fake_free(f);
	CHECK(ms() - from < 1000);
}

#endif
