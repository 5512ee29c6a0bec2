/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/start.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "record/internal/entry.h"

static void prepare_held(void *arg)
{
	struct session *s = arg;

	profiler_prepare_held(&s->profiler);
	allocators_prepare(s->allocators);
}

static void go_on(void *arg)
{
	profiler_command_goes_on(&((struct session *)arg)->profiler);
}

/* Its allocators are known, and probed, once its libraries are mapped. */
static void warn_of_begin(const struct session *s)
{
	if (s->allocators && s->command.running)
		log_warning("'%s' was not stopped at its entry point: what it allocates in its "
			    "first milliseconds is not sampled",
			    s->command.argv[0]);
}

static int start_command(struct session *s)
{
	const struct entry_calls calls = {prepare_held, go_on};
	const char *name = s->command.argv[0];
	bool seized = s->profiler.bpf && entry_seize(s->command.pid);
	int r = command_start(&s->command);

	if (!r && !seized)
		go_on(s);
	if (!r && !(seized && entry_pass(s->command.pid, &calls, s, &s->traced)))
		warn_of_begin(s);
	if (r)
		log_error("cannot run '%s': %s", name, strerror(-r));
	if (!r && profiler_command_runs(&s->profiler)) {
		log_error("cannot switch sampling on: no thread could be started");
		return EX_OSERR;
	}
	return !r ? 0 : r == -ENOENT ? 127 : 126;
}

int session_start(struct session *s)
{
	int r;

	s->start_wall_ns = clock_ns(CLOCK_REALTIME);
	s->start_ns = clock_now();
	r = s->command.argv && !s->profiler.tree ? 0 : profiler_enable(&s->profiler);
	if (r) {
		log_error("cannot switch sampling on: %s", strerror(-r));
		return EX_OSERR;
	}
	return s->command.argv ? start_command(s) : 0;
}
