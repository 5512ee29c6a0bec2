/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/container
/* discovery container: what is read of daemons' answers, which targets follow, and what is said of
 * daemons that fail, by a server of the test's own. tests/run/container-names has real daemons. */
#include "test.h"

#include <sys/un.h>

#include "lib/discovery.h"
#include "names.h"
#include "reader_internal.h"

extern const struct fusee_plugin fusee_plugin;

#define A "a077d18bb4f4c9691576a97b9bd743ed0da097d87899c6d4cfa22a43fd0129dc"
#define B "b077d18bb4f4c9691576a97b9bd743ed0da097d87899c6d4cfa22a43fd0129dc"
#define IMAGE_ID "sha256:7e4ea1841a95be17d2f93a09a87516ddd4430e6db71a2db2316035b9dc7e32a2"

/* As Podman 4.3 sends it; Docker 20.10 has the same members, and a second name of a link. */
static const char list_json[] =
	"[{\"Id\":\"" A "\",\"Names\":[\"/db/alias\",\"/web\"],\"Image\":\"localhost/box:1\","
	"\"ImageID\":\"sha256:2b\",\"Command\":\"/bin/sleep 1000\",\"Created\":1795357844,"
	"\"Ports\":[],\"Labels\":{\"app.x/y\":\"z\",\"team\":\"bl\\u00fce\"},\"State\":\"running\","
	"\"NetworkSettings\":{\"Networks\":null},\"Mounts\":[],\"Name\":\"\",\"Config\":null},"
	"{\"Id\":\"" B "\",\"Names\":[\"/k8s_main_web-1_shop_u_0\"],\"Image\":\"box\",\"Labels\":{"
	"\"io.kubernetes.container.name\":\"main\",\"io.kubernetes.pod.name\":\"web-1\","
	"\"io.kubernetes.pod.namespace\":\"shop\"}}]\n";

#define EVENT(action, id, name)                                                                    \
	"{\"status\":\"" action "\",\"id\":\"" id "\",\"from\":\"box\",\"Type\":\"container\","    \
	"\"Action\":\"" action "\",\"Actor\":{\"ID\":\"" id "\",\"Attributes\":{\"team\":\"red\"," \
	"\"containerExitCode\":\"0\",\"image\":\"box\",\"name\":\"" name "\",\"podId\":\"\"}},"    \
	"\"scope\":\"local\",\"time\":1795357844,\"timeNano\":1795357844137045010}\n"

/* ---- readers ---- */

static struct chosen chosen_at[2] = {{.key = "team"}, {.key = "app.x/y"}};

static struct chosen_list chosen(void)
{
	fusee_label_name(chosen_at[0].name, chosen_at[0].key);
	fusee_label_name(chosen_at[1].name, chosen_at[1].key);
	return (struct chosen_list){chosen_at, 2};
}

struct seen {
	uint32_t n;
	enum found last;
	struct container c; /* the last; without its values */
	char team[64];
	int answer; /* what each() returns */
	const char *problem;
};

static int each(void *arg, enum found found, const struct container *c)
{
	struct seen *s = arg;

	s->n++;
	s->last = found;
	s->c = *c;
	snprintf(s->team, sizeof(s->team), "%s", c->values[0]);
	return s->answer;
}

/* An answer in pieces of `step` bytes. */
static int read_answer(struct seen *s, enum daemon_kind kind, enum ask ask, const void *bytes,
		       size_t n, size_t step)
{
	struct reader *r = reader_new(kind, chosen(), each, s);
	int err;

	CHECK(r);
	CHECK_INT(reader_begin(r, ask, "default"), 0);
	err = 0;
	for (size_t at = 0; !err && at < n; at += step)
		err = reader_feed(r, (const char *)bytes + at, n - at < step ? n - at : step);
	err = err ? err : reader_end(r);
	s->problem = reader_problem(r);
	reader_free(r);
	return err;
}

static int read_json(struct seen *s, enum ask ask, const char *text, size_t step)
{
	return read_answer(s, DAEMON_DOCKER, ask, text, strlen(text), step);
}

TEST(a_list_in_pieces)
{
	for (size_t step = 1; step < 200; step += step < 8 ? 1 : 61) {
		struct seen s = {0};

		CHECK_INT(read_json(&s, ASK_LIST, list_json, step), 0);
		CHECK_INT(s.n, 2);
		CHECK_INT(s.last, FOUND_CONTAINER);
		CHECK_STR(s.c.id, B);
		CHECK_STR(s.c.pod_container, "main");
		CHECK_STR(s.c.pod, "web-1");
		CHECK_STR(s.c.namespace, "shop");
		CHECK_STR(s.team, "");
	}
}

TEST(events)
{
	struct seen s = {0};

	CHECK_INT(read_json(&s, ASK_EVENTS, EVENT("create", A, "web") EVENT("start", B, "db"), 7),
		  0);
	CHECK_INT(s.n, 2);
	CHECK_INT(s.last, FOUND_CONTAINER);
	CHECK_STR(s.c.id, B);
	CHECK_STR(s.c.name, "db");
	CHECK_STR(s.c.image, "box");
	CHECK_STR(s.team, "red");
	CHECK_INT(read_json(&s, ASK_EVENTS, EVENT("die", A, "web"), 100), 0);
	CHECK_INT(s.last, FOUND_ENDED);
	s.n = 0;
	CHECK_INT(read_json(&s, ASK_EVENTS,
			    EVENT("exec_start: sh", A, "web")
				    EVENT("health_status: healthy", A, "w"),
			    100),
		  0);
	CHECK_INT(read_json(&s, ASK_EVENTS,
			    "{\"Type\":\"image\",\"Action\":\"remove\",\"Actor\":{"
			    "\"ID\":\"" A "\"}}{} {\"Type\":\"container\"} [] 1 \"x\"",
			    100),
		  0);
	CHECK_INT(s.n, 0);
	s.answer = -5;
	CHECK_INT(read_json(&s, ASK_EVENTS, EVENT("start", A, "web") "{", 100), -5);
}

static void problem_of_json(enum ask ask, const char *text, const char *problem)
{
	struct seen s = {0};

	CHECK_INT(read_json(&s, ask, text, 4096), -EBADMSG);
	CHECK(s.problem);
	CHECK_STR(s.problem, problem);
}

TEST(json_that_means_harm)
{
	static const char *const types[] = {
		"[]",
		"[1,\"2\",null,[],true,{}]",
		"[{\"Id\":7,\"Names\":{\"a\":\"b\"},\"Image\":[],\"Labels\":[\"team\"]}]",
		"[{\"Id\":\"\\u0000\",\"Names\":[\"/\",\"\",[\"/x\"]],\"Labels\":{\"team\":{}}}]",
	};
	struct seen s = {0};
	char *text;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		CHECK_INT(read_json(&s, ASK_LIST, types[i], 5), 0);
	problem_of_json(ASK_LIST, "<html>", "not JSON");
	problem_of_json(ASK_LIST, "[{]", "not JSON");
	problem_of_json(ASK_LIST, "", "no list");
	problem_of_json(ASK_LIST, "{}", "no list");
	problem_of_json(ASK_LIST, "[{\"Id\":\"", "incomplete");
	problem_of_json(ASK_LIST, "[] []", "not JSON");
	problem_of_json(ASK_LIST, "[{\"Image\":\"\xff\xfe\"}]", "not UTF-8");
	problem_of_json(ASK_EVENTS, "{\"Type\":\"\xc3\x28\"}", "not UTF-8");
	text = many("[", "[", 100000, "");
	problem_of_json(ASK_LIST, text, "too large");
	free(text);
	text = many("[{\"Image\":\"", "0123456789", 1000000, "\"}]");
	problem_of_json(ASK_LIST, text, "too large");
	free(text);
	/* long, but not too long: a text is truncated, an ID is none */
	text = many("[{\"Image\":\"", "0123456789", 1000, "\",\"Id\":\"" A A A "\"}]");
	CHECK_INT(read_json(&s, ASK_LIST, text, 16384), 0);
	CHECK_INT(strlen(s.c.image), CONTAINER_VALUE - 1);
	CHECK_STR(s.c.id, "");
	free(text);
}

/* ---- messages of gRPC ---- */

struct message {
	uint8_t p[4096];
	size_t n;
};

static void add_varint(struct message *m, uint64_t v)
{
	for (; v > 127; v >>= 7)
		m->p[m->n++] = (uint8_t)(v | 128);
	m->p[m->n++] = (uint8_t)v;
}

static void add_bytes(struct message *m, uint32_t number, const void *p, size_t n)
{
	add_varint(m, number << 3 | 2);
	add_varint(m, n);
	memcpy(m->p + m->n, p, n);
	m->n += n;
}

static void add_text(struct message *m, uint32_t number, const char *text)
{
	add_bytes(m, number, text, strlen(text));
}

static void add_message(struct message *m, uint32_t number, const struct message *in)
{
	add_bytes(m, number, in->p, in->n);
}

static void add_map(struct message *m, uint32_t number, const char *key, const char *text)
{
	struct message entry = {.n = 0};

	add_text(&entry, 1, key);
	add_text(&entry, 2, text);
	add_message(m, number, &entry);
}

/* The frame of a message. */
static struct message frame(const struct message *m)
{
	struct message f = {.n = 5};

	f.p[3] = (uint8_t)(m->n >> 8);
	f.p[4] = (uint8_t)m->n;
	memcpy(f.p + 5, m->p, m->n);
	f.n += m->n;
	return f;
}

static int read_grpc(struct seen *s, enum daemon_kind kind, enum ask ask, const struct message *m,
		     size_t step)
{
	struct message f = frame(m);

	return read_answer(s, kind, ask, f.p, f.n, step);
}

/* What containerd 1.6 sends of a container that `ctr run` made. */
static struct message containerd_container(const char *id, const char *spec)
{
	struct message any = {.n = 0}, c = {.n = 0}, m = {.n = 0}, runtime = {.n = 0};

	add_text(&c, 1, id);
	add_map(&c, 2, "team", "blue");
	add_map(&c, 2, "io.containerd.image.config.stop-signal", "SIGTERM");
	add_text(&c, 3, "localhost/box:1");
	add_text(&runtime, 1, "io.containerd.runc.v2");
	add_message(&c, 4, &runtime);
	add_text(&any, 1, "types.containerd.io/opencontainers/runtime-spec/1/Spec");
	add_text(&any, 2, spec);
	add_message(&c, 5, &any);
	add_message(&m, 1, &c);
	return m;
}

#define SPEC(path)                                                                             \
	"{\"ociVersion\":\"1.0.2-dev\",\"process\":{\"args\":[\"/bin/"                         \
	"sleep\",\"1000\"]},\"mounts\":"                                                       \
	"[{\"options\":[\"ro\"]}],\"linux\":{\"resources\":{\"devices\":[{\"allow\":false}]}," \
	"\"cgroupsPath\":\"" path "\",\"namespaces\":[{\"type\":\"pid\"}]}}"

TEST(containerd_in_pieces)
{
	struct message m = containerd_container("web1", SPEC("/default/web1")), two = {.n = 0}, f;

	for (size_t step = 1; step < 500; step += step < 8 ? 1 : 61) {
		struct seen s = {0};

		/* two messages of a stream */
		f = frame(&m);
		memcpy(two.p, f.p, f.n);
		memcpy(two.p + f.n, f.p, f.n);
		two.n = 2 * f.n;
		CHECK_INT(read_answer(&s, DAEMON_CONTAINERD, ASK_LIST, two.p, two.n, step), 0);
		CHECK_INT(s.n, 2);
		CHECK_INT(s.last, FOUND_CONTAINER);
		CHECK_STR(s.c.id, "web1");
		CHECK_STR(s.c.space, "default");
		CHECK_STR(s.c.image, "localhost/box:1");
		CHECK_STR(s.c.cgroup, "/default/web1");
		CHECK_STR(s.team, "blue");
	}
	m = containerd_container("web1", SPEC("system.slice:nerdctl:web1"));
	{
		struct seen s = {0};

		CHECK_INT(read_grpc(&s, DAEMON_CONTAINERD, ASK_ONE, &m, 100), 0);
		CHECK_STR(s.c.cgroup, "");
	}
}

static struct message containerd_event(const char *topic, const char *id)
{
	struct message m = {.n = 0}, any = {.n = 0}, event = {.n = 0};

	add_text(&m, 2, "k8s.io");
	add_text(&m, 3, topic);
	add_text(&event, 1, id);
	add_text(&event, 2, "localhost/box:1");
	add_text(&any, 1, "containerd.events.ContainerCreate");
	add_message(&any, 2, &event);
	add_message(&m, 4, &any);
	return m;
}

TEST(events_of_containerd)
{
	struct message m = containerd_event("/containers/create", A), space = {.n = 0};
	struct seen s = {0};

	CHECK_INT(read_grpc(&s, DAEMON_CONTAINERD, ASK_EVENTS, &m, 10), 0);
	CHECK_INT(s.last, FOUND_CHANGED);
	CHECK_STR(s.c.id, A);
	CHECK_STR(s.c.space, "k8s.io");
	m = containerd_event("/containers/delete", A);
	CHECK_INT(read_grpc(&s, DAEMON_CONTAINERD, ASK_EVENTS, &m, 10), 0);
	CHECK_INT(s.last, FOUND_ENDED);
	s.n = 0;
	m = containerd_event("/tasks/oom", A);
	CHECK_INT(read_grpc(&s, DAEMON_CONTAINERD, ASK_EVENTS, &m, 10), 0);
	CHECK_INT(s.n, 0);
	m.n = 0;
	add_text(&space, 1, "default");
	add_message(&m, 1, &space);
	space.n = 0;
	add_text(&space, 1, "k8s.io");
	add_message(&m, 1, &space);
	CHECK_INT(read_grpc(&s, DAEMON_CONTAINERD, ASK_SPACES, &m, 3), 0);
	CHECK_INT(s.n, 2);
	CHECK_INT(s.last, FOUND_SPACE);
	CHECK_STR(s.c.space, "k8s.io");
}

/* A container of the CRI, with the numbers of fields that a list or a status has. */
static struct message cri_container(bool status, const char *id, const char *image, uint64_t state)
{
	struct message m = {.n = 0}, c = {.n = 0}, metadata = {.n = 0}, spec = {.n = 0};

	add_text(&metadata, 1, "main");
	add_text(&spec, 1, image);
	add_text(&c, 1, id);
	if (!status)
		add_text(&c, 2, B);
	add_message(&c, status ? 2 : 3, &metadata);
	add_varint(&c, (status ? 3 : 6) << 3);
	add_varint(&c, state);
	add_message(&c, status ? 8 : 4, &spec);
	add_text(&c, status ? 9 : 5, IMAGE_ID);
	add_map(&c, status ? 12 : 8, "io.kubernetes.container.name", "main");
	add_map(&c, status ? 12 : 8, "io.kubernetes.pod.name", "web-3");
	add_map(&c, status ? 12 : 8, "team", "blue");
	add_message(&m, 1, &c);
	return m;
}

TEST(the_cri)
{
	struct message m = cri_container(false, A, "localhost/box:1", 1);

	for (int status = 0; status < 2; status++) {
		struct seen s = {0};

		m = cri_container(status, A, "localhost/box:1", 1);
		CHECK_INT(read_grpc(&s, DAEMON_CRI, status ? ASK_ONE : ASK_LIST, &m, 11), 0);
		CHECK_INT(s.n, 1);
		CHECK_STR(s.c.id, A);
		CHECK_STR(s.c.image, "localhost/box:1");
		CHECK_STR(s.c.pod, "web-3");
		CHECK_STR(s.c.pod_container, "main");
		CHECK_STR(s.team, "blue");
		s.n = 0;
		m = cri_container(status, A, "localhost/box:1", 2); /* it has ended */
		CHECK_INT(read_grpc(&s, DAEMON_CRI, status ? ASK_ONE : ASK_LIST, &m, 11), 0);
		CHECK_INT(s.n, 0);
	}
}

static void problem_of_grpc(const void *bytes, size_t n, const char *problem)
{
	struct seen s = {0};

	CHECK_INT(read_answer(&s, DAEMON_CRI, ASK_LIST, bytes, n, 3), -EBADMSG);
	CHECK(s.problem);
	CHECK_STR(s.problem, problem);
}

TEST(messages_that_mean_harm)
{
	struct message m = cri_container(false, A, "box", 1), f, bad = {.n = 0};
	struct seen s = {0};

	problem_of_grpc("\1\0\0\0\0", 5, "compressed");
	problem_of_grpc("\0\xff\xff\xff\xff", 5, "too large");
	problem_of_grpc("\0\0\0", 3, "incomplete");
	problem_of_grpc("\0\0\0\0\2\xa", 6, "incomplete");
	problem_of_grpc("\0\0\0\0\2\xa\7", 7, "wrong protobuf");     /* beyond the message */
	problem_of_grpc("\0\0\0\0\3\xa\1\xff", 8, "wrong protobuf"); /* a number without an end */
	problem_of_grpc("\0\0\0\0\1\xb", 6, "wrong protobuf");       /* a group */
	problem_of_grpc("\0\0\0\0\2\0\0", 7, "wrong protobuf");      /* field 0 */
	problem_of_grpc("\0\0\0\0\4\xa\2\xa\x7f", 9, "wrong protobuf"); /* an inner length */
	problem_of_grpc("\0\0\0\0\5\xa\3\xa\1\xff", 10, "not UTF-8");
	problem_of_grpc("\0\0\0\0\5\xa\3\xa\1\0", 10, "not UTF-8");
	CHECK_INT(read_answer(&s, DAEMON_CRI, ASK_LIST, "\0\0\0\0\0", 5, 5), 0); /* no containers */
	CHECK_INT(s.n, 0);
	/* every byte of a good answer, changed */
	f = frame(&m);
	for (size_t i = 0; i < f.n; i++)
		for (int bit = 0; bit < 8; bit++) {
			bad = f;
			bad.p[i] ^= (uint8_t)(1 << bit);
			read_answer(&s, DAEMON_CRI, ASK_LIST, bad.p, bad.n, 64);
			CHECK(strnlen(s.c.image, sizeof(s.c.image)) < sizeof(s.c.image));
		}
}

TEST(texts)
{
	CHECK(text_is_clean(fusee_text("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")));
	CHECK(!text_is_clean(fusee_text("\xc0\x80")));
	CHECK(!text_is_clean(fusee_text("\xed\xa0\x80")));
	CHECK(!text_is_clean(fusee_text("\xf4\x90\x80\x80")));
	CHECK(!text_is_clean(fusee_text("\xe2\x82")));
	CHECK(container_is_image_id(IMAGE_ID));
	CHECK(container_is_image_id(A));
	CHECK(!container_is_image_id("localhost/box:1"));
	CHECK(!container_is_image_id("sha256:" A "/x"));
}

/* ---- targets ---- */

static struct fake *fake;
static struct fusee_self self;
static struct names *names;
static struct container one;

static void begin(void)
{
	fake = fake_new(&fusee_plugin, NULL);
	self = (struct fusee_self){(struct fusee_instance *)(void *)fake, &fake->host};
	names = container_names_open(&self, chosen());
	CHECK(names);
	CHECK_INT(container_init(&one, 2), 0);
}

static void end(void)
{
	container_fini(&one);
	container_names_close(names);
	fake_free(fake);
}

static void put(const char *id, const char *name, uint32_t list)
{
	struct names_source from = {.daemon = 1, .list = list, .runtime = "docker"};

	TEXT_SET(one.id, fusee_text(id));
	TEXT_SET(one.name, fusee_text(name));
	CHECK_INT(names_put(names, &from, &one), 0);
}

TEST(targets_and_their_labels)
{
	begin();
	strcpy(one.values[0], "blue");
	strcpy(one.image, "box:1");
	put(A, "web", 1);
	CHECK(fake_is(fake_find(fake, "1//" A)->t.match_label.key, "container_id"));
	CHECK(fake_is(fake_find(fake, "1//" A)->t.match_label.str, A));
	LABELS(fake, "1//" A, {"container", "web"}, {"image", "box:1"}, {"team", "blue"},
	       {"container_runtime", "docker"});
	/* in a pod, as discover.kubernetes has it */
	container_clear(&one);
	strcpy(one.pod_container, "main");
	strcpy(one.pod, "web-1");
	strcpy(one.namespace, "shop");
	put(B, "k8s_main_web-1_shop_u_0", 1);
	LABELS(fake, "1//" B, {"container", "main"}, {"pod", "web-1"}, {"namespace", "shop"});
	/* the container that keeps a pod's namespaces */
	container_clear(&one);
	strcpy(one.pod, "web-1");
	one.sandbox = true;
	put(B, "k8s_POD_web-1_shop_u_0", 1);
	CHECK_STR(label_of(fake, "1//" B, "container"), "");
	/* of ctr: the ID is a name, and in no path's form */
	container_clear(&one);
	strcpy(one.space, "default");
	strcpy(one.cgroup, "/default/web1");
	put("web1", "", 1);
	CHECK(fake_is(fake_find(fake, "1/default/web1")->t.cgroup, "/default/web1"));
	CHECK_STR(label_of(fake, "1/default/web1", "container"), "web1");
	/* without a name */
	container_clear(&one);
	strcpy(one.space, "default");
	put(A, "", 1);
	CHECK_STR(label_of(fake, "1/default/" A, "container"), "");
	put("a/../b", "x", 1);
	CHECK_INT(fake_count(fake, "containers_ignored{reason=\"wrong id\"}"), 1);
	end();
}

TEST(containers_that_end)
{
	begin();
	put(A, "web", 1);
	names_end(names, 1, "", A, 5);
	names_end(names, 1, "", B, 5); /* not known */
	/* it has its labels until its last samples have come */
	CHECK_INT(names_sweep(names, 6), 5 + NAMES_KEEP);
	CHECK_INT(names_count(names), 1);
	put(A, "web", 1); /* it has begun again */
	CHECK_INT(names_sweep(names, 5 + NAMES_KEEP), UINT64_MAX);
	CHECK_INT(names_count(names), 1);
	put(B, "db", 2);
	names_end_list(names, 2, 2, 7); /* of another daemon */
	names_end_list(names, 1, 2, 7);
	CHECK_INT(names_sweep(names, 7 + NAMES_KEEP), UINT64_MAX);
	CHECK(!fake_find(fake, "1//" A));
	CHECK(fake_find(fake, "1//" B));
	CHECK_INT(names_count(names), 1);
	end();
}

TEST(more_containers_than_are_kept)
{
	char id[32];

	begin();
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "c%u", i);
		put(id, "x", 1);
	}
	CHECK_INT(names_count(names), 2000);
	fake->puts = 0;
	for (uint32_t i = 2000; i < NAMES_MAX + 3; i++) {
		/* without the fake's targets, whose list is searched from its beginning */
		while (fake->ntargets)
			fake_remove(fake, fake->ntargets - 1);
		snprintf(id, sizeof(id), "c%u", i);
		put(id, "x", 1);
	}
	CHECK_INT(names_count(names), NAMES_MAX);
	CHECK_INT(fake->puts, NAMES_MAX - 2000);
	CHECK_INT(fake_count(fake, "containers_ignored{reason=\"too many\"}"), 3);
	CHECK(fake_logged(fake, "the others have no names"));
	end();
}
