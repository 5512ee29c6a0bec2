/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are added by the sink's thread and never removed, so that a file is uploaded once; all of
 * struct uploads is under the lock, except `upload`, which belongs to the thread. host->fail() is
 * for callbacks only: failures in the thread are logged, and their sentences are dropped.
 */
#include "uploads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <fusee/bytes.h>

#include "debuginfo.h"
#include "upload.h"

#define MAX_FILES 8192u
#define MAX_ATTEMPTS 10u
#define BUSY_NS (5 * FUSEE_MINUTE)
#define UNMAPPED_NS FUSEE_MINUTE /* before a file that no process mapped is searched for again */
#define AGAIN_NS (10 * FUSEE_SECOND)
#define MAX_PAUSE_NS (5 * FUSEE_MINUTE)
#define NEVER UINT64_MAX

enum entry_state {
	ENTRY_WAITS,
	ENTRY_UNMAPPED, /* no process mapped it: tried again when a profile contains it */
	ENTRY_ENDED,
};

struct entry {
	char *id; /* the build ID as hex, owned */
	uint64_t due_ns;
	uint32_t attempts;
	enum entry_state state;
};

struct uploads {
	struct fusee_self self; /* with a host whose fail() any thread may call */
	struct fusee_host host;
	struct upload upload;
	uint32_t warned; /* bit i: enum upload_result i was logged as a warning */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool runs, stop, full, looked;
	struct entry *entries;
	uint32_t n;
	uint64_t cap;
	uint64_t pause_ns, paused_until; /* the server does not answer, or the rate is reached */
};

static int drop_sentence(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	(void)text;
	return err;
}

/* ---- results ---- */

static const char *reason_of(int err)
{
	switch (-err) {
	case ENOENT:
		return "not mapped any more";
	case ENODATA:
		return "no names in it";
	case EFBIG:
		return "too large";
	case ESTALE:
		return "changed";
	case EREMOTE:
		return "on a file server";
	case EAGAIN:
		return "cannot be opened yet";
	default:
		return "cannot be read";
	}
}

/* Locked. Pauses all attempts, each time for longer. */
static void pause_all(struct uploads *u)
{
	uint64_t ns = u->pause_ns ? 2 * u->pause_ns : FUSEE_SECOND;

	u->pause_ns = ns < MAX_PAUSE_NS ? ns : MAX_PAUSE_NS;
	ns = u->pause_ns > u->upload.retry_after ? u->pause_ns : u->upload.retry_after;
	u->paused_until = fusee_now(CLOCK_MONOTONIC) + ns;
}

static void end_failed(struct uploads *u, struct entry *e, const char *reason)
{
	e->state = ENTRY_ENDED;
	fusee_count_by(&u->self, "uploads_failed", "reason", reason, 1);
}

/* Locked. Schedules another attempt in ns, unless there were too many. */
static void again(struct uploads *u, struct entry *e, uint64_t ns, const char *reason)
{
	if (++e->attempts >= MAX_ATTEMPTS) {
		end_failed(u, e, reason);
		return;
	}
	e->due_ns = fusee_now(CLOCK_MONOTONIC) + ns;
	fusee_count(&u->self, "uploads_retried", 1);
}

/* Locked. Grows with each attempt for this file, even if other files succeed meanwhile. */
static uint64_t backoff(const struct uploads *u, const struct entry *e)
{
	uint64_t own = FUSEE_SECOND << e->attempts; /* attempts < MAX_ATTEMPTS */

	if (own > MAX_PAUSE_NS)
		own = MAX_PAUSE_NS;
	return own > u->pause_ns ? own : u->pause_ns;
}

/* Locked. */
static void settle_file(struct uploads *u, struct entry *e)
{
	int err = u->upload.err;

	if (err == -EAGAIN) {
		again(u, e, AGAIN_NS, reason_of(err));
	} else if (err == -ENOENT && ++e->attempts < MAX_ATTEMPTS) {
		e->state = ENTRY_UNMAPPED;
		e->due_ns = fusee_now(CLOCK_MONOTONIC) + UNMAPPED_NS;
	} else {
		end_failed(u, e, reason_of(err));
	}
}

/* Locked. */
static void settle(struct uploads *u, struct entry *e, enum upload_result r)
{
	static const char *const results[] = {
		[UPLOAD_DONE] = "uploaded", [UPLOAD_KNOWN] = "known", [UPLOAD_REFUSED] = "refused"};

	if (r != UPLOAD_LATER && r != UPLOAD_ENDED)
		u->pause_ns = 0;
	switch (r) {
	case UPLOAD_DONE:
	case UPLOAD_KNOWN:
	case UPLOAD_REFUSED:
		e->state = ENTRY_ENDED;
		fusee_count_by(&u->self, "uploads", "result", results[r], 1);
		break;
	case UPLOAD_BUSY:
		again(u, e, BUSY_NS, "the server");
		break;
	case UPLOAD_LATER:
		pause_all(u);
		if (u->upload.answered)
			again(u, e, backoff(u, e), "the server");
		else
			fusee_count(&u->self, "uploads_retried", 1);
		break;
	case UPLOAD_FILE:
		settle_file(u, e);
		break;
	case UPLOAD_ENDED:
		u->stop = true; /* all later requests would fail in the same way */
		break;
	}
}

/* The first of a kind is a warning: a server without room would fill the log. */
static void log_result(struct uploads *u, const char *id, enum upload_result r)
{
	bool failed = r == UPLOAD_REFUSED || r == UPLOAD_LATER || r == UPLOAD_BUSY;
	int level = failed && !(u->warned & 1u << r) ? FUSEE_WARNING : FUSEE_DEBUG;

	if (r == UPLOAD_DONE)
		fusee_log(&u->self, FUSEE_INFO,
			  "uploaded the file with the build ID %s, %llu bytes", id,
			  (unsigned long long)u->upload.bytes);
	else if (r != UPLOAD_ENDED)
		fusee_log(&u->self, level, "the file with the build ID %s is not uploaded%s: %s",
			  id, r == UPLOAD_LATER || r == UPLOAD_BUSY ? " yet" : "", u->upload.why);
	if (failed)
		u->warned |= 1u << r;
}

/* ---- the thread ---- */

/* Locked. The entry that is due first; NULL: none is waiting. */
static struct entry *first_due(const struct uploads *u)
{
	struct entry *first = NULL;

	for (uint32_t i = 0; i < u->n; i++) {
		struct entry *e = &u->entries[i];

		if (e->state == ENTRY_WAITS && (!first || e->due_ns < first->due_ns))
			first = e;
	}
	return first;
}

/* Locked. */
static void wait_until(struct uploads *u, uint64_t ns)
{
	const struct timespec at = {.tv_sec = (time_t)(ns / FUSEE_SECOND),
				    .tv_nsec = (long)(ns % FUSEE_SECOND)};

	if (ns == NEVER)
		pthread_cond_wait(&u->changed, &u->lock);
	else
		pthread_cond_timedwait(&u->changed, &u->lock, &at);
}

/* Locked; releases the lock meanwhile, when entries may move. */
static void run_one(struct uploads *u, struct entry *e)
{
	uint64_t begin = fusee_now(CLOCK_MONOTONIC), until;
	uint32_t number = (uint32_t)(e - u->entries);
	const char *id = e->id;
	enum upload_result r;

	pthread_mutex_unlock(&u->lock);
	r = upload_file(&u->upload, id);
	log_result(u, id, r);
	fusee_count(&u->self, "upload_bytes", r == UPLOAD_DONE ? u->upload.bytes : 0);
	pthread_mutex_lock(&u->lock);
	settle(u, &u->entries[number], r);
	until = begin + u->upload.sent * 1000 / u->upload.rate * (FUSEE_SECOND / 1000);
	if (u->paused_until < until)
		u->paused_until = until;
}

static void *run(void *arg)
{
	struct uploads *u = arg;

	pthread_mutex_lock(&u->lock);
	while (!u->stop) {
		struct entry *e = first_due(u);
		uint64_t at = e ? e->due_ns : NEVER;

		if (e && at < u->paused_until)
			at = u->paused_until;
		if (at == NEVER || at > fusee_now(CLOCK_MONOTONIC))
			wait_until(u, at);
		else
			run_one(u, e);
	}
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

/* Locked. The thread blocks signals, which the control thread handles. */
static void start(struct uploads *u)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	u->runs = !pthread_create(&u->thread, NULL, run, u);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- files of profiles ---- */

static struct entry *find(const struct uploads *u, struct fusee_str id)
{
	for (uint32_t i = 0; i < u->n; i++)
		if (fusee_text_is(id, u->entries[i].id))
			return &u->entries[i];
	return NULL;
}

/* Locked. */
static void add(struct uploads *u, struct fusee_str id)
{
	struct entry *e = find(u, id);
	char *copy;

	if (e) {
		if (e->state == ENTRY_UNMAPPED && e->due_ns <= fusee_now(CLOCK_MONOTONIC))
			e->state = ENTRY_WAITS;
		return;
	}
	if (id.len >= DEBUGINFO_MAX_ID || u->n == MAX_FILES ||
	    !fusee_grow(&u->entries, &u->cap, u->n + 1ull, sizeof(*u->entries)) ||
	    !(copy = strndup(id.p, id.len))) {
		if (!u->full)
			fusee_log(&u->self, FUSEE_WARNING,
				  "there are too many files: further files are not uploaded");
		u->full = true;
		return;
	}
	u->entries[u->n++] = (struct entry){.id = copy, .due_ns = fusee_now(CLOCK_MONOTONIC)};
}

/* Whether the mapping is of a file that a server can have. */
static bool is_file(const struct fusee_profile *p, const struct fusee_mapping *m)
{
	struct fusee_str path = *FUSEE_AT(struct fusee_str, p->strings, m->path);

	return !(m->flags & (FUSEE_MAPPING_KERNEL | FUSEE_MAPPING_JIT)) && path.len &&
	       *path.p == '/' && FUSEE_AT(struct fusee_str, p->strings, m->build_id)->len;
}

/* Locked. Warns if the profile's functions have names already, so that the server needs no
 * files. */
static void look(struct uploads *u, bool nameless, bool named)
{
	if (!u->looked && named && !nameless)
		fusee_log(&u->self, FUSEE_WARNING,
			  "'upload' has nothing to do: the profiles have names. names = \"server\" "
			  "leaves them to the server");
	u->looked |= nameless || named;
}

void uploads_add(struct uploads *u, const struct fusee_profile *p)
{
	bool *seen = calloc(p->mappings.n + 1, sizeof(*seen)), nameless = false, named = false;

	if (!seen)
		return; /* the next profile has the same files */
	pthread_mutex_lock(&u->lock);
	FUSEE_FOR_EACH (struct fusee_location, l, p->locations) {
		const struct fusee_mapping *m;

		if (l->mapping >= p->mappings.n || seen[l->mapping])
			continue;
		m = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);
		if (!is_file(p, m))
			continue;
		named |= l->nlines;
		if (l->nlines)
			continue;
		seen[l->mapping] = nameless = true;
		add(u, *FUSEE_AT(struct fusee_str, p->strings, m->build_id));
	}
	look(u, nameless, named);
	if (nameless && !u->runs && !u->stop)
		start(u);
	pthread_cond_signal(&u->changed);
	pthread_mutex_unlock(&u->lock);
	free(seen);
}

/* ---- the object ---- */

static void init_lock(struct uploads *u)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&u->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->changed, &attr);
	pthread_condattr_destroy(&attr);
}

int uploads_new(struct uploads **ret, const struct fusee_self *self,
		const struct uploads_options *o)
{
	const struct fusee_host *host = self->host;
	struct uploads *u;
	int r;

	*ret = NULL;
	if (!FUSEE_HAS(host->sink, open_file) || !host->sink->open_file)
		return fusee_fail(self, -ENOSYS, "this fusee is too old for 'upload'");
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	memcpy(&u->host, host, host->size < sizeof(u->host) ? host->size : sizeof(u->host));
	u->self = (struct fusee_self){self->in, self->host};
	r = fusee_http_open(&u->upload.client, &u->self, o->http, o->own);
	if (r) {
		free(u);
		return r;
	}
	u->host.fail = drop_sentence;
	u->self.host = &u->host;
	u->upload.self = &u->self;
	u->upload.server = o->http->url;
	u->upload.rate = o->rate;
	u->upload.max_bytes = o->max_bytes;
	init_lock(u);
	*ret = u;
	return 0;
}

void uploads_cancel(struct uploads *u)
{
	atomic_store(&u->upload.ended, true);
	pthread_mutex_lock(&u->lock);
	u->stop = true;
	pthread_cond_signal(&u->changed);
	pthread_mutex_unlock(&u->lock);
	fusee_http_cancel(u->upload.client);
}

void uploads_free(struct uploads *u)
{
	if (!u)
		return;
	uploads_cancel(u);
	if (u->runs)
		pthread_join(u->thread, NULL);
	fusee_http_close(u->upload.client);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	for (uint32_t i = 0; i < u->n; i++)
		free(u->entries[i].id);
	free(u->entries);
	free(u);
}
