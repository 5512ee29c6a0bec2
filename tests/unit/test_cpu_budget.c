// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/agent core/policy
/* core/agent/cpu_budget: the law by which the share of samples follows what the agent uses. */
#include "test.h"

#include "agent/internal/cpu_budget.h"
#include "policy/rates.h"

#define STEP ((uint64_t)CPU_BUDGET_STEP_NS)

/* An agent whose use has a part that does not depend on samples. */
struct plant {
	struct cpu_budget b;
	uint64_t now;
	double used_s, fixed, by_samples; /* CPUs, the latter with all samples */
	uint32_t changes;
};

static void begin(struct plant *p, double limit, double fixed, double by_samples)
{
	*p = (struct plant){.now = STEP, .fixed = fixed, .by_samples = by_samples};
	cpu_budget_begin(&p->b, limit);
	CHECK(!cpu_budget_step(&p->b, p->now, p->used_s));
}

/* Steps in which `more` CPUs are used beside. */
static void run(struct plant *p, uint32_t steps, double more)
{
	while (steps--) {
		uint32_t before = p->b.share;

		p->now += STEP;
		p->used_s += (p->fixed + more + p->by_samples * cpu_budget_share(&p->b)) *
			     (double)STEP / 1e9;
		CHECK_INT(cpu_budget_step(&p->b, p->now, p->used_s), p->b.share != before);
		p->changes += p->b.share != before;
		CHECK(p->b.share >= CPU_BUDGET_FLOOR && p->b.share <= RATES_ALL);
		CHECK(p->b.share <= 2 * before);
	}
}

static double use(const struct plant *p)
{
	return p->fixed + p->by_samples * cpu_budget_share(&p->b);
}

TEST(below_the_limit_all_samples_are_kept)
{
	struct plant p;

	begin(&p, 0.01, 0.001, 0.0089);
	run(&p, 40, 0);
	CHECK_INT(p.b.share, RATES_ALL);
	CHECK_INT(p.changes, 0);
	CHECK(cpu_budget_used(&p.b) > 0.0098 && cpu_budget_used(&p.b) < 0.01);
}

TEST(the_share_falls_until_the_use_fits_and_stays)
{
	static const double fixed[] = {0, 0.0002, 0.0005, 0.001};
	struct plant p;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		begin(&p, 0.002, fixed[i], 0.01);
		run(&p, 60, 0);
		CHECK(use(&p) < 0.002);
		CHECK(use(&p) > 0.002 * 0.6);
		p.changes = 0;
		run(&p, 60, 0);
		CHECK_INT(p.changes, 0);
	}
}

TEST(it_never_falls_below_the_floor)
{
	struct plant p;

	begin(&p, 0.001, 0.002, 0.01);
	run(&p, 60, 0);
	CHECK_INT(p.b.share, CPU_BUDGET_FLOOR);
	CHECK(cpu_budget_share(&p.b) > 0.019);
}

TEST(it_rises_again_after_a_burst)
{
	struct plant p;

	begin(&p, 0.01, 0.001, 0.004);
	run(&p, 1, 0.5);
	CHECK_INT(p.b.share, CPU_BUDGET_FLOOR);
	run(&p, 2 * CPU_BUDGET_STEPS, 0); /* the fixed part counts too much at first */
	CHECK_INT(p.b.share, RATES_ALL);
}

TEST(use_near_the_limit_changes_nothing)
{
	struct plant p;

	begin(&p, 0.01, 0, 0.0095);
	for (int i = 0; i < 60; i++)
		run(&p, 1, i % 2 ? 0.0004 : -0.0004);
	CHECK_INT(p.changes, 0);
}

TEST(a_process_that_ended_does_not_make_the_use_negative)
{
	struct plant p;

	begin(&p, 0.01, 0, 0.001);
	run(&p, 3, 0);
	p.used_s -= 1;
	CHECK(!cpu_budget_step(&p.b, p.now += STEP, p.used_s));
	CHECK(cpu_budget_used(&p.b) >= 0);
	CHECK_INT(p.b.share, RATES_ALL);
}

TEST(a_step_takes_its_time)
{
	struct plant p;

	begin(&p, 0.01, 0, 0);
	CHECK(!cpu_budget_step(&p.b, p.now + STEP - 1, 100));
	CHECK_INT(p.b.n, 0);
	CHECK(cpu_budget_step(&p.b, p.now + STEP, 100));
	CHECK_INT(p.b.n, 1);
}
