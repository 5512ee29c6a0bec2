/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store NAME=VALUE.. FILE..: a machine's profiles for a day or so, made of recorded profiles, for
 * tests/bench/store. Each window is handed to a sink as the agent does it, and each service of a
 * window is written as a pprof file.
 *
 * sink=SPEC     as of fusee push; pprof=DIR  a folder for each service
 * begin=SECONDS since 1970; windows=N; every=SECONDS of a window; services=N
 * samples=N     on average a window, of all services
 * fresh=N       of 10,000 samples so many have a stack that no recording has: the leaf's side of
 * one recorded stack on the root's side of another, joined where both have the same call
 *
 * A service is one of the recordings with weights of its own. These change over the day, as does
 * its size. Prints what it did, as JSON; times are of the CPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "base/buf.h"
#include "view/push_sink.h"
#include "profile/builder.h"
#include "profile/merge.h"
#include "pprof/pprof.h"
#include "import/read.h"

#include "../lib/random.h"

#define HZ 19
#define PERIOD (1000000000 / HZ)
#define MAX_FILE (64u << 20)
#define MAX_SOURCES 32
#define MAX_DEPTH 1024
#define GROUPS 64 /* of stacks whose weights change together */
#define DAY 86400.0
#define TURN (2 * M_PI)

/* A recording, and what of it the builder of now has: index + 1 by location and stack. */
struct source {
	struct profile_file *file;
	const struct fusee_profile *p;
	uint32_t *first, *places; /* by location: where it is in stack_locations */
	uint32_t *owner;          /* by place in stack_locations: its stack */
	uint32_t *locations, *stacks;
};

struct service {
	struct source *source;
	double *weights, *sums; /* by sample of the recording */
	uint32_t *counts;       /* by sample and pod */
	uint32_t npods;
	double share, phase;
	char name[32];
};

static struct {
	const char *sink, *pprof;
	uint64_t begin, windows, every, services, samples, fresh;
} options = {.windows = 12, .every = 300, .services = 20, .samples = 1000, .fresh = 100};

static struct source sources[MAX_SOURCES];
static uint32_t nsources;
static struct {
	uint64_t samples, rows, pprof_bytes;
	double sink, pprof;
} done;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "store: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static void *space(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	check(p ? 0 : ENOMEM, "memory");
	return p;
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double fraction(void) /* 0 <= x < 1 */
{
	return random32() / 4294967296.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - fraction())) * cos(TURN * fraction());
}

/* ---- recordings ---- */

static const struct fusee_stack *stack_of(const struct source *s, uint32_t i)
{
	return FUSEE_AT(struct fusee_stack, s->p->stacks, i);
}

static uint32_t stack_at(const struct source *s, uint32_t sample)
{
	return FUSEE_AT(struct fusee_sample, s->p->samples, sample)->stack;
}

static uint32_t location_at(const struct source *s, uint32_t place)
{
	return *FUSEE_AT(uint32_t, s->p->stack_locations, place);
}

/* Where each location occurs. */
static void index_places(struct source *s)
{
	uint32_t n = s->p->stack_locations.n, *next;

	s->first = space(s->p->locations.n + 1, sizeof(*s->first));
	s->places = space(n, sizeof(*s->places));
	s->owner = space(n, sizeof(*s->owner));
	for (uint32_t i = 0; i < n; i++)
		s->first[location_at(s, i) + 1]++;
	for (uint32_t l = 0; l < s->p->locations.n; l++)
		s->first[l + 1] += s->first[l];
	next = space(s->p->locations.n, sizeof(*next));
	memcpy(next, s->first, s->p->locations.n * sizeof(*next));
	for (uint32_t i = 0; i < n; i++)
		s->places[next[location_at(s, i)]++] = i;
	free(next);
	for (uint32_t k = 0; k < s->p->stacks.n; k++)
		for (uint32_t i = 0; i < stack_of(s, k)->n; i++)
			s->owner[stack_of(s, k)->first + i] = k;
}

static void add_source(const char *path)
{
	struct source *s = &sources[nsources++];
	struct buf b = {0};
	const char *text = path;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	check(nsources < MAX_SOURCES ? 0 : E2BIG, path);
	check(fd < 0 ? errno : buf_read_fd(&b, fd, MAX_FILE), path);
	close(fd);
	check(profile_read(b.p, b.len, &s->file, &text), text);
	buf_fini(&b);
	s->p = profile_of(s->file);
	check(s->p->samples.n && s->p->types.n == 2 ? 0 : EINVAL, path);
	s->locations = space(s->p->locations.n, sizeof(*s->locations));
	s->stacks = space(s->p->stacks.n, sizeof(*s->stacks));
	index_places(s);
}

static uint32_t copy_string(struct builder *b, const struct source *s, uint32_t i)
{
	const struct fusee_str *t = FUSEE_AT(struct fusee_str, s->p->strings, i);

	return builder_string(b, t->p, t->len);
}

static uint32_t copy_function(struct builder *b, const struct source *s, uint32_t i)
{
	struct fusee_function f = *FUSEE_AT(struct fusee_function, s->p->functions, i);

	f.name = copy_string(b, s, f.name);
	f.system_name = copy_string(b, s, f.system_name);
	f.file = copy_string(b, s, f.file);
	return builder_function(b, &f);
}

static uint32_t copy_location(struct builder *b, struct source *s, uint32_t i)
{
	struct fusee_location l = *FUSEE_AT(struct fusee_location, s->p->locations, i);
	struct fusee_mapping m = *FUSEE_AT(struct fusee_mapping, s->p->mappings, l.mapping);
	struct fusee_line lines[64];
	uint32_t n = l.nlines < 64 ? l.nlines : 64;

	if (s->locations[i])
		return s->locations[i] - 1;
	for (uint32_t k = 0; k < n; k++) {
		lines[k] = *FUSEE_AT(struct fusee_line, s->p->lines, l.first_line + k);
		lines[k].function = copy_function(b, s, lines[k].function);
	}
	m.path = copy_string(b, s, m.path);
	m.build_id = copy_string(b, s, m.build_id);
	if (l.mapping)
		l.mapping = builder_mapping(b, &m);
	l.frame_type = copy_string(b, s, l.frame_type);
	l.language = copy_string(b, s, l.language);
	s->locations[i] = builder_location(b, &l, lines, n) + 1;
	return s->locations[i] - 1;
}

/* The builder gets the stack that begins with n places, and goes on with m others. */
static uint32_t copy_stack(struct builder *b, struct source *s, uint32_t at, uint32_t n,
			   uint32_t on, uint32_t m)
{
	uint32_t all[MAX_DEPTH], k = 0;

	for (uint32_t i = 0; i < n && k < MAX_DEPTH; i++)
		all[k++] = copy_location(b, s, location_at(s, at + i));
	for (uint32_t i = 0; i < m && k < MAX_DEPTH; i++)
		all[k++] = copy_location(b, s, location_at(s, on + i));
	return builder_stack(b, all, k);
}

static uint32_t recorded_stack(struct builder *b, struct source *s, uint32_t stack)
{
	const struct fusee_stack *k = stack_of(s, stack);

	if (!s->stacks[stack])
		s->stacks[stack] = copy_stack(b, s, k->first, k->n, 0, 0) + 1;
	return s->stacks[stack] - 1;
}

/* The stack with another leaf's side, that calls at the same place. */
static uint32_t fresh_stack(struct builder *b, struct source *s, uint32_t stack)
{
	const struct fusee_stack *k = stack_of(s, stack), *other;
	uint32_t at, l, place;

	if (!k->n)
		return recorded_stack(b, s, stack);
	at = k->first + random32() % k->n;
	l = location_at(s, at);
	place = s->places[s->first[l] + random32() % (s->first[l + 1] - s->first[l])];
	other = stack_of(s, s->owner[place]);
	return copy_stack(b, s, other->first, place - other->first, at, k->first + k->n - at);
}

/* ---- services ---- */

static void open_service(struct service *v, uint32_t i)
{
	const struct fusee_profile *p;

	v->source = &sources[i % nsources];
	p = v->source->p;
	v->npods = 1 + i % 4;
	v->share = pow(i + 1, -0.7);
	v->phase = fraction();
	v->weights = space(p->samples.n, sizeof(*v->weights));
	v->sums = space(p->samples.n, sizeof(*v->sums));
	v->counts = space((size_t)p->samples.n * v->npods, sizeof(*v->counts));
	snprintf(v->name, sizeof(v->name), "service-%u", i);
	for (uint32_t k = 0; k < p->samples.n; k++) /* count, by a factor of its own */
		v->weights[k] = (double)*FUSEE_AT(int64_t, p->values, k * p->types.n) *
				exp(normal());
}

/* Stacks with the same outer frames are a group. */
static uint32_t group_of(const struct source *s, uint32_t stack)
{
	const struct fusee_stack *k = stack_of(s, stack);
	uint32_t h = 2166136261u;

	for (uint32_t i = k->n > 6 ? k->n - 6 : 0; i < k->n; i++)
		h = (h ^ location_at(s, k->first + i)) * 16777619u;
	return h % GROUPS;
}

static void weigh(struct service *v, double day)
{
	const struct fusee_profile *p = v->source->p;
	double sum = 0;

	for (uint32_t k = 0; k < p->samples.n; k++) {
		uint32_t g = group_of(v->source, stack_at(v->source, k));

		sum += v->weights[k] *
		       exp(0.5 * sin(TURN * ((1 + g % 7) * day + g / 64.0 + v->phase)));
		v->sums[k] = sum;
	}
}

static uint32_t draw(const struct service *v)
{
	uint32_t lo = 0, hi = v->source->p->samples.n - 1;
	double at = fraction() * v->sums[hi];

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (v->sums[mid] > at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The label of a recorded sample; "" if it has none. */
static struct fusee_str recorded_label(const struct source *s, uint32_t sample, const char *key)
{
	const struct fusee_sample *k = FUSEE_AT(struct fusee_sample, s->p->samples, sample);

	for (uint32_t i = 0; i < k->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, s->p->labels,
						       k->first_label + i);

		if (l->key.len == strlen(key) && !memcmp(l->key.p, key, l->key.len) && l->str.p)
			return l->str;
	}
	return (struct fusee_str)FUSEE_TEXT("");
}

static void add(struct builder *b, const struct service *v, uint32_t stack, uint32_t sample,
		uint32_t pod, int64_t count)
{
	char name[64];
	struct fusee_label labels[] = {
		fusee_text_label("service_name", v->name),
		{.key = FUSEE_TEXT("process"), .str = recorded_label(v->source, sample, "process")},
		{.key = FUSEE_TEXT("thread"), .str = recorded_label(v->source, sample, "thread")},
		fusee_text_label("namespace", "production"),
		fusee_text_label("container", "main"),
		{.key = FUSEE_TEXT("pod")},
	};
	const int64_t values[] = {count, count * PERIOD};

	snprintf(name, sizeof(name), "%s-%08x-%u", v->name, 0x9e3779b9u * (pod + 1), pod);
	labels[5] = fusee_text_label("pod", name);
	builder_sample(b, stack, labels, sizeof(labels) / sizeof(*labels),
		       (uint32_t)strlen(name) * 1000 + pod, 0, values);
}

/* ---- windows ---- */

static struct builder *new_builder(struct source *s)
{
	struct builder *b;

	check(builder_new(&b), "builder");
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	builder_resource(b, "host", "bench-1");
	if (s) { /* of the builder before */
		memset(s->locations, 0, s->p->locations.n * sizeof(*s->locations));
		memset(s->stacks, 0, s->p->stacks.n * sizeof(*s->stacks));
	}
	return b;
}

static const struct fusee_profile *finish(struct builder *b, uint64_t window)
{
	const struct fusee_profile *p;
	struct fusee_profile *head = builder_profile(b);

	head->kind = builder_cstr(b, "cpu");
	head->default_type = 1;
	head->period_type = builder_cstr(b, "cpu");
	head->period_unit = builder_cstr(b, "nanoseconds");
	head->period = PERIOD;
	head->start_ns = (options.begin + window * options.every) * 1000000000ull;
	head->duration_ns = options.every * 1000000000ull;
	memcpy(head->id, &window, sizeof(window));
	head->id[15] = 1;
	check(builder_finish(b, &p), "profile");
	return p;
}

/* A service's samples of a window, drawn by weight. */
static void draw_samples(struct builder *b, struct service *v, uint64_t n)
{
	struct source *s = v->source;
	const struct fusee_profile *p = s->p;
	uint64_t fresh = n * options.fresh / 10000;

	memset(v->counts, 0, (size_t)p->samples.n * v->npods * sizeof(*v->counts));
	for (uint64_t i = fresh; i < n; i++)
		v->counts[draw(v) * v->npods + random32() % v->npods]++;
	for (uint32_t k = 0; k < p->samples.n; k++)
		for (uint32_t pod = 0; pod < v->npods; pod++)
			if (v->counts[k * v->npods + pod])
				add(b, v, recorded_stack(b, s, stack_at(s, k)), k, pod,
				    v->counts[k * v->npods + pod]);
	for (uint64_t i = 0; i < fresh; i++) {
		uint32_t k = draw(v);

		add(b, v, fresh_stack(b, s, stack_at(s, k)), k, random32() % v->npods, 1);
	}
	done.samples += n;
}

static void write_pprof(const struct fusee_profile *p, const struct service *v, uint64_t window)
{
	double from = cpu();
	struct buf out = {0};
	char path[4096];
	int fd;

	check(pprof_encode(p, true, &out), "pprof");
	done.pprof += cpu() - from;
	done.pprof_bytes += out.len;
	snprintf(path, sizeof(path), "%s/%s", options.pprof, v->name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/%05llu.pb.gz", options.pprof, v->name,
		 (unsigned long long)window);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	check(fd < 0 ? errno : buf_write(&out, fd), path);
	close(fd);
	buf_fini(&out);
}

static void make_service(struct builder *all, struct service *v, uint64_t window, double n)
{
	double day = (double)(window * options.every) / DAY;
	struct builder *b = new_builder(v->source);
	const struct fusee_profile *p;

	weigh(v, day);
	n *= v->share * (1 + 0.5 * sin(TURN * (day + v->phase))) * exp(0.1 * normal());
	draw_samples(b, v, (uint64_t)n + 1);
	p = finish(b, window);
	if (options.pprof)
		write_pprof(p, v, window);
	check(merge_add(all, p, NULL, NULL), "merge");
	builder_free(b);
}

static void make_window(struct push_sink *sink, struct service *services, uint64_t window)
{
	struct builder *b = new_builder(NULL);
	const struct fusee_profile *p;
	double from;
	char *error = NULL;
	int err;

	for (uint32_t i = 0; i < options.services; i++)
		make_service(b, &services[i], window, (double)options.samples);
	p = finish(b, window);
	done.rows += p->samples.n;
	from = cpu();
	err = push_sink_send(sink, p, 1, &error);
	check(err, error ? error : "sink");
	done.sink += cpu() - from;
	builder_free(b);
}

/* ---- the command ---- */

static void set_number(const char *text, const char *name, uint64_t *to)
{
	size_t n = strlen(name);

	if (!strncmp(text, name, n) && text[n] == '=')
		*to = strtoull(text + n + 1, NULL, 10);
}

static void set_option(const char *text)
{
	set_number(text, "begin", &options.begin);
	set_number(text, "windows", &options.windows);
	set_number(text, "every", &options.every);
	set_number(text, "services", &options.services);
	set_number(text, "samples", &options.samples);
	set_number(text, "fresh", &options.fresh);
	if (!strncmp(text, "sink=", 5))
		options.sink = text + 5;
	if (!strncmp(text, "pprof=", 6))
		options.pprof = text + 6;
}

static void open_services(struct service *services)
{
	double sum = 0;

	for (uint32_t i = 0; i < options.services; i++) {
		open_service(&services[i], i);
		sum += services[i].share;
	}
	for (uint32_t i = 0; i < options.services; i++)
		services[i].share /= sum;
}

int main(int argc, char **argv)
{
	struct push_sink *sink = NULL;
	struct service *services;

	for (int i = 1; i < argc; i++)
		if (strchr(argv[i], '=') && argv[i][0] != '/')
			set_option(argv[i]);
		else
			add_source(argv[i]);
	if (!options.sink || !nsources || !options.services) {
		fprintf(stderr, "usage: store sink=SPEC [NAME=VALUE].. FILE..\n");
		return 2;
	}
	check(push_sink_open(&sink, options.sink) ? EINVAL : 0, options.sink);
	services = space(options.services, sizeof(*services));
	open_services(services);
	for (uint64_t w = 0; w < options.windows; w++)
		make_window(sink, services, w);
	push_sink_close(sink);
	printf("{\"samples\": %llu, \"rows\": %llu, \"pprof_bytes\": %llu, \"sink_s\": %.3f, "
	       "\"pprof_s\": %.3f}\n",
	       (unsigned long long)done.samples, (unsigned long long)done.rows,
	       (unsigned long long)done.pprof_bytes, done.sink, done.pprof);
	return 0;
}
