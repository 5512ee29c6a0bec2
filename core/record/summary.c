/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "bpf/inuse.h"
#include "bpf/probes.h"
#include "probes/parse.h"
#include "bpf/waits.h"
#include "record/internal/choosers.h"
#include "record/internal/hints.h"
#include "record/session_event.h"
#include "record/summary.h"
#include "report/report.h"
#include "profiler/build_profile.h"
#include "stop/rights.h"

#define LEAST_UNRETURNED 1000u       /* one in so many is without a warning */
#define LEAST_UNSAMPLED_NS 50000000u /* less has no line */

static uint32_t terminal_width(void)
{
	struct winsize w;

	return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

/* ", 12 truncated (9 too deep, 3 no memory)" */
static void print_stage(const struct loss_account *a, enum loss_stage stage, uint64_t n)
{
	struct buf reasons = {0};
	char number[32];

	if (!n)
		return;
	loss_account_list(a, stage, &reasons);
	fprintf(stderr, ", %s %s (%.*s)", text_number(number, n), loss_stage_text(stage),
		(int)reasons.len, reasons.p);
	buf_fini(&reasons);
}

/* What hits are counted in. */
static const char *unit_of(const struct session *s)
{
	const struct probe_kind *probes = session_probes(&s->o);

	return session_is_alloc(&s->o) ? "bytes allocated"
	       : probes                ? probes->amount
				       : s->o.event.name;
}

/* The sum of what each sampler has chosen. */
static void print_chosen(const struct session *s, const struct session_account *a)
{
	char n[32];

	for (uint32_t i = 0; i < s->o.choosers.n; i++) {
		const struct fusee_sampler_ops *ops = session_chooser_ops(&s->o.choosers, i);
		uint64_t value = a->stats.chosen[i];

		if (ops->flags & FUSEE_SAMPLER_TIME)
			fprintf(stderr, "%.1f s %s, ", (double)value / 1e9, ops->amount);
		else
			fprintf(stderr, "%s %s, ", text_number(n, value), ops->amount);
	}
}

static void print_totals(const struct session *s, const struct session_account *a)
{
	const struct loss_account *l = &a->losses;
	char n[32];

	fprintf(stderr, "  %.1f s, ", (double)(s->end_ns - s->start_ns) / 1e9);
	if (!*s->o.event.name)
		fprintf(stderr, "%.1f s of CPU, ", (double)a->stats.weight_ns / 1e9);
	else if (session_is_timed(&s->o))
		fprintf(stderr, "%.3f s %s, ", (double)a->stats.weight_ns / 1e9, unit_of(s));
	else if (!s->o.event.chosen)
		fprintf(stderr, "%s %s, ", text_number(n, a->stats.weight_ns), unit_of(s));
	print_chosen(s, a);
	fprintf(stderr, "%s samples", text_number(n, l->due));
	if (l->due && l->complete == l->due)
		fprintf(stderr, ", all complete");
	else if (l->due)
		fprintf(stderr, "%s: %s complete", l->lost ? " due" : "",
			text_number(n, l->complete));
	print_stage(l, LOSS_STACK, l->truncated);
	print_stage(l, LOSS_TICK, l->lost);
	if (a->stats.guessed)
		fprintf(stderr, "; %s with a guessed frame", text_number(n, a->stats.guessed));
	fputs("\n\n", stderr);
}

/* What of it was in use at the end. */
static void print_in_use(const struct session *s)
{
	const struct in_use_totals *t = &s->in_use.totals;
	char bytes[32], objects[32];

	if (!s->o.event.in_use)
		return;
	if (t->objects || t->bytes)
		fprintf(stderr,
			"  In use at the end: %s bytes, %s objects, of what was allocated "
			"meanwhile.\n\n",
			text_number(bytes, t->bytes), text_number(objects, t->objects));
	else
		fprintf(stderr,
			"  Nothing was in use at the end, of what was allocated meanwhile%s.\n\n",
			s->command.argv && !s->command.running
				? ": a process that has ended has no memory (-d ends a recording "
				  "before)"
				: "");
	if (t->lost.unfollowed)
		log_warning("%u samples are not among what is in use: more than %u allocations "
			    "were followed at once; a higher -c follows fewer",
			    t->lost.unfollowed, INUSE_LIVE);
	if (t->lost.unreturned > t->objects / LEAST_UNRETURNED)
		log_warning("%u samples are missing: of an allocator whose operator new calls no "
			    "malloc, memory of new is not sampled (-e alloc samples it)",
			    t->lost.unreturned);
}

/* Why a target that ran has few samples or none. */
static void print_unsampled(const struct session *s, const struct session_account *a)
{
	uint64_t unfinished = a->losses.counts[LOSS_UNFINISHED].n;
	double used = (double)a->counts.count_ns, period = (double)a->period_ns;

	if (!used && !a->losses.due)
		fputs("  Nothing was sampled: the target did not run on a CPU.\n\n", stderr);
	else if (unfinished * a->period_ns > LEAST_UNSAMPLED_NS && unfinished > a->losses.due / 20)
		fprintf(stderr,
			"  %.1f s of %.1f s of CPU time have no sample: threads ran for less than "
			"a "
			"period of %.1f ms.\n  %s\n\n",
			(double)unfinished * period / 1e9, used / 1e9, period / 1e6,
			s->o.selection.all || s->profiler.tree
				? "A higher -F samples more of them."
				: "A higher -F samples more of them; where unwinding in BPF works "
				  "(fusee doctor), they are sampled by chance.");
	else if (a->losses.due == a->losses.lost)
		fprintf(stderr,
			"  Nothing was sampled: the target ran on a CPU for %.1f ms, and a period "
			"is %.1f ms.\n\n",
			used / 1e6, period / 1e6);
}

/* title: NULL: none. */
static void print_table(const struct session *s, const struct fusee_profile *p, render_table render,
			const char *type, const char *title)
{
	struct render_options o = {.rows = 10,
				   .type = type,
				   .width = terminal_width(),
				   .native = s->o.native,
				   .color = isatty(STDERR_FILENO) && !getenv("NO_COLOR")};
	struct buf b = {0};
	size_t begin;

	if (title)
		buf_printf(&b, "  %s:\n\n", title);
	begin = b.len;
	if (!render(p, &o, &b) && !b.error && b.len > begin)
		buf_write(&b, STDERR_FILENO);
	buf_fini(&b);
}

static void print_hottest(const struct session *s, const struct fusee_profile *p)
{
	const struct session_choosers *c = &s->o.choosers;
	bool beside = session_is_beside(&s->o);

	if (beside || c->n < 2)
		print_table(s, p, session_table(beside || !c->n ? NULL : session_chooser_ops(c, 0)),
			    NULL, beside ? "On a CPU" : NULL);
	for (uint32_t i = 0; i < c->n && (beside || c->n > 1); i++) {
		const struct fusee_sampler_ops *ops = session_chooser_ops(c, i);
		char title[128];

		snprintf(title, sizeof(title), "%s", ops->amount);
		title[0] = (char)toupper((unsigned char)title[0]);
		if (beside || i)
			fputc('\n', stderr);
		print_table(s, p, session_table(ops), ops->type, title);
	}
}

/* Prints the files at which workers failed: their stacks are truncated, or they have no symbols. */
static void print_refused(void *arg, const char *name, const char *text, bool partly)
{
	(void)arg;
	fprintf(stderr, "  %s%s: %s.\n", name, partly ? "" : " was not read", text);
}

/* The kernel hands the selection on at each fork, as long as it has room for the child. */
static void print_unfollowed(const struct session *s)
{
	struct bpf_sampler_stats stats;

	if (!s->profiler.bpf)
		return;
	bpf_sampler_stats(s->profiler.bpf, &stats);
	if (stats.unfollowed)
		log_warning("%u processes that the target started were not sampled: too many run "
			    "at once; -a samples all",
			    stats.unfollowed);
}

struct unknown_files {
	struct buf names;
	uint32_t n;
};

static void put_unknown(void *arg, const char *path, const char *why)
{
	struct unknown_files *u = arg;

	buf_printf(&u->names, "%s%s (%s)", u->n++ ? ", " : "", path, why);
}

static void print_unknown(const struct allocators *a)
{
	struct unknown_files u = {.n = 0};
	uint32_t n = allocators_unknown(a, put_unknown, &u);

	if (n)
		log_warning("whether these have an allocator is not known, and none was probed "
			    "there: %.*s%s; %u files in sum",
			    (int)u.names.len, u.names.len ? u.names.p : "", n > u.n ? ", .." : "",
			    n);
	buf_fini(&u.names);
}

/* Processes whose allocations are not in the profile. */
static void print_unprobed(const struct session *s)
{
	struct allocator_counts c;

	if (!s->allocators)
		return;
	c = allocators_counts(s->allocators);
	if (c.unprobed)
		log_warning("%u allocators of processes were not probed%s: %s", c.unprobed,
			    c.err == -E2BIG ? ", or later" : "", allocators_explain(c.err));
	print_unknown(s->allocators);
}

static void skip_name(void *arg, const char *path, const char *why)
{
	(void)arg;
	(void)path;
	(void)why;
}

/* Why no allocator has probes. */
static void print_none_probed(const struct session *s)
{
	struct allocator_counts c = allocators_counts(s->allocators);
	bool unknown = allocators_unknown(s->allocators, skip_name, NULL);

	fprintf(stderr, "  Nothing was sampled: %s.\n\n",
		c.unprobed ? "the target's allocators were not probed"
		: unknown  ? "no allocator was found in the files of the target that were read"
			   : "no allocator was found in the target");
}

/* Hits and timed calls that are not in the profile. */
static void print_uncounted(const struct session *s)
{
	uint64_t counts[PROBE_RESULT_COUNT], deep, open;
	char n[32];

	if (!s->o.event.probes || !s->profiler.bpf)
		return;
	bpf_probes_counts(s->profiler.bpf, counts);
	if (counts[PROBE_UNREAD])
		log_warning("%s hits have an argument whose memory was not there, and do not "
			    "count",
			    text_number(n, counts[PROBE_UNREAD]));
	if (!session_is_timed(&s->o))
		return;
	deep = counts[PROBE_TOO_DEEP];
	open = counts[PROBE_BEGUN] - deep;
	open -= counts[PROBE_ENDED] < open ? counts[PROBE_ENDED] : open;
	if (open)
		log_warning("%s calls had not returned, or never will", text_number(n, open));
	if (deep)
		log_warning("%s calls have no time: their thread had 64 others that are probed",
			    text_number(n, deep));
	if (counts[PROBE_UNKNOWN_BEGIN])
		log_warning("%s returns have no time: their begin was not seen",
			    text_number(n, counts[PROBE_UNKNOWN_BEGIN]));
}

static void print_no_hits(const struct session *s)
{
	uint64_t counts[PROBE_RESULT_COUNT];

	bpf_probes_counts(s->profiler.bpf, counts);
	if (s->allocators && !allocators_counts(s->allocators).processes)
		print_none_probed(s);
	else if (s->allocators)
		fprintf(stderr,
			"  Nothing was sampled: %llu calls requested %llu bytes, and a sample is "
			"for "
			"each %llu, by chance.\n\n",
			(unsigned long long)counts[PROBE_HITS],
			(unsigned long long)counts[PROBE_VALUE],
			(unsigned long long)session_period(s));
	else if (counts[PROBE_HITS])
		fprintf(stderr,
			"  Nothing was sampled: of %llu hits one in %llu is, by chance.\n\n",
			(unsigned long long)counts[PROBE_HITS],
			(unsigned long long)session_period(s));
	else if (counts[PROBE_FILTERED])
		fprintf(stderr, "  Nothing was sampled: the filter excludes all of %llu hits.\n\n",
			(unsigned long long)counts[PROBE_FILTERED]);
	else
		fputs("  Nothing was sampled: the target did not come to a probe.\n\n", stderr);
}

/* Threads of which a sampler keeps something, and that have no place in the kernel's map. */
static void print_unkept(const struct session *s)
{
	uint64_t counts[WAIT_RESULT_COUNT];

	for (uint32_t i = 0; s->profiler.bpf && i < s->profiler.choosers.n; i++) {
		bpf_waits_counts(s->profiler.bpf, i, counts);
		if (counts[WAIT_UNFOLLOWED])
			log_warning("%llu events of %s were not seen: more than %u threads have "
				    "some at once",
				    (unsigned long long)counts[WAIT_UNFOLLOWED],
				    s->profiler.choosers.at[i]->descriptor->name, WAIT_THREADS);
	}
}

/* Prints how long the stop sampler has stopped the target. */
static void print_stops(const struct session *s, const struct session_account *a)
{
	const struct stop_counts *c = &a->stop;
	double time = (double)(c->cpu_ns + c->waited_ns);
	char n[32], why[256];

	if (c->refused) {
		stop_refusal(c->refused, c->refused_tracer, why, sizeof(why));
		log_warning("%s", why);
	}
	if (!s->profiler.stop || !c->stops)
		return;
	fprintf(stderr,
		"\n  Threads were stopped %s times for their samples, %.2f ms each, %.1f ms at "
		"most: %.2f %% of the time in which they ran or waited for a CPU.\n",
		text_number(n, c->stops), (double)c->stopped_ns / (double)c->stops / 1e6,
		(double)c->longest_ns / 1e6, time > 0 ? 100 * (double)c->stopped_ns / time : 0);
	if ((double)c->samples * 1e9 < 0.9 * s->o.hz * (double)c->cpu_ns)
		fprintf(stderr,
			"  The rate was %.0f Hz in place of %g: stops take 1 %% at most, and what "
			"waited for a CPU is not sampled.\n",
			(double)c->samples * 1e9 / (double)c->cpu_ns, s->o.hz);
}

void summary_print(struct session *s, const struct fusee_profile *p, double symbolizing_s)
{
	struct session_account a;

	session_account(s, &a);
	log_debug("symbols took %.3f s; %u files, %u refused; %llu steps by libunwind",
		  symbolizing_s, a.stats.files, a.stats.refused,
		  (unsigned long long)a.stats.helped);
	fputc('\n', stderr);
	print_totals(s, &a);
	print_in_use(s);
	if (s->o.event.chosen && !a.losses.due)
		fprintf(stderr, "  Nothing was sampled: %s has seen nothing of the target.\n\n",
			s->o.event.name);
	else if (s->o.event.probes && !a.losses.due)
		print_no_hits(s);
	else if (*s->o.event.name && !a.losses.due)
		fprintf(stderr,
			"  Nothing was sampled: %llu %s, and a sample is for each %llu.\n\n",
			(unsigned long long)a.counts.count_ns, s->o.event.name,
			(unsigned long long)a.period_ns);
	else if (!s->o.selection.all && !*s->o.event.name)
		print_unsampled(s, &a);
	print_hottest(s, p);
	print_stops(s, &a);
	hints_print(s, &a, p);
	worker_refused(s->profiler.worker, print_refused, NULL);
	print_unfollowed(s);
	print_uncounted(s);
	print_unkept(s);
	print_unprobed(s);
	if (a.counts.throttled)
		log_warning("the kernel stopped sampling %llu times: it took too long "
			    "(kernel.perf_cpu_time_max_percent);"
			    " a lower -F helps",
			    (unsigned long long)a.counts.throttled);
	fputc('\n', stderr);
}

void summary_losses(struct session *s, struct builder *b)
{
	const struct build_options o = session_build_options(s);
	const struct build_lost lost = build_lost_weights(&s->profiler, &o);
	struct session_account a;

	session_account(s, &a);
	build_losses(b, &a.losses, &lost);
	if (a.stats.guessed)
		builder_comment(b, "guessed: %llu samples have a frame that was guessed",
				(unsigned long long)a.stats.guessed);
}

/* What the BPF sampler did with ticks. */
static void stats_bpf(struct session *s, const struct session_account *a, struct json *j)
{
	struct bpf_sampler_stats stats;

	if (!s->profiler.bpf)
		return;
	bpf_sampler_stats(s->profiler.bpf, &stats);
	json_open(j, "bpf");
	json_uint(j, "delivered", a->stats.walked);
	json_uint(j, "table_bytes", stats.table_bytes);
	json_uint(j, "table_cap", stats.table_cap);
	json_uint(j, "pages_loaded", stats.pages.loaded);
	json_uint(j, "pages_reloaded", stats.pages.reloaded);
	json_uint(j, "pages_evicted", stats.pages.evicted);
	json_uint(j, "pages_refused", stats.pages.refused);
	json_uint(j, "pages_remembered", stats.pages.remembered);
	json_uint(j, "processes", stats.chunks);
	json_uint(j, "unfollowed", stats.unfollowed);
	json_uint(j, "verified", stats.instructions);
	json_uint(j, "machine_code", stats.machine_code);
	for (uint32_t i = 0; i < TICK_RESULT_COUNT; i++)
		json_uint(j, tick_result_texts[i], stats.ticks[i]);
	json_end(j);
}

/* What samplers' programs saw, that which is no sample included. */
static void stats_chosen(const struct session *s, const struct session_account *a, struct json *j)
{
	uint64_t counts[WAIT_RESULT_COUNT];

	if (!s->profiler.choosers.n || !s->profiler.bpf)
		return;
	json_open(j, "samplers");
	for (uint32_t i = 0; i < s->profiler.choosers.n; i++) {
		bpf_waits_counts(s->profiler.bpf, i, counts);
		json_open(j, s->profiler.choosers.at[i]->descriptor->name);
		json_uint(j, "period", s->profiler.wait_periods.at[i]);
		json_uint(j, "weight", a->stats.chosen[i]);
		for (uint32_t k = 0; k < WAIT_RESULT_COUNT; k++)
			json_uint(j, wait_result_texts[k], counts[k]);
		json_end(j);
	}
	json_end(j);
}

/* What the BPF sampler saw at probes, hits that are no samples included. */
static void stats_hits(const struct session *s, struct json *j)
{
	uint64_t counts[PROBE_RESULT_COUNT];

	if (!s->o.event.probes || !s->profiler.bpf)
		return;
	bpf_probes_counts(s->profiler.bpf, counts);
	json_open(j, "probes");
	for (uint32_t i = 0; i < PROBE_RESULT_COUNT; i++)
		json_uint(j, probe_result_texts[i], counts[i]);
	json_end(j);
}

static void stats_in_use(const struct session *s, struct json *j)
{
	const struct in_use_totals *t = &s->in_use.totals;

	if (!s->o.event.in_use)
		return;
	json_open(j, "in_use");
	json_uint(j, "bytes", t->bytes);
	json_uint(j, "objects", t->objects);
	json_uint(j, "unfollowed", t->lost.unfollowed);
	json_uint(j, "unreturned", t->lost.unreturned);
	json_end(j);
}

/* What the sampler that stops threads did. */
static void stats_stop(const struct session *s, const struct stop_counts *c, struct json *j)
{
	if (!s->profiler.stop)
		return;
	json_open(j, "stop");
	json_uint(j, "samples", c->samples);
	json_uint(j, "stops", c->stops);
	json_uint(j, "stopped_ns", c->stopped_ns);
	json_uint(j, "longest_ns", c->longest_ns);
	json_uint(j, "cpu_ns", c->cpu_ns);
	json_uint(j, "waited_ns", c->waited_ns);
	json_uint(j, "held_back", c->held_back);
	json_uint(j, "late", c->late);
	json_uint(j, "processes", c->processes);
	json_end(j);
}

/* What is kept of the samples until the profile is written. */
static void stats_kept(const struct session *s, struct json *j)
{
	const struct collector *c = pipeline_collector(s->profiler.pipeline, 0);

	if (!c)
		return;
	json_open(j, "kept");
	json_uint(j, "stacks", c->stacks.n - 1);
	json_uint(j, "frames", c->frames.n - 1);
	json_uint(j, "bytes", collector_bytes());
	json_end(j);
}

int summary_stats(struct session *s, struct buf *b)
{
	struct json j = {.out = b, .spaced = true};
	struct session_account a;

	session_account(s, &a);
	json_open(&j, NULL);
	json_text(&j, "event", *s->o.event.name ? s->o.event.name : "cpu");
	json_uint(&j, "period_ns", a.period_ns);
	json_uint(&j, "duration_ns", s->end_ns - s->start_ns);
	json_uint(&j, "samples_due", a.losses.due);
	json_uint(&j, "samples", a.losses.due - a.losses.lost);
	json_uint(&j, "complete", a.losses.complete);
	loss_account_json(&a.losses, LOSS_STACK, "truncated", &j);
	loss_account_json(&a.losses, LOSS_TICK, "lost", &j);
	json_uint(&j, "guessed", a.stats.guessed);
	json_uint(&j, "count_ns", a.counts.count_ns);
	json_uint(&j, "weight_ns", a.stats.weight_ns);
	json_flag(&j, "kernel", profiler_kernel(&s->profiler));
	json_flag(&j, "gaps", a.counts.gaps);
	json_uint(&j, "helped", a.stats.helped);
	stats_bpf(s, &a, &j);
	stats_chosen(s, &a, &j);
	stats_hits(s, &j);
	stats_in_use(s, &j);
	stats_stop(s, &a.stop, &j);
	stats_kept(s, &j);
	json_end(&j);
	buf_str(b, "\n");
	return b->error;
}
