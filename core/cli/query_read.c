/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal/query_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/saturate.h"
#include "base/text.h"

#define MAX_NAMED 10
#define PROGRESS_NS 500000000u /* before the first progress line, and between two lines */

struct reading {
	query_take *take;
	void *to;
	struct buf error;
	struct store_counts *counts;
	uint64_t shown_ns;
	uint32_t named;
};

static void clear_progress(void)
{
	fputs("\r\033[K", stderr);
}

static int on_window(void *arg, const struct fusee_profile *p, const char *name)
{
	struct reading *r = arg;

	return r->take(r->to, p, name, &r->error);
}

static void on_broken(void *arg, const char *name, const char *why)
{
	struct reading *r = arg;

	if (r->named < MAX_NAMED)
		log_warning("cannot read '%s': %s", name, why);
	else if (r->named == MAX_NAMED)
		log_warning("there are more files that cannot be read");
	r->named++;
}

/* Redraws a progress line on a terminal. */
static void on_progress(void *arg, uint64_t done, uint64_t all)
{
	struct reading *r = arg;
	uint64_t now = clock_now();
	char files[32], total[32], bytes[32];

	if (!isatty(STDERR_FILENO) || now - r->shown_ns < PROGRESS_NS)
		return;
	r->shown_ns = now;
	if (!all) {
		fprintf(stderr, "\r\033[K  %s files listed", text_number(files, done));
		fflush(stderr);
		return;
	}
	fprintf(stderr, "\r\033[K  %s of %s files, %s read", text_number(files, done),
		text_number(total, all),
		text_bytes(bytes, r->counts->fetched ? r->counts->fetched : r->counts->bytes));
	fflush(stderr);
}

int query_read(struct store *s, const struct store_request *request, query_take *take, void *to,
	       struct store_counts *counts)
{
	struct reading r = {.take = take, .to = to, .counts = counts, .shown_ns = clock_now()};
	const struct store_reader reader = {on_window, on_broken, on_progress, &r};
	const char *failure;
	int err;

	if (isatty(STDERR_FILENO))
		log_set_before(clear_progress);
	err = store_read(s, request, &reader, counts);
	failure = store_failure(s);
	if (isatty(STDERR_FILENO)) {
		clear_progress();
		log_set_before(NULL);
	}
	if (err && r.error.len)
		log_error("query: %.*s", (int)r.error.len, r.error.p);
	else if (err)
		log_error("query: %s%s", failure ? "" : "cannot read the windows: ",
			  failure ? failure : strerror(-err));
	buf_fini(&r.error);
	return failure && err ? EX_UNAVAILABLE : !err ? 0 : err == -EINVAL ? EX_DATAERR : EX_OSERR;
}

void query_log_counts(const struct store_counts *a, const struct store_counts *b,
		      const struct query_taken *t)
{
	uint64_t removed = a->removed + b->removed, broken = a->broken + b->broken;
	uint64_t fetched = a->fetched > b->fetched ? a->fetched : b->fetched;
	uint64_t requests = a->requests > b->requests ? a->requests : b->requests;
	char n[3][32];

	fprintf(stderr, "%s %s of %s windows; %s files skipped",
		text_number(n[0],
			    t->counts ? (uint64_t)t->samples : t->stacks + a->added + b->added),
		t->counts ? "samples" : "stacks", text_number(n[1], a->read + b->read),
		text_number(n[2], a->skipped + b->skipped));
	if (removed)
		fprintf(stderr, ", %s removed meanwhile", text_number(n[0], removed));
	if (broken)
		fprintf(stderr, ", %s that cannot be read", text_number(n[0], broken));
	if (requests) /* both sides use one store, which counts requests for both */
		fprintf(stderr, "; %s fetched by %s requests", text_bytes(n[0], fetched),
			text_number(n[1], requests));
	fputc('\n', stderr);
}

void query_log_moments(const char *type, uint64_t windows)
{
	if (windows > 1 && !strncmp(type, "inuse_", 6))
		log_warning("%s is what was in use at a moment, and %llu windows are added up: "
			    "--from and --to select one",
			    type, (unsigned long long)windows);
}

void query_log_merged(const struct store_counts *a, const struct store_counts *b,
		      const struct merged *now, const struct merged *before)
{
	const struct fusee_profile *p = builder_profile(now->builder);
	struct query_taken t = {now->stacks + before->stacks, now->samples,
				now->filter.counts && (!before->builder || before->filter.counts)};
	const struct fusee_value_type *type;
	struct fusee_str name;
	char text[16];

	saturate_add(&t.samples, before->samples);
	query_log_counts(a, b, &t);
	type = FUSEE_AT(struct fusee_value_type, p->types, now->filter.type);
	name = *FUSEE_AT(struct fusee_str, p->strings, type->type);
	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.p);
	query_log_moments(text, now->windows > before->windows ? now->windows : before->windows);
}
