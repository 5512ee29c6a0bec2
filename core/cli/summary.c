/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says at its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/package.h"
#include "cli/session.h"
#include "profile/render.h"

static uint32_t terminal_width(void)
{
	struct winsize w;

	return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

/* "reason n, reason n" of what is not zero, into b. */
static void list_losses(const struct session_account *a, struct buf *b)
{
	const struct pipeline_reason rest[] = {
		{"ring full", a->counts.ring_full},
		{"timer skipped", a->skipped},
		{"kernel not allowed", a->kernel},
	};
	char n[32];

	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		if (rest[i].n)
			buf_printf(b, "%s%s %s", b->len ? ", " : "", text_number(n, rest[i].n),
				   rest[i].text);
}

static void list_reasons(const struct pipeline_stats *st, struct buf *b)
{
	char n[32];

	for (uint32_t i = 0; i < st->nreasons; i++)
		if (st->reasons[i].n)
			buf_printf(b, "%s%s %s", b->len ? ", " : "",
				   text_number(n, st->reasons[i].n), st->reasons[i].text);
}

static void print_totals(const struct session *s, const struct session_account *a)
{
	uint64_t cut = a->stats.samples - a->stats.whole;
	uint64_t lost = a->ticks_due - a->stats.samples;
	struct buf reasons = {0}, losses = {0};
	char n[32], m[32];

	list_reasons(&a->stats, &reasons);
	list_losses(a, &losses);
	fprintf(stderr, "  %.1f s, %.1f s of CPU, %s samples",
		(double)(s->end_ns - s->start_ns) / 1e9, (double)a->stats.weight_ns / 1e9,
		text_number(n, lost ? a->ticks_due : a->stats.samples));
	if (!cut && !lost)
		fprintf(stderr, ", all whole");
	else
		fprintf(stderr, "%s: %s whole", lost ? " due" : "", text_number(n, a->stats.whole));
	if (cut)
		fprintf(stderr, ", %s cut (%.*s)", text_number(m, cut), (int)reasons.len,
			reasons.p);
	if (lost)
		fprintf(stderr, ", %s not taken (%.*s)", text_number(m, lost), (int)losses.len,
			losses.p);
	if (a->stats.guessed)
		fprintf(stderr, "; %s with a guessed frame", text_number(m, a->stats.guessed));
	if (a->stats.passed)
		fprintf(stderr, "; %s show an interpreter without the program that it runs",
			text_number(m, a->stats.passed));
	fputs("\n\n", stderr);
	buf_fini(&reasons);
	buf_fini(&losses);
}

static void print_hottest(const struct fusee_profile *p)
{
	struct render_options o = {.rows = 10,
				   .width = terminal_width(),
				   .color = isatty(STDERR_FILENO) && !getenv("NO_COLOR")};
	struct buf b = {0};

	if (!render_hottest(p, &o, &b) && !b.error)
		buf_write(&b, STDERR_FILENO);
	buf_fini(&b);
}

/* Only what matters: files with at least 2 % of the CPU time. */
static void print_poor(struct session *s, const struct session_account *a)
{
	struct poorly_symbolized_file poor[3];
	uint32_t n = build_find_poorly_symbolized(pipeline_collector(s->profiler.pipeline, 0),
						  s->profiler.pipeline, s->profiler.symbolizer,
						  poor, 3);

	for (uint32_t i = 0; i < n; i++) {
		const char *base = strrchr(poor[i].path, '/');
		char *package;

		if (poor[i].self_ns * 50 < a->stats.weight_ns)
			break;
		package = package_debug_symbols(poor[i].path);
		fprintf(stderr, "  %s has no symbols of its own: %s.%s%s\n",
			base ? base + 1 : poor[i].path,
			poor[i].quality & INSPECTION_DYNSYM ? "names are from its dynamic table"
							    : "functions are shown as +0xoffset",
			package ? " More: " : "", package ? package : "");
		free(package);
	}
}

/* Files that the worker died of. Their frames are cut or without names. */
static void print_refused(void *arg, const char *name, const char *text)
{
	(void)arg;
	fprintf(stderr, "  %s was not looked at: %s.\n", name, text);
}

static void print_files(const struct session *s)
{
	const char *openable = NULL;
	struct stat st;
	char size[32];

	for (uint32_t i = 0; i < s->o.noutputs; i++) {
		const char *path = s->o.outputs[i];
		size_t len = strlen(path);

		if (!strcmp(path, "-") || stat(path, &st))
			continue;
		fprintf(stderr, "%s%s (%s)", openable || i ? ", " : "  wrote ", path,
			text_bytes(size, (uint64_t)st.st_size));
		if (!openable && len > 6 && !strcmp(path + len - 6, ".pb.gz"))
			openable = path;
	}
	if (openable)
		fprintf(stderr, "      fusee report %s        go tool pprof -http=: %s", openable,
			openable);
	fputc('\n', stderr);
}

void summary_print(struct session *s, const struct fusee_profile *p, double naming_s)
{
	struct session_account a;

	session_account(s, &a);
	log_debug("names took %.3f s; %u files, %u refused; %llu steps by libunwind", naming_s,
		  a.stats.files, a.stats.refused, (unsigned long long)a.stats.helped);
	fputc('\n', stderr);
	print_totals(s, &a);
	print_hottest(p);
	print_poor(s, &a);
	worker_refused(s->profiler.worker, print_refused, NULL);
	if (a.counts.throttled)
		log_warning("the kernel stopped sampling %llu times: it took too long "
			    "(kernel.perf_cpu_time_max_percent);"
			    " a lower -F helps",
			    (unsigned long long)a.counts.throttled);
	fputc('\n', stderr);
	print_files(s);
}

void summary_losses(struct session *s, struct builder *b)
{
	struct session_account a;

	session_account(s, &a);
	for (uint32_t i = 0; i < a.stats.nreasons; i++)
		if (a.stats.reasons[i].n)
			builder_loss(b, a.stats.reasons[i].text, (int64_t)a.stats.reasons[i].n);
	if (a.counts.ring_full)
		builder_loss(b, "ring full", (int64_t)a.counts.ring_full);
	if (a.skipped)
		builder_loss(b, "timer skipped", (int64_t)a.skipped);
	if (a.kernel)
		builder_loss(b, "kernel not allowed", (int64_t)a.kernel);
	if (a.stats.guessed)
		builder_comment(b, "guessed: %llu samples have a frame that was guessed",
				(unsigned long long)a.stats.guessed);
	if (a.stats.passed)
		builder_comment(b,
				"passed: %llu samples show an interpreter without the program "
				"that it runs",
				(unsigned long long)a.stats.passed);
}

/* What the kernel's sampler did with ticks. */
static void stats_bpf(struct session *s, const struct session_account *a, FILE *f)
{
	struct bpf_sampler_stats b;

	if (!s->profiler.bpf)
		return;
	bpf_sampler_stats(s->profiler.bpf, &b);
	fprintf(f,
		", \"bpf\": {\"delivered\": %llu, \"table_bytes\": %llu, \"table_cap\": %llu, "
		"\"processes\": %u, \"verified\": %u, \"machine_code\": %u",
		(unsigned long long)a->stats.walked, (unsigned long long)b.table_bytes,
		(unsigned long long)b.table_cap, b.chunks, b.instructions, b.machine_code);
	for (uint32_t i = 0; i < TICK_RESULT_COUNT; i++)
		fprintf(f, ", \"%s\": %llu", tick_result_texts[i], (unsigned long long)b.ticks[i]);
	fputs("}", f);
}

int summary_stats(struct session *s, const char *path)
{
	struct session_account a;
	FILE *f = fopen(path, "we");
	int r = 0;

	if (!f)
		return -errno;
	session_account(s, &a);
	fprintf(f,
		"{\"period_ns\": %llu, \"duration_ns\": %llu, \"ticks_due\": %llu, \"samples\": "
		"%llu, "
		"\"whole\": %llu, \"guessed\": %llu, \"passed\": %llu, \"count_ns\": %llu, "
		"\"weight_ns\": %llu, "
		"\"kernel\": %s, \"gaps\": %s, \"helped\": %llu, \"lost\": {\"ring full\": %llu, "
		"\"timer skipped\": %llu, \"kernel not allowed\": %llu}, \"reasons\": {",
		(unsigned long long)a.period_ns, (unsigned long long)(s->end_ns - s->start_ns),
		(unsigned long long)a.ticks_due, (unsigned long long)a.stats.samples,
		(unsigned long long)a.stats.whole, (unsigned long long)a.stats.guessed,
		(unsigned long long)a.stats.passed, (unsigned long long)a.counts.count_ns,
		(unsigned long long)a.stats.weight_ns,
		perf_stream_kernel(s->profiler.stream) ? "true" : "false",
		a.counts.gaps ? "true" : "false", (unsigned long long)a.stats.helped,
		(unsigned long long)a.counts.ring_full, (unsigned long long)a.skipped,
		(unsigned long long)a.kernel);
	for (uint32_t i = 0, n = 0; i < a.stats.nreasons; i++)
		if (a.stats.reasons[i].n)
			fprintf(f, "%s\"%s\": %llu", n++ ? ", " : "", a.stats.reasons[i].text,
				(unsigned long long)a.stats.reasons[i].n);
	fputs("}", f);
	stats_bpf(s, &a, f);
	fputs("}\n", f);
	if (ferror(f))
		r = -EIO;
	if (fclose(f) && !r)
		r = -errno;
	return r;
}
