/* SPDX-License-Identifier: Apache-2.0 */
/* cancel() of a sink, from another thread. Include it once in a test program. */
#ifndef CANCEL_H
#define CANCEL_H

#include <pthread.h>
#include <unistd.h>

#include "lib/fakehost.h"
#include "lib/pause.h"

static unsigned long long cancelled_ns;

static void *cancel_soon(void *arg)
{
	struct fake *f = arg;

	pause_us(100000, "the call waits by then, mostly");
	cancelled_ns = test_now_ns();
	((const struct fusee_sink_ops *)f->plugin->ops)->cancel(f->ctx);
	return NULL;
}

/* It ends a delivery that would wait for an hour, and each later delivery, at once. */
static void check_cancel(struct fake *f, int (*deliver_one)(struct fake *))
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, cancel_soon, f));
	CHECK_INT(deliver_one(f), -ECANCELED);
	pthread_join(t, NULL);
	CHECK_INT(deliver_one(f), -ECANCELED);
	CHECK(test_now_ns() - cancelled_ns < test_within(5) * 1000000000ull);
}
#endif
