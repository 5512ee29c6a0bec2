// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/config core/relabel
/* What each rule of relabeling does, and when that takes too long. */

#include "base/str.h"
#include "config/explain_relabel.h"
#include "base/buf.h"
#include "target/labelset.h"
#include "relabel/rules.h"
#include "test.h"

/* Both clocks go on by so much at each look. */
static int64_t monotonic_step, cpu_step;

int clock_gettime(clockid_t id, struct timespec *t)
{
	static int64_t looks;
	int64_t ns = ++looks * (id == CLOCK_THREAD_CPUTIME_ID ? cpu_step : monotonic_step);

	*t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	return 0;
}

static void add(struct relabel_rules *rules, char *target, char *replacement)
{
	struct relabel_rule_text text = {.action = "replace",
					 .separator = ";",
					 .regex = "(.*)",
					 .modulus = 0,
					 .target_label = target,
					 .replacement = replacement};
	char *wrong = NULL;

	CHECK_INT(relabel_rules_add(rules, &text, &wrong), 0);
}

/* Of a sink with two rules. */
static const char *explained(void)
{
	static char text[1000];
	struct fusee_label labels[] = {{.key = fusee_text("process"), .str = fusee_text("web")}};
	struct plan_instance sink = {.name = "sink.x", .relabel = relabel_rules_new("f.lua:1")};
	struct plan_instance *sinks[] = {&sink};
	struct plan plan = {.sinks = sinks, .nsinks = 1};
	struct buf b = {0};

	CHECK(sink.relabel);
	add(sink.relabel, "app", "shop");
	add(sink.relabel, "team", "tests");
	explain_relabel(&plan, labels, 1, &(struct json){.out = &b, .spaced = true});
	CHECK(!b.error && b.len < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", (int)b.len, b.p);
	buf_fini(&b);
	relabel_rules_free(sink.relabel);
	return text;
}

/* Time in which the thread does not run is not its own. */
TEST(a_busy_machine_does_not_make_it_late)
{
	monotonic_step = 1000000000;
	CHECK_STR(explained(), "\"relabel\": [{\"sink\": \"sink.x\", \"rules\": ["
			       "{\"rule\": \"f.lua:1, rule 1\", \"does\": \"app = shop\"}, "
			       "{\"rule\": \"f.lua:1, rule 2\", \"does\": \"team = tests\"}]}]");
}

TEST(what_takes_too_long_is_not_shown)
{
	cpu_step = 15000000;
	CHECK_STR(explained(), "\"relabel\": [{\"sink\": \"sink.x\", \"rules\": ["
			       "{\"rule\": \"f.lua:1, rule 1\", \"does\": \"app = shop\"}, "
			       "{\"rule\": \"f.lua:1, rule 2\", \"does\": \"is not shown, nor are "
			       "those behind it: that takes too long\"}]}]");
}
