// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sampler.h"
#include "config/plan.h"

static const struct fusee_option cpu[] = {
	{.name = "hz",
	 .type = PLAN_NUMBER,
	 .offset = offsetof(struct plan, hz),
	 .def = "19",
	 .min = 100,
	 .max = 20000000,
	 .doc = "Samples per second and CPU of targets whose rate the policy does not set."},
	{.name = "sampler",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct plan, sampler),
	 .def = "auto",
	 .choices = sampler_choices,
	 .doc = "Where stacks are unwound: bpf (in the kernel), snapshot (in user space, from "
		"stack "
		"copies), or auto: bpf if the kernel supports it."},
	{.name = "stack",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct plan, limits.stack_bytes),
	 .def = "65528",
	 .min = 1024,
	 .max = 65528,
	 .doc = "Size of a stack copy for unwinding in user space; deeper stacks are truncated."},
	{.name = "rings",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct plan, limits.ring_bytes),
	 .def = "0",
	 .min = 0,
	 .max = INT64_C(16) << 30,
	 .doc = "Locked memory of the ring buffers of all CPUs; 0: 12MiB, or 32MiB where stacks "
		"are unwound in user space. At 99 Hz those of a CPU have 16KiB to 1.25MiB, and "
		"256KiB while little is sent; or 128KiB to 2MiB."},
	{.name = "kernel",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, kernel),
	 .def = "true",
	 .doc = "Kernel frames too, where permissions allow them."},
	{.name = "threads",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, threads),
	 .def = "false",
	 .doc = "Each sample carries its thread's id as label `tid`."},
	{.name = "inlines",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, inlines),
	 .def = "true",
	 .doc = "Inlined functions are frames of their own, if debug information describes them."},
};

/* A sample for each so many bytes, `of` struct plan. */
#define SAMPLED_BYTES(of)                                                                        \
	{                                                                                        \
		.name = "bytes", .type = FUSEE_SIZE, .offset = offsetof(struct plan, of),        \
		.def = "512KiB", .min = 1, .max = UINT32_MAX,                                    \
		.doc = "A sample for each so many bytes on average: an allocation of these and " \
		       "more is one for certain, smaller allocations are by chance. For all "    \
		       "targets.",                                                               \
	}

static const struct fusee_option alloc[] = {SAMPLED_BYTES(samplers.alloc_bytes)};
static const struct fusee_option inuse[] = {SAMPLED_BYTES(samplers.inuse_bytes)};

static const struct fusee_option probe[] = {
	{.name = "name",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct plan, samplers.given.name),
	 .def = "",
	 .doc = "The label `probe` of its samples; empty: the probe's text. Of one probe only."},
	{.name = "count",
	 .type = FUSEE_INT,
	 .offset = offsetof(struct plan, samplers.given.count),
	 .def = "1",
	 .min = 1,
	 .max = UINT32_MAX,
	 .doc = "One hit in so many is a sample, by chance."},
	{.name = "time",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct plan, samplers.given.time),
	 .def = "1ns",
	 .min = 1,
	 .max = UINT64_C(4000000000),
	 .doc = "Of uretprobe: a sample for each so much time in calls on average: a call of that "
		"length and more is one for certain, shorter calls are by chance."},
};

static const char *const names[] = {[NAMES_LOCAL] = "local", [NAMES_SERVER] = "server", NULL};

static const struct fusee_option metrics[] = {
	{.name = "listen",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct plan, listen),
	 .def = "127.0.0.1:9190",
	 .doc = "Address and port of /metrics, /healthz and /readyz, or unix:/path; without a "
		"metrics line nothing listens."},
	{.name = "hosts",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct plan, pulls.hosts),
	 .def = "",
	 .doc = "Names under which clients may request the pages, in addition to localhost, the "
		"machine's name and the address that they connect to; \"*\" is any. A request "
		"with another Host is refused: it may come from a page in a browser."},
	{.name = "pull",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, pulls.served),
	 .def = "false",
	 .doc = "Profiles for all clients that may connect: /debug/pprof/profile?seconds=30, with "
		"the names and labels of all that is profiled."},
	{.name = "pulls",
	 .type = FUSEE_INT,
	 .offset = offsetof(struct plan, pulls.max),
	 .def = "8",
	 .min = 1,
	 .max = 16,
	 .doc = "Profiles that clients may pull at once; further requests are answered 503."},
	{.name = "pull_names",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct plan, pulls.names),
	 .def = "local",
	 .choices = names,
	 .doc = "As 'names' of a sink, of profiles that are pulled."},
	{.name = "pull_omit",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct plan, pulls.omit),
	 .def = "",
	 .doc = "Labels that are removed from profiles that are pulled, and by which clients "
		"cannot select."},
};

static const struct fusee_option control[] = {
	{.name = "path",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct plan, control),
	 .doc = "Path of the socket of fusee ctl; without a control line /run/fusee/control for "
		"root."},
};

static const struct fusee_option budget[] = {
	{.name = "cpu",
	 .type = FUSEE_PERCENT,
	 .offset = offsetof(struct plan, limits.budget_cpu),
	 .min = 500,
	 .max = 100000000,
	 .doc = "What the agent, its workers and its BPF programs may use of one CPU, such as "
		"\"1%\": beyond it the rates of all targets are lowered, to a fiftieth at the "
		"lowest. Without a budget line there is no limit."},
};

static const struct fusee_option labels[] = {
	{.name = "service_name",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct plan, labels.service_name),
	 .def = "service_name,app_kubernetes_io_name,workload,unit,container,process",
	 .doc = "Which label's value becomes service_name: the first of these that a process has. "
		"service_name itself is what a discovery says, OpenTelemetry's name of the "
		"service first of all; without any of them it is that of process."},
	{.name = "kernel",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, labels.kernel),
	 .def = "false",
	 .doc = "Adds the label kernel: the release of the machine's kernel."},
	{.name = "executable",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, labels.executable),
	 .def = "false",
	 .doc = "Adds the label executable: the path of a process's program."},
	{.name = "build_id",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, labels.build_id),
	 .def = "false",
	 .doc = "Adds the label build_id: that of a profiled process's program, once its file was "
		"read."},
	{.name = "compiler",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, labels.compiler),
	 .def = "false",
	 .doc = "Adds the label compiler: name and version of the compiler of a profiled process's "
		"program, once its file was read."},
};

static const struct fusee_option symbols[] = {
	{.name = "debuginfod",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct plan, debuginfod),
	 .def = "",
	 .doc = "Debuginfod servers, such as https://debuginfod.debian.net: debug files of "
		"programs "
		"whose functions have no names are fetched in the background and kept in the "
		"cache. A server learns the build ids of these programs. Empty: nothing is "
		"requested."},
};

static const char *const pers[] = {[PER_WINDOW] = "window", [PER_TARGET] = "target", NULL};

static const struct fusee_option sink[] = {
	{.name = "every",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct core_settings, every),
	 .def = "60s",
	 .min = 1000000000,
	 .max = 86400000000000,
	 .doc = "Window: the time that one profile covers."},
	{.name = "queue",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct core_settings, queue),
	 .def = "64MiB",
	 .min = 65536,
	 .max = INT64_C(1) << 40,
	 .doc = "Maximum size of the profiles that wait for the sink; beyond it the oldest are "
		"dropped and counted."},
	{.name = "spool",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct core_settings, spool),
	 .def = "",
	 .doc = "Folder in which profiles wait on disk, also while no agent runs; each sink has "
		"one "
		"of its own in it, with its name. Empty: they wait in memory only."},
	{.name = "spool_size",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct core_settings, spool_size),
	 .def = "1GiB",
	 .min = 1 << 20,
	 .max = INT64_C(1) << 46,
	 .doc = "Maximum size of a sink's spool; beyond it the oldest profiles are dropped and "
		"counted."},
	{.name = "spool_age",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct core_settings, spool_age),
	 .def = "1d",
	 .min = 1000000000,
	 .max = INT64_C(366) * 86400000000000,
	 .doc = "Profiles that have waited in the spool for longer are dropped and counted."},
	{.name = "spool_sync",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct core_settings, spool_sync),
	 .def = "1s",
	 .min = 0,
	 .max = INT64_C(3600000000000),
	 .doc = "How long the disk may take to keep a profile when the power fails; 0s: each is "
		"synced at once. Profiles survive the end of the agent in any case."},
	{.name = "per",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct core_settings, per),
	 .def = "window",
	 .choices = pers,
	 .doc = "One profile for each window, or in each window one for each target."},
	{.name = "names",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct core_settings, names),
	 .def = "local",
	 .choices = names,
	 .doc = "server: functions of programs and libraries are build ids and addresses, for a "
		"server that symbolizes. What only this machine can name keeps its names: the "
		"kernel, code of interpreted languages, code made at run time, files without a "
		"build id."},
	{.name = "omit",
	 .type = FUSEE_LIST,
	 .offset = offsetof(struct core_settings, omit),
	 .def = "",
	 .doc = "Labels that are removed from this sink's profiles."},
	{.name = "relabel",
	 .type = PLAN_RULES,
	 .def = "",
	 .doc = "Rules that change the labels of this sink's profiles, or drop targets, after "
		"those of relabel { .. }."},
	{.name = "default",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct core_settings, by_default),
	 .def = "true",
	 .doc = "false: it receives only targets that the policy names it for in 'to', and what "
		"t:profile() of a callback sends to it."},
};

static const struct fusee_option unwinder[] = {
	{.name = "enabled",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct core_settings, enabled),
	 .def = "true",
	 .doc = "false: it is not used."},
};

static const struct fusee_option sampler[] = {
	{.name = "hz",
	 .type = PLAN_NUMBER,
	 .offset = offsetof(struct core_settings, hz),
	 .def = "19",
	 .min = 250,
	 .max = 20000000,
	 .doc = "Of a sampler whose values are times: a time of 1 s / hz and longer is a sample, "
		"of "
		"shorter times some are, by chance. For all targets."},
	{.name = "count",
	 .type = FUSEE_INT,
	 .offset = offsetof(struct core_settings, count),
	 .def = "0",
	 .min = 0,
	 .max = UINT32_MAX,
	 .doc = "Of any other sampler: a sample for each so many, on average; 0: as the sampler "
		"says."},
};

#define TABLE(a)                                             \
	{                                                    \
		(a), sizeof(a) / sizeof(*(a)), sizeof(*(a)), \
	}

const struct fusee_table plan_sink_options = TABLE(sink);
const struct fusee_table plan_unwinder_options = TABLE(unwinder);
const struct fusee_table plan_sampler_options = TABLE(sampler);

const struct fusee_table *plan_core_options(uint32_t kind)
{
	static const struct fusee_table none;

	return kind == FUSEE_SINK       ? &plan_sink_options
	       : kind == FUSEE_UNWINDER ? &plan_unwinder_options
	       : kind == FUSEE_SAMPLER  ? &plan_sampler_options
					: &none;
}

const struct fusee_option *plan_option(const struct fusee_plugin *d, const char *name)
{
	const struct fusee_option *o = options_find(&d->options, name);

	return o ? o : options_find(plan_core_options(d->kind), name);
}

const struct plan_settings plan_settings[SETTINGS_N] = {
	[SETTINGS_SAMPLE_CPU] = {"sample.cpu",
				 "What is measured: time on a CPU, by samples of the stack.",
				 TABLE(cpu)},
	[SETTINGS_SAMPLE_ALLOC] =
		{"sample.alloc",
		 "Bytes and objects that targets allocate, by stack, as profiles beside those of "
		 "CPU time: by probes at the allocators of the files that they map.",
		 TABLE(alloc)},
	[SETTINGS_SAMPLE_INUSE] =
		{"sample.inuse",
		 "What sample.alloc says, and of that what is in use when a window ends: allocated "
		 "and not freed. It is instead of sample.alloc, and needs Linux 6.13.",
		 TABLE(inuse)},
	[SETTINGS_SAMPLE_PROBE] =
		{"sample.probe",
		 "Hits of probes, of targets alone, each with profiles beside those of CPU time: "
		 "texts such as \"uprobe:/usr/bin/program:function\" are given without a name.",
		 TABLE(probe)},
	[SETTINGS_METRICS] = {"metrics", "The agent's own metrics, for Prometheus.",
			      TABLE(metrics)},
	[SETTINGS_CONTROL] = {"control", "The socket that fusee ctl connects to.", TABLE(control)},
	[SETTINGS_LABELS] = {"labels", "Labels that follow from others.", TABLE(labels)},
	[SETTINGS_SYMBOLS] =
		{"symbols",
		 "Where names of functions come from, in addition to the files of this machine.",
		 TABLE(symbols)},
	[SETTINGS_BUDGET] = {"budget", "What profiling may cost.", TABLE(budget)},
};

int settings_number(void *at, const struct fusee_option *o, const char *value, char **text)
{
	double d, min = (double)o->min / 1000, max = (double)o->max / 1000;
	char *end;

	d = strtod(value, &end);
	if (end == value || *end || !(d >= min && d <= max)) {
		if (asprintf(text, "option '%s' must be a number from %g to %g, got '%s'", o->name,
			     min, max, value) < 0)
			*text = NULL;
		return -EINVAL;
	}
	memcpy((char *)at + o->offset, &d, sizeof(d));
	return 0;
}
