/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/report
/* The noise of a difference, by simulation: two draws of one program, and a program that changed.
 */
#include "test.h"

#include <math.h>

#include "profile/builder.h"
#include "report/change.h"

#define FUNCTIONS 200
#define RUNS 60

/* A program whose functions have shares as 1, 1/2, 1/3 ..; each process of it has a weight. */
struct program {
	double shares[FUNCTIONS];
	uint32_t weights[FUNCTIONS]; /* a sample of this function represents so many periods */
};

static uint64_t state = 88172645463325252ull;

/* xorshift64*: above 0, below 1. */
static double random_share(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((double)((state * 2685821657736338717ull) >> 11) + 0.5) / 9007199254740992.0;
}

static void make(struct program *p, bool weighted)
{
	double sum = 0;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		p->shares[i] = 1.0 / (i + 1) / sum;
		p->weights[i] = weighted ? 1u << i % 4 : 1;
	}
}

/* A function is sampled in proportion to its time divided by the weight of its samples. */
static const struct fusee_profile *draw(struct builder **b, const struct program *p, uint32_t n)
{
	uint32_t location[FUNCTIONS];
	double sum = 0, upto[FUNCTIONS];
	const struct fusee_profile *ret;

	CHECK_INT(builder_new(b), 0);
	builder_type(*b, "samples", "count");
	builder_type(*b, "cpu", "nanoseconds");
	builder_profile(*b)->default_type = 1;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct fusee_location l = {.address = i + 1};
		struct fusee_function f = {0};
		struct fusee_line line;
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		f.name = builder_cstr(*b, name);
		line = (struct fusee_line){.function = builder_function(*b, &f)};
		location[i] = builder_location(*b, &l, &line, 1);
		sum += p->shares[i] / p->weights[i];
		upto[i] = sum;
	}
	for (uint32_t k = 0; k < n; k++) {
		double at = random_share() * sum;
		uint32_t i = 0;
		int64_t values[2];

		while (i + 1 < FUNCTIONS && upto[i] < at)
			i++;
		values[0] = 1;
		values[1] = (int64_t)p->weights[i] * 10000000;
		builder_sample(*b, builder_stack(*b, &location[i], 1), NULL, 0, 0, 0, values);
	}
	CHECK_INT(builder_finish(*b, &ret), 0);
	return ret;
}

/* How often a function's change is more than noise, among those that a draw has. */
static double flagged(const struct program *p, const struct program *base, uint32_t n,
		      uint32_t nbase, int only)
{
	uint32_t all = 0, found = 0;

	for (uint32_t run = 0; run < RUNS; run++) {
		struct builder *b, *c;
		struct render_options o = {0};
		struct render_model m;
		struct buf error = {0};
		const struct fusee_profile *now = draw(&b, p, n), *before = draw(&c, base, nbase);

		CHECK_INT(render_model_make(&m, now, before, &o, &error), 0);
		for (uint32_t i = 0; i < m.nfunctions; i++) {
			if (only >= 0 && atoi(m.functions[i].name.p + 1) != only)
				continue;
			all++;
			found += !render_is_noise(&m, &m.functions[i]);
		}
		render_model_free(&m);
		builder_free(b);
		builder_free(c);
	}
	return all ? (double)found / all : 0;
}

/* In how many of 200 comparisons a function's change is more than noise. */
static uint32_t alarms(const struct program *p, uint32_t n, uint32_t nbase)
{
	uint32_t found = 0;

	for (uint32_t run = 0; run < 200; run++) {
		struct builder *b, *c;
		struct render_options o = {0};
		struct render_model m;
		struct buf error = {0};
		const struct fusee_profile *now = draw(&b, p, n), *before = draw(&c, p, nbase);
		uint32_t changed = 0;

		CHECK_INT(render_model_make(&m, now, before, &o, &error), 0);
		for (uint32_t i = 0; i < m.nfunctions; i++)
			changed += !render_is_noise(&m, &m.functions[i]);
		found += changed > 0;
		render_model_free(&m);
		builder_free(b);
		builder_free(c);
	}
	printf("# %u and %u samples: %u of 200 comparisons\n", n, nbase, found);
	return found;
}

/* 1 in 20 at most. */
TEST(equal_programs_are_noise)
{
	struct program p;

	for (int weighted = 0; weighted < 2; weighted++) {
		make(&p, weighted);
		CHECK(alarms(&p, 5000, 5000) <= 10);
		CHECK(alarms(&p, 10000, 1000) <= 10);
		CHECK(alarms(&p, 1000, 10000) <= 10);
		CHECK(alarms(&p, 300, 300) <= 10);
		CHECK(alarms(&p, 100, 5000) <= 10);
	}
}

/* f0 has 17 % of the time. 10 % more of it in 40,000 samples is 6 standard deviations. */
TEST(a_real_change_is_found)
{
	struct program p, more;

	for (int weighted = 0; weighted < 2; weighted++) {
		make(&p, weighted);
		more = p;
		more.shares[0] *= 1.1;
		CHECK(flagged(&more, &p, 40000, 40000, 0) > 0.95);
		CHECK(flagged(&more, &p, 300, 300, 0) < 0.2); /* it cannot be seen in so few */
	}
}

static double z(int64_t a, int64_t total, int64_t b, int64_t base_total)
{
	struct render_part x = {a, total, (double)a, (double)total},
			   y = {b, base_total, (double)b, (double)base_total};

	return render_z(&x, &y);
}

/* Figures of the two-proportion test with Yates's correction, as R's prop.test() gives them:
 * sqrt(X-squared). */
TEST(z_is_that_of_two_proportions)
{
	CHECK(fabs(z(30, 100, 15, 100) - 2.3706) < 0.001);
	CHECK(fabs(z(15, 100, 30, 100) + 2.3706) < 0.001);
	CHECK(fabs(z(500, 1000, 45, 100) - 0.8486) < 0.001);
	CHECK(z(0, 100, 0, 100) == 0);
	CHECK(z(100, 100, 50, 50) == 0);
	CHECK(z(1, 100, 0, 100) == 0);
	CHECK(z(10, 0, 5, 100) == 0);
	CHECK(z(8, 1000, 0, 1000) > 0);
}

/* The number of events behind a sample: another type's value, or its own by the period. */
TEST(events_of_a_sample)
{
	struct builder *b;
	struct render_count c;
	const struct fusee_profile *p;
	const int64_t heap[] = {4, 2097152};

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "inuse_objects", "count");
	builder_type(b, "inuse_space", "bytes");
	builder_profile(b)->period_type = builder_cstr(b, "space");
	builder_profile(b)->period_unit = builder_cstr(b, "bytes");
	builder_profile(b)->period = 524288;
	CHECK_INT(builder_finish(b, &p), 0);
	render_count_find(&c, p, 1);
	CHECK(render_noise_of(&c, heap) == 2097152.0 * 2097152.0 / 4);
	render_count_find(&c, p, 0);
	CHECK(render_noise_of(&c, heap) == 4.0 * 4.0 / 4);
	builder_free(b);
}

/* Equal stacks of two samplers are one sample, whose number of events is of both. */
TEST(events_of_a_sample_of_two_samplers)
{
	static const char *const types[] = {"samples",     "cpu",           "off_cpu",
					    "alloc_space", "alloc_objects", "inuse_space",
					    "calls"};
	const int64_t cpu[7] = {3, 30}, both[7] = {1000003, 30, 7000}, few[7] = {2, 30, 7000},
		      alloc[7] = {5, 0, 0, 10, 20, 30}, timed[7] = {5, 0, 9, 0, 0, 0, 5};
	const struct fusee_profile *p;
	struct render_count c;
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	for (uint32_t i = 0; i < 7; i++)
		builder_type(b, types[i], i ? "nanoseconds" : "count");
	builder_profile(b)->period_type = builder_cstr(b, "cpu");
	builder_profile(b)->period_unit = builder_cstr(b, "nanoseconds");
	builder_profile(b)->period = 10;
	CHECK_INT(builder_finish(b, &p), 0);
	render_count_find(&c, p, 1);
	CHECK(render_noise_of(&c, cpu) == 30.0 * 30 / 3);
	CHECK(render_noise_of(&c, both) == 30.0 * 30 / 3); /* 30 is 3 periods */
	CHECK(render_noise_of(&c, few) == 30.0 * 30 / 2);
	render_count_find(&c, p, 2); /* waits have other weights: one event, at the least */
	CHECK(render_noise_of(&c, both) == 7000.0 * 7000);
	CHECK(render_noise_of(&c, cpu) == 0);
	CHECK(render_noise_of(&c, timed) == 9.0 * 9 / 5); /* calls are of the same sampler */
	render_count_find(&c, p, 3);                      /* and these */
	CHECK(render_noise_of(&c, alloc) == 10.0 * 10 / 5);
	render_count_find(&c, p, 4);
	CHECK(render_noise_of(&c, alloc) == 20.0 * 20 / 5);
	builder_free(b);
}
