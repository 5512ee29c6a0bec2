/* SPDX-License-Identifier: Apache-2.0 */
/* fusee dump: the stacks of all threads of a process, now. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "dump/dump.h"
#include "dump/internal/print.h"
#include "dump/internal/guarded.h"
#include "console/options.h"
#include "selection/options.h"
#include "record/session.h"
#include "config/unwind_flags.h"
#include "process/procfs.h"
#include "profiler/build_profile.h"
#include "stop/rights.h"
#include "dump/internal/threads.h"
#include "unwind/walk.h"

#define TRIES 5
#define MAX_TIDS 256u
#define NAMES_NS 60000000000u /* then stacks are shown without the missing symbols */
#define BEAT_NS 1000000000u   /* the longest time between two steps */
#define PATIENCE_S 10u        /* after which a step counts as blocked */

/* Shared by the process that takes stacks and the process that waits for it. */
struct progress {
	_Atomic uint32_t beats;
	uint32_t at;      /* index in the selection of the process whose stacks are taken */
	uint32_t printed; /* processes */
	bool open;        /* the profiler is open */
	int code;         /* the first that is not 0 */
};

struct dump_command {
	struct selection selection;
	pid_t tids[MAX_TIDS];
	uint32_t ntids;
	struct unwind_flags unwind; /* --unwind */
	bool json, native, inlines, cache, stop;
	struct profiler profiler;
	struct buf out;
	struct progress *progress;
};

/* ---- errors ---- */

static int cannot_look(pid_t pid, int err)
{
	switch (-err) {
	case ESRCH:
	case ENOENT:
		log_error("there is no process %d", (int)pid);
		return EX_NOINPUT;
	case EACCES:
	case EPERM:
		log_error("no right to look into process %d: it is another user's, or has more "
			  "rights: run fusee with sudo",
			  (int)pid);
		return EX_NOPERM;
	case EAGAIN:
		log_error("process %d replaces its code again and again, so its stacks are not "
			  "certain: try again",
			  (int)pid);
		return EX_TEMPFAIL;
	case EFBIG:
		log_error("process %d has more than %u threads: choose some with --thread",
			  (int)pid, DUMP_MAX_THREADS);
		return EX_UNAVAILABLE;
	case ETIMEDOUT:
		log_error("process %d cannot be read: its memory or its files kept fusee waiting "
			  "for %u s, as those of a file server that does not answer do",
			  (int)pid, PATIENCE_S);
		return EX_TEMPFAIL;
	case ECHILD:
		log_error("no stacks of process %d: a signal ended the process of fusee that "
			  "reads them",
			  (int)pid);
		return EX_SOFTWARE;
	default:
		log_error("cannot take the stacks of process %d: %s", (int)pid, strerror(-err));
		return 1;
	}
}

static int refused(pid_t pid, pid_t tracer, int code)
{
	char why[256];

	stop_refusal(pid, tracer, why, sizeof(why));
	log_error("%s", why);
	return code;
}

/* Reports why no thread has a user stack. 0: a thread has, or the process is a kernel thread. */
static int check(pid_t pid, const struct dump *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (d->threads[i].miss == DUMP_TAKEN || d->threads[i].miss == DUMP_KERNEL)
			return 0;
	if (!d->n) {
		log_error("process %d has no such thread", (int)pid);
		return EX_NOINPUT;
	}
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->threads[i].miss == DUMP_NO_RIGHT)
			return refused(pid, 0, EX_NOPERM);
		if (d->threads[i].miss == DUMP_TRACED)
			return refused(pid, d->threads[i].state.tracer, 1);
		if (d->threads[i].miss == DUMP_NO_STOP) {
			log_error("process %d did not stop: a thread in uninterruptible sleep "
				  "cannot be stopped before its wait ends: run fusee as root, "
				  "without --stop",
				  (int)pid);
			return 1;
		}
	}
	log_error(d->threads[0].state.state == 'Z'
			  ? "process %d has ended, and its parent has not waited for it yet"
			  : "process %d has ended",
		  (int)pid);
	return EX_NOINPUT;
}

/* ---- one process ---- */

static void on_symbolized(void *arg)
{
	*(bool *)arg = true;
}

static void symbolize(struct dump_command *o, const struct collector *c)
{
	uint64_t deadline;
	struct profiler *p = &o->profiler;
	bool done = false;
	int r = -ETIMEDOUT;

	atomic_fetch_add(&o->progress->beats, 1);
	if (symbolizer_request(p->symbolizer, c, false, 0, on_symbolized, &done))
		return;
	deadline = clock_now() + NAMES_NS;
	for (uint64_t at = clock_now() + BEAT_NS; r == -ETIMEDOUT && at < deadline; at += BEAT_NS) {
		atomic_fetch_add(&o->progress->beats, 1);
		r = worker_wait_until(p->worker, at);
	}
	if (!done)
		symbolizer_expire(p->symbolizer, UINT64_MAX);
}

static int print(struct dump_command *o, pid_t pid, const struct dump *d, const struct collector *c)
{
	const struct build_options build = {.period_ns = 1};
	struct dump_view view = {.pid = pid, .dump = d, .native = o->native};
	struct builder *b = NULL;
	int r = builder_new(&b);

	if (!r)
		r = build_profile(b, &o->profiler, c, &build);
	if (!r)
		r = builder_finish(b, &view.profile);
	if (!r && o->json) {
		buf_str(&o->out, o->progress->printed ? ",\n" : "{\"processes\":[\n");
		dump_print_json(&view, &o->out);
	} else if (!r) {
		buf_str(&o->out, o->progress->printed ? "\n" : "");
		dump_print_text(&view, &o->out);
	}
	builder_free(b);
	if (r)
		log_error("cannot print the stacks of process %d: %s", (int)pid, strerror(-r));
	return r ? EX_OSERR : 0;
}

/* Takes the stacks; again if the process unmaps code meanwhile. */
static int take(struct dump_command *o, pid_t pid, struct dump *d, struct collector **c)
{
	const struct dump_options what = {.pid = pid,
					  .tids = o->tids,
					  .ntids = o->ntids,
					  .stop = o->stop,
					  .beats = &o->progress->beats};
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
		dump_fini(d);
		r = collector_new(c);
		if (r)
			return r;
		collector_free(pipeline_set_collector(o->profiler.pipeline, 0, *c));
		r = dump_process(d, &o->profiler, &what);
	}
	return r;
}

static int dump_pid(struct dump_command *o, pid_t pid)
{
	struct collector *c = NULL;
	struct dump d = {0};
	int r = take(o, pid, &d, &c), code = r ? cannot_look(pid, r) : 0;

	if (!r && d.n) {
		symbolize(o, c);
		code = print(o, pid, &d, c);
	}
	if (!code)
		code = check(pid, &d);
	dump_fini(&d);
	return code;
}

/* ---- the command line ---- */

static int add_tids(void *arg, const char *value)
{
	struct dump_command *o = arg;

	for (const char *at = value; *at;) {
		char *end;
		long tid = strtol(at, &end, 10);

		if (end == at || tid <= 0 || tid > INT32_MAX || (*end && *end != ','))
			return cli_bad_usage(&dump_command, "'%s' is not a list of thread ids",
					     value);
		if (o->ntids == MAX_TIDS)
			return cli_bad_usage(&dump_command, "more than %u threads are selected",
					     MAX_TIDS);
		o->tids[o->ntids++] = (pid_t)tid;
		at = *end ? end + 1 : end;
	}
	return 0;
}

static int add_unwind(void *arg, const char *value)
{
	return unwind_flags_add(&((struct dump_command *)arg)->unwind, value);
}

#define MEMBER(member) .offset = offsetof(struct dump_command, member)

static const struct cli_option options[] = {
	{"pid", 'p', "PID[,PID]", "running processes", CLI_MEMBER, MEMBER(selection),
	 .set = selection_set_pids},
	{"cgroup", 'G', "CGROUP", "the processes of a control group", CLI_MEMBER, MEMBER(selection),
	 .set = selection_set_cgroup},
	SELECTION_NAME_OPTIONS(offsetof(struct dump_command, selection)),
	{"thread", 0, "TID[,TID]", "only these threads", CLI_CALL, .set = add_tids},
	{"stop", 0, NULL, "each thread is stopped, waiting threads too", CLI_TRUE, MEMBER(stop)},
	{"native", 0, NULL, "the interpreter's own frames too", CLI_TRUE, MEMBER(native)},
	{"unwind", 0, "UNWINDER", UNWIND_HELP, CLI_CALL, .set = add_unwind},
	{"no-inlines", 0, NULL, "no inlined functions", CLI_FALSE, MEMBER(inlines)},
	{"no-cache", 0, NULL, "unwind tables are not read from or written to disk", CLI_FALSE,
	 MEMBER(cache)},
	{"json", 0, NULL, "JSON on stdout", CLI_TRUE, MEMBER(json)},
};

const struct cli_command dump_command = {
	.name = "dump",
	.does = "print the stacks of all threads of a process, now",
	.usage = "fusee dump [OPTION]... -p PID[,PID]\n"
		 "       fusee dump [OPTION]... -G CGROUP | --unit UNIT | --pod POD | --container "
		 "CONTAINER\n"
		 "Prints the stacks of all threads, of waiting threads too: the kernel's, the "
		 "machine's and\nthe languages' frames. Threads that run are stopped while their "
		 "stacks are read, and\nthe output says for how long; without root, waiting "
		 "threads too.\n",
	CLI_OPTIONS(options),
};

static int parse(struct dump_command *o, int argc, char **argv)
{
	int first, r = cli_parse(&dump_command, o, argc, argv, &first);

	if (r)
		return r;
	if (first < argc)
		return cli_bad_usage(&dump_command,
				     "'%s' is not an option: name a process with "
				     "-p PID",
				     argv[first]);
	if (!selection_kinds(&o->selection))
		return cli_bad_usage(&dump_command, "name a process with -p PID");
	r = selection_find_names(&dump_command, &o->selection);
	selection_fini(&o->selection); /* labels are not printed */
	return r;
}

static int open_profiler(struct dump_command *o)
{
	char *cache = o->cache ? session_cache_dir() : NULL, *plugins = plugin_default_dir();
	struct unwinder_options list[PLAN_MAX_UNWINDERS];
	struct unwinder_choice unwinders;
	struct plan *plan = NULL;
	struct profiler_options p = {.plugin_dir = plugins,
				     .cache_dir = cache,
				     .no_events = true,
				     .kernel = true,
				     .kept.threads = true,
				     .inlines = o->inlines};
	int r = plugins ? unwind_flags_plan(&o->unwind, plugins, &plan) : EX_OSERR;

	if (plan) {
		unwinders = plan_unwinders(plan, list);
		p.unwinders = &unwinders;
	}
	if (!r)
		r = profiler_open(&o->profiler, &p);
	plan_free(plan);
	free(cache);
	free(plugins);
	return r;
}

/* ---- the process that takes stacks ---- */

static int take_all(void *arg)
{
	struct dump_command *o = arg;
	struct progress *p = o->progress;
	int r = open_profiler(o);

	p->open = !r;
	for (; !r && p->at < o->selection.npids; p->at++) {
		int code = dump_pid(o, o->selection.pids[p->at]);

		p->code = p->code ? p->code : code;
		if (buf_write(&o->out, STDOUT_FILENO)) {
			log_error("cannot keep the stacks in memory: %s", strerror(errno));
			r = EX_OSERR;
		}
		p->printed += o->out.len != 0;
		buf_reset(&o->out);
	}
	buf_fini(&o->out);
	profiler_close(&o->profiler);
	return r;
}

/* Takes the stacks in a child process, and in another child if a target blocks the first. */
static int run_guarded(struct dump_command *o, int out)
{
	struct progress *p = o->progress;
	int r;

	do {
		p->open = false;
		r = guarded_run(take_all, o, out, &p->beats, PATIENCE_S * 1000000000ull);
		if (r >= 0)
			return r;
		if (!p->open) {
			log_error("cannot start: %s",
				  r == -ECHILD ? "a signal ended the process that takes stacks"
					       : strerror(-r));
			return EX_OSERR;
		}
		r = cannot_look(o->selection.pids[p->at], r);
		p->code = p->code ? p->code : r;
	} while (++p->at < o->selection.npids);
	return 0;
}

static int print_all(struct dump_command *o, int from)
{
	int r = lseek(from, 0, SEEK_SET) < 0 ? -errno : buf_read_fd(&o->out, from, SIZE_MAX);

	if (r) {
		log_error("cannot read the stacks: %s", strerror(-r));
		return EX_OSERR;
	}
	if (o->json)
		buf_str(&o->out, o->progress->printed ? "]}\n" : "{\"processes\":[]}\n");
	if (!buf_write(&o->out, STDOUT_FILENO))
		return 0;
	log_error("cannot write to standard output: %s", strerror(errno));
	return EX_IOERR;
}

static int run(struct dump_command *o)
{
	int from = memfd_create("stacks", MFD_CLOEXEC), r = EX_OSERR;

	o->progress = mmap(NULL, sizeof(*o->progress), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (from < 0 || o->progress == MAP_FAILED) {
		log_error("cannot start: %s", strerror(errno));
	} else {
		r = run_guarded(o, from);
		if (!r)
			r = print_all(o, from);
		if (!r)
			r = o->progress->code;
	}
	if (from >= 0)
		close(from);
	buf_fini(&o->out);
	return r;
}

int cmd_dump(int argc, char **argv)
{
	struct dump_command *o = calloc(1, sizeof(*o));
	int r;

	if (!o) {
		log_error("%s", strerror(ENOMEM));
		return EX_OSERR;
	}
	o->inlines = o->cache = true;
	r = parse(o, argc, argv);
	if (!r)
		r = run(o);
	free(o);
	return r < 0 ? 0 : r;
}
