/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "process": a target for each process, with labels of what it runs, for whom. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/plugin.h>

#include "read.h"

#define BUCKETS 4096u
#define MAX_LABELS 24u

/* A process that we have put. Its labels are copied to its children when they fork. */
struct entry {
	struct entry *next;
	uint32_t pid, nlabels;
	uint64_t start_ticks;
	char *texts; /* key, value, key, value ..; each terminated */
};

struct process {
	struct fusee_instance *in;
	const struct fusee_host *host;
	struct fusee_table names, exe, args, users; /* options */
	struct fusee_table env;
	uint8_t cmdline;
	struct passwd_cache *passwd;
	struct entry *buckets[BUCKETS];
};

static int process_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct process *p = ctx;

	p->in = in;
	p->host = host;
	p->passwd = passwd_open();
	return p->passwd ? 0 : -ENOMEM;
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
	struct fusee_target t = {
		.size = sizeof(t),
		.match = FUSEE_MATCH_PID,
		.pid = e->pid,
		.pid_start_ticks = e->start_ticks,
		.labels = {labels, e->nlabels, sizeof(labels[0])},
	};
	const char *text = e->texts;
	char key[16];

	for (uint32_t i = 0; i < e->nlabels; i++) {
		labels[i] = (struct fusee_label){.key = {text, strlen(text)}};
		text += labels[i].key.len + 1;
		labels[i].str = (struct fusee_str){text, strlen(text)};
		text += labels[i].str.len + 1;
	}
	t.key = (struct fusee_str){key, (uint64_t)snprintf(key, sizeof(key), "%u", e->pid)};
	return p->host->discovery->put(p->in, &t);
}

static int drop(struct process *p, uint32_t pid)
{
	struct entry **at = place_of(p, pid), *e = *at;
	char key[16];
	int n;

	if (!e)
		return 0;
	*at = e->next;
	free(e->texts);
	free(e);
	n = snprintf(key, sizeof(key), "%u", pid);
	p->host->discovery->del(p->in, (struct fusee_str){key, (uint64_t)n});
	return 0;
}

/* Takes texts over. */
static int keep(struct process *p, uint32_t pid, uint64_t start_ticks, char *texts,
		uint32_t nlabels)
{
	struct entry **at = place_of(p, pid), *e = *at;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e) {
			free(texts);
			return -ENOMEM;
		}
		e->pid = pid;
		*at = e;
	}
	free(e->texts);
	e->texts = texts;
	e->nlabels = nlabels;
	e->start_ticks = start_ticks;
	return put(p, e);
}

/* ---- one process ---- */

static bool matches(const struct fusee_table *globs, const char *text, int flags)
{
	for (uint32_t i = 0; i < globs->n; i++)
		if (!fnmatch(FUSEE_AT(struct fusee_str, *globs, i)->p, text, flags))
			return true;
	return !globs->n;
}

static bool is_wanted(const struct process *p, const struct facts *f)
{
	return matches(&p->names, f->name, 0) && matches(&p->exe, f->exe, 0) &&
	       matches(&p->args, f->cmdline, 0) && matches(&p->users, f->user, 0);
}

struct labels {
	char *texts;
	size_t len, cap;
	uint32_t n;
	int error;
};

static void add(struct labels *l, const char *key, const char *value)
{
	size_t k = strlen(key) + 1, v = strlen(value) + 1;

	if (!*value || l->n == MAX_LABELS || l->error)
		return;
	if (l->len + k + v > l->cap) {
		size_t cap = (l->len + k + v) * 2;
		char *texts = realloc(l->texts, cap);

		if (!texts) {
			l->error = -ENOMEM;
			return;
		}
		l->texts = texts;
		l->cap = cap;
	}
	memcpy(l->texts + l->len, key, k);
	memcpy(l->texts + l->len + k, value, v);
	l->len += k + v;
	l->n++;
}

static void add_environment(const struct process *p, struct labels *l, const struct facts *f)
{
	char value[256];

	if (!environment_service(f->environ, f->environ_len, value, sizeof(value)))
		add(l, "service_name", value);
	for (uint32_t i = 0; i < p->env.n; i++) {
		const struct fusee_label *e = FUSEE_AT(struct fusee_label, p->env, i);

		if (!environment_get(f->environ, f->environ_len, e->str.p, value, sizeof(value)))
			add(l, e->key.p, value);
	}
}

/* A process that runs another program now, or that we have not seen yet. */
static int look(struct process *p, uint32_t pid)
{
	uint32_t want = FACTS_STATUS | FACTS_ENVIRON |
			(p->cmdline || p->args.n ? FACTS_CMDLINE : 0);
	struct labels l = {0};
	struct facts f;
	char number[16];
	int r = facts_read(&f, pid, want, p->passwd);

	if (r == -ENOMEM) { /* what we said of it stands until we are told of it again */
		facts_free(&f);
		return r;
	}
	if (r || !is_wanted(p, &f)) {
		drop(p, pid); /* gone, the kernel's own, or of no interest any more */
		facts_free(&f);
		return 0;
	}
	snprintf(number, sizeof(number), "%u", pid);
	add(&l, "process", f.name);
	add(&l, "pid", number);
	add(&l, "user", f.user);
	if (p->cmdline)
		add(&l, "cmdline", f.cmdline);
	add_environment(p, &l, &f);
	r = l.error;
	if (r)
		free(l.texts);
	else
		r = keep(p, pid, f.start_ticks, l.texts, l.n);
	facts_free(&f);
	return r;
}

/* A child runs its parent's program: nothing needs to be read. */
static int inherit(struct process *p, uint32_t parent, uint32_t pid)
{
	const struct entry *from = *place_of(p, parent);
	struct labels l = {0};
	const char *text;
	char number[16];

	if (!from)
		return look(p, pid); /* we do not know its parent: wanted or not */
	snprintf(number, sizeof(number), "%u", pid);
	text = from->texts;
	for (uint32_t i = 0; i < from->nlabels; i++) {
		const char *key = text, *value = key + strlen(key) + 1;

		add(&l, key, strcmp(key, "pid") ? value : number);
		text = value + strlen(value) + 1;
	}
	if (l.error) {
		free(l.texts);
		return l.error;
	}
	return keep(p, pid, 0, l.texts, l.n);
}

/* The pid may be another process's by now, which must not lose its target. */
static int ended(struct process *p, uint32_t pid)
{
	if (!*place_of(p, pid))
		return 0;
	if (kill((pid_t)pid, 0) &&
	    errno == ESRCH) { /* which nearly always it is, and costs least */
		drop(p, pid);
		return 0;
	}
	return look(p, pid);
}

static int process_event(void *ctx, const struct fusee_process_event *e)
{
	struct process *p = ctx;

	switch (e->kind) {
	case FUSEE_PROCESS_FORK:
		return inherit(p, e->parent, e->pid);
	case FUSEE_PROCESS_EXIT:
		return ended(p, e->pid);
	case FUSEE_PROCESS_SYNC:
		return p->host->discovery->commit(p->in);
	default:
		return look(p, e->pid);
	}
}

static int process_start(void *ctx)
{
	struct process *p = ctx;

	return p->host->discovery->begin(p->in);
}

#define OPTION(field) .name = #field, .offset = offsetof(struct process, field)
static const struct fusee_option options[] = {
	{OPTION(names), .type = FUSEE_LIST, .def = "",
	 .doc = "Only processes whose executable's base name matches one of these globs."},
	{OPTION(exe), .type = FUSEE_LIST, .def = "",
	 .doc = "Only processes whose executable's path matches one of these globs."},
	{OPTION(args), .type = FUSEE_LIST, .def = "",
	 .doc = "Only processes whose command line, with blanks between, matches one of these "
		"globs."},
	{OPTION(users), .type = FUSEE_LIST, .def = "", .doc = "Only processes of these users."},
	{OPTION(env), .type = FUSEE_MAP, .def = "",
	 .doc = "Labels from environment variables: label = \"VARIABLE\"."},
	{OPTION(cmdline), .type = FUSEE_BOOL, .def = "false",
	 .doc = "Adds the command line as a label; it may hold secrets."},
};

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_DISCOVERY_PROCESSES,
	.start = process_start,
	.process = process_event,
};

FUSEE_PLUGIN(process, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels each process with what it runs, for whom, and its service's name.",
	     .options = {options, sizeof(options) / sizeof(options[0]), sizeof(options[0])},
	     .ctx_size = sizeof(struct process), .init = process_init, .fini = process_fini,
	     .ops = &ops);
