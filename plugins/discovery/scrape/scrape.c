/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery "scrape": profiles that servers make of themselves, as Go's net/http/pprof does. Each
 * address has a thread, so that a server that does not answer delays no other; the core decodes
 * what comes and delivers it to the sinks.
 */
#include <stdlib.h>

#include "scrape.h"

static const char *const schemes[] = {"http", "https", NULL};

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(struct scrapes, job, NULL, "Label job of the profiles."),
	FUSEE_OPTION_LIST(
		struct scrapes, targets, NULL,
		"Servers, HOST:PORT each, or http:// or https:// with a prefix of paths."),
	FUSEE_OPTION_LIST(struct scrapes, paths, "/debug/pprof/profile",
			  "Paths of profiles, each with its query if it needs one."),
	FUSEE_OPTION_ENUM(struct scrapes, scheme, "http", schemes,
			  "How targets without http:// or https:// are requested."),
	FUSEE_OPTION_DURATION(struct scrapes, interval, "60s", FUSEE_SECOND, 24 * FUSEE_HOUR,
			      "Time from the begin of a request to that of the next."),
	FUSEE_OPTION_DURATION(
		struct scrapes, seconds, "10s", FUSEE_SECOND, FUSEE_HOUR,
		"How long a server measures for a path that ends in /profile: its parameter "
		"'seconds', unless the path has one."),
	FUSEE_OPTION_MAP(struct scrapes, params, "", "More parameters of each request's query."),
	FUSEE_OPTION_MAP(struct scrapes, labels, "",
			 "More labels of the profiles; they win over job and instance."),
	FUSEE_OPTION_SIZE(struct scrapes, max_bytes, "16MiB", 64 << 10, 256ll << 20,
			  "The largest profile, as it is sent and without gzip."),
	FUSEE_HTTP_OPTIONS(struct scrapes, http, "10s"),
};

static int check_text(const struct scrapes *s, const char *option, const char *text)
{
	if (scrape_is_text(text))
		return 0;
	return fusee_fail(&s->self, -EINVAL,
			  "option '%s': a text is not printable, or longer than %u bytes", option,
			  SCRAPE_TEXT);
}

static int check_labels(const struct scrapes *s)
{
	char name[FUSEE_LABEL_NAME];
	int r = check_text(s, "job", s->job);

	if (r)
		return r;
	if (s->labels.n > SCRAPE_LABELS - 4)
		return fusee_fail(&s->self, -EINVAL, "option 'labels': more than %u labels",
				  SCRAPE_LABELS - 4);
	FUSEE_FOR_EACH (struct fusee_label, l, s->labels) {
		fusee_label_name(name, l->key.p);
		if (!*name || strcmp(name, l->key.p) != 0)
			return fusee_fail(&s->self, -EINVAL,
					  "option 'labels': '%s' is not a label's name", l->key.p);
		r = check_text(s, "labels", l->str.p);
		if (r)
			return r;
	}
	return 0;
}

static int make_all(struct scrapes *s)
{
	uint64_t n = (uint64_t)s->targets.n * s->paths.n;
	int r = 0;

	if (!n || n > SCRAPES_MAX)
		return fusee_fail(&s->self, -EINVAL,
				  "targets times paths must be 1 to %u, not %llu", SCRAPES_MAX,
				  (unsigned long long)n);
	s->list = calloc(n, sizeof(*s->list));
	if (!s->list)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_str, target, s->targets) {
		FUSEE_FOR_EACH (struct fusee_str, path, s->paths) {
			if (!r)
				r = scrape_new(&s->list[s->n], s, target->p, path->p);
			s->n += !r;
		}
	}
	return r;
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct scrapes *s = ctx;
	int r;

	pthread_mutex_init(&s->handing, NULL);
	fusee_self_init(ctx, in, host);
	if (!host->discovery || !FUSEE_HAS(host->discovery, profile))
		return fusee_fail(&s->self, -ENOTSUP, "this fusee takes no profiles of servers");
	if (!*s->job)
		return fusee_fail(&s->self, -EINVAL, "option 'job' is empty");
	r = check_labels(s);
	return r ? r : make_all(s);
}

/* All threads have ended then. */
static void end_all(struct scrapes *s)
{
	atomic_store(&s->ended, true);
	for (uint32_t i = 0; i < s->n; i++)
		scrape_cancel(s->list[i]);
	for (uint32_t i = 0; i < s->n; i++)
		scrape_join(s->list[i]);
}

static int begin_all(struct scrapes *s)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->n; i++)
		r = scrape_begin(s->list[i]);
	if (!r)
		return 0;
	end_all(s);
	return fusee_fail(&s->self, r, "cannot start a thread for each of %u requests: %s", s->n,
			  strerror(-r));
}

/* There are no targets: the instance is in sync at once. `fusee check` requests nothing. */
static int start(void *ctx)
{
	struct scrapes *s = ctx;
	const struct fusee_discovery_host *host = s->self.host->discovery;
	bool taken = host->profile(s->self.in, NULL, NULL, 0) != -EPERM;
	int r = host->begin(s->self.in);

	if (!r)
		r = host->commit(s->self.in);
	return r || !taken ? r : begin_all(s);
}

/* A request failed, or succeeds again. The core logs each sentence once, and shows the last while
 * this fails: first what is new, a call for each, then any that goes on. */
static int ready(void *ctx, int fd, uint32_t events)
{
	struct scrapes *s = ctx;
	char why[SCRAPE_WHY];

	(void)fd;
	(void)events;
	for (int unsaid = 1; unsaid >= 0; unsaid--)
		for (uint32_t i = 0; i < s->n; i++) {
			if (!scrape_failure(s->list[i], unsaid, why))
				continue;
			if (unsaid)
				s->self.host->discovery->wake(s->self.in);
			return fusee_fail(&s->self, -EIO, "%s", why);
		}
	return 0;
}

static void fini(void *ctx)
{
	struct scrapes *s = ctx;

	end_all(s);
	for (uint32_t i = 0; i < s->n; i++)
		scrape_free(s->list[i]);
	free(s->list);
	pthread_mutex_destroy(&s->handing);
}

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops), .flags = FUSEE_DISCOVERY_PROFILES, .start = start, .ready = ready};

FUSEE_PLUGIN(scrape, FUSEE_DISCOVERY, .version = "0.1",
	     .doc = "Takes profiles that servers make of themselves, as Go's /debug/pprof.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct scrapes), .init = init,
	     .fini = fini, .ops = &ops);
