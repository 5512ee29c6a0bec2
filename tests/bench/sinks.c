/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sinks PLUGINS SINK PPROF WINDOWS: delivers the profile of a file so many times by a sink
 * ("http:url=http://..") as the agent does, each as a window of its own, one after the other.
 * Prints a line "CPU-NANOSECONDS" for each, of all threads but this, which only waits, and "peak
 * BYTES": how much the process grew at most.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "config/flags.h"
#include "delivery/delivery.h"
#include "pprof/pprof.h"

#define SECOND 1000000000ull
#define MOST_WINDOWS 200u
#define POLL_NS 1000000
#define WAIT_NS (60 * SECOND)

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "sinks: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

/* ---- what is measured ---- */

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_of_others(void)
{
	return clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Bytes of a line of /proc/self/status. */
static uint64_t memory(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long long kilobytes = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%llu", &kilobytes);
	if (f)
		fclose(f);
	return kilobytes << 10;
}

/* VmHWM begins at what is in memory now. */
static void reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (!f || fputs("5", f) < 0 || fclose(f))
		check(EIO, "/proc/self/clear_refs");
}

/* ---- the sink ---- */

static struct delivery *open_sink(const char *folder, const char *spec)
{
	static struct plugin_folder plugins;
	static struct fusee_host host;
	static struct plan *plan;
	const struct plan_flags flags = {.sinks = &spec, .nsinks = 1};
	struct plan_errors errors = {0};
	struct instance_options o = {0};
	struct fusee_instance *instance;
	struct delivery *d;
	char *text = NULL;
	int r;

	check(plugin_folder_open(folder, 0, &plugins), folder);
	r = plan_from_flags(&plan, &flags, &plugins, &errors);
	check(r, errors.n ? errors.texts[0] : spec);
	host = plugin_host_base;
	host.size = sizeof(host);
	host.sink = &delivery_host;
	o.name = plan->sinks[0]->name;
	o.where = plan->sinks[0]->where;
	o.options = plan->sinks[0]->options;
	o.n = plan->sinks[0]->noptions;
	r = instance_new(&instance, plan->sinks[0]->descriptor, &host, &o, &text);
	check(r, text ? text : spec);
	check(delivery_new(&d, instance,
			   &(struct delivery_options){.queue_bytes = plan->sinks[0]->queue_bytes}),
	      spec);
	return d;
}

/* As the sink gets it: times and an id of its own. The builder is only what the queue frees. */
static void deliver(struct delivery *d, const struct fusee_profile *from, uint32_t i)
{
	struct fusee_profile p = *from;
	const struct fusee_profile *unused;
	uint64_t end = clock_of(CLOCK_MONOTONIC) + WAIT_NS;
	struct delivery_stats s;
	struct builder *b;

	/* servers refuse what is old */
	p.start_ns = clock_of(CLOCK_REALTIME) - (MOST_WINDOWS - i) * SECOND;
	memset(p.id, 0, sizeof(p.id));
	p.id[0] = (uint8_t)(i + 1);
	check(builder_new(&b), "builder");
	check(builder_finish(b, &unused), "builder");
	delivery_put(d, b, &p);
	do {
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
		delivery_stats(d, &s);
	} while (s.delivered <= i && !*s.last_error && clock_of(CLOCK_MONOTONIC) < end);
	if (s.delivered <= i)
		check(EIO, *s.last_error ? s.last_error : "not delivered");
}

static struct pprof_file *decode(const char *path)
{
	struct pprof_file *file;
	const char *text = "";
	struct buf b = {0};
	FILE *f = fopen(path, "r");
	char bytes[65536];
	size_t n;

	check(f ? 0 : errno, path);
	while ((n = fread(bytes, 1, sizeof(bytes), f)))
		buf_add(&b, bytes, n);
	fclose(f);
	check(b.error ? -ENOMEM : pprof_decode(b.p, b.len, &file, &text), path);
	buf_fini(&b);
	return file;
}

int main(int argc, char **argv)
{
	uint32_t windows = argc == 5 ? (uint32_t)atoi(argv[4]) : 0;
	struct pprof_file *file;
	struct delivery *d;
	uint64_t before;

	if (!windows || windows > MOST_WINDOWS) {
		fprintf(stderr, "usage: sinks PLUGINS SINK PPROF WINDOWS\n");
		return 2;
	}
	file = decode(argv[3]);
	d = open_sink(argv[1], argv[2]);
	reset_peak();
	before = memory("VmRSS:");
	for (uint32_t i = 0; i < windows; i++) {
		uint64_t from = cpu_of_others();

		deliver(d, pprof_profile(file), i);
		printf("%llu\n", (unsigned long long)(cpu_of_others() - from));
	}
	printf("peak %lld\n", (long long)(memory("VmHWM:") - before));
	delivery_free(d);
	pprof_free(file);
	return 0;
}
