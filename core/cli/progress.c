/* SPDX-License-Identifier: Apache-2.0 */
/* The one line that lives while sampling. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/session.h"

void progress_clear(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

void progress_update(struct session *s)
{
	struct loss_account losses;
	struct pipeline_stats stats;
	char samples[32], lost[32];
	uint64_t ns;

	if (s->o.quiet || !isatty(STDERR_FILENO))
		return;
	ns = clock_now() - s->start_ns;
	/* Twice a second. */
	if (ns / 500000000u == s->progress_shown)
		return;
	s->progress_shown = ns / 500000000u;
	pipeline_stats(s->profiler.pipeline, &stats);
	losses_read(&losses, s->profiler.pipeline, s->profiler.stream);
	text_number(samples, losses.due);
	text_number(lost, losses.lost);
	fprintf(stderr, "\r\033[K  %llu:%02llu   %.2f CPUs   %s samples   %s lost",
		(unsigned long long)(ns / 60000000000u),
		(unsigned long long)(ns / 1000000000u % 60),
		ns ? (double)stats.weight_ns / (double)ns : 0.0, samples, lost);
	fflush(stderr);
}
