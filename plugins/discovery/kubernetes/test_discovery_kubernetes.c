/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/kubernetes
/* discovery kubernetes: what is read of the server's answers, and which targets follow.
 * tests/run/kubernetes has a server. */
#include "test.h"

#include "lib/discovery.h"
#include "parse.h"
#include "pods.h"

extern const struct fusee_plugin fusee_plugin;

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define C "2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define D "3123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "0a1b2c3d-1111-2222-3333-444455556666"

/* As an API server sends it, with fields that are not kept. */
static const char pod_json[] =
	"{\"metadata\":{\"name\":\"shop-7d4b9c-x2k1p\",\"generateName\":\"shop-7d4b9c-\","
	"\"namespace\":\"prod\",\"uid\":\"" UID "\",\"resourceVersion\":\"811\","
	"\"labels\":{\"app.kubernetes.io/name\":\"shop\",\"pod-template-hash\":\"7d4b9c\","
	"\"team\":\"bl\\u00fce\"},\"annotations\":{\"example.com/tier\":\"gold\",\"x\":\"y\"},"
	"\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"no\"},{\"apiVersion\":\"apps/v1\","
	"\"kind\":\"ReplicaSet\",\"name\":\"shop-7d4b9c\",\"uid\":\"u\",\"controller\":true}],"
	"\"managedFields\":[{\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\"f:name\":{}}}}}]},"
	"\"spec\":{\"nodeName\":\"n1\",\"initContainers\":[{\"name\":\"setup\",\"image\":\"i:1\"},"
	"{\"name\":\"proxy\",\"image\":\"p:2\",\"restartPolicy\":\"Always\"}],\"containers\":["
	"{\"name\":\"web\",\"image\":\"shop:3\",\"env\":[{\"name\":\"V\",\"value\":\"name\"}],"
	"\"ports\":[{\"name\":\"http\",\"containerPort\":80}]}],\"ephemeralContainers\":["
	"{\"name\":\"debug\",\"image\":\"box\"}],\"restartPolicy\":\"Always\"},"
	"\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":[{\"name\":\"setup\","
	"\"containerID\":\"containerd://" A "\"},{\"name\":\"proxy\",\"containerID\":"
	"\"containerd://" B "\"}],\"containerStatuses\":[{\"name\":\"web\",\"lastState\":{"
	"\"terminated\":{\"containerID\":\"containerd://dead\"}},\"containerID\":\"cri-o://" C
	"\"}],\"ephemeralContainerStatuses\":[{\"name\":\"debug\",\"containerID\":\"docker://" D
	"\"}]}}";

/* ---- what the parser reports ---- */

struct seen {
	uint32_t n;
	enum parse_event last;
	struct pod pod; /* of the last event; without its arrays */
	int answer;     /* what each() returns */
	struct pods *to;
};

static int each(void *arg, enum parse_event event, const struct pod *pod)
{
	struct seen *s = arg;

	s->n++;
	s->last = event;
	s->pod = *pod;
	if (s->to && (event == PARSE_ITEM || event == PARSE_PUT))
		return pods_put(s->to, pod, 1);
	if (s->to && event == PARSE_DELETE)
		pods_delete(s->to, pod->uid, 1);
	return s->answer;
}

static struct chosen chosen[2] = {{.key = "app.kubernetes.io/name"},
				  {.key = "example.com/tier", .annotation = true}};

/* The text in pieces of `step` bytes. */
static int feed(struct parser *p, const char *text, size_t step)
{
	int r = 0;

	for (size_t n = strlen(text), at = 0; !r && at < n; at += step)
		r = parser_feed(p, text + at, n - at < step ? n - at : step);
	return r;
}

static int parse(struct seen *s, struct answer *a, const char *text, size_t step)
{
	struct parser *p = parser_new(chosen, 2, each, s);
	int r;

	CHECK(p);
	CHECK_INT(parser_begin(p), 0);
	r = feed(p, text, step);
	if (!r)
		r = parser_end(p);
	if (a)
		*a = *parser_answer(p);
	parser_free(p);
	return r;
}

static char *list_of(const char *items)
{
	char *text;

	CHECK(asprintf(&text,
		       "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
		       "\"resourceVersion\":\"900\",\"continue\":\"to/ken=\"},\"items\":[%s]}\n",
		       items) > 0);
	return text;
}

TEST(a_list_in_pieces)
{
	char *text = list_of(pod_json);

	for (size_t step = 1; step < 200; step += step < 8 ? 1 : 61) {
		struct seen s = {0};
		struct answer a;

		CHECK_INT(parse(&s, &a, text, step), 0);
		CHECK_INT(s.n, 1);
		CHECK_INT(s.last, PARSE_ITEM);
		CHECK_STR(s.pod.name, "shop-7d4b9c-x2k1p");
		CHECK_STR(s.pod.uid, UID);
		CHECK_STR(s.pod.owner_kind, "ReplicaSet");
		CHECK_STR(a.version, "900");
		CHECK_STR(a.next, "to/ken=");
	}
	free(text);
}

TEST(events_of_a_watch)
{
	struct seen s = {0};
	struct answer a;
	char *text;

	CHECK(asprintf(&text, "{\"type\":\"ADDED\",\"object\":%s}\n", pod_json) > 0);
	CHECK_INT(parse(&s, NULL, text, 100), 0);
	CHECK_INT(s.last, PARSE_PUT);
	CHECK_STR(s.pod.version, "811");
	free(text);
	CHECK_INT(parse(&s, NULL,
			"{\"object\":{\"metadata\":{\"uid\":\"u\"}},\"type\":\"DELETED\"}", 100),
		  0);
	CHECK_INT(s.last, PARSE_DELETE);
	CHECK_STR(s.pod.uid, "u");
	CHECK_STR(s.pod.name, "");
	/* of an event without an object nothing is known */
	CHECK_INT(parse(&s, NULL,
			"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":\"u\"}}}"
			"{\"type\":\"DELETED\"}",
			100),
		  0);
	CHECK_STR(s.pod.uid, "");
	CHECK_INT(parse(&s, NULL,
			"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{"
			"\"resourceVersion\":\"77\"},\"spec\":{\"containers\":null}}}\n",
			100),
		  0);
	CHECK_INT(s.last, PARSE_BOOKMARK);
	CHECK_STR(s.pod.version, "77");
	CHECK_INT(parse(&s, &a,
			"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"too "
			"old\\n\",\"reason\":\"Expired\",\"code\":410}}",
			100),
		  0);
	CHECK_INT(s.last, PARSE_ERROR);
	CHECK_INT(a.code, 410);
	CHECK_STR(a.message, "too old?");
	s.n = 0;
	CHECK_INT(parse(&s, NULL, "{\"type\":\"LATER\",\"object\":{}}", 100), 0);
	CHECK_INT(s.n, 0);
	s.answer = -5;
	CHECK_INT(parse(&s, NULL, "{\"type\":\"DELETED\",\"object\":{}} {", 100), -5);
}

TEST(an_error)
{
	struct seen s = {0};
	struct answer a;

	CHECK_INT(
		parse(&s, &a,
		      "{\"kind\":\"Status\",\"metadata\":{},\"message\":\"slow down\",\"details\":{"
		      "\"retryAfterSeconds\":7},\"code\":429}",
		      3),
		0);
	CHECK_INT(s.n, 0);
	CHECK_INT(a.code, 429);
	CHECK_INT(a.retry_after, 7);
	CHECK_STR(a.message, "slow down");
}

TEST(json_that_means_harm)
{
	static const char *const wrong[] = {"",
					    "{",
					    "[",
					    "{\"items\":[{\"metadata\":",
					    "{\"items\":[{}]",
					    "{]",
					    "<html>",
					    "{\"items\":[{},}",
					    "{\"a\":01}",
					    "{\"a\":\"\\ud800\xff\"}",
					    "{\"a\" 1}",
					    "\xff"};
	static const char *const types[] = {
		"[]",
		"\"x\"",
		"7",
		"true",
		"null",
		"{\"items\":{\"a\":{\"metadata\":1}}}",
		"{\"items\":[1,\"2\",null,[],true]}",
		"{\"metadata\":[],\"items\":null}",
		"{\"type\":{},\"object\":[[{}]]}",
		"{\"type\":[\"ADDED\"],\"object\":7}",
		"{\"items\":[{\"metadata\":{\"uid\":7,\"name\":{},\"labels\":[\"team\"],"
		"\"ownerReferences\":{\"kind\":\"a\"}},\"spec\":{\"containers\":{\"name\":\"x\"},"
		"\"initContainers\":[7,[{}],\"x\"]},\"status\":{\"containerStatuses\":[{},"
		"{\"name\":null,\"containerID\":[]},{\"containerID\":\"://\"},{\"name\":\"c\","
		"\"containerID\":\"no-scheme\"}]}}]}",
		"{\"type\":\"ADDED\",\"object\":{\"object\":{\"metadata\":{\"uid\":\"in\"}}}}",
		"{\"code\":99999999999999999999999999,\"message\":\"\\u0000\\u001b[1m\"}"};
	struct seen s = {0};
	char *text;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(parse(&s, NULL, wrong[i], 2), -EBADMSG);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		CHECK_INT(parse(&s, NULL, types[i], 5), 0);
	text = many("{\"items\":[", "[", 100000, "");
	CHECK_INT(parse(&s, NULL, text, 4096), -EBADMSG);
	free(text);
	text = many("{\"items\":[{\"a\":", "{\"a\":", 100000, "");
	CHECK_INT(parse(&s, NULL, text, 4096), -EBADMSG);
	free(text);
	text = many("{\"items\":[{\"metadata\":{\"name\":\"", "0123456789", 1000000, "\"}}]}");
	CHECK_INT(parse(&s, NULL, text, 16384), -EBADMSG);
	free(text);
	/* long, but not too long: truncated */
	text = many("{\"items\":[{\"metadata\":{\"name\":\"", "0123456789", 1000, "\"}}]}");
	CHECK_INT(parse(&s, NULL, text, 16384), 0);
	CHECK_INT(strlen(s.pod.name), POD_NAME - 1);
	free(text);
}

TEST(more_containers_than_are_kept)
{
	struct seen s = {0};
	struct answer a;
	char *items = malloc(100 * (POD_CONTAINERS + 10)), *text, *to = items;

	CHECK(items);
	to += sprintf(to, "{\"spec\":{\"containers\":[{\"name\":\"x\"}");
	for (uint32_t i = 0; i < POD_CONTAINERS + 4; i++)
		to += sprintf(to, ",{\"name\":\"c%u\"}", i);
	strcpy(to, "]}}");
	text = list_of(items);
	CHECK_INT(parse(&s, &a, text, 1000), 0);
	CHECK_INT(s.pod.ncontainers, POD_CONTAINERS);
	CHECK_INT(a.containers_ignored, 5);
	free(text);
	free(items);
}

/* ---- workloads ---- */

static const char *workload(const char *kind, const char *owner, const char *hash)
{
	static char text[2 * POD_NAME];
	char name[POD_NAME];
	const char *of;
	struct pod p = {0};

	snprintf(p.owner_kind, sizeof(p.owner_kind), "%s", kind);
	snprintf(p.owner, sizeof(p.owner), "%s", owner);
	snprintf(p.template_hash, sizeof(p.template_hash), "%s", hash);
	if (!pod_workload(&p, &of, name))
		return "";
	snprintf(text, sizeof(text), "%s %s", of, name);
	return text;
}

TEST(workloads)
{
	CHECK_STR(workload("ReplicaSet", "shop-7d4b9c", "7d4b9c"), "Deployment shop");
	CHECK_STR(workload("ReplicaSet", "shop-a-b-7d4b9c", "7d4b9c"), "Deployment shop-a-b");
	CHECK_STR(workload("ReplicaSet", "shop-7d4b9c", ""), "ReplicaSet shop-7d4b9c");
	CHECK_STR(workload("ReplicaSet", "shop7d4b9c", "7d4b9c"), "ReplicaSet shop7d4b9c");
	CHECK_STR(workload("ReplicaSet", "-7d4b9c", "7d4b9c"), "ReplicaSet -7d4b9c");
	CHECK_STR(workload("StatefulSet", "db", ""), "StatefulSet db");
	CHECK_STR(workload("DaemonSet", "agent", "7d4b9c"), "DaemonSet agent");
	CHECK_STR(workload("Job", "clean-28123456", ""), "CronJob clean");
	CHECK_STR(workload("Job", "clean-1605632400", ""), "CronJob clean");
	CHECK_STR(workload("Job", "migrate-20250131", ""), "Job migrate-20250131");
	CHECK_STR(workload("Job", "migrate-4711", ""), "Job migrate-4711");
	CHECK_STR(workload("Job", "28123456", ""), "Job 28123456");
	CHECK_STR(workload("Job", "-28123456", ""), "Job -28123456");
	CHECK_STR(workload("Node", "n1", ""), "");
	CHECK_STR(workload("", "", ""), "");
	CHECK_STR(workload("Rollout", "web", ""), "Rollout web");
}

TEST(names_of_chosen_labels)
{
	static const char *const names[][2] = {{"team", "team"},
					       {"app.kubernetes.io/name", "app_kubernetes_io_name"},
					       {"1st", "_1st"},
					       {"\xc3\xa4", "__"}};
	struct chosen c = {.key = names[0][0]};
	char long_key[400];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		c.key = names[i][0];
		fusee_label_name(c.name, c.key);
		CHECK_STR(c.name, names[i][1]);
	}
	memset(long_key, 'x', sizeof(long_key) - 1);
	long_key[sizeof(long_key) - 1] = '\0';
	c.key = long_key;
	fusee_label_name(c.name, c.key);
	CHECK_INT(strlen(c.name), 128);
}

/* ---- targets ---- */

static struct fake *fake;
static struct fusee_self self;
static struct pods *pods;

static void begin(void)
{
	fake = fake_new(&fusee_plugin, NULL);
	self = (struct fusee_self){(struct fusee_instance *)(void *)fake, &fake->host};
	CHECK(self.host->discovery->begin(self.in) == 0);
	CHECK(self.host->discovery->commit(self.in) == 0);
	fusee_label_name(chosen[0].name, chosen[0].key);
	fusee_label_name(chosen[1].name, chosen[1].key);
	pods = pods_open(&self, chosen, 2);
	CHECK(pods);
}

static void end(void)
{
	pods_close(pods);
	fake_free(fake);
}

static void say(const char *format, ...)
{
	struct seen s = {.to = pods};
	char *text;
	va_list ap;

	va_start(ap, format);
	CHECK(vasprintf(&text, format, ap) > 0);
	va_end(ap);
	CHECK_INT(parse(&s, NULL, text, 1000), 0);
	free(text);
}

TEST(a_pod_and_its_containers)
{
	static const char *const all[] = {"pod/" UID, "container/" A, "container/" B,
					  "container/" C, "container/" D};

	begin();
	say("{\"type\":\"ADDED\",\"object\":%s}", pod_json);
	CHECK_INT(fake->ntargets, 5);
	for (size_t i = 0; i < 5; i++) {
		LABELS(fake, all[i], {"namespace", "prod"}, {"pod", "shop-7d4b9c-x2k1p"},
		       {"node", "n1"}, {"workload", "shop"}, {"workload_kind", "Deployment"},
		       {"app_kubernetes_io_name", "shop"}, {"example_com_tier", "gold"});
	}
	CHECK_STR(label_of(fake, "pod/" UID, "container"), "");
	CHECK(fake_is(fake_find(fake, "pod/" UID)->t.match_label.key, "pod_uid"));
	CHECK(fake_is(fake_find(fake, "pod/" UID)->t.match_label.str, UID));
	CHECK(fake_is(fake_find(fake, "container/" C)->t.match_label.key, "container_id"));
	CHECK(fake_is(fake_find(fake, "container/" C)->t.match_label.str, C));
	LABELS(fake, "container/" A, {"container", "setup"}, {"container_kind", "init"});
	LABELS(fake, "container/" B, {"container", "proxy"}, {"container_kind", "sidecar"});
	LABELS(fake, "container/" C, {"container", "web"}, {"container_kind", ""},
	       {"image", "shop:3"});
	CHECK_STR(label_of(fake, "container/" D, "container_kind"), "ephemeral");
	end();
}

/* A pod that the kubelet has from a file has another UID in its cgroups' paths. */
TEST(a_static_pod)
{
	begin();
	say("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":\"" UID "\",\"annotations\":{"
	    "\"kubernetes.io/config.mirror\":\"00112233445566778899aabbccddeeff\"}}}}");
	CHECK(fake_is(fake_find(fake, "pod/" UID)->t.match_label.str,
		      "00112233445566778899aabbccddeeff"));
	end();
}

TEST(a_container_that_begins_again)
{
	static const char state[] =
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"uid\":\"u\"},"
		"\"status\":{\"containerStatuses\":[{\"name\":\"web\","
		"\"containerID\":\"containerd://%s\"}]}}}";

	begin();
	say(state, A);
	say(state, B);
	/* the first has its labels until its last samples have come */
	CHECK(fake_find(fake, "container/" A) && fake_find(fake, "container/" B));
	CHECK_INT(pods_sweep(pods, 2), 1 + PODS_KEEP);
	CHECK(fake_find(fake, "container/" A));
	CHECK_INT(pods_sweep(pods, 1 + PODS_KEEP), UINT64_MAX);
	CHECK(!fake_find(fake, "container/" A));
	CHECK(fake_find(fake, "container/" B));
	CHECK_INT(pods_count(pods), 1);
	end();
}

TEST(a_pod_that_is_deleted)
{
	begin();
	say("{\"type\":\"ADDED\",\"object\":%s}", pod_json);
	say("{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"uid\":\"" UID "\"}}}");
	say("{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"uid\":\"unknown\"}}}");
	CHECK_INT(fake->ntargets, 5);
	CHECK_INT(pods_sweep(pods, 1 + PODS_KEEP), UINT64_MAX);
	CHECK_INT(fake->ntargets, 0);
	CHECK_INT(pods_count(pods), 0);
	end();
}

/* While there was no connection, pods have ended and others begun. */
TEST(a_list_replaces_what_was_before)
{
	static const char item[] = "{\"items\":[{\"metadata\":{\"uid\":\"%s\"}}]}";

	begin();
	pods_begin_list(pods);
	say(item, "one");
	say(item, "two");
	pods_end_list(pods, 1);
	pods_begin_list(pods);
	say(item, "two");
	say(item, "three");
	pods_end_list(pods, 5);
	CHECK_INT(pods_count(pods), 3);
	pods_sweep(pods, 5 + PODS_KEEP);
	CHECK_INT(pods_count(pods), 2);
	CHECK(!fake_find(fake, "pod/one") && fake_find(fake, "pod/two") &&
	      fake_find(fake, "pod/three"));
	end();
}

TEST(more_pods_than_are_kept)
{
	struct pod p;

	begin();
	CHECK_INT(pod_init(&p, 2), 0);
	for (uint32_t i = 0; i < PODS_MAX + 3; i++) {
		snprintf(p.uid, sizeof(p.uid), "%u", i);
		CHECK_INT(pods_put(pods, &p, 1), 0);
	}
	pod_fini(&p);
	CHECK_INT(pods_count(pods), PODS_MAX);
	CHECK_INT(fake->ntargets, PODS_MAX);
	CHECK_INT(fake_count(fake, "pods_ignored"), 3);
	CHECK(fake_logged(fake, "the others have no labels"));
	end();
}
