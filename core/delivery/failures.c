/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/internal/failures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define SECOND 1000000000ull
#define BACKOFF_FIRST (1 * SECOND)
#define BACKOFF_MAX (300 * SECOND)
#define LOG_INTERVAL (60 * SECOND)
#define DENIED_INTERVAL (1800 * SECOND) /* a person has to correct the cause */

void failures_init(struct failures *f, struct fusee_instance *in, uint64_t first_ns,
		   uint64_t max_ns)
{
	*f = (struct failures){.instance = in,
			       .first_ns = first_ns ? first_ns : BACKOFF_FIRST,
			       .max_ns = max_ns ? max_ns : BACKOFF_MAX};
	if (f->max_ns < f->first_ns)
		f->max_ns = f->first_ns;
	f->random = clock_now() ^ (uintptr_t)f;
	f->random |= !f->random;
}

static void log_failure(struct failures *f, const char *sentence, int err, const char *consequence)
{
	uint64_t now = clock_now(), interval = f->denied ? DENIED_INTERVAL : LOG_INTERVAL;

	if (f->logged_at && now - f->logged_at < interval)
		return;
	f->failing = true;
	f->logged_at = now;
	if (sentence)
		log_warning("%s%s", sentence, consequence);
	else
		log_warning("%s: %s%s", f->instance->name, strerror(-err), consequence);
}

/* Between half of the backoff and all of it. */
static uint64_t next_backoff(struct failures *f)
{
	uint64_t ns = f->next_ns ? f->next_ns : f->first_ns;

	f->next_ns = ns < f->max_ns / 2 ? ns * 2 : f->max_ns;
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return ns / 2 + f->random % (ns / 2 + 1);
}

static void log_retry(struct failures *f, const char *sentence, uint64_t wait)
{
	double s = (double)wait / (double)SECOND;
	char consequence[64];

	if (s < 120)
		snprintf(consequence, sizeof(consequence), ", trying again in %.*f s", s < 10, s);
	else
		snprintf(consequence, sizeof(consequence), ", trying again in %.0f min", s / 60);
	log_failure(f, sentence, -EAGAIN, consequence);
}

/* If other failures come between denials, something is still logged each minute. */
static void log_denied(struct failures *f, const char *sentence)
{
	uint64_t before = f->logged_at;

	log_failure(f, sentence, -EAGAIN, ", profiles wait until that is mended");
	f->denied |= f->logged_at != before;
}

uint64_t failures_consumed(struct failures *f, int err, const char *sentence,
			   const struct fusee_sink_out *out)
{
	uint64_t wait;

	f->denied &= err == -EAGAIN && out->denied;
	if (err == -EAGAIN) {
		wait = out->retry_named ? out->retry_after : next_backoff(f);
		if (out->denied)
			log_denied(f, sentence);
		else
			log_retry(f, sentence, wait);
		return wait;
	}
	f->next_ns = 0;
	if (err && err != -ECANCELED)
		log_failure(f, sentence, err, ", a profile is lost");
	if (!err && f->failing)
		log_info("%s: takes profiles again", f->instance->name);
	if (!err)
		f->failing = false;
	return 0;
}

void failures_flushed(struct failures *f, int err, const char *sentence)
{
	if (err && err != -ECANCELED)
		log_failure(f, sentence, err, "");
}

char *failures_sentence(struct failures *f, int err, const char **text)
{
	char *sentence = instance_sentence(f->instance, err);
	const char *name = f->instance->name;
	char *at = sentence ? strstr(sentence, name) : NULL;

	if (at && !strncmp(at + strlen(name), ": ", 2))
		*text = at + strlen(name) + 2;
	else
		*text = sentence ? sentence : strerror(-err);
	return sentence;
}
