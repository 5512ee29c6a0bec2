// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/base
/* core/base/metrics: counters and gauges, from many threads, as Prometheus reads them. */
#include <math.h>

#include "base/buf.h"
#include "base/metrics.h"
#include "test.h"

static void check_text(const char *expected)
{
	struct buf b = {0};

	CHECK_INT(metrics_text(&b), 0);
	buf_add(&b, "", 1);
	CHECK_STR(b.p, expected);
	buf_fini(&b);
}

TEST(counters_and_gauges)
{
	check_text("");
	metric_add("samples_total", "samples taken", NULL, 40);
	metric_add("samples_total", "another sentence", NULL, 2);
	metric_set("queue_bytes", "bytes\nthat \\ wait", METRIC_LABELS("instance", "sink.http"),
		   1.5);
	metric_add("lost_total", NULL, METRIC_LABELS("reason", "b"), 1);
	metric_add("lost_total", NULL, METRIC_LABELS("reason", "a"), UINT64_MAX);
	metric_add("lost_total", NULL, NULL, 0);
	check_text("# TYPE fusee_lost_total counter\n"
		   "fusee_lost_total 0\n"
		   "fusee_lost_total{reason=\"a\"} 18446744073709551615\n"
		   "fusee_lost_total{reason=\"b\"} 1\n"
		   "# HELP fusee_queue_bytes bytes\\nthat \\\\ wait\n"
		   "# TYPE fusee_queue_bytes gauge\n"
		   "fusee_queue_bytes{instance=\"sink.http\"} 1.5\n"
		   "# HELP fusee_samples_total samples taken\n"
		   "# TYPE fusee_samples_total counter\n"
		   "fusee_samples_total 42\n");
	CHECK(metric_get("samples_total", NULL) == 42);
	CHECK(metric_get("samples_total", METRIC_LABELS("a", "b")) == 0);
	CHECK(metric_get("nothing", NULL) == 0);
	metrics_reset();
	check_text("");
	CHECK(metric_get("samples_total", NULL) == 0);
	metrics_reset();
}

TEST(numbers_as_prometheus_reads_them)
{
	metric_set("a", "", NULL, 0.1);
	metric_set("b", "", NULL, INFINITY);
	metric_set("c", "", NULL, -INFINITY);
	metric_set("d", "", NULL, NAN);
	metric_set("e", "", NULL, 1.0 / 3);
	metric_set("f_total", "", NULL, 12.25);
	metric_add("f_total", "", NULL, 2);
	check_text("# TYPE fusee_a gauge\nfusee_a 0.1\n"
		   "# TYPE fusee_b gauge\nfusee_b +Inf\n"
		   "# TYPE fusee_c gauge\nfusee_c -Inf\n"
		   "# TYPE fusee_d gauge\nfusee_d NaN\n"
		   "# TYPE fusee_e gauge\nfusee_e 0.33333333333333331\n"
		   "# TYPE fusee_f_total counter\nfusee_f_total 14.25\n");
	metrics_reset();
}

/* In whatever order labels come, they are one series; nothing that they hold breaks the page. */
TEST(labels)
{
	char longer[2000];

	metric_add("x_total", "", METRIC_LABELS("b", "2", "a", "1"), 1);
	metric_add("x_total", "", METRIC_LABELS("a", "1", "b", "2"), 1);
	metric_add("x_total", "", METRIC_LABELS("a", "q\"\\\n\xff", "1.b-c", ""), 1);
	metric_add("x_total", "", METRIC_LABELS("a", "first", "a", "second"), 1);
	metric_add("x_total", "", METRIC_LABELS("c.d", "1", "c-d", "2"), 1);
	metric_add("x_total", "", METRIC_LABELS("a", NULL, "odd"), 1);
	metric_add("x_total", "", METRIC_LABELS("d.e", "no plain name"), 1);
	metric_add("x_total", "", METRIC_LABELS("d", "no \"plain\" value"), 1);
	metric_add("x_total", "", METRIC_LABELS("d", "1.b-c /:_"), 1);
	check_text("# TYPE fusee_x_total counter\n"
		   "fusee_x_total{__b_c=\"\",a=\"q\\\"\\\\\\n\xef\xbf\xbd\"} 1\n"
		   "fusee_x_total{a=\"\"} 1\n"
		   "fusee_x_total{a=\"1\",b=\"2\"} 2\n"
		   "fusee_x_total{a=\"first\"} 1\n"
		   "fusee_x_total{c_d=\"2\"} 1\n"
		   "fusee_x_total{d=\"1.b-c /:_\"} 1\n"
		   "fusee_x_total{d=\"no \\\"plain\\\" value\"} 1\n"
		   "fusee_x_total{d_e=\"no plain name\"} 1\n");
	metrics_reset();
	/* truncated, and not within a character */
	memset(longer, 'x', sizeof(longer));
	memcpy(longer + 510, "\xe2\x82\xac", 3);
	longer[sizeof(longer) - 1] = '\0';
	metric_add("y z", "", METRIC_LABELS("a", longer), 1);
	longer[510] = '\0';
	CHECK(metric_get("y_z", METRIC_LABELS("a", longer)) == 1);
	metrics_reset();
}

TEST(series_of_a_name_are_bounded)
{
	char value[32];
	struct buf b = {0};
	size_t lines = 0;

	for (int i = 0; i < METRICS_MAX_SERIES + 100; i++) {
		snprintf(value, sizeof(value), "%d", i);
		metric_add("x_total", "", METRIC_LABELS("i", value), 1);
	}
	CHECK(metric_get("x_total", METRIC_LABELS("i", "4095")) == 1);
	CHECK(metric_get("x_total", METRIC_LABELS("i", "4096")) == 0);
	CHECK(metric_get("x_total", METRIC_LABELS("overflow", "true")) == 100);
	metric_add("x_total", "", METRIC_LABELS("i", "7"), 1); /* those that are there go on */
	CHECK(metric_get("x_total", METRIC_LABELS("i", "7")) == 2);
	CHECK_INT(metrics_text(&b), 0);
	for (size_t i = 0; i < b.len; i++)
		lines += b.p[i] == '\n';
	CHECK_INT(lines, METRICS_MAX_SERIES + 2);
	buf_fini(&b);
	/* names too */
	for (int i = 0; i < 3000; i++) {
		snprintf(value, sizeof(value), "n%d", i);
		metric_add(value, "", NULL, 1);
	}
	CHECK(metric_get("n0", NULL) == 1);
	CHECK(metric_get("n2999", NULL) == 0);
	metrics_reset();
}

TEST(forget)
{
	metric_add("x_total", "", METRIC_LABELS("instance", "a", "z", "1"), 1);
	metric_add("x_total", "", METRIC_LABELS("b", "1", "instance", "a"), 1);
	metric_add("x_total", "", METRIC_LABELS("instance", "ab"), 1);
	metric_add("x_total", "", METRIC_LABELS("other_instance", "a"), 1);
	metric_add("x_total", "", METRIC_LABELS("other", ",instance=\"a\""), 1);
	metric_add("y_total", "", METRIC_LABELS("instance", "a"), 1);
	metric_forget("instance", "a");
	check_text("# TYPE fusee_x_total counter\n"
		   "fusee_x_total{instance=\"ab\"} 1\n"
		   "fusee_x_total{other=\",instance=\\\"a\\\"\"} 1\n"
		   "fusee_x_total{other_instance=\"a\"} 1\n");
	/* there is room again, and it begins anew */
	metric_add("y_total", "", METRIC_LABELS("instance", "a"), 5);
	CHECK(metric_get("y_total", METRIC_LABELS("instance", "a")) == 5);
	metric_forget("instance", "nobody");
	metrics_reset();
}

static void *adder(void *arg)
{
	char value[32];

	for (int i = 0; i < 2000; i++) {
		snprintf(value, sizeof(value), "%d", i % 50);
		metric_add("x_total", "", METRIC_LABELS("i", value), 1);
		metric_set("g", "", NULL, i);
		if (i % 500 == 0) {
			struct buf b = {0};

			if (metrics_text(&b))
				*(bool *)arg = true;
			buf_fini(&b);
			metric_forget("nobody", "here");
		}
	}
	return NULL;
}

TEST(many_threads)
{
	pthread_t t[4];
	bool failed[4] = {false};
	double sum = 0;

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, adder, &failed[i]));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(t[i], NULL));
		CHECK(!failed[i]);
	}
	for (int i = 0; i < 50; i++) {
		char value[32];

		snprintf(value, sizeof(value), "%d", i);
		sum += metric_get("x_total", METRIC_LABELS("i", value));
	}
	CHECK(sum == 8000);
	metrics_reset();
}
