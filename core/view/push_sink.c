// SPDX-License-Identifier: Apache-2.0
#include "view/push_sink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/credentials.h"
#include "base/log.h"
#include "console/interrupt.h"
#include "console/plugin_list.h"
#include "config/flags.h"
#include "delivery/delivery.h"
#include "delivery/sink_out.h"

#define SECOND 1000000000ull
#define FIRST_WAIT SECOND
#define LONGEST_WAIT (60 * SECOND) /* a longer Retry-After ends the tries */
#define FLUSH_NS (30 * SECOND)

struct push_sink {
	struct plugin_folder folder;
	struct plan *plan;
	struct fusee_host host;
	struct fusee_instance *instance;
};

bool push_is_address(const char *path)
{
	return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8);
}

void push_print(const char *before, const char *address)
{
	char *shown = strdup(address);

	if (shown)
		credentials_hide_value(shown);
	fprintf(stderr, "%s%s", before, shown ? shown : "(an address)");
	free(shown);
}

/* ---- the sink ---- */

/* "http:url=ADDRESS", with the commas and backslashes of the address escaped. NULL: no memory. */
static char *spec_of(const char *address)
{
	struct buf b = {0};

	buf_str(&b, "http:url=");
	for (const char *p = address; *p; p++)
		buf_printf(&b, "%s%c", *p == ',' || *p == '\\' ? "\\" : "", *p);
	buf_add(&b, "", 1);
	if (b.error)
		buf_fini(&b);
	return b.p;
}

static int make_plan(struct push_sink *s, const char *spec)
{
	const struct plan_flags flags = {.sinks = &spec, .nsinks = 1};
	struct plan_errors errors = {0};
	int r = plan_from_flags(&s->plan, &flags, &s->folder, &errors);

	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r && !errors.n)
		log_error("cannot use '%s': %s", spec, strerror(-r));
	plan_errors_fini(&errors);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}

static int make_instance(struct push_sink *s)
{
	const struct plan_instance *p = s->plan->sinks[0];
	const struct instance_options o = {
		.name = p->name, .where = p->where, .options = p->options, .n = p->noptions};
	char *text = NULL;
	int r;

	s->host = plugin_host_base;
	s->host.size = sizeof(s->host);
	s->host.sink = &delivery_host;
	r = instance_new(&s->instance, p->descriptor, &s->host, &o, &text);
	if (r)
		log_error("%s", text ? text : strerror(-r));
	free(text);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

int push_sink_open(struct push_sink **ret, const char *spec)
{
	char *own = push_is_address(spec) ? spec_of(spec) : NULL;
	struct push_sink *s = calloc(1, sizeof(*s));
	int r = s ? plugin_list_open(&s->folder) : EX_OSERR;

	if (r) {
		free(s);
		free(own);
		return r;
	}
	r = make_plan(s, own ? own : spec);
	if (!r)
		r = make_instance(s);
	free(own);
	if (r)
		push_sink_close(s);
	else
		*ret = s;
	return r;
}

int push_check(const char *address)
{
	struct push_sink *s = NULL;
	int r = push_sink_open(&s, address);

	if (!r)
		push_sink_close(s);
	return r;
}

void push_sink_close(struct push_sink *s)
{
	if (!s)
		return;
	instance_free(s->instance);
	plan_free(s->plan);
	plugin_folder_close(&s->folder);
	free(s);
}

const char *push_sink_name(const struct push_sink *s)
{
	return s->plan->sinks[0]->plugin;
}

/* ---- sending ---- */

/* Makes a sink that buffers profiles write them out. */
static int flush_sink(struct push_sink *s)
{
	const struct fusee_sink_ops *ops = s->instance->descriptor->ops;

	return FUSEE_HAS(ops, flush) && ops->flush
		       ? ops->flush(s->instance->ctx, clock_now() + FLUSH_NS)
		       : 0;
}

static void cancel(void *arg)
{
	const struct push_sink *s = arg;
	const struct fusee_sink_ops *ops = s->instance->descriptor->ops;

	if (FUSEE_HAS(ops, cancel) && ops->cancel)
		ops->cancel(s->instance->ctx);
}

/* One try, which a signal ends. *came: one did. If the profile is delivered nevertheless, the
 * signal is for what comes next. */
static int deliver(struct push_sink *s, const struct fusee_delivery *what, bool *came)
{
	const struct fusee_sink_ops *ops = s->instance->descriptor->ops;
	struct interrupt *interrupt;
	int r, number;

	interrupt_begin(&interrupt, cancel, s);
	r = ops->consume(s->instance->ctx, what);
	sink_out_fini(what->out);
	if (!r)
		r = flush_sink(s);
	number = interrupt_end(interrupt);
	if (number && !r)
		kill(getpid(), number);
	*came = number;
	return r;
}

/* Waits for `ns`. false: a signal arrived, which `record` blocks and handles in its loop; in other
 * commands a signal ends the process. */
static bool wait_ns(uint64_t ns)
{
	struct timespec t = clock_spec(ns);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return sigtimedwait(&set, NULL, &t) < 0;
}

/* Sets an id that is the same at each try, so that servers can drop duplicates; recorded files have
 * no id. */
static int set_id(struct fusee_profile *p)
{
	static const uint8_t none[sizeof(p->id)];

	if (memcmp(p->id, none, sizeof(none)) != 0)
		return 0;
	return getrandom(p->id, sizeof(p->id), 0) == sizeof(p->id) ? 0 : -EIO;
}

int push_sink_send(struct push_sink *s, const struct fusee_profile *from, uint32_t tries,
		   char **error)
{
	struct delivery_encoded encoded = {0};
	uint64_t wait = FIRST_WAIT, next;
	struct fusee_profile p = *from;
	int r = set_id(&p);
	bool came;

	*error = NULL;
	for (uint32_t i = 0; (!i ? !r : r == -EAGAIN) && i < tries; i++, wait *= 2) {
		struct fusee_sink_out out = {.profile = &p, .encoded = &encoded};
		const struct fusee_delivery what = {sizeof(what), i, &p, &out};

		r = deliver(s, &what, &came);
		if (!r)
			break;
		free(*error);
		*error = instance_sentence(s->instance, r);
		next = out.retry_named ? out.retry_after : wait;
		if (r == -EAGAIN && out.denied)
			r = -EACCES; /* waiting does not change a denial */
		if (came || r != -EAGAIN || i + 1 == tries || next > LONGEST_WAIT)
			break;
		fprintf(stderr, "fusee: %s; try %u of %u in %.0f s\n",
			*error ? *error : "no memory", i + 2, tries, (double)next / 1e9);
		if (!wait_ns(next))
			break;
	}
	if (!r) {
		free(*error);
		*error = NULL;
	}
	delivery_encoded_fini(&encoded);
	return r;
}
