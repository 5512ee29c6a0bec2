/* SPDX-License-Identifier: Apache-2.0 */
#include "record/session_event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/guess.h"
#include "base/log.h"
#include "console/options.h"
#include "probes/parse.h"
#include "process/safe_open.h"
#include "programs/tracepoints.h"
#include "record/internal/choosers.h"

#define ALLOC_PERIOD (512u << 10) /* bytes */
#define EVENT_STACK 16384u        /* bytes of stack that are copied with a sample */

/* For commands of hints. */
static void note_words(struct session_options *o, const char *name)
{
	char *words[] = {"-e", (char *)name, NULL};

	command_put(words, &o->event_words);
	buf_str(&o->event_words, " ");
}

void session_event_fini(struct session_options *o)
{
	probe_points_fini(&o->probes);
	buf_fini(&o->event_words);
}

/* Has the kernel the tracepoint that was added last, and the filter's argument? */
static int check_tracepoint(const struct session_options *o, char **why)
{
	const struct probe_point *p = &o->probes.at[o->probes.n - 1];
	int n;

	if (p->program != PROBE_TRACEPOINT)
		return 0;
	n = tracepoint_arguments(p->path, why);
	if (n < 0)
		return n;
	if (!p->filter.operator|| p->filter.argument<(uint32_t) n)
		return 0;
	if (asprintf(why, "the tracepoint '%s' has %d arguments, the first is arg0", p->path, n) <
	    0)
		*why = NULL;
	return -EINVAL;
}

/* Several probes of one kind are sampled together. */
static int add_probe(struct session_options *o, const struct probe_kind *kind, const char *text)
{
	struct event_kind event = {.period = 1, .probes = &o->probes};
	char *why = NULL;
	int r;

	if (o->probes.n && strcmp(o->event.name, kind->name) != 0) {
		log_error("-e %s:.. and -e %s:.. have values of their own: record one of them",
			  o->event.name, kind->name);
		return EX_USAGE;
	}
	r = probes_parse(&o->probes, kind, text, &why);
	if (!r)
		r = check_tracepoint(o, &why);
	snprintf(event.name, sizeof(event.name), "%s", kind->name);
	o->event = event;
	if (!r)
		return 0;
	log_error("%s", why ? why : strerror(-r));
	free(why);
	return r == -EINVAL ? EX_USAGE : r == -ENOMEM ? EX_OSERR : EX_NOINPUT;
}

static int find_event(struct session_options *o, const char *dir, const char *name, char **error)
{
	struct guess none = {.word = ""};
	struct buf names = {0};
	int r = session_choosers_add(&o->choosers, dir, name, error);

	if (r != -ENOENT)
		return r;
	plugin_samplers_offer(dir, &none, &names);
	buf_add(&names, "", 1);
	o->event = (struct event_kind){0};
	r = names.error ? names.error : event_kind_find(name, names.p, &o->event, error);
	buf_fini(&names);
	return r;
}

/* Its probes are found when processes are known. */
static void set_alloc(struct session_options *o, bool in_use)
{
	o->event = (struct event_kind){
		.period = ALLOC_PERIOD, .probes = &o->probes, .in_use = in_use};
	snprintf(o->event.name, sizeof(o->event.name), "%s",
		 in_use ? SESSION_IN_USE : SESSION_ALLOC);
}

/* "cpu-clock" and "task-clock" are what is sampled without -e. */
static bool is_cpu_time(const char *name)
{
	return !strcmp(name, "cpu-clock") || !strcmp(name, "task-clock");
}

int session_event_set(struct session_options *o, const char *name)
{
	const struct probe_kind *probe = probe_kind_of(name);
	char *error = NULL, *dir;
	int r = 0;

	note_words(o, name);
	if (probe)
		return add_probe(o, probe, name);
	dir = plugin_default_dir();
	if (!strcmp(name, SESSION_ALLOC) || !strcmp(name, SESSION_IN_USE)) {
		probe_points_fini(&o->probes);
		set_alloc(o, !strcmp(name, SESSION_IN_USE));
	} else if (is_cpu_time(name)) {
		probe_points_fini(&o->probes);
		o->event = (struct event_kind){0};
		o->choosers.cpu = true;
	} else {
		r = dir ? find_event(o, dir, name, &error) : -ENOMEM;
	}
	free(dir);
	if (r)
		log_error("%s", error ? error : "no memory");
	free(error);
	if (r == -EACCES || r == -EPERM)
		return EX_NOPERM;
	return !r ? 0 : r == -EINVAL ? EX_USAGE : r == -ENODEV ? EX_UNAVAILABLE : EX_OSERR;
}

/* Is the process's file of this path another than ours, or is there none? */
static bool is_another_file(pid_t pid, const char *path)
{
	char name[32];
	struct stat own, theirs;
	int root, held;
	bool unknown;

	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || stat(path, &own)) {
		if (root >= 0)
			close(root);
		return false; /* the process may have ended */
	}
	held = safe_hold(root, path, 0);
	close(root);
	if (held < 0)
		return held == -ENOENT;
	unknown = fstat(held, &theirs);
	close(held);
	return !unknown && (own.st_dev != theirs.st_dev || own.st_ino != theirs.st_ino);
}

/* A process in a container has its own files. */
static void warn_of_other_roots(const struct session_options *o)
{
	const char *last = "";

	for (size_t i = 0; i < o->probes.n; i++) {
		const char *path = o->probes.at[i].path;
		bool said = o->probes.at[i].program == PROBE_TRACEPOINT || !strcmp(path, last) ||
			    !strncmp(path, "/proc/", 6);

		for (uint32_t k = 0; !said && k < o->selection.npids; k++) {
			pid_t pid = o->selection.pids[k];

			said = is_another_file(pid, path);
			if (said)
				log_warning("process %d has another root folder, where '%s' is not "
					    "this file: its own is /proc/%d/root%s",
					    (int)pid, path, (int)pid, path);
		}
		last = path;
	}
}

static int check_hits(const struct cli_command *command, const struct session_options *o)
{
	if (o->hz > DEFAULT_HZ || o->hz < DEFAULT_HZ)
		return cli_bad_usage(
			command,
			"-F is a rate of CPU time: with -e %s, -c N takes one in N%s by "
			"chance",
			o->event.name,
			session_is_alloc(o)   ? " bytes"
			: session_is_timed(o) ? " ns"
					      : "");
	if (o->profiler.sampler != SAMPLER_AUTO && o->profiler.sampler != SAMPLER_BPF)
		return cli_bad_usage(command, "-e %s is sampled by BPF: leave --sampler out",
				     o->event.name);
	warn_of_other_roots(o);
	return 0;
}

int session_event_check(const struct cli_command *command, struct session_options *o)
{
	int r = o->wall ? session_choosers_add_wall(&o->choosers) : 0;

	if (r)
		return r;
	if (o->choosers.n && *o->event.name)
		return cli_bad_usage(command, "%s and -e %s are not sampled together",
				     o->wall ? "--wall" : "samplers", o->event.name);
	if (o->choosers.n)
		return session_choosers_check(command, o);
	if (!*o->event.name)
		return o->event_period
			       ? cli_bad_usage(command, "-c N goes with -e EVENT; the rate of "
							"samples of CPU time is -F HZ")
			       : 0;
	if (o->event.probes)
		return check_hits(command, o);
	if (o->profiler.sampler == SAMPLER_BPF || o->profiler.sampler == SAMPLER_STOP)
		return cli_bad_usage(command, "-e %s is sampled without %s", o->event.name,
				     o->profiler.sampler == SAMPLER_BPF
					     ? "BPF: leave --sampler bpf out"
					     : "stops: leave --sampler stop out");
	if (o->hz > DEFAULT_HZ || o->hz < DEFAULT_HZ)
		return cli_bad_usage(
			command,
			"-F is a rate of CPU time: with -e %s, -c N takes a sample for "
			"each N events",
			o->event.name);
	/* Events may come in bursts, and a copy takes its full size in a ring. */
	if (o->profiler.stack_bytes == SAMPLE_MAX_STACK)
		o->profiler.stack_bytes = EVENT_STACK;
	return 0;
}

void session_event_log(const struct session *s, const char *part)
{
	const char *name = s->o.event.name;

	if (s->o.choosers.n)
		session_choosers_log(&s->o.choosers);
	else if (session_is_alloc(&s->o))
		log_info("%s, by chance a sample for each %llu bytes, unwinding in the kernel",
			 name, (unsigned long long)session_period(s));
	else if (session_is_timed(&s->o) && session_period(s) > 1)
		log_info("%s, by chance a sample for each %llu ns in calls, unwinding in the "
			 "kernel",
			 name, (unsigned long long)session_period(s));
	else if (s->o.event.probes && session_period(s) == 1)
		log_info("%s, each hit, unwinding in the kernel", name);
	else if (s->o.event.probes)
		log_info("%s, by chance one hit in %llu, unwinding in the kernel", name,
			 (unsigned long long)session_period(s));
	else
		log_info("%s, a sample for each %llu%s", name,
			 (unsigned long long)session_period(s), part);
}

render_table *session_table(const struct fusee_sampler_ops *ops)
{
	return ops && ops->flags & FUSEE_SAMPLER_TIME ? render_waits : render_hottest;
}
