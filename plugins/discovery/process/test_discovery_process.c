/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/process
#include "test.h"

#include "lib/fakehost.h"
#include "read.h"
#include "resource.h"

extern const struct fusee_plugin fusee_plugin;

static struct fake *begun(struct fake *f)
{
	CHECK_INT(fake_init(f), 0);
	CHECK_INT(fake_start(f), 0);
	CHECK_INT(f->begins, 1);
	return f;
}

/* What the file of /proc has: bytes, at most `n`. */
static ssize_t content(pid_t pid, const char *file, char *to, size_t n)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	got = read(fd, to, n);
	close(fd);
	return got;
}

/* A child that sleeps, as argv[0] `name`, with this environment. The kernel shows the new program
 * first, and a moment later its arguments and then its environment. */
static pid_t sleeper(const char *name, char *const environ[])
{
	const char *last = environ[0] ? "environ" : "cmdline";
	pid_t pid = fork();
	char comm[16], text[16];

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve("/bin/sleep", (char *[]){(char *)name, "60", NULL}, environ);
		_exit(127);
	}
	WAIT_FOR(content(pid, "comm", comm, sizeof(comm)) == 6 && !memcmp(comm, "sleep\n", 6) &&
		 content(pid, last, text, sizeof(text)) > 0);
	return pid;
}

static struct fake_target *target_of(struct fake *f, pid_t pid)
{
	char key[16];

	snprintf(key, sizeof(key), "%d", (int)pid);
	return fake_find(f, key);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The start and the user come from the host, in one call; what is no such answer is not used. */
TEST(identity_and_user)
{
	static const char *const ids[] = {"4711 65099", "4711", "x", ""};
	char *const environ[] = {NULL};
	struct fake *f = begun(fake_new(&fusee_plugin, NULL));
	pid_t pid = sleeper("sleep", environ);
	struct fake_target *t;

	for (uint32_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		fake_id = ids[i];
		CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
		t = target_of(f, pid);
		CHECK(t);
		CHECK((t->t.pid_start_ticks == 4711) == !i && t->t.pid_start_ticks);
		CHECK(!strcmp(fake_label(t, "user"), "65099") == !i);
	}
	fake_id = ids[0];
	end(pid);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
	CHECK(!target_of(f, pid));
	fake_id = NULL;
	fake_free(f);
}

TEST(labels_of_a_process)
{
	char *const environ[] = {"A=1", "OTEL_SERVICE_NAME=shop", "VERSION=2.1\n", "EMPTY=", NULL};
	struct fake *f = begun(fake_new(&fusee_plugin, "env", "version=VERSION,empty=EMPTY",
					"cmdline", "true", NULL));
	pid_t pid = sleeper("my sleep", environ);
	struct fake_target *t;
	char number[16];

	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, (uint32_t)pid, 0), 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, 2, 0), 0); /* a kernel thread, mostly */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_SYNC, 0, 0), 0);
	CHECK_INT(f->commits, 1);
	t = target_of(f, pid);
	CHECK(t);
	CHECK_INT(t->t.match, FUSEE_MATCH_PID);
	CHECK_INT(t->t.pid, pid);
	CHECK(t->t.pid_start_ticks > 0);
	snprintf(number, sizeof(number), "%d", (int)pid);
	CHECK_STR(fake_label(t, "process"), "sleep");
	CHECK_STR(fake_label(t, "pid"), number);
	CHECK_STR(fake_label(t, "service_name"), "shop");
	CHECK_STR(fake_label(t, "version"), "2.1?");
	CHECK_STR(fake_label(t, "cmdline"), "my sleep 60");
	CHECK(!fake_label(t, "empty"));
	if (!geteuid())
		CHECK_STR(fake_label(t, "user"), "root");
	/* it forks: nothing is read, but its own pid */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, 4000000, (uint32_t)pid), 0);
	t = target_of(f, 4000000);
	CHECK(t);
	CHECK_STR(fake_label(t, "service_name"), "shop");
	CHECK_STR(fake_label(t, "pid"), "4000000");
	/* the child execs, and has ended before it is read */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, 4000000, 0), 0);
	CHECK(!target_of(f, 4000000));
	/* a late report of the end of another process, whose pid this process has now */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXIT, (uint32_t)pid, 0), 0);
	CHECK(target_of(f, (uint32_t)pid));
	kill(pid, SIGKILL);
	CHECK(!waitid(P_PID, (id_t)pid, NULL,
		      WEXITED | WNOWAIT)); /* nobody has waited for it yet */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXIT, (uint32_t)pid, 0), 0);
	CHECK_INT(f->ntargets, 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXIT, (uint32_t)pid, 0), 0);
	CHECK_INT(f->ntargets, 0);
	end(pid);
	fake_free(f);
}

TEST(only_some)
{
	static const struct {
		const char *option, *value;
		bool expected;
	} cases[] = {
		{"names", "sleep", true}, {"names", "cat,sl*", true},  {"names", "cat", false},
		{"exe", "*/sleep", true}, {"exe", "sleep", false},     {"args", "*s 6?", true},
		{"args", "*70", false},   {"users", "no-such", false},
	};
	char *const none[] = {NULL};
	pid_t pid = sleeper("my s", none);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake *f = begun(
			fake_new(&fusee_plugin, cases[i].option, cases[i].value, NULL));

		CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
		CHECK_INT(!!target_of(f, pid), cases[i].expected);
		fake_free(f);
	}
	end(pid);
}

#define UNREAD "texts_unread{reason=\"no answer in time\"}"

/* A process has no CPU, or the opener has none: its texts are read later. */
TEST(texts_that_are_not_read_in_time)
{
	char *const environ[] = {"OTEL_SERVICE_NAME=shop", "V=2", NULL};
	struct fake *f = begun(fake_new(&fusee_plugin, "env", "version=V", NULL));
	pid_t pid = sleeper("my sleep", environ), child = fork();
	int looks = 0;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	fake_late_text = "environ";
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
	CHECK(target_of(f, pid) && !fake_label(target_of(f, pid), "service_name"));
	CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, (uint32_t)child, (uint32_t)pid), 0);
	CHECK(target_of(f, child) && !fake_label(target_of(f, child), "service_name"));
	for (int i = 0; i < 1000; i++) {
		uint64_t before = fake_count(f, UNREAD);

		CHECK_INT(fake_tick(f), 0);
		looks += fake_count(f, UNREAD) > before;
	}
	CHECK_INT(looks, 6); /* after 2, 10, 60, 360, 660 and 960 s; both at once */
	CHECK_STR(fake_label(target_of(f, pid), "process"), "sleep");
	fake_late_text = NULL;
	for (int i = 0; i < 300; i++)
		CHECK_INT(fake_tick(f), 0);
	CHECK_STR(fake_label(target_of(f, pid), "service_name"), "shop");
	CHECK_STR(fake_label(target_of(f, pid), "version"), "2");
	/* the child, which has the test's environment here, was read too */
	CHECK(!strcmp(fake_label(target_of(f, child), "process"), "test_discovery_process"));
	end(pid);
	end(child);
	fake_free(f);
}

static bool lacks(struct fake *f, pid_t pid, const char *name)
{
	const struct fake_target *t = target_of(f, pid);

	CHECK(t);
	for (uint32_t i = 0; i < t->t.later.n; i++) {
		const struct fusee_str *s = FUSEE_AT(struct fusee_str, t->t.later, i);

		if (s->len == strlen(name) && !memcmp(s->p, name, s->len))
			return true;
	}
	return false;
}

/* The environment is read when its labels are needed; in a child, too. */
TEST(an_environment_that_is_not_needed_is_not_read)
{
	char *const environ[] = {"OTEL_SERVICE_NAME=shop", "V=2", NULL};
	struct fake *f = begun(
		fake_new(&fusee_plugin, "env", "version=V", "attributes", "zone=cloud.zone", NULL));
	pid_t pid = sleeper("my sleep", environ), child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	f->early = true;
	fake_late_text = "environ"; /* counts as unread when it is read */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, (uint32_t)child, (uint32_t)pid), 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(fake_tick(f), 0);
	CHECK_INT(fake_count(f, UNREAD), 0);
	CHECK(lacks(f, pid, "service_name") && lacks(f, pid, "version") && lacks(f, pid, "zone"));
	CHECK(!lacks(f, pid, "user") && !fake_label(target_of(f, pid), "service_name"));
	CHECK(lacks(f, child, "version"));
	/* it is needed, and not read in time: as of any other process */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_LABELS, (uint32_t)child, 0), 0);
	CHECK(fake_count(f, UNREAD) > 0 && !lacks(f, child, "version"));
	CHECK(!fake_label(target_of(f, child), "version"));
	fake_late_text = NULL;
	CHECK_INT(fake_process(f, FUSEE_PROCESS_LABELS, (uint32_t)pid, 0), 0);
	CHECK(!lacks(f, pid, "service_name"));
	CHECK_STR(fake_label(target_of(f, pid), "service_name"), "shop");
	CHECK_STR(fake_label(target_of(f, pid), "version"), "2");
	/* from then on its children have them, too */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, 4000000, (uint32_t)pid), 0);
	CHECK_STR(fake_label(target_of(f, 4000000), "version"), "2");
	/* it runs another program, and ends before they are needed: other labels stay */
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
	CHECK(lacks(f, pid, "version"));
	end(pid);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_LABELS, (uint32_t)pid, 0), 0);
	CHECK(!lacks(f, pid, "version"));
	CHECK_STR(fake_label(target_of(f, pid), "process"), "sleep");
	CHECK_INT(fake_process(f, FUSEE_PROCESS_LABELS, 4000001, 0), 0);
	end(child);
	fake_free(f);
}

/* The arguments alone decide whether it is selected: its other texts may come later. */
TEST(arguments_are_read_and_the_environment_is_not)
{
	char *const environ[] = {"OTEL_SERVICE_NAME=shop", NULL};
	struct fake *f = begun(fake_new(&fusee_plugin, "args", "my s*", NULL));
	pid_t pid = sleeper("my sleep", environ), other = sleeper("other sleep", environ);
	uint64_t before;

	fake_late_text = "environ";
	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, (uint32_t)other, 0), 0);
	before = fake_count(f, UNREAD);
	for (int i = 0; i < 100; i++)
		CHECK_INT(fake_tick(f), 0);
	CHECK_INT(fake_count(f, UNREAD), before); /* it is not looked at again */
	CHECK_INT(f->ntargets, 0);
	fake_late_text = "cmdline";
	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, (uint32_t)pid, 0), 0);
	CHECK_INT(f->ntargets, 0);
	fake_late_text = "environ";
	CHECK_INT(fake_tick(f), 0);
	CHECK_INT(fake_tick(f), 0);
	CHECK_INT(f->ntargets, 1);
	CHECK(!fake_label(target_of(f, pid), "service_name"));
	fake_late_text = NULL;
	for (int i = 0; i < 60; i++)
		CHECK_INT(fake_tick(f), 0);
	CHECK_STR(fake_label(target_of(f, pid), "service_name"), "shop");
	end(pid);
	end(other);
	fake_free(f);
}

/* Whether a process is selected by its arguments is not known before they are read. */
TEST(arguments_that_are_not_read_in_time)
{
	char *const environ[] = {"OTEL_SERVICE_NAME=shop", NULL};
	struct fake *f = begun(fake_new(&fusee_plugin, "args", "my s*", NULL));
	pid_t pid = sleeper("my sleep", environ), other = sleeper("other sleep", environ);

	fake_late_text = "cmdline";
	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, (uint32_t)pid, 0), 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_RUNNING, (uint32_t)other, 0), 0);
	CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, 4000000, (uint32_t)pid), 0);
	CHECK_INT(f->ntargets, 0);
	fake_late_text = NULL;
	CHECK_INT(fake_tick(f), 0);
	CHECK_INT(f->ntargets, 0);
	CHECK_INT(fake_tick(f), 0);
	CHECK_INT(f->ntargets, 1);
	CHECK_STR(fake_label(target_of(f, pid), "service_name"), "shop");
	end(pid);
	end(other);
	fake_free(f);
}

TEST(environments)
{
	static const char plain[] = "X=1\0OTEL_SERVICE_NAME=b\0Y=\0";
	char out[16], huge[5000];

	CHECK_INT(environment_get(plain, sizeof(plain), "OTEL_SERVICE_NAME", out, sizeof(out)), 0);
	CHECK_STR(out, "b");
	CHECK_INT(environment_get(plain, sizeof(plain), "X", out, sizeof(out)), 0);
	CHECK_INT(environment_get(plain, sizeof(plain), "Y", out, sizeof(out)), -ENOENT);
	CHECK_INT(environment_get(plain, 2, "X", out, sizeof(out)), -ENOENT);
	CHECK_INT(environment_get(NULL, 0, "X", out, sizeof(out)), -ENOENT);
	memset(huge, 'h', sizeof(huge)); /* no NUL, no = */
	CHECK_INT(environment_get(huge, sizeof(huge), "h", out, sizeof(out)), -ENOENT);
	memcpy(huge, "OTEL_SERVICE_NAME=", 18);
	CHECK_INT(environment_get(huge, sizeof(huge), "OTEL_SERVICE_NAME", out, sizeof(out)), 0);
	CHECK_STR(out, "hhhhhhhhhhhhhhh");
}

TEST(resource_attributes_of_the_environment)
{
	static const struct {
		const char *list, *value; /* of service.name; NULL: none */
	} cases[] = {
		{"service.name=shop", "shop"},
		{"a=b, service.name=my%20shop,c=d", "my shop"},
		{" service.name = shop ", "shop"},
		{"service.name=a%2Cb%3dc", "a,b=c"},
		{"service.name=50%", "50%"},
		{"service.name=%zz%4", "%zz%4"},
		{"service.name=%c3%a4", "\xc3\xa4"},
		{"service.name=%ff%00%0a", "???"},
		{"service.name=a=b", "a=b"},
		{"service.name=,service.name=b", NULL},
		{"service.names=a,xservice.name=b,service.name", NULL},
		{",,=,==,%", NULL},
		{"", NULL},
	};
	char out[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int r = resource_of_list(cases[i].list, "service.name", out, sizeof(out));

		CHECK_INT(r, cases[i].value ? 0 : -ENOENT);
		if (cases[i].value)
			CHECK_STR(out, cases[i].value);
	}
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)rand() % 64;
		char *text = malloc(len + 1); /* for the address sanitizer */

		for (size_t k = 0; k < len; k++)
			text[k] = "service.name=,%2 \xc3\xa4"[rand() % 19];
		text[len] = '\0';
		resource_of_list(text, "service.name", out, 8);
		resource_of_list(text, "", out, 8);
		text_clean(out, 8, text, len);
		free(text);
	}
}

/* A ProcessContext with two attributes of its resource and two of its own, as protoc --decode_raw
 * reads it. */
static const uint8_t message[] = "\x0a\x36\x0a\x14\x0a\x0cservice.name\x12\x04\x0a\x02go"
				 "\x0a\x1e\x0a\x0fservice.version\x12\x0b\x0a\x09"
				 "1.2.3-rc1"
				 "\x12\x0a\x0a\x01k\x12\x05\x0a\x03v\xc3\xa4"
				 "\x12\x09\x0a\x03num\x12\x02\x18\x2a";

TEST(resource_attributes_of_a_message)
{
	static const uint8_t wide[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	size_t len = sizeof(message) - 1;
	char out[64];

	CHECK_INT(resource_of_message(message, len, "service.name", out, sizeof(out)), 0);
	CHECK_STR(out, "go");
	CHECK_INT(resource_of_message(message, len, "service.version", out, sizeof(out)), 0);
	CHECK_STR(out, "1.2.3-rc1");
	CHECK_INT(resource_of_message(message, len, "k", out, sizeof(out)), 0);
	CHECK_STR(out, "v\xc3\xa4");
	CHECK_INT(resource_of_message(message, len, "num", out, sizeof(out)), -ENOENT);
	CHECK_INT(resource_of_message(message, len, "service", out, sizeof(out)), -ENOENT);
	CHECK_INT(resource_of_message(wide, sizeof(wide), "k", out, sizeof(out)), -ENOENT);
	CHECK_INT(resource_of_message(NULL, 0, "k", out, sizeof(out)), -ENOENT);
	for (size_t n = 0; n <= len; n++) { /* truncated, in memory that ends there */
		uint8_t *copy = malloc(n + !n);

		memcpy(copy, message, n);
		resource_of_message(copy, n, "service.version", out, sizeof(out));
		free(copy);
	}
	srand(2);
	for (int i = 0; i < 200000; i++) { /* bytes changed */
		uint8_t copy[sizeof(message) - 1];

		memcpy(copy, message, len);
		for (int k = rand() % 4; k >= 0; k--)
			copy[(size_t)rand() % len] = (uint8_t)rand();
		resource_of_message(copy, len, "service.version", out, sizeof(out));
		resource_of_message(copy, len, "k", out, 3);
	}
}

TEST(texts_are_cleaned)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"plain", "plain"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\nb\033[1m", "a?b?[1m"},
		{"\xc3", "?"},
		{"\xc0\xaf\xed\xa0\x80", "?????"}, /* overlong, surrogate */
		{"\xc2\x9b", "??"},                /* C1 */
	};
	char out[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text_clean(out, sizeof(out), cases[i].from, strlen(cases[i].from));
		CHECK_STR(out, cases[i].to);
	}
	text_clean(out, 3, "\xc3\xa4\xc3\xa4", 4); /* not in the middle of a character */
	CHECK_STR(out, "\xc3\xa4");
}

/* An environment of so many bytes, in answers of 64 KiB at most as the agent gives them. */
static size_t environ_bytes;
static int environ_queries;

static int64_t text_of(struct fusee_instance *in, uint32_t pid, const char *name, uint64_t offset,
		       void *buf, uint64_t len)
{
	size_t n = environ_bytes - (size_t)offset;

	(void)in;
	if (!strcmp(name, "exe"))
		return readlink("/proc/self/exe", buf, len);
	if (strcmp(name, "environ") != 0)
		return content((pid_t)pid, name, buf, len);
	n = n < len ? n : len;
	n = n < 65536 ? n : 65536;
	memset(buf, 'e', n);
	environ_queries++;
	return (int64_t)n;
}

/* Each query costs the opener a turn: most environments take one. */
TEST(a_short_answer_is_the_last)
{
	static const struct {
		size_t bytes;
		int queries;
	} cases[] = {{0, 1},     {1, 1},     {4095, 1},          {4096, 2},
		     {65536, 2}, {70000, 3}, {2 * 65536 + 1, 3}, {(256 << 10) - 1, 4}};
	const struct facts_source from = {.text = text_of};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct facts f;

		environ_bytes = cases[i].bytes;
		environ_queries = 0;
		CHECK_INT(facts_read(&f, (uint32_t)getpid(), FACTS_ENVIRON, NULL, &from), 0);
		CHECK_INT(f.environ_len, cases[i].bytes);
		CHECK_INT(environ_queries, cases[i].queries);
		facts_free(&f);
	}
}

/* Processes that come and go while they are read. */
TEST(a_storm)
{
	struct fake *f = begun(fake_new(&fusee_plugin, NULL));

	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		CHECK_INT(fake_process(f, FUSEE_PROCESS_FORK, (uint32_t)pid, (uint32_t)getpid()),
			  0);
		CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, (uint32_t)pid, 0), 0);
		waitpid(pid, NULL, 0);
		CHECK_INT(fake_process(f, FUSEE_PROCESS_EXIT, (uint32_t)pid, 0), 0);
	}
	CHECK_INT(f->ntargets, 0);
	fake_free(f);
}
