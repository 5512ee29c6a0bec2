/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode write PPROF OTLP: writes one profile, of 100 targets with 50 stacks each, in both formats.
 * encode REPEATS: CPU time of encoding it: a line "NAME NANOSECONDS BYTES" for each format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fusee/helpers.h>

#include "../../plugins/sinks/otlp/encode.h"
#include "profile/builder.h"
#include "pprof/pprof.h"

#include "../lib/random.h"

#define TARGETS 100u
#define STACKS 50u
#define DEPTH 24u
#define FUNCTIONS 4000u
#define LABELS 6u

extern const struct fusee_plugin fusee_plugin;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "encode: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

/* ---- the profile ---- */

static uint32_t locations[FUNCTIONS];

static void add_locations(struct builder *b)
{
	char name[96];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct fusee_function f = {.start_line = i};
		struct fusee_location l = {.address = 0x10000 + 64 * (uint64_t)i};
		struct fusee_line line = {.line = i + 1};

		snprintf(name, sizeof(name),
			 "service::module_%u::Handler<Request>::process_%u(int)", i % 40, i);
		f.name = builder_cstr(b, name);
		snprintf(name, sizeof(name), "_ZN7service9module_%uE7process%u", i % 40, i);
		f.system_name = builder_cstr(b, name);
		snprintf(name, sizeof(name), "/usr/src/service/module_%u/handler.cc", i % 40);
		f.file = builder_cstr(b, name);
		line.function = builder_function(b, &f);
		locations[i] = builder_location(b, &l, &line, 1);
	}
}

/* Stacks of a target share their outer frames, as those of a program do. */
static void add_target(struct builder *b, uint32_t target)
{
	static const char *const keys[LABELS] = {"service_name", "process", "unit",
						 "namespace",    "pod",     "container"};
	struct fusee_label labels[LABELS];
	char values[LABELS][64];

	for (uint32_t i = 0; i < LABELS; i++) {
		snprintf(values[i], sizeof(values[i]), "%s-of-target-%u", keys[i], target);
		labels[i] = fusee_text_label(keys[i], values[i]);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t stack[DEPTH];
		int64_t value[2] = {1 + (int64_t)(random32() % 20), 0};

		for (uint32_t k = 0; k < DEPTH; k++)
			stack[k] = locations[(k > 6 ? target * 37 + k : random32()) % FUNCTIONS];
		value[1] = value[0] * 10101010;
		builder_sample(b, builder_stack(b, stack, DEPTH), labels, LABELS, 1000 + target,
			       1000 + target + i % 4, value);
	}
}

static const struct fusee_profile *make(struct builder **b)
{
	const struct fusee_profile *p = NULL;
	struct fusee_profile *head;

	check(builder_new(b), "builder");
	builder_type(*b, "samples", "count");
	builder_type(*b, "cpu", "nanoseconds");
	builder_resource(*b, "host", "bench");
	add_locations(*b);
	for (uint32_t i = 0; i < TARGETS; i++)
		add_target(*b, i);
	head = builder_profile(*b);
	head->period_type = builder_cstr(*b, "cpu");
	head->period_unit = builder_cstr(*b, "nanoseconds");
	head->period = 10101010;
	head->start_ns = 1795248900000000000ull;
	head->duration_ns = 60000000000ull;
	head->id[0] = 1;
	check(builder_finish(*b, &p), "builder");
	return p;
}

/* ---- encoding ---- */

enum { PPROF, PPROF_GZ, OTLP, FORMATS };
static const char *const names[FORMATS] = {"pprof", "pprof.gz", "otlp"};

/* Returns the bytes. to: where they go; NULL: nowhere. */
static size_t encode(const struct fusee_profile *p, int format, const char *to)
{
	struct buf b = {0};
	struct fusee_bytes w = {0};
	uint32_t n;
	size_t len;

	if (format == OTLP)
		check(encode_request(p, (struct fusee_table){0}, &w, &n), "otlp");
	else
		check(pprof_encode(p, format == PPROF_GZ, &b), "pprof");
	len = format == OTLP ? w.len : b.len;
	if (to) {
		FILE *f = fopen(to, "w");

		if (!f || fwrite(format == OTLP ? w.p : b.p, 1, len, f) != len || fclose(f))
			check(EIO, to);
	}
	buf_fini(&b);
	fusee_bytes_fini(&w);
	return len;
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct builder *b;
	const struct fusee_profile *p = make(&b);
	int repeats = argc > 1 ? atoi(argv[1]) : 0;

	if (argc == 4 && !strcmp(argv[1], "write")) {
		encode(p, PPROF, argv[2]);
		encode(p, OTLP, argv[3]);
	} else if (repeats > 0) {
		for (int format = 0; format < FORMATS; format++) {
			size_t n = encode(p, format, NULL);
			double from = cpu();

			for (int i = 0; i < repeats; i++)
				encode(p, format, NULL);
			printf("%s %.0f %zu\n", names[format], (cpu() - from) / repeats, n);
		}
	} else {
		fprintf(stderr, "usage: encode write PPROF OTLP | encode REPEATS\n");
		return 2;
	}
	builder_free(b);
	return 0;
}
