/* SPDX-License-Identifier: Apache-2.0 */
/* fusee record: one profile. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "record/debuginfod.h"
#include "console/options.h"
#include "console/outfile.h"
#include "view/push_sink.h"
#include "view/output.h"
#include "selection/options.h"
#include "record/session.h"
#include "record/session_event.h"
#include "record/summary.h"
#include "report/report.h"
#include "profiler/build_profile.h"
#include "ui/ui.h"

#define MAX_OUTPUTS 16
#define PROGRESS_NS 500000000u /* between two updates of the progress line */

struct record {
	struct session session;
	const char *outputs[MAX_OUTPUTS]; /* paths; "-" is stdout */
	bool written[MAX_OUTPUTS];
	uint32_t noutputs;
	const char *stats; /* file for the account as JSON; NULL: none */
	bool quiet, open;
	uint64_t progress_ns; /* when the progress line was last updated; 0: never */
};

/* ---- the command line ---- */

static struct selection *selection_of(void *arg)
{
	return &((struct record *)arg)->session.o.selection;
}

static int add_unwind(void *arg, const char *value)
{
	return unwind_flags_add(&((struct record *)arg)->session.o.unwind, value);
}

static int set_sampler(void *arg, const char *value)
{
	struct record *r = arg;

	if (!session_sampler(value, &r->session.o.profiler.sampler))
		return 0;
	return cli_bad_usage(&record_command, "'%s' is not a sampler: bpf, snapshot, stop or auto",
			     value);
}

static int set_event(void *arg, const char *value)
{
	return session_event_set(&((struct record *)arg)->session.o, value);
}

static int set_servers(void *arg, const char *value)
{
	return debuginfod_set(&record_command, &((struct record *)arg)->session.o, value);
}

static int set_names(void *arg, const char *value)
{
	bool *server = &((struct record *)arg)->session.o.server_names;

	*server = !strcmp(value, "server");
	if (*server || !strcmp(value, "local"))
		return 0;
	return cli_bad_usage(&record_command, "'%s' is not where names are found: local or server",
			     value);
}

static int set_stack(void *arg, const char *value)
{
	struct record *r = arg;
	uint64_t bytes;

	if (text_size(value, &bytes) || bytes < 256)
		return cli_bad_usage(&record_command,
				     "'%s' is not a stack size: 256 to 65528 bytes", value);
	r->session.o.profiler.stack_bytes = bytes > SAMPLE_MAX_STACK ? SAMPLE_MAX_STACK
								     : (uint32_t)(bytes & ~7u);
	return 0;
}

static int add_output(void *arg, const char *value)
{
	struct record *r = arg;
	char *error = NULL;
	int result = 0;

	if (r->noutputs == MAX_OUTPUTS)
		return cli_bad_usage(&record_command, "more than %d files: '%s'", MAX_OUTPUTS,
				     value);
	if (output_check(value, &error)) {
		log_error("%s", error ? error : "no memory");
		result = EX_USAGE;
	}
	free(error);
	r->outputs[r->noutputs++] = value;
	return result;
}

#define MEMBER(member) .offset = offsetof(struct record, member)

static const struct cli_option options[] = {
	{"pid", 'p', "PID[,PID]", "running processes, with all their threads", CLI_MEMBER,
	 MEMBER(session.o.selection), .set = selection_set_pids},
	{"all", 'a', NULL, "all processes of the machine", CLI_TRUE,
	 MEMBER(session.o.selection.all)},
	{"cgroup", 'G', "CGROUP",
	 "the processes of a control group, and of those below it; those\n"
	 "that join it later too",
	 CLI_MEMBER, MEMBER(session.o.selection), .set = selection_set_cgroup},
	SELECTION_NAME_OPTIONS(offsetof(struct record, session.o.selection)),
	{"rate", 'F', "HZ", "samples a second of CPU time; default 99", CLI_RATE,
	 MEMBER(session.o.hz)},
	{"event", 'e', "EVENT",
	 "what is sampled, in place of CPU time: offcpu (waits; or :hz=N),\n"
	 "lock, other samplers, alloc, inuse (memory), cycles, page-faults ..,\n"
	 "sched:sched_switch .., calls, uprobe:PATH:FUNCTION, uretprobe:.., rawtp:..",
	 CLI_CALL, .set = set_event},
	{"period", 'c', "N", "a sample for each N events of -e; default by the event", CLI_COUNT,
	 MEMBER(session.o.event_period)},
	{"wall", 0, NULL, "CPU time and, apart from it, time in which threads wait", CLI_TRUE,
	 MEMBER(session.o.wall)},
	{"duration", 'd', "TIME", "how long to sample: 10s, 2m", CLI_DURATION,
	 MEMBER(session.o.duration_ns)},
	{"output", 'o', "FILE",
	 "default fusee.pb.gz; the suffix selects the format: .pb.gz\n"
	 ".folded .html .speedscope.json .json; several files are\n"
	 "allowed; - is stdout (.pb.gz), http://.. a server (POST of\n"
	 ".pb.gz); a file that is there is kept as FILE.old",
	 CLI_CALL, .set = add_output},
	{"stdout-to-stderr", 0, NULL,
	 "standard output of the command goes to standard error: for\n"
	 "-o -, which sends the profile to standard output",
	 CLI_TRUE, MEMBER(session.command.stdout_to_stderr)},
	{"threads", 0, NULL, "keep threads apart by thread id, not only by name", CLI_TRUE,
	 MEMBER(session.o.profiler.kept.threads)},
	{"timeline", 0, NULL, "keep times, threads and CPUs of samples: for fusee ui", CLI_TRUE,
	 MEMBER(session.o.profiler.kept.times)},
	{"sampler", 0, "NAME",
	 "where stacks are unwound: bpf (in the kernel), snapshot (in\n"
	 "user space, from copies), stop (each thread is stopped for it,\n"
	 "without root); default auto (bpf where it works, else snapshot,\n"
	 "and stop for languages)",
	 CLI_CALL, .set = set_sampler, .words = "bpf snapshot stop auto"},
	{"stack", 0, "SIZE",
	 "bytes of stack that are copied with a sample which user\n"
	 "space unwinds; default 65528, with -e 16384",
	 CLI_CALL, .set = set_stack},
	{"native", 0, NULL,
	 "reports show an interpreter's own functions too, beside\n"
	 "those of the program that it runs (.pb.gz always has both)",
	 CLI_TRUE, MEMBER(session.o.native)},
	{"unwind", 0, "UNWINDER", UNWIND_HELP, CLI_CALL, .set = add_unwind},
	{"names", 0, "WHERE",
	 "where functions of programs and libraries get their names:\n"
	 "local (default), or server: a .pb.gz has their build ids and\n"
	 "addresses, for a server or pprof to symbolize",
	 CLI_CALL, .set = set_names, .words = "local server"},
	{"debuginfod", 0, "SERVER",
	 "names of stripped programs from a debuginfod server, as\n"
	 "https://debuginfod.debian.net (several: by commas), or env:\n"
	 "from those in DEBUGINFOD_URLS. It learns build ids of programs",
	 CLI_CALL, .set = set_servers},
	{"debuginfod-wait", 0, "TIME", "how long to wait for it at the end; default 1m",
	 CLI_DURATION, MEMBER(session.o.servers_wait_ns)},
	{"no-kernel", 0, NULL, "without the kernel's part of stacks", CLI_FALSE,
	 MEMBER(session.o.profiler.kernel)},
	{"no-inlines", 0, NULL, "do not find inlined functions (faster at the end)", CLI_FALSE,
	 MEMBER(session.o.profiler.inlines)},
	{"no-cache", 0, NULL, "neither read nor write unwind tables on disk", CLI_FALSE,
	 MEMBER(session.o.cache)},
	{"stats", 0, "FILE", "write what became of each sample, as JSON", CLI_TEXT, MEMBER(stats)},
	{"open", 0, NULL, "then show the .pb.gz in the browser, as fusee ui does", CLI_TRUE,
	 MEMBER(open)},
	{"quiet", 'q', NULL, "print nothing but errors", CLI_TRUE, MEMBER(quiet)},
};

const struct cli_command record_command = {
	.name = "record",
	.does = "take a profile of where CPU time goes",
	.usage = "fusee record [OPTION]... -- COMMAND [ARGUMENT]...\n"
		 "       fusee record [OPTION]... -p PID[,PID]...\n"
		 "       fusee record [OPTION]... -a | -G CGROUP | --unit UNIT | --pod POD | "
		 "--container CONTAINER\n"
		 "Takes one profile of where CPU time goes, or another event happens; ends with "
		 "the command, with -d, or with "
		 "Ctrl-C.\n",
	CLI_OPTIONS(options),
	.operand = "COMMAND",
	.operands_end = true,
};

/* The path of the i-th output file; that of --stats, if there is one, is the last. */
static const char *file_at(const struct record *r, uint32_t i)
{
	return i < r->noutputs ? r->outputs[i] : i == r->noutputs ? r->stats : NULL;
}

/* Rejects files that would overwrite each other, or be mixed with the command's output. */
static int check_outputs(const struct record *r)
{
	const char *path, *other;

	for (uint32_t i = 0; (path = file_at(r, i)); i++) {
		int fd = outfile_descriptor(path);

		for (uint32_t k = 0; k < i; k++) {
			other = file_at(r, k);
			if (!strcmp(path, other) || (fd >= 0 && fd == outfile_descriptor(other)))
				return cli_bad_usage(&record_command, "'%s' is named twice", path);
		}
		if (fd != STDOUT_FILENO)
			continue;
		if (r->session.o.selection.command && !r->session.command.stdout_to_stderr)
			return cli_bad_usage(&record_command,
					     "'%s' would mix the profile with what the command "
					     "prints: add --stdout-to-stderr, or name a file",
					     path);
		if (isatty(fd) && path != r->stats)
			return cli_bad_usage(&record_command,
					     "'%s' is a terminal, and the profile is "
					     "compressed data: name a file",
					     path);
	}
	return 0;
}

/* Rejects options that need names together with --names server. */
static int check_names(const struct record *r)
{
	if (!r->session.o.server_names)
		return 0;
	if (r->session.o.servers)
		return cli_bad_usage(&record_command,
				     "--names server finds no names, and --debuginfod is for them: "
				     "one of the two");
	for (uint32_t i = 0; i < r->noutputs; i++)
		if (!output_is_pprof(r->outputs[i]))
			return cli_bad_usage(&record_command,
					     "'%s' shows names, which --names server leaves to a "
					     "server: name a file .pb.gz",
					     r->outputs[i]);
	return 0;
}

/* The first pprof file among the outputs; NULL: none. */
static const char *find_openable(const struct record *r)
{
	for (uint32_t i = 0; i < r->noutputs; i++) {
		const char *path = r->outputs[i];

		if (output_is_pprof(path) && outfile_descriptor(path) < 0 && !push_is_address(path))
			return path;
	}
	return NULL;
}

static int parse(struct record *r, int argc, char **argv)
{
	int first, result = cli_parse(&record_command, r, argc, argv, &first);

	if (result)
		return result;
	if (first < argc)
		selection_of(r)->command = argv + first;
	if (!selection_kinds(selection_of(r)))
		return cli_bad_usage(&record_command,
				     "nothing to profile: name a command (-- COMMAND), a process "
				     "(-p PID), a control group (-G PATH), a unit (--unit UNIT), a "
				     "pod (--pod POD), a container (--container NAME) or all "
				     "processes (-a)");
	if (selection_kinds(selection_of(r)) > 1)
		return cli_bad_usage(&record_command,
				     "one of '-p PID', '-a' and '-- COMMAND' at a time");
	result = session_event_check(&record_command, &r->session.o);
	if (result)
		return result;
	result = r->noutputs ? 0 : add_output(r, CLI_DEFAULT_PROFILE);
	result = result ? result : check_outputs(r);
	result = result ? result : check_names(r);
	if (!result && r->open && !find_openable(r))
		return cli_bad_usage(&record_command, "--open shows a file .pb.gz: name one by -o");
	return result ? result : selection_find_names(&record_command, selection_of(r));
}

/* ---- while sampling ---- */

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* Frees names of removed code, and redraws the progress line on a terminal. */
static void on_tick(struct session *s, bool key)
{
	struct record *r = s->o.arg;
	struct loss_account losses;
	struct pipeline_stats p;
	char samples[32], lost[32];
	uint64_t now = clock_now(), ns = now - s->start_ns;

	(void)key;
	pipeline_forget_names(s->profiler.pipeline, NULL, 0);
	if (r->quiet || !isatty(STDERR_FILENO) || now - r->progress_ns < PROGRESS_NS)
		return;
	r->progress_ns = now;
	pipeline_stats(s->profiler.pipeline, &p);
	profiler_account(&s->profiler, &losses);
	fprintf(stderr, "\r\033[K  %llu:%02llu   ", (unsigned long long)(ns / 60000000000u),
		(unsigned long long)(ns / 1000000000u % 60));
	if (!*s->o.event.name && ns)
		fprintf(stderr, "%.2f CPUs   ", (double)p.weight_ns / (double)ns);
	fprintf(stderr, "%s samples   %s lost", text_number(samples, losses.due),
		text_number(lost, losses.lost));
	fflush(stderr);
}

/* Logs which threads are stopped, and why. */
static void log_stop(const struct session *s, const char *part)
{
	const struct profiler *p = &s->profiler;
	const char *why = p->stream ? p->no_bpf : p->no_stream;

	if (p->stream)
		log_info("%g Hz, unwinding in user space%s, that of languages while their threads "
			 "are stopped%s%s",
			 s->o.hz, part, why ? ": no BPF sampler, " : "", why ? why : "");
	else
		log_info("%g Hz, unwinding while threads are stopped, for 1 %% of their time at "
			 "most%s%s",
			 s->o.hz, why ? ": no perf events, " : "", why ? why : "");
}

/* Logs which sampler is used, and why not another. */
static void log_sampler(const struct session *s)
{
	const struct profiler *p = &s->profiler;
	const char *part = profiler_kernel(p) || !s->o.profiler.kernel
				   ? ""
				   : ", without the kernel's part";

	if (*s->o.event.name)
		session_event_log(s, part);
	else if (p->stop)
		log_stop(s, part);
	else if (p->bpf)
		log_info("%g Hz, unwinding in the kernel%s", s->o.hz, part);
	else if (p->no_bpf)
		log_info("%g Hz, unwinding in user space%s: no BPF sampler, %s "
			 "(fusee doctor says more)",
			 s->o.hz, part, p->no_bpf);
	else
		log_info("%g Hz, unwinding in user space%s", s->o.hz, part);
}

/* ---- the profile ---- */

static void on_symbolized(void *arg)
{
	(void)arg;
}

static int make_profile(struct session *s, struct builder **b, const struct fusee_profile **p)
{
	struct profiler *f = &s->profiler;
	const struct collector *c = pipeline_collector(f->pipeline, 0);
	const struct build_options o = session_build_options(s);
	int r = builder_new(b);

	if (!r)
		r = symbolizer_request(f->symbolizer, c, o.server_names, 0, on_symbolized, NULL);
	if (!r)
		r = worker_wait_until(f->worker, 0);
	if (!r)
		r = debuginfod_wait(s, c);
	if (!r)
		r = build_profile(*b, f, c, &o);
	if (r)
		return r;
	builder_profile(*b)->start_ns = s->start_wall_ns;
	builder_profile(*b)->duration_ns = s->end_ns - s->start_ns;
	build_host(*b);
	summary_losses(s, *b);
	return builder_finish(*b, p);
}

/* Under sudo, files are written as the user who called it. 0 or an exit code. */
static int become_owner(bool *sudo)
{
	uid_t uid;
	gid_t gid;

	*sudo = command_sudo_user(&uid, &gid);
	if (!*sudo || (!setegid(gid) && !seteuid(uid)))
		return 0;
	log_error("cannot become user %u, who called sudo: %s", (unsigned int)uid, strerror(errno));
	return EX_OSERR;
}

static int become_root(bool sudo)
{
	if (!sudo || (!seteuid(0) && !setegid(0)))
		return 0;
	log_error("cannot become root again: %s", strerror(errno));
	return EX_OSERR;
}

static void log_and_free(char *error)
{
	log_error("%s", error ? error : "no memory");
	free(error);
}

/* Checks before the first sample that all files can be written. */
static int try_outputs(const struct record *r)
{
	const char *path;
	bool sudo;
	int result = become_owner(&sudo);

	for (uint32_t i = 0; !result && (path = file_at(r, i)); i++) {
		char *error = NULL;

		if (push_is_address(path)) {
			result = push_check(path);
			continue;
		}
		if (!outfile_try(path, &error))
			continue;
		log_and_free(error);
		result = EX_CANTCREAT;
	}
	return become_root(sudo) ? EX_OSERR : result;
}

/* Writes the account of all samples as JSON. 0 or -errno. */
static int write_stats(struct record *r, char **error)
{
	struct buf b = {0};
	int err = summary_stats(&r->session, &b);

	if (!err)
		err = outfile_write(&b, r->stats, error);
	buf_fini(&b);
	return err;
}

static int write_outputs(struct record *r, const struct fusee_profile *p)
{
	bool sudo;
	int result = become_owner(&sudo);

	for (uint32_t i = 0; file_at(r, i); i++) {
		const struct render_options o = {.native = r->session.o.native};
		char *error = NULL;

		if (i == r->noutputs ? write_stats(r, &error)
				     : output_write(p, &o, r->outputs[i], &error)) {
			log_and_free(error);
			result = EX_IOERR;
		} else if (i < r->noutputs) {
			r->written[i] = true;
		}
	}
	return become_root(sudo) ? EX_OSERR : result;
}

/* "wrote FILE (SIZE)" for each file, and how to open a pprof file among them. */
static void print_files(const struct record *r)
{
	const char *openable = find_openable(r);
	struct stat st;
	uint32_t n = 0;
	char size[32];

	for (uint32_t i = 0; i < r->noutputs; i++) {
		const char *path = r->outputs[i];

		if (path == openable && !r->written[i])
			openable = NULL;
		if (!r->written[i] || outfile_descriptor(path) >= 0)
			continue;
		if (push_is_address(path)) {
			push_print(n++ ? ", " : "  wrote ", path);
			continue;
		}
		if (stat(path, &st))
			continue;
		fprintf(stderr, "%s%s (%s)", n++ ? ", " : "  wrote ", path,
			text_bytes(size, (uint64_t)st.st_size));
	}
	if (openable)
		fprintf(stderr, "      fusee report %s        go tool pprof -http=: %s", openable,
			openable);
	if (n)
		fputc('\n', stderr);
}

static int finish(struct record *r)
{
	const struct fusee_profile *p;
	struct builder *b = NULL;
	uint64_t began = clock_now();
	int err = make_profile(&r->session, &b, &p), result = 0;

	if (err) {
		log_error("cannot make the profile: %s", strerror(-err));
		result = EX_SOFTWARE;
	} else {
		result = write_outputs(r, p);
		if (!r->quiet) {
			summary_print(&r->session, p, (double)(clock_now() - began) / 1e9);
			debuginfod_print(&r->session);
			print_files(r);
		}
	}
	builder_free(b);
	return result;
}

/* Serves the profile that was written; under sudo as the user who called it, whose browser it is.
 * 0 or an exit code. */
static int show_page(const struct record *r)
{
	char *path = strdup(find_openable(r));
	int err = path ? command_become_user() : -ENOMEM, result = EX_OSERR;

	if (err)
		log_error("--open: %s", strerror(-err));
	else
		result = ui_serve(
			&(struct ui_options){.paths = &path, .npaths = 1, .browser = true});
	free(path);
	return result;
}

static int run(struct record *r)
{
	struct session *s = &r->session;
	int result = try_outputs(r);

	if (r->quiet && log_level() == LOG_INFO)
		log_set_level(LOG_WARNING);
	result = result ? result : session_open(s);
	result = result ? result : debuginfod_open(s);
	if (!result) {
		log_sampler(s);
		log_set_before(clear_progress);
		result = session_run(s);
		clear_progress();
	}
	if (!result)
		result = finish(r);
	session_close(s);
	if (!result && r->open)
		result = show_page(r);
	return result ? result : command_exit_status(&s->command);
}

int cmd_record(int argc, char **argv)
{
	struct record r = {0};
	struct buf line = {0};
	int result;

	signal(SIGXFSZ, SIG_IGN); /* makes write() fail at the limit of file size */
	session_init(&r.session);
	r.session.o.tick = on_tick;
	r.session.o.servers_wait_ns = DEBUGINFOD_WAIT_NS;
	r.session.o.arg = &r;
	for (int i = 0; i < argc; i++)
		buf_printf(&line, "%s%s", i ? " " : "fusee ", argv[i]);
	buf_add(&line, "", 1);
	r.session.o.profiler.command_line = line.error ? "fusee record" : line.p;
	result = parse(&r, argc, argv);
	result = result ? result : run(&r);
	selection_fini(selection_of(&r));
	session_event_fini(&r.session.o);
	buf_fini(&line);
	return result < 0 ? 0 : result;
}
