/* SPDX-License-Identifier: Apache-2.0 */
/* fusee doctor: what works on this machine, what is lost without the rest, and how to enable it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "console/options.h"
#include "record/session.h"
#include "stop/rights.h"
#include "bpf/probes.h"
#include "bpf/sampler.h"
#include "unwind/claims.h"
#include "events/probe.h"

enum { MAX_CHECKS = 24 };

struct check {
	const char *name;
	bool works;
	char *costs; /* what is lost without it, or a remark if it works; NULL: nothing. Owned */
	char *get;   /* how to get it; NULL: impossible or not needed. Owned */
};

struct report {
	struct utsname kernel;
	char *privileges;
	struct check checks[MAX_CHECKS];
	unsigned int n;
	int stop_code;  /* 0: nothing stops fusee */
	char *stop;     /* why nothing can be sampled. Owned */
	char *no_perf;  /* why threads are stopped for their samples. Owned */
	bool no_memory; /* for a text */
};

/* A copy of the text, NULL for NULL. */
static char *copy(struct report *r, const char *text)
{
	char *p = text ? strdup(text) : NULL;

	if (text && !p)
		r->no_memory = true;
	return p;
}

static void add(struct report *r, const char *name, bool works, const char *costs, const char *get)
{
	if (r->n < MAX_CHECKS)
		r->checks[r->n++] = (struct check){name, works, copy(r, costs), copy(r, get)};
}

/* "root", "root without CAP_SYS_RESOURCE", "user joe with CAP_PERFMON" */
static char *privileges(struct report *r)
{
	const struct passwd *p = getpwuid(geteuid());
	uint64_t caps = probe_caps();
	bool root = !geteuid();
	const char *between = root ? " without " : " with ", *name;
	struct buf b = {0};

	if (root)
		buf_str(&b, "root");
	else if (p)
		buf_printf(&b, "user %s", p->pw_name);
	else
		buf_printf(&b, "uid %u", (unsigned int)geteuid());
	for (unsigned int i = 0; (name = probe_cap_name(i)); i++) {
		if (!(caps >> i & 1) != root)
			continue;
		buf_printf(&b, "%s%s", between, name);
		between = ", ";
	}
	buf_add(&b, "", 1);
	if (b.error)
		r->no_memory = true;
	return b.error ? (buf_fini(&b), NULL) : (char *)b.p;
}

/* Without perf events `record` stops threads, if it may: it does so where these errors come. */
static bool by_stops(struct report *r, const struct probe_perf *perf)
{
	const struct probe_target own = {.again = "fusee record -- CMD"};

	if ((perf->own != -EACCES && perf->own != -EPERM && perf->own != -ENOSYS) || stop_try())
		return false;
	r->no_perf = probe_explain(perf->own, &own);
	r->no_memory |= !r->no_perf;
	add(r, "sampling own programs", true,
	    "record stops their threads for it, 1 % of their time at most", NULL);
	add(r, "perf events", false,
	    "record -a, record -e and fusee run do not work; time in the kernel is not sampled",
	    "see below");
	return true;
}

static void check_own(struct report *r, const struct probe_perf *perf)
{
	const struct probe_target own = {.again = "fusee record -- CMD"};

	if (by_stops(r, perf))
		return;
	if (perf->own) {
		r->stop = probe_explain(perf->own, &own);
		r->no_memory |= !r->stop;
		r->stop_code = perf->own == -EACCES || perf->own == -EPERM ? EX_NOPERM
									   : EX_UNAVAILABLE;
		add(r, "sampling", false, "nothing can be profiled", "see below");
	} else if (perf->ring) {
		r->stop = probe_explain(perf->ring, &own);
		r->no_memory |= !r->stop;
		r->stop_code = EX_NOPERM;
		add(r, "sampling", false, "no memory for sample buffers", "see below");
	} else if (perf->arrives) {
		r->stop = copy(r, "the kernel opens the CPU clock, but it gives no samples");
		r->stop_code = EX_UNAVAILABLE;
		add(r, "sampling", false, "the CPU clock gives no samples", NULL);
	} else {
		add(r, "sampling own programs", true, NULL, NULL);
	}
}

static void check_scope(struct report *r, const struct probe_perf *perf)
{
	if (perf->own)
		return;
	add(r, "other users' programs", !perf->others,
	    perf->others ? "record -p samples your own processes only" : NULL,
	    perf->others ? "run fusee as root" : NULL);
	add(r, "system-wide sampling", !perf->all, perf->all ? "record -a does not work" : NULL,
	    perf->all ? "run fusee as root, or sysctl kernel.perf_event_paranoid=0" : NULL);
	add(r, "stacks in the kernel", !perf->kernel,
	    perf->kernel ? "time in the kernel is not sampled" : NULL,
	    perf->kernel ? "run fusee as root, or sysctl kernel.perf_event_paranoid=1" : NULL);
}

static void check_kernel_names(struct report *r)
{
	int hidden = probe_kallsyms();

	add(r, "symbols of the kernel", !hidden,
	    hidden ? "kernel functions are shown as addresses" : NULL,
	    hidden ? "run fusee as root, or sysctl kernel.kptr_restrict=0 "
		     "kernel.perf_event_paranoid=1"
		   : NULL);
}

static void check_counters(struct report *r, const struct probe_perf *perf)
{
	bool none = perf->cycles == -ENOENT || perf->cycles == -EOPNOTSUPP ||
		    perf->cycles == -ENODEV;

	if (perf->own)
		return;
	add(r, "hardware cycles", !perf->cycles,
	    perf->cycles ? "CPU time is sampled instead (accurate below 1 kHz)" : NULL,
	    none           ? "no PMU on this machine"
	    : perf->cycles ? "run fusee as root"
			   : NULL);
	if (perf->build_ids)
		add(r, "build ids in records", false,
		    "a file that is replaced while it runs may have no symbols",
		    "a newer kernel (they came with 5.12)");
}

static void check_files(struct report *r)
{
	int denied = probe_map_files();
	bool root = !geteuid();

	add(r, "replaced files", !denied,
	    denied ? "a library that was deleted or replaced while in use has no symbols" : NULL,
	    denied ? root ? "CAP_CHECKPOINT_RESTORE" : "run fusee as root" : NULL);
	if (access("/usr/lib/debug/.build-id", F_OK))
		add(r, "debug symbols", false,
		    "libraries show their exported functions only, no lines",
		    "apt install libc6-dbg, and the -dbgsym packages of others");
	else
		add(r, "debug symbols", true, "some, in /usr/lib/debug", NULL);
}

/* Loads and unloads the BPF sampler itself, with the sampler of a plugin, or beside probes, or,
 * both NULL, for CPU time. 0, or -errno with the reason. *links: probes of a process are one link.
 */
static int try_bpf_sampler(struct fusee_instance *chooser, const struct probe_points *probes,
			   bool in_use, char **why, bool *links)
{
	const struct chooser_set choosers = {.at = {chooser}, .n = chooser ? 1 : 0};
	struct bpf_sampler_options o = {.table_bytes = 1u << 20,
					.chunks = 1,
					.choosers = &choosers,
					.probes = probes,
					.probes_beside = probes,
					.in_use = in_use};
	char *plugins = plugin_default_dir();
	struct bpf_sampler *b = NULL;
	struct plugin_set set = {0};
	int r = plugins ? plugin_set_open(plugins, &claims_host, NULL, &set) : -ENOMEM;

	if (!r)
		r = bpf_sampler_open(&b, &set, &o, why);
	*links = b && bpf_probes_have_links(b);
	bpf_sampler_close(b);
	plugin_set_close(&set);
	free(plugins);
	return r;
}

/* Releases of run times with which unwinders were tried. */
static void check_unwinders(struct report *r)
{
	char *plugins = plugin_default_dir(), *text;
	struct plugin_set set = {0};

	if (!plugins || plugin_set_open(plugins, &claims_host, NULL, &set))
		r->no_memory |= !plugins;
	for (uint32_t i = 0; i < set.n; i++) {
		const struct fusee_plugin *d = set.instances[i]->descriptor;
		const struct fusee_unwinder_ops *ops = d->ops;

		if (!FUSEE_HAS(ops, tested) || !ops->tested)
			continue;
		if (asprintf(&text, "tried with %s", ops->tested) < 0) {
			r->no_memory = true;
			continue;
		}
		add(r, d->name, true, text, NULL); /* plugins are never unloaded */
		free(text);
	}
	plugin_set_close(&set);
	free(plugins);
}

static void check_bpf(struct report *r)
{
	bool btf = !access("/sys/kernel/btf/vmlinux", R_OK), denied;
	char *why = NULL, *costs = NULL, line[128] = "", *end;
	bool links;
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	int bpf = try_bpf_sampler(NULL, NULL, false, &why, &links);

	if (f) {
		if (!fgets(line, sizeof(line), f))
			*line = 0;
		fclose(f);
	}
	denied = bpf == -EPERM || bpf == -EACCES;
	if (bpf && asprintf(&costs,
			    "each sample carries a copy of its stack, which user space unwinds; "
			    "deeper stacks are truncated (%s)",
			    why ? why : strerror(-bpf)) < 0)
		r->no_memory = true;
	add(r, "unwinding in BPF", !bpf, costs,
	    denied        ? "run fusee as root, or give it CAP_BPF and CAP_PERFMON"
	    : bpf && !btf ? "a kernel with CONFIG_DEBUG_INFO_BTF"
			  : NULL);
	free(costs);
	free(why);
	add(r, "BTF", btf, btf ? NULL : "no unwinding in BPF", NULL);
	end = strchr(line, '[');
	if (end && strncmp(end, "[none]", 6)) {
		end[strcspn(end, "]")] = 0;
		add(r, "lockdown", true, end + 1, NULL);
	}
}

/* Allocations, and other probes: those of a process are one link, or each is an event. */
static void check_probes(struct report *r)
{
	static const struct probe_points none;
	char *why = NULL, *costs = NULL;
	bool links, events = !access("/sys/bus/event_source/devices/uprobe/type", F_OK);
	int err = try_bpf_sampler(NULL, &none, false, &why, &links);

	if (!err && !links && !events)
		err = -EOPNOTSUPP;
	if (err && asprintf(&costs, "record -e alloc and sample.alloc do not work (%s)",
			    why                  ? why
			    : err == -EOPNOTSUPP ? "no uprobes: CONFIG_UPROBE_EVENTS"
						 : strerror(-err)) < 0)
		r->no_memory = true;
	add(r, "probes, allocations", !err,
	    err     ? costs
	    : links ? "those of a process are removed at once"
		    : "each is removed alone, some 30 ms (Linux 6.10 removes them at once)",
	    err == -EPERM || err == -EACCES
		    ? "run fusee as root, or give it CAP_BPF and CAP_PERFMON"
		    : NULL);
	free(costs);
	free(why);
}

/* Allocations that are followed until they are freed. */
static void check_in_use(struct report *r)
{
	static const struct probe_points none;
	char *why = NULL, *costs = NULL;
	bool links;
	int err = try_bpf_sampler(NULL, &none, true, &why, &links);

	if (err && asprintf(&costs, "record -e inuse and sample.inuse do not work (%s)",
			    why ? why : strerror(-err)) < 0)
		r->no_memory = true;
	add(r, "memory in use", !err, costs,
	    err == -EPERM || err == -EACCES
		    ? "run fusee as root, or give it CAP_BPF and CAP_PERFMON"
		    : NULL);
	free(costs);
	free(why);
}

static void check_sampler(struct report *r, const struct fusee_plugin *d)
{
	const struct chooser_options o = {.descriptor = d, .where = ""};
	const struct fusee_sampler_ops *ops = plugin_sampler_ops(d);
	struct fusee_instance *in = NULL;
	char *why = NULL, *costs = NULL, lacks[256] = "";
	int err = plugin_sampler_open(&o, &in, &why);
	bool links;

	if (!err)
		err = try_bpf_sampler(in, NULL, false, &why, &links);
	if (err && asprintf(&costs, "record -e %s does not work (%s)", d->name,
			    why ? why : strerror(-err)) < 0)
		r->no_memory = true;
	if (!err && ops->check && ops->check(in->ctx, lacks, sizeof(lacks)))
		add(r, d->name, true, "not exact", lacks);
	else
		add(r, d->name, !err, costs, NULL);
	instance_free(in);
	free(costs);
	free(why);
}

/* What is sampled by plugins. */
static void check_samplers(struct report *r)
{
	char *dir = plugin_default_dir();
	struct plugin_folder f;

	if (!dir || plugin_folder_open(dir, FUSEE_SAMPLER, &f)) {
		r->no_memory |= !dir;
		free(dir);
		return;
	}
	for (uint32_t i = 0; i < f.n; i++) {
		const struct plugin *p = plugin_folder_find(&f, FUSEE_SAMPLER,
							    plugin_name(f.plugins[i]));

		if (p)
			check_sampler(r, p->descriptor);
	}
	plugin_folder_close(&f);
	free(dir);
}

static void check_cgroups(struct report *r)
{
	bool v2 = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
	bool mixed = !access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK);

	add(r, "cgroups", v2 || mixed || !access("/sys/fs/cgroup/perf_event", F_OK),
	    v2      ? "version 2"
	    : mixed ? "versions 1 and 2"
		    : "version 1",
	    NULL);
}

static void check_memory(struct report *r, const struct probe_perf *perf)
{
	struct rlimit limit;
	char text[128], soft[32] = "unlimited";

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur != RLIM_INFINITY)
		snprintf(soft, sizeof(soft), "%llu kB", (unsigned long long)limit.rlim_cur / 1024);
	snprintf(text, sizeof(text), "%d kB a CPU (perf_event_mlock_kb) and %s (ulimit -l)",
		 perf->mlock_kb, soft);
	if (!perf->own)
		add(r, "sample buffers", !perf->ring, text, NULL);
}

/* Sum of the sizes of the files in a directory; 0 if it is none. */
static uint64_t directory_bytes(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	closedir(d);
	return sum;
}

/* Whether the directory is writable, or the first recording can create it. */
static bool can_keep(const char *path)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	while (access(parent, F_OK) && (slash = strrchr(parent, '/')) && slash != parent)
		*slash = 0;
	return !access(parent, W_OK);
}

static void check_cache(struct report *r)
{
	char *path = session_cache_dir(), text[PATH_MAX + 64], size[32];

	if (path && can_keep(path)) {
		snprintf(text, sizeof(text), "%s in %s", text_bytes(size, directory_bytes(path)),
			 path);
		add(r, "unwind table cache", true, text, NULL);
	} else {
		snprintf(text, sizeof(text),
			 "tables are built for each recording: %s is not writable",
			 path ? path : "~/.cache");
		add(r, "unwind table cache", false, text,
		    "set XDG_CACHE_HOME to a directory of yours");
	}
	free(path);
}

static void put_number(struct json *j, const char *name, int value)
{
	json_line(j, 1);
	if (value == PROBE_UNKNOWN)
		json_text(j, name, NULL);
	else
		json_int(j, name, value);
}

static void put_check(struct json *j, const struct check *c)
{
	json_open(json_line(j, 2), NULL);
	json_text(j, "name", c->name);
	json_flag(j, "works", c->works);
	json_text(j, "costs", c->costs);
	json_text(j, "get", c->get);
	json_end(j);
}

/* 0 or -errno. */
static int print_json(const struct report *r, const struct probe_perf *perf)
{
	struct buf b = {0};
	struct json j = {.out = &b, .spaced = true};
	int err;

	json_open(&j, NULL);
	json_text(&j, "version", FUSEE_VERSION);
	json_text(json_line(&j, 1), "kernel", r->kernel.release);
	json_text(json_line(&j, 1), "machine", r->kernel.machine);
	json_text(json_line(&j, 1), "privileges", r->privileges);
	json_flag(json_line(&j, 1), "seccomp", probe_seccomp());
	put_number(&j, "perf_event_paranoid", perf->paranoid);
	put_number(&j, "perf_event_mlock_kb", perf->mlock_kb);
	json_list(json_line(&j, 1), "checks");
	for (unsigned int i = 0; i < r->n; i++)
		put_check(&j, &r->checks[i]);
	json_end(json_line(&j, 1));
	json_text(json_line(&j, 1), "by_stops", r->no_perf);
	json_text(json_line(&j, 1), "stops", r->stop);
	json_end(&j);
	buf_str(&b, "\n");
	err = b.error ? b.error : buf_write(&b, STDOUT_FILENO);
	buf_fini(&b);
	return err;
}

static void print_text(const struct report *r, const struct probe_perf *perf)
{
	printf("%s %s %s, as %s\n", r->kernel.sysname, r->kernel.release, r->kernel.machine,
	       r->privileges);
	if (perf->paranoid != PROBE_UNKNOWN)
		printf("kernel.perf_event_paranoid is %d%s\n", perf->paranoid,
		       probe_seccomp() ? ", and a seccomp filter is on this process" : "");
	for (unsigned int i = 0; i < r->n; i++) {
		const struct check *c = &r->checks[i];

		printf("  %-22s  %s", c->name, c->works ? "works" : "no");
		if (c->costs)
			printf("%*s%s", c->works ? 2 : 5, "", c->costs);
		if (c->get)
			printf("\n%33s%s", "-> ", c->get);
		putchar('\n');
	}
	if (r->no_perf)
		printf("fusee samples by stopping threads only: %s\n", r->no_perf);
	else if (!r->stop)
		puts("Nothing here stops fusee.");
	else
		printf("fusee cannot sample: %s\n", r->stop);
}

static void report_fini(struct report *r)
{
	for (unsigned int i = 0; i < r->n; i++) {
		free(r->checks[i].costs);
		free(r->checks[i].get);
	}
	free(r->privileges);
	free(r->stop);
	free(r->no_perf);
}

struct doctor {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "print it for programs", CLI_TRUE,
	 .offset = offsetof(struct doctor, json)},
};

const struct cli_command doctor_command = {
	.name = "doctor",
	.does = "show what works on this machine, and how to get the rest",
	.usage = "fusee doctor [--json]\n"
		 "Tries what fusee needs of this machine and says what works, what each thing that "
		 "does\n"
		 "not work costs, and how to get it. Exits with 69 or 77 if nothing can be "
		 "sampled.\n",
	CLI_OPTIONS(options),
};

static void run_checks(struct report *r, struct probe_perf *perf)
{
	uname(&r->kernel);
	probe_perf(perf);
	r->privileges = privileges(r);
	check_own(r, perf);
	check_scope(r, perf);
	check_kernel_names(r);
	check_counters(r, perf);
	check_memory(r, perf);
	check_files(r);
	check_cache(r);
	check_cgroups(r);
	check_bpf(r);
	check_samplers(r);
	check_probes(r);
	check_in_use(r);
	check_unwinders(r);
}

int cmd_doctor(int argc, char **argv)
{
	struct report r = {0};
	struct probe_perf perf;
	struct doctor o = {0};
	int first, result = cli_parse(&doctor_command, &o, argc, argv, &first);

	if (result)
		return result < 0 ? 0 : result;
	if (first < argc)
		return cli_bad_usage(&doctor_command, "'%s' is no option", argv[first]);
	run_checks(&r, &perf);
	if (o.json && !r.no_memory)
		r.no_memory = print_json(&r, &perf) == -ENOMEM;
	if (r.no_memory)
		fputs("fusee: out of memory\n", stderr);
	else if (!o.json)
		print_text(&r, &perf);
	result = r.no_memory ? 1 : r.stop_code;
	report_fini(&r);
	return result;
}
