/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers include/fusee
/* The fake host that plugins are tested with says what the real one would. */
#include "lib/fakehost.h"

struct toy {
	uint8_t on;
	int64_t n, choice, percent;
	uint64_t size, wait;
	const char *text;
	struct fusee_table list, map;
	struct fusee_instance *in;
	const struct fusee_host *host;
	int pipe[2];
	int ended;
};

static const char *const choices[] = {"none", "some", "all", NULL};
static const struct fusee_option options[] = {
	{.name = "on", .type = FUSEE_BOOL, .offset = offsetof(struct toy, on), .def = "true"},
	{.name = "n", .type = FUSEE_INT, .offset = offsetof(struct toy, n), .def = "-3"},
	{.name = "choice",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct toy, choice),
	 .def = "some",
	 .choices = choices},
	{.name = "percent",
	 .type = FUSEE_PERCENT,
	 .offset = offsetof(struct toy, percent),
	 .def = "1.5%"},
	{.name = "size", .type = FUSEE_SIZE, .offset = offsetof(struct toy, size), .def = "2KiB"},
	{.name = "wait",
	 .type = FUSEE_DURATION,
	 .offset = offsetof(struct toy, wait),
	 .def = "250ms"},
	{.name = "text", .type = FUSEE_STRING, .offset = offsetof(struct toy, text)},
	{.name = "list", .type = FUSEE_LIST, .offset = offsetof(struct toy, list), .def = "a,b"},
	{.name = "map", .type = FUSEE_MAP, .offset = offsetof(struct toy, map), .def = ""},
};

static int ended;

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct toy *t = ctx;

	t->in = in;
	t->host = host;
	if (!strcmp(t->text, "bad"))
		return host->fail(in, -EINVAL, "option 'text': 'bad' is bad");
	return 0;
}

static void fini(void *ctx)
{
	(void)ctx;
	ended++;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct fusee_label why = {.key = {"reason", 6}, .str = {"slow", 4}};
	struct toy *t = ctx;
	struct fusee_str bytes;

	CHECK_INT(t->host->sink->encode(d->out, d->profile, 9, &bytes), -EINVAL);
	CHECK_INT(t->host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &bytes), 0);
	CHECK(bytes.len > 20 && !memcmp(bytes.p, "\x1f\x8b", 2));
	CHECK_INT(t->host->sink->encode(d->out, d->profile, FUSEE_FOLDED, &bytes), 0);
	CHECK(fake_is(bytes, "main;work_0 10000000\nmain;work_1 10000000\n"));
	t->host->count(t->in, "tries", &why, 1, 2);
	t->host->sink->retry_after(d->out, 5);
	return d->attempt ? 0 : t->host->fail(t->in, -EAGAIN, "not yet");
}

static const struct fusee_sink_ops sink_ops = {.size = sizeof(sink_ops), .consume = consume};
static const struct fusee_plugin sink = {
	.magic = FUSEE_MAGIC,
	.kind = FUSEE_SINK,
	.options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	.ctx_size = sizeof(struct toy),
	.init = init,
	.fini = fini,
	.ops = &sink_ops};

TEST(options_are_set)
{
	struct fake *f = fake_new(&sink, "text", "hello", "map", "k=v,x=", "choice", "all", NULL);
	struct toy *t = f->ctx;

	CHECK_INT(t->on, 1);
	CHECK_INT(t->n, -3);
	CHECK_INT(t->choice, 2);
	CHECK_INT(t->percent, 15000);
	CHECK_INT(t->size, 2048);
	CHECK_INT(t->wait, 250000000);
	CHECK_STR(t->text, "hello");
	CHECK_INT(t->list.n, 2);
	CHECK_STR(FUSEE_AT(struct fusee_str, t->list, 1)->p, "b");
	CHECK_INT(t->map.n, 2);
	CHECK_STR(FUSEE_AT(struct fusee_label, t->map, 0)->key.p, "k");
	CHECK_STR(FUSEE_AT(struct fusee_label, t->map, 0)->str.p, "v");
	CHECK_STR(FUSEE_AT(struct fusee_label, t->map, 1)->str.p, "");
	fake_free(f);
	CHECK_INT(ended, 0);
}

TEST(init_and_fini)
{
	struct fake *f = fake_new(&sink, "text", "bad", NULL);

	CHECK_INT(fake_init(f), -EINVAL);
	CHECK_STR(f->error, "option 'text': 'bad' is bad");
	fake_free(f);
	CHECK_INT(ended, 1);
}

TEST(deliveries)
{
	struct fake *f = fake_new(&sink, "text", "", NULL);
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 1, 2, "process", "x", NULL);

	CHECK_INT(fake_init(f), 0);
	CHECK_INT(fake_consume(f, p, 0), -EAGAIN);
	CHECK_STR(f->error, "not yet");
	CHECK(f->retry_named && f->retry_after == 5);
	CHECK_INT(fake_consume(f, p, 1), 0);
	CHECK_STR(f->error, "");
	CHECK_INT(f->encodes, 2);
	CHECK_INT(fake_count(f, "tries{reason=\"slow\"}"), 4);
	CHECK_INT(fake_count(f, "tries"), 0);
	f->host.log((struct fusee_instance *)(void *)f, FUSEE_WARNING, "a thing");
	CHECK(fake_logged(f, "4 a thing") && !fake_logged(f, "other"));
	builder_free(b);
	fake_free(f);
}

TEST(secrets)
{
	struct fake *f = fake_new(&sink, "text", "", NULL);
	struct fusee_instance *in = (struct fusee_instance *)(void *)f;
	char path[] = "/tmp/fusee-secret-XXXXXX", buf[5];
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "abcd\n", 5) == 5);
	CHECK_INT(f->host.read_secret(in, path, buf, sizeof(buf)), 4);
	CHECK_STR(buf, "abcd");
	CHECK(write(fd, "x", 1) == 1);
	CHECK_INT(f->host.read_secret(in, path, buf, sizeof(buf)), -EFBIG);
	unlink(path);
	CHECK_INT(f->host.read_secret(in, path, buf, sizeof(buf)), -ENOENT);
	close(fd);
	fake_free(f);
}

/* ---- discovery ---- */

static int put(struct toy *t, const char *key, uint32_t pid)
{
	struct fusee_label label = {.key = {"unit", 4}, .str = {key, strlen(key)}};
	struct fusee_target target = {.size = sizeof(target),
				      .match = FUSEE_MATCH_PID,
				      .key = {key, strlen(key)},
				      .pid = pid,
				      .labels = {&label, 1, sizeof(label)}};

	return t->host->discovery->put(t->in, &target);
}

static int start(void *ctx)
{
	struct toy *t = ctx;

	CHECK_INT(t->host->discovery->begin(t->in), 0);
	CHECK_INT(put(t, "a", 1), 0);
	CHECK_INT(put(t, "b", 2), 0);
	CHECK_INT(put(t, "c", 0), -EINVAL);
	CHECK(!pipe(t->pipe));
	t->host->discovery->watch_fd(t->in, t->pipe[0], EPOLLIN);
	t->host->discovery->timer(t->in, 1000);
	return t->host->discovery->commit(t->in);
}

static int ready(void *ctx, int fd, uint32_t events)
{
	struct toy *t = ctx;
	char c;

	if (fd < 0)
		return t->host->discovery->del(t->in, (struct fusee_str){"a", 1});
	CHECK(fd == t->pipe[0] && events == EPOLLIN && read(fd, &c, 1) == 1);
	CHECK_INT(t->host->discovery->begin(t->in), 0);
	CHECK_INT(put(t, "b", 7), 0);
	CHECK_INT(t->host->discovery->watch_fd(t->in, fd, 0), 0);
	return t->host->discovery->commit(t->in);
}

static int process(void *ctx, const struct fusee_process_event *e)
{
	return put(ctx, "p", e->pid);
}

static const struct fusee_discovery_ops discovery_ops = {.size = sizeof(discovery_ops),
							 .flags = FUSEE_DISCOVERY_PROCESSES,
							 .start = start,
							 .ready = ready,
							 .process = process};
static const struct fusee_plugin discovery = {
	.magic = FUSEE_MAGIC,
	.kind = FUSEE_DISCOVERY,
	.options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	.ctx_size = sizeof(struct toy),
	.init = init,
	.ops = &discovery_ops};

TEST(targets)
{
	struct fake *f = fake_new(&discovery, "text", "", NULL);
	struct toy *t = f->ctx;

	CHECK_INT(fake_init(f), 0);
	CHECK_INT(fake_start(f), 0);
	CHECK_INT(f->ntargets, 2);
	CHECK_INT(f->refused, 1);
	CHECK_INT(f->commits, 1);
	CHECK_INT(f->timer, 1000);
	CHECK_STR(fake_label(fake_find(f, "b"), "unit"), "b");
	CHECK(!fake_label(fake_find(f, "b"), "slice") && !fake_find(f, "c"));
	CHECK_INT(fake_round(f, 0), 0);
	f->discovery.wake(t->in);
	CHECK_INT(fake_round(f, 1000), 1);
	CHECK(!fake_find(f, "a"));
	CHECK_INT(fake_process(f, FUSEE_PROCESS_EXEC, 9, 0), 0);
	CHECK_INT(fake_find(f, "p")->t.pid, 9);
	CHECK(write(t->pipe[1], "x", 1) == 1);
	CHECK_INT(fake_round(f, 1000), 1);
	CHECK_INT(f->ntargets, 1);
	CHECK_INT(fake_find(f, "b")->t.pid, 7);
	CHECK_INT(f->nwatches, 0);
	fake_free(f);
}
