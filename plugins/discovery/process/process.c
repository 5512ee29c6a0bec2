/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "process": a target for each process, labelled with its program, user and service. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>
#include <fusee/helpers.h>

#include "read.h"
#include "resource.h"

#define BUCKETS 4096u
#define MAX_LABELS 24u
#define SECOND_NS 1000000000u
#define MAX_LOOKS 32u /* of a second */

/* A process is read again this many seconds after its program began: for a context that is
 * published late, texts that could not be read in time, and an environment that was empty because
 * the kernel was starting the program. */
static const uint32_t looks[] = {2, 10, 60};
#define LOOKS (sizeof(looks) / sizeof(*looks))
#define LATER 300u /* seconds between further readings, as long as a text is not read */

/* A process that has a target. A forked child copies its labels. */
struct entry {
	struct entry *next;
	uint32_t pid, nlabels;
	uint64_t start_ticks;
	uint64_t since;  /* process.seconds when its program began, or was found */
	uint32_t looked; /* how often it was read again */
	bool unread;     /* a text could not be read in time when it was last read */
	bool lacks;      /* that text was never read: labels, or the target, are missing */
	bool empty;      /* its environment was empty */
	bool hidden;     /* it has no target as long as its command line is not read */
	bool later;      /* its environment and its context are not read yet */
	char *texts;     /* owned: key, value, key, value ..; each terminated */
};

struct process {
	struct fusee_self self;
	struct fusee_table names, exe, args, users; /* options, from here to cmdline */
	struct fusee_table env, attributes;
	uint8_t cmdline, context;
	uint64_t seconds; /* since the start */
	uint32_t bucket;  /* where the next tick begins */
	bool waiting;     /* an entry may have to be read again: else no tick looks for one */
	struct passwd_cache *passwd;
	struct fusee_str *later; /* names of labels from the environment and the context */
	uint32_t nlater;
	struct entry *buckets[BUCKETS];
};

static int process_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct process *p = ctx;

	fusee_self_init(ctx, in, host);
	p->passwd = passwd_open();
	p->later = calloc(1 + p->attributes.n + p->env.n, sizeof(*p->later));
	if (!p->passwd || !p->later)
		return -ENOMEM;
	p->later[p->nlater++] = fusee_text("service_name");
	FUSEE_FOR_EACH (struct fusee_label, e, p->attributes)
		p->later[p->nlater++] = e->key;
	FUSEE_FOR_EACH (struct fusee_label, e, p->env)
		p->later[p->nlater++] = e->key;
	return 0;
}

static void process_fini(void *ctx)
{
	struct process *p = ctx;

	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct entry *e = p->buckets[i], *next; e; e = next) {
			next = e->next;
			free(e->texts);
			free(e);
		}
	free(p->later);
	passwd_close(p->passwd);
}

/* ---- entries ---- */

static struct entry **place_of(struct process *p, uint32_t pid)
{
	struct entry **at = &p->buckets[pid % BUCKETS];

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

static int put(struct process *p, const struct entry *e)
{
	struct fusee_label labels[MAX_LABELS];
	struct fusee_target t = FUSEE_SIZED(struct fusee_target, .match = FUSEE_MATCH_PID,
					    .pid = e->pid, .pid_start_ticks = e->start_ticks,
					    .labels = {labels, e->nlabels, sizeof(labels[0])});
	const char *text = e->texts;
	char key[16];

	for (uint32_t i = 0; i < e->nlabels; i++) {
		labels[i] = fusee_text_label(text, text + strlen(text) + 1);
		text = labels[i].str.p + labels[i].str.len + 1;
	}
	snprintf(key, sizeof(key), "%u", e->pid);
	t.key = fusee_text(key);
	if (e->later)
		t.later = (struct fusee_table){p->later, p->nlater, sizeof(*p->later)};
	return p->self.host->discovery->put(p->self.in, &t);
}

/* The entry of a pid, which is added if missing. NULL: no memory. */
static struct entry *entry_of(struct process *p, uint32_t pid)
{
	struct entry **at = place_of(p, pid), *e = *at;

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->pid = pid;
	e->since = p->seconds;
	return *at = e;
}

/* Deletes the target of a pid, if it has one. */
static int drop(struct process *p, uint32_t pid)
{
	struct entry **at = place_of(p, pid), *e = *at;
	char key[16];

	if (!e)
		return 0;
	*at = e->next;
	free(e->texts);
	free(e);
	snprintf(key, sizeof(key), "%u", pid);
	p->self.host->discovery->del(p->self.in, fusee_text(key));
	return 0;
}

/* The labels of one process; texts: key, value, key, value ..; each terminated. */
struct labels {
	struct fusee_bytes texts;
	uint32_t n;
};

/* Puts the target of a pid. Takes the labels over. later: some may be missing. 0; 1: these are
 * needed at once; or -errno. */
static int keep(struct process *p, uint32_t pid, uint64_t start_ticks, struct labels *l, bool later)
{
	struct entry *e = l->texts.error ? NULL : entry_of(p, pid);
	int r;

	if (!e) {
		fusee_bytes_fini(&l->texts);
		return -ENOMEM;
	}
	free(e->texts);
	e->texts = l->texts.p;
	e->nlabels = l->n;
	e->start_ticks = start_ticks;
	e->hidden = false;
	e->later = later;
	r = put(p, e);
	if (r != -EDQUOT)
		return r;
	free(e->texts); /* the core, which counts the refusal, keeps no labels either */
	e->texts = NULL;
	e->nlabels = 0;
	return 0;
}

/* Keeps an entry without a target, because it is not known yet whether the process is selected. 0
 * or -ENOMEM. */
static int hide(struct process *p, uint32_t pid)
{
	struct entry *e;

	drop(p, pid);
	e = entry_of(p, pid);
	if (!e)
		return -ENOMEM;
	e->hidden = e->unread = e->lacks = true;
	e->later = false;
	p->waiting = true;
	return 0;
}

/* ---- one process ---- */

static bool matches(const struct fusee_table *globs, const char *text)
{
	return !globs->n || fusee_text_matches(*globs, text);
}

/* Whether the process is selected by all conditions except its command line. */
static bool may_be_selected(const struct process *p, const struct facts *f)
{
	return matches(&p->names, f->name) && matches(&p->exe, f->exe) &&
	       matches(&p->users, f->user);
}

/* Adds a label unless its value is empty or there are MAX_LABELS. */
static void add(struct labels *l, const char *key, const char *value)
{
	if (!*value || l->n == MAX_LABELS)
		return;
	fusee_bytes_add(&l->texts, key, strlen(key) + 1);
	fusee_bytes_add(&l->texts, value, strlen(value) + 1);
	l->n++;
}

/* A resource attribute of OpenTelemetry, published by the SDK or else from the environment. list:
 * the value of OTEL_RESOURCE_ATTRIBUTES. 0 or -ENOENT. */
static int attribute(const struct facts *f, const char *list, const char *key, char *out,
		     size_t cap)
{
	int r = f->context ? resource_of_message(f->context, f->context_len, key, out, cap)
			   : -ENOENT;

	if (r && !strcmp(key, "service.name")) /* its own variable takes precedence */
		r = environment_get(f->environ, f->environ_len, "OTEL_SERVICE_NAME", out, cap);
	return r ? resource_of_list(list, key, out, cap) : 0;
}

static void add_attributes(const struct process *p, struct labels *l, const struct facts *f)
{
	char value[256], list[4096];

	if (environment_get(f->environ, f->environ_len, "OTEL_RESOURCE_ATTRIBUTES", list,
			    sizeof(list)))
		*list = '\0';
	if (!attribute(f, list, "service.name", value, sizeof(value)))
		add(l, "service_name", value);
	FUSEE_FOR_EACH (struct fusee_label, e, p->attributes) {
		if (!attribute(f, list, e->str.p, value, sizeof(value)))
			add(l, e->key.p, value);
	}
}

static void add_environment(const struct process *p, struct labels *l, const struct facts *f)
{
	char value[256];

	FUSEE_FOR_EACH (struct fusee_label, e, p->env) {
		if (!environment_get(f->environ, f->environ_len, e->str.p, value, sizeof(value)))
			add(l, e->key.p, value);
	}
}

static uint32_t facts_of(const struct process *p, bool all)
{
	return FACTS_STATUS | (p->cmdline || p->args.n ? FACTS_CMDLINE : 0) |
	       (all ? FACTS_ENVIRON : 0) | (all && p->context ? FACTS_CONTEXT : 0);
}

/* Whether the entry will be read again. */
static bool may_wait(const struct process *p, const struct entry *e)
{
	return e->unread || (e->looked < LOOKS && !e->later && (p->context || e->empty));
}

/* Makes the labels of a process and its target. 0; 1: it is to be read completely; or -errno. */
static int label(struct process *p, uint32_t pid, const struct facts *f)
{
	struct labels l = {0};
	struct entry *e;
	char number[16];
	int r;

	snprintf(number, sizeof(number), "%u", pid);
	add(&l, "process", f->name);
	add(&l, "pid", number);
	add(&l, "user", f->user);
	if (p->cmdline)
		add(&l, "cmdline", f->cmdline);
	add_attributes(p, &l, f);
	add_environment(p, &l, f);
	r = keep(p, pid, f->start_ticks, &l, !f->environ);
	e = *place_of(p, pid);
	if (e) {
		e->unread = e->lacks = f->unread;
		e->empty = f->empty;
		p->waiting |= may_wait(p, e);
	}
	return r;
}

/* Puts or drops the target of a process according to the facts that were read. As label(). */
static int take(struct process *p, uint32_t pid, const struct facts *f, bool again)
{
	struct entry *e = *place_of(p, pid);

	/* no answer in time: keeps the labels of the same program */
	if (again && e && f->unread && (!e->hidden || f->no_cmdline)) {
		if (e->later) { /* it lacks them from now on */
			e->later = false;
			e->lacks = true;
			put(p, e);
		}
		e->unread = p->waiting = true;
		return 0;
	}
	if (!may_be_selected(p, f))
		return drop(p, pid);
	if (p->args.n && f->no_cmdline)
		return hide(p, pid);
	return matches(&p->args, f->cmdline) ? label(p, pid, f) : drop(p, pid);
}

enum reading {
	FIRST = 0, /* of this program: what costs little */
	ALL = 1,
	AGAIN = 2, /* it still runs the program of the last reading */
};

/* Reads a process and puts or drops its target. how: enum reading. As label(). */
static int read_once(struct process *p, uint32_t pid, uint32_t how)
{
	const struct facts_source from = {p->self.host->discovery->process_text, p->self.in};
	struct facts f;
	int r = facts_read(&f, pid, facts_of(p, how & ALL), p->passwd, &from);

	if (f.unread)
		fusee_count_by(&p->self, "texts_unread", "reason", "no answer in time", 1);
	if (!r)
		r = take(p, pid, &f, how & AGAIN);
	else if (r != -ENOMEM)    /* the target stays until the core repeats the event */
		r = drop(p, pid); /* it has ended, or is a kernel thread */
	facts_free(&f);
	return r;
}

static int update(struct process *p, uint32_t pid, uint32_t how)
{
	int r = read_once(p, pid, how);

	return r == 1 ? read_once(p, pid, ALL) : r;
}

/* The labels that the target lacks are needed. The others stay if the process has ended. */
static int find_labels(struct process *p, uint32_t pid)
{
	struct entry *e = *place_of(p, pid);
	int r;

	if (!e || !e->later)
		return 0;
	if (!kill((pid_t)pid, 0) || errno != ESRCH) {
		r = read_once(p, pid, ALL | AGAIN);
		e = *place_of(p, pid);
		if (r == -ENOMEM || !e || !e->later)
			return r;
	}
	e->later = false;
	return put(p, e);
}

/* A child has its parent's labels, and lacks what its parent lacks. SDKs exclude the memory of
 * their context from children, so with `context` the child is not read by itself: it has the
 * parent's context. */
static void look_as(struct process *p, const struct entry *parent, struct entry *child)
{
	child->lacks = child->unread = parent->lacks && !p->context;
	child->empty = parent->empty && !p->context;
	child->looked = child->lacks || child->empty || child->later ? 0 : LOOKS;
	p->waiting |= may_wait(p, child);
}

/* A forked child runs its parent's program: its labels are the parent's, and nothing is read. */
static int inherit(struct process *p, uint32_t parent, uint32_t pid)
{
	const struct entry *from = *place_of(p, parent);
	struct labels l = {0};
	const char *text;
	char number[16];
	int r;

	if (from && from->later && p->context) { /* what the child does not have */
		find_labels(p, parent);
		from = *place_of(p, parent);
	}
	if (!from) /* unknown or not selected */
		return update(p, pid, FIRST);
	if (from->hidden)
		return hide(p, pid);
	snprintf(number, sizeof(number), "%u", pid);
	text = from->texts;
	for (uint32_t i = 0; i < from->nlabels; i++) {
		const char *key = text, *value = key + strlen(key) + 1;

		add(&l, key, strcmp(key, "pid") ? value : number);
		text = value + strlen(value) + 1;
	}
	r = keep(p, pid, 0, &l, from->later);
	if (*place_of(p, pid))
		look_as(p, from, *place_of(p, pid));
	return r == 1 ? find_labels(p, pid) : r;
}

/* The process executed another program: its context is searched again. */
static int began(struct process *p, uint32_t pid)
{
	int r = update(p, pid, FIRST);
	struct entry *e = *place_of(p, pid);

	if (e) {
		e->since = p->seconds;
		e->looked = 0;
		p->waiting |= may_wait(p, e);
	}
	return r;
}

static bool is_due(const struct process *p, const struct entry *e)
{
	uint32_t more = e->looked < LOOKS ? 0 : e->looked - LOOKS + 1;
	uint64_t at = more ? looks[LOOKS - 1] + (uint64_t)more * LATER : looks[e->looked];

	return may_wait(p, e) && p->seconds - e->since >= at;
}

/* Once a second. */
static int process_tick(void *ctx)
{
	struct process *p = ctx;
	uint32_t pids[MAX_LOOKS], n = 0;
	bool waiting = false;

	p->seconds++;
	for (uint32_t i = 0; p->waiting && i < BUCKETS && n < MAX_LOOKS; i++, p->bucket++)
		for (struct entry *e = p->buckets[p->bucket % BUCKETS]; e && n < MAX_LOOKS;
		     e = e->next) {
			waiting |= may_wait(p, e);
			if (is_due(p, e)) {
				e->looked++;
				pids[n++] = e->pid;
			}
		}
	p->waiting = waiting || n == MAX_LOOKS;
	for (uint32_t i = 0; i < n; i++)
		if (update(p, pids[i], ALL | AGAIN) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* An exit may be reported after another process got the pid, which must keep its target. */
static int exited(struct process *p, uint32_t pid)
{
	if (!*place_of(p, pid))
		return 0;
	if (kill((pid_t)pid, 0) && errno == ESRCH) { /* the common and cheap case */
		drop(p, pid);
		return 0;
	}
	return update(p, pid, FIRST);
}

static int process_event(void *ctx, const struct fusee_process_event *e)
{
	struct process *p = ctx;

	switch (e->kind) {
	case FUSEE_PROCESS_FORK:
		return inherit(p, e->parent, e->pid);
	case FUSEE_PROCESS_EXIT:
		return exited(p, e->pid);
	case FUSEE_PROCESS_LABELS:
		return find_labels(p, e->pid);
	case FUSEE_PROCESS_SYNC:
		return p->self.host->discovery->commit(p->self.in);
	default:
		return began(p, e->pid);
	}
}

static int process_start(void *ctx)
{
	struct process *p = ctx;
	int r = p->self.host->discovery->timer(p->self.in, SECOND_NS);

	return r ? r : p->self.host->discovery->begin(p->self.in);
}

static const struct fusee_option options[] = {
	FUSEE_OPTION_LIST(
		struct process, names, "",
		"Only processes whose executable's base name matches one of these globs."),
	FUSEE_OPTION_LIST(struct process, exe, "",
			  "Only processes whose executable's path matches one of these globs."),
	FUSEE_OPTION_LIST(struct process, args, "",
			  "Only processes whose command line, with blanks between the arguments, "
			  "matches one of these globs."),
	FUSEE_OPTION_LIST(struct process, users, "", "Only processes of these users."),
	FUSEE_OPTION_MAP(struct process, env, "",
			 "Labels from environment variables: label = \"VARIABLE\"."),
	FUSEE_OPTION_MAP(
		struct process, attributes, "",
		"Labels from OpenTelemetry's resource attributes, of the published context "
		"or of OTEL_RESOURCE_ATTRIBUTES: label = \"service.version\"."),
	FUSEE_OPTION_BOOL(
		struct process, context, "false",
		"Looks for the context that SDKs of OpenTelemetry publish in the memory of "
		"their process; its service.name comes before the environment's."),
	FUSEE_OPTION_BOOL(struct process, cmdline, "false",
			  "Adds the command line as a label; it may contain secrets."),
};

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_DISCOVERY_PROCESSES,
	.start = process_start,
	.process = process_event,
	.tick = process_tick,
};

FUSEE_PLUGIN(process, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels each process with its program, user and service name.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct process),
	     .init = process_init, .fini = process_fini, .ops = &ops);
