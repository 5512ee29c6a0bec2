/* SPDX-License-Identifier: Apache-2.0 */
/* fusee record: one profile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/group.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session.h"

#define DEFAULT_HZ 99.0
#define DEFAULT_OUTPUT "fusee.pb.gz"

static const char usage_text[] =
	"usage: fusee record [OPTION]... -- COMMAND [ARGUMENT]...\n"
	"       fusee record [OPTION]... -p PID[,PID]...\n"
	"       fusee record [OPTION]... -a | -G CGROUP | --container ID\n"
	"Takes one profile of where CPU time goes; ends with the command, with -d, or with "
	"Ctrl-C.\n"
	"\n"
	"  -p, --pid PID[,PID]   processes that run already, with all their threads\n"
	"  -a, --all             the whole machine\n"
	"  -G, --cgroup PATH     the processes of a control group, and of those below it\n"
	"      --container ID    those of a container: the first digits of its id are enough\n"
	"                        (what they start is followed, what joins from outside is not)\n"
	"  -F, --rate HZ         samples a second of CPU time; default 99\n"
	"  -d, --duration TIME   10s, 2m ..\n"
	"  -o, --output FILE     fusee.pb.gz; its ending says the format: .pb.gz .folded .html\n"
	"                        .speedscope.json .json; several are allowed; - is stdout "
	"(.pb.gz)\n"
	"      --threads         keep threads apart by their number, not only by their name\n"
	"      --sampler NAME    who walks stacks: bpf (the kernel), snapshot (user space, over\n"
	"                        copies), auto (default: bpf where it works)\n"
	"      --stack SIZE      bytes of stack copied with a sample that user space walks;\n"
	"                        default 65528\n"
	"      --no-kernel       leave the kernel's part of stacks out\n"
	"      --no-inlines      do not look for inlined functions (faster at the end)\n"
	"      --no-cache        neither read nor write unwind tables on disk\n"
	"      --stats FILE      write the account of all ticks as JSON\n"
	"  -q, --quiet           print nothing but errors\n"
	"  -h, --help\n";

static int bad(const char *format, const char *what)
{
	return options_bad("record", format, what);
}

static int set_stack(struct session_options *o, const char *text)
{
	uint64_t bytes;

	if (text_size(text, &bytes) || bytes < 256)
		return bad("'%s' is not a stack size: 256 to 65528 bytes", text);
	o->stack_bytes = bytes > SAMPLE_MAX_STACK ? SAMPLE_MAX_STACK : (uint32_t)(bytes & ~7u);
	return 0;
}

static int add_output(struct session_options *o, const char *path)
{
	char *error = NULL;
	int r = 0;

	if (o->noutputs == SESSION_MAX_OUTPUTS)
		return bad("too many files: '%s' is one too many", path);
	if (output_check(path, &error)) {
		log_error("%s", error ? error : "no memory");
		r = EX_USAGE;
	}
	free(error);
	o->outputs[o->noutputs++] = path;
	return r;
}

enum {
	OPT_CONTAINER = 255,
	OPT_THREADS,
	OPT_SAMPLER,
	OPT_STACK,
	OPT_NO_KERNEL,
	OPT_NO_INLINES,
	OPT_NO_CACHE,
	OPT_STATS
};

static const struct option long_options[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all", no_argument, NULL, 'a'},
	{"cgroup", required_argument, NULL, 'G'},
	{"container", required_argument, NULL, OPT_CONTAINER},
	{"rate", required_argument, NULL, 'F'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"threads", no_argument, NULL, OPT_THREADS},
	{"sampler", required_argument, NULL, OPT_SAMPLER},
	{"stack", required_argument, NULL, OPT_STACK},
	{"no-kernel", no_argument, NULL, OPT_NO_KERNEL},
	{"no-inlines", no_argument, NULL, OPT_NO_INLINES},
	{"no-cache", no_argument, NULL, OPT_NO_CACHE},
	{"stats", required_argument, NULL, OPT_STATS},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* -1: help was printed. */
static int take_option(struct session_options *o, int c)
{
	switch (c) {
	case 'p':
		return group_add_pids(o, optarg);
	case 'a':
		o->all = true;
		return 0;
	case 'G':
		return group_add_cgroup(o, optarg);
	case OPT_CONTAINER:
		return group_add_container(o, optarg);
	case 'F':
		return options_rate("record", optarg, &o->hz);
	case 'd':
		return options_duration("record", optarg, &o->duration_ns);
	case 'o':
		return add_output(o, optarg);
	case OPT_THREADS:
		o->threads = true;
		return 0;
	case OPT_SAMPLER:
		return session_sampler(optarg, &o->sampler)
			       ? bad("'%s' is not a sampler: bpf, snapshot or auto", optarg)
			       : 0;
	case OPT_STACK:
		return set_stack(o, optarg);
	case OPT_NO_KERNEL:
		o->kernel = false;
		return 0;
	case OPT_NO_INLINES:
		o->inlines = false;
		return 0;
	case OPT_NO_CACHE:
		o->cache = false;
		return 0;
	case OPT_STATS:
		o->stats = optarg;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'h':
		fputs(usage_text, stdout);
		return -1;
	default:
		return EX_USAGE; /* and it was said why */
	}
}

static int parse(struct session_options *o, int argc, char **argv)
{
	int c, r = 0, targets;

	while (!r && (c = options_next("record", argc, argv, "+p:aG:F:d:o:qh", long_options)) != -1)
		r = take_option(o, c);
	if (r)
		return r;
	if (optind < argc)
		o->command = argv + optind;
	targets = !!o->npids + o->all + !!o->command;
	if (!targets) {
		log_error("nothing to profile: name a command (-- COMMAND), a process (-p PID), "
			  "a control group (-G PATH), a container (--container ID) or the whole "
			  "machine (-a)");
		return EX_USAGE;
	}
	if (targets > 1)
		return bad("one of '%s' at a time", "-p PID', '-a' and '-- COMMAND");
	if (!o->noutputs)
		return add_output(o, DEFAULT_OUTPUT);
	return 0;
}

/* Ends a recording's files in the hands of the user who asked by sudo. */
static int write_outputs(const struct session *s, const struct fusee_profile *p)
{
	bool sudo;
	uid_t uid;
	gid_t gid;
	int r = 0;

	sudo = launch_sudo_user(&uid, &gid);
	if (sudo && (setegid(gid) || seteuid(uid)))
		return EX_OSERR;
	for (uint32_t i = 0; i < s->o.noutputs; i++) {
		char *error = NULL;

		if (output_write(p, s->o.outputs[i], &error)) {
			log_error("%s", error ? error : "no memory");
			r = EX_CANTCREAT;
		}
		free(error);
	}
	if (sudo && (seteuid(0) || setegid(0)))
		r = EX_OSERR;
	return r;
}

/* Which sampler, and why not the better one. */
static void say_how(const struct session *s)
{
	const char *part = perf_stream_kernel(s->profiler.stream) || !s->o.kernel
				   ? ""
				   : ", without the kernel's part";

	if (s->profiler.bpf)
		log_info("%g Hz, unwinding in the kernel%s", s->o.hz, part);
	else if (s->profiler.no_bpf)
		log_info("%g Hz, unwinding in user space%s: no BPF sampler, %s "
			 "(fusee doctor says more)",
			 s->o.hz, part, s->profiler.no_bpf);
	else
		log_info("%g Hz, unwinding in user space%s", s->o.hz, part);
}

static void named(void *arg)
{
	(void)arg;
}

static int make_profile(struct session *s, struct builder **b, const struct fusee_profile **p)
{
	const struct collector *c = pipeline_collector(s->profiler.pipeline, 0);
	struct build_options o = {.period_ns = profiler_period_ns(s->o.hz)};
	char host[256] = "";
	int r = builder_new(b);

	if (!r)
		r = symbolizer_request(s->profiler.symbolizer, c, named, NULL);
	if (!r)
		r = worker_wait(s->profiler.worker);
	if (!r)
		r = build_profile(*b, c, s->profiler.pipeline, s->profiler.symbolizer, &o);
	if (r)
		return r;
	builder_profile(*b)->start_ns = s->start_wall_ns;
	builder_profile(*b)->duration_ns = s->end_ns - s->start_ns;
	if (!gethostname(host, sizeof(host) - 1) && *host)
		builder_resource(*b, "host", host);
	summary_losses(s, *b);
	return builder_finish(*b, p);
}

static int finish(struct session *s)
{
	const struct fusee_profile *p;
	struct builder *b = NULL;
	uint64_t began = clock_now();
	int r = make_profile(s, &b, &p);

	if (r) {
		log_error("cannot make the profile: %s", strerror(-r));
		r = EX_SOFTWARE;
	} else {
		r = write_outputs(s, p);
		if (!r && !s->o.quiet)
			summary_print(s, p, (double)(clock_now() - began) / 1e9);
		if (s->o.stats && summary_stats(s, s->o.stats)) {
			log_error("cannot write '%s': %s", s->o.stats, strerror(errno));
			r = EX_CANTCREAT;
		}
	}
	builder_free(b);
	return r;
}

/* The command's own exit status, when nothing of ours failed. */
static int child_code(const struct session *s)
{
	if (!s->o.command)
		return 0;
	if (WIFSIGNALED(s->child_status))
		return 128 + WTERMSIG(s->child_status);
	return WEXITSTATUS(s->child_status);
}

int cmd_record(int argc, char **argv)
{
	struct session s = {
		.o = {.hz = DEFAULT_HZ,
		      .stack_bytes = SAMPLE_MAX_STACK,
		      .kernel = true,
		      .inlines = true,
		      .cache = true},
		.child = {.pid = -1, .go = -1, .failed = -1},
	};
	struct buf again = {0};
	int r;

	for (int i = 0; i < argc; i++)
		buf_printf(&again, "%s%s", i ? " " : "fusee ", argv[i]);
	buf_add(&again, "", 1);
	s.o.again = again.p;
	r = parse(&s.o, argc, argv);
	if (r)
		goto out;
	r = session_open(&s);
	if (!r) {
		if (!s.o.quiet)
			say_how(&s);
		log_set_before(progress_clear);
		r = session_run(&s);
	}
	if (!r)
		r = finish(&s);
	session_close(&s);
	if (!r)
		r = child_code(&s);
out:
	buf_fini(&again);
	return r < 0 ? 0 : r;
}
