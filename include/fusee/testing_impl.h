/* SPDX-License-Identifier: Apache-2.0 */
/* fusee/testing_impl.h - the functions of <fusee/testing.h>, which includes this header, for sinks,
 * discovery plugins and options. */
#ifndef FUSEE_TESTING_IMPL_H
#define FUSEE_TESTING_IMPL_H

#include <fusee/testing_unwinder.h>

/* ---- the host of every kind ---- */

static inline void fusee_testing_log(struct fusee_instance *in, int level, const char *text)
{
	(void)in;
	fprintf(stderr, "# log %d: %s\n", level, text);
}

static inline int fusee_testing_fail(struct fusee_instance *in, int err, const char *text)
{
	snprintf(fusee_testing_of(in)->error, sizeof(fusee_testing_of(in)->error), "%s", text);
	fprintf(stderr, "# fails: %s\n", text);
	return err;
}

static inline void fusee_testing_count(struct fusee_instance *in, const char *metric,
				       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	(void)metric;
	(void)labels;
	(void)n;
	fusee_testing_of(in)->counted += add;
}

static inline int fusee_testing_read_secret(struct fusee_instance *in, const char *path, char *buf,
					    uint32_t cap)
{
	FILE *f = fopen(path, "re");
	size_t n;

	(void)in;
	if (!f)
		return -errno;
	n = fread(buf, 1, cap - 1, f);
	fclose(f);
	while (n && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return (int)n;
}

/* ---- sinks ---- */

/* The function of a location without inlined functions. */
static inline struct fusee_str fusee_testing_name(const struct fusee_profile *p, uint32_t location)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, location);
	const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines, l->first_line);

	return *FUSEE_AT(struct fusee_str, p->strings,
			 FUSEE_AT(struct fusee_function, p->functions, line->function)->name);
}

static inline int fusee_testing_encode(struct fusee_sink_out *out, const struct fusee_profile *p,
				       uint32_t format, struct fusee_str *bytes)
{
	struct fusee_testing *t = (struct fusee_testing *)(void *)out;
	const size_t room = 4096; /* fusee_testing_profile() is small */
	size_t at = 0;

	if (format != FUSEE_FOLDED)
		return -ENOTSUP;
	if (p != fusee_testing_profile())
		return -EINVAL;
	free(t->encoded);
	t->encoded = (char *)calloc(1, room);
	if (!t->encoded)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);

		for (uint32_t k = stack->n; k-- > 0;) {
			struct fusee_str name = fusee_testing_name(
				p, *FUSEE_AT(uint32_t, p->stack_locations, stack->first + k));

			at += (size_t)snprintf(t->encoded + at, room - at, "%.*s%c", (int)name.len,
					       name.p, k ? ';' : ' ');
		}
		at += (size_t)snprintf(t->encoded + at, room - at, "%lld\n",
				       (long long)*FUSEE_AT(int64_t, p->values, i));
	}
	*bytes = fusee_text(t->encoded);
	return 0;
}

static inline int fusee_testing_split(struct fusee_sink_out *out, const struct fusee_profile *p,
				      uint64_t max_samples, uint64_t max_bytes,
				      int (*each)(void *arg, const struct fusee_profile *part),
				      void *arg)
{
	(void)out;
	(void)max_samples;
	(void)max_bytes;
	return each(arg, p);
}

static inline void fusee_testing_retry_after(struct fusee_sink_out *out, uint64_t ns)
{
	((struct fusee_testing *)(void *)out)->retry_after_ns = ns;
}

static inline void fusee_testing_denied(struct fusee_sink_out *out)
{
	((struct fusee_testing *)(void *)out)->denials++;
}

static inline void fusee_testing_lost(struct fusee_sink_out *out, const struct fusee_profile *part)
{
	(void)part;
	((struct fusee_testing *)(void *)out)->lost_parts++;
}

static inline const struct fusee_profile *fusee_testing_profile(void)
{
	static const struct fusee_str strings[] = {
		FUSEE_TEXT(""),     FUSEE_TEXT("cpu"), FUSEE_TEXT("nanoseconds"),
		FUSEE_TEXT("main"), FUSEE_TEXT("hot"), FUSEE_TEXT("cold")};
	static const struct fusee_function functions[] = {
		{0}, {.name = 3}, {.name = 4}, {.name = 5}};
	static const struct fusee_mapping mappings[] = {{0}};
	static const struct fusee_line lines[] = {
		{.function = 1}, {.function = 2}, {.function = 3}};
	static const struct fusee_location locations[] = {{0},
							  {.first_line = 0, .nlines = 1},
							  {.first_line = 1, .nlines = 1},
							  {.first_line = 2, .nlines = 1}};
	static const uint32_t stack_locations[] = {2, 1, 3, 1};
	static const struct fusee_stack stacks[] = {
		{0}, {.first = 0, .n = 2}, {.first = 2, .n = 2}};
	static const struct fusee_value_type types[] = {{.type = 1, .unit = 2}};
	static const struct fusee_sample samples[] = {{.stack = 1}, {.stack = 2}};
	static const int64_t values[] = {30000000, 10000000};
	static struct fusee_profile p = {
		.size = sizeof(p),
		.kind = 1,
		.period_type = 1,
		.period_unit = 2,
		.period = 10000000,
		.start_ns = 1700000000000000000u,
		.duration_ns = 60000000000u,
		.id = {1},
		.strings = FUSEE_TABLE(strings),
		.functions = FUSEE_TABLE(functions),
		.mappings = FUSEE_TABLE(mappings),
		.lines = FUSEE_TABLE(lines),
		.locations = FUSEE_TABLE(locations),
		.stack_locations = FUSEE_TABLE(stack_locations),
		.stacks = FUSEE_TABLE(stacks),
		.types = FUSEE_TABLE(types),
		.samples = FUSEE_TABLE(samples),
		.values = FUSEE_TABLE(values),
	};
	return &p;
}

/* ---- discovery ---- */

static inline int fusee_testing_del(struct fusee_instance *in, struct fusee_str key)
{
	struct fusee_testing *t = fusee_testing_of(in);

	for (uint32_t i = 0; i < t->ntargets; i++)
		if (fusee_text_is(key, t->targets[i].key)) {
			t->targets[i] = t->targets[--t->ntargets];
			return 0;
		}
	return -ENOENT;
}

static inline int fusee_testing_put(struct fusee_instance *in, const struct fusee_target *target)
{
	struct fusee_testing *t = fusee_testing_of(in);
	struct fusee_testing_target *to;
	size_t at = 0;

	fusee_testing_del(in, target->key);
	if (t->ntargets == FUSEE_TESTING_TARGETS)
		return -ENOSPC;
	to = &t->targets[t->ntargets++];
	memset(to, 0, sizeof(*to));
	snprintf(to->key, sizeof(to->key), "%.*s", (int)target->key.len, target->key.p);
	to->match = target->match;
	to->pid = target->pid;
	FUSEE_FOR_EACH (struct fusee_label, l, target->labels) {
		if (at < sizeof(to->labels))
			at += (size_t)snprintf(to->labels + at, sizeof(to->labels) - at,
					       "%.*s=%.*s ", (int)l->key.len, l->key.p,
					       (int)l->str.len, l->str.p);
	}
	return FUSEE_HAS(target, later) && target->later.n;
}

static inline int fusee_testing_begin(struct fusee_instance *in)
{
	fusee_testing_of(in)->ntargets = 0; /* targets that are not put again are removed */
	return 0;
}

static inline int fusee_testing_commit(struct fusee_instance *in)
{
	fusee_testing_of(in)->commits++;
	return 0;
}

static inline int fusee_testing_watch_fd(struct fusee_instance *in, int fd, uint32_t events)
{
	(void)in;
	(void)fd;
	(void)events;
	return 0;
}

static inline int fusee_testing_timer(struct fusee_instance *in, uint64_t period_ns)
{
	fusee_testing_of(in)->timer_ns = period_ns;
	return 0;
}

static inline int fusee_testing_wake(struct fusee_instance *in)
{
	(void)in;
	return 0;
}

/* ---- options, init and fini ---- */

static inline const struct fusee_option *fusee_testing_option(struct fusee_testing *t,
							      const char *name)
{
	FUSEE_FOR_EACH (struct fusee_option, o, t->plugin->options) {
		if (!strcmp(o->name, name))
			return o;
	}
	return NULL;
}

static inline int fusee_testing_write(struct fusee_testing *t, const struct fusee_option *o,
				      const char *value)
{
	char *at = (char *)t->ctx + o->offset, *end = NULL, *copy;
	double number = strtod(value, &end);
	int64_t n = (int64_t)number;

	switch (o->type) {
	case FUSEE_BOOL:
		*(uint8_t *)at = !strcmp(value, "true");
		return 0;
	case FUSEE_STRING:
	case FUSEE_SECRET:
		copy = strdup(value);
		memcpy(at, &copy, sizeof(copy));
		return copy ? 0 : -ENOMEM;
	case FUSEE_LIST:
	case FUSEE_MAP:
		return 0;
	case FUSEE_DURATION: /* "250ms", "5s", "2m", "1h" */
		n = (int64_t)(number * (!strcmp(end, "ms")  ? 1e6
					: !strcmp(end, "m") ? 6e10
					: !strcmp(end, "h") ? 3.6e12
							    : 1e9));
		break;
	case FUSEE_SIZE: /* "4KiB", "2MiB", "1GiB" */
		n = (int64_t)(number * (*end == 'K'   ? 1024.0
					: *end == 'M' ? 1048576.0
					: *end == 'G' ? 1073741824.0
						      : 1.0));
		break;
	case FUSEE_ENUM:
		for (n = 0; o->choices[n] && strcmp(o->choices[n], value);)
			n++;
		break;
	default:
		break;
	}
	memcpy(at, &n, sizeof(n));
	return 0;
}

/* Allocates ctx, once, and writes the defaults of all options. 0 or -ENOMEM. */
static inline int fusee_testing_prepare(struct fusee_testing *t)
{
	if (t->ctx)
		return 0;
	t->ctx = calloc(1, t->plugin->ctx_size ? t->plugin->ctx_size : 1);
	if (!t->ctx)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_option, o, t->plugin->options) {
		if (o->def)
			fusee_testing_write(t, o, o->def);
	}
	return 0;
}

static inline int fusee_testing_set(struct fusee_testing *t, const char *name, const char *value)
{
	const struct fusee_option *o = fusee_testing_option(t, name);
	int r = fusee_testing_prepare(t);

	return r ? r : o ? fusee_testing_write(t, o, value) : -ENOENT;
}

static inline int64_t fusee_testing_process_text(struct fusee_instance *in, uint32_t pid,
						 const char *name, uint64_t offset, void *buf,
						 uint64_t len)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)in;
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	if (!strcmp(name, "exe")) {
		n = readlink(path, (char *)buf, len);
		return n < 0 ? -errno : n;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, buf, len, (off_t)offset);
	close(fd);
	return n < 0 ? -1 : n;
}

static inline int fusee_testing_init(struct fusee_testing *t)
{
	int r = fusee_testing_prepare(t);

	t->generation = 1;
	t->sink = (struct fusee_sink_host){.size = sizeof(t->sink),
					   .encode = fusee_testing_encode,
					   .split = fusee_testing_split,
					   .retry_after = fusee_testing_retry_after,
					   .denied = fusee_testing_denied,
					   .lost = fusee_testing_lost};
	t->discovery = (struct fusee_discovery_host){.size = sizeof(t->discovery),
						     .begin = fusee_testing_begin,
						     .put = fusee_testing_put,
						     .del = fusee_testing_del,
						     .commit = fusee_testing_commit,
						     .watch_fd = fusee_testing_watch_fd,
						     .timer = fusee_testing_timer,
						     .wake = fusee_testing_wake,
						     .process_text = fusee_testing_process_text};
	fusee_testing_fill_unwinder(t);
	t->host = (struct fusee_host){.size = sizeof(t->host),
				      .abi_minor = FUSEE_ABI_MINOR,
				      .log = fusee_testing_log,
				      .fail = fusee_testing_fail,
				      .count = fusee_testing_count,
				      .read_secret = fusee_testing_read_secret,
				      .unwinder = &t->unwinder,
				      .sink = &t->sink,
				      .discovery = &t->discovery};
	if (!r && t->plugin->init)
		r = t->plugin->init(t->ctx, (struct fusee_instance *)(void *)t, &t->host);
	return r;
}

/* ---- callbacks ---- */

static inline int fusee_testing_consume(struct fusee_testing *t)
{
	const struct fusee_sink_ops *ops = (const struct fusee_sink_ops *)t->plugin->ops;
	struct fusee_delivery d = {.size = sizeof(d),
				   .attempt = 0,
				   .profile = fusee_testing_profile(),
				   .out = (struct fusee_sink_out *)(void *)t};

	return ops->consume(t->ctx, &d);
}

static inline int fusee_testing_start(struct fusee_testing *t)
{
	const struct fusee_discovery_ops *ops = (const struct fusee_discovery_ops *)t->plugin->ops;

	return ops->start ? ops->start(t->ctx) : 0;
}

static inline int fusee_testing_tick(struct fusee_testing *t)
{
	const struct fusee_discovery_ops *ops = (const struct fusee_discovery_ops *)t->plugin->ops;

	return ops->tick ? ops->tick(t->ctx) : 0;
}

static inline void fusee_testing_fini(struct fusee_testing *t)
{
	if (t->plugin->fini)
		t->plugin->fini(t->ctx);
	FUSEE_FOR_EACH (struct fusee_option, o, t->plugin->options) {
		char *text;

		if (!t->ctx || (o->type != FUSEE_STRING && o->type != FUSEE_SECRET))
			continue;
		memcpy(&text, (char *)t->ctx + o->offset, sizeof(text));
		free(text);
	}
	free(t->ctx);
	free(t->encoded);
	t->ctx = NULL;
	t->encoded = NULL;
}

#endif
