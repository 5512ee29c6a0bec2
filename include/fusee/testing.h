/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/testing.h - a host for tests of one plugin, outside of fusee, in one header.
 *
 *	struct fusee_testing t = {.plugin = &fusee_plugin};
 *	fusee_testing_set(&t, "path", "/tmp/x");
 *	assert(!fusee_testing_init(&t));
 *	assert(!fusee_testing_consume(&t));
 *	fusee_testing_fini(&t);
 *
 * What the plugin says goes to stderr; what it fails with, counts and puts is kept in the struct.
 * Options are set from text, as a script's are; those of lists and maps are left empty. encode()
 * knows FUSEE_FOLDED, for the others it answers -ENOTSUP. An unwinder's file has the symbols that
 *the test gives it. For one thread and one instance at a time.
 */
#ifndef FUSEE_TESTING_H
#define FUSEE_TESTING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/plugin.h>
#include <fusee/unwinder.bpf.h>

#define FUSEE_TESTING_TARGETS 64
#define FUSEE_TESTING_SYMBOLS 16
#define FUSEE_TESTING_TURNS 1024 /* of a step at one place */

struct fusee_testing_target {
	char key[128], labels[512]; /* "service=shop pid=12 " */
	uint32_t match, pid;
};

struct fusee_testing {
	const struct fusee_plugin *plugin; /* to be set */
	void *ctx;
	struct fusee_host host;
	struct fusee_sink_host sink;
	struct fusee_discovery_host discovery;
	char error[512]; /* of the last fail() */
	uint64_t counted, retry_after_ns, timer_ns;
	struct fusee_testing_target targets[FUSEE_TESTING_TARGETS];
	uint32_t ntargets, commits;
	char *encoded;
	/* unwinders */
	struct fusee_unwinder_host unwinder;
	struct fusee_testing_symbol {
		const char *name;
		struct fusee_range at;
	} symbols[FUSEE_TESTING_SYMBOLS]; /* of the file; ends with the first without a name */
	struct fusee_claim claims[FUSEE_TESTING_SYMBOLS];
	uint32_t nclaims, nslab;
	uint32_t slab[256];
	char frames[4096]; /* what was pushed and named: "inner:12;outer:7;" */
	uint64_t emitted[256];
	uint32_t nemitted;
};

static inline struct fusee_testing *fusee_testing_of(struct fusee_instance *in)
{
	return (struct fusee_testing *)(void *)in;
}

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

/* ---- sinks: one profile of two stacks, main;hot 30 ms and main;cold 10 ms ---- */

static inline int fusee_testing_encode(struct fusee_sink_out *out, const struct fusee_profile *p,
				       uint32_t format, struct fusee_str *bytes)
{
	struct fusee_testing *t = (struct fusee_testing *)(void *)out;

	if (format != FUSEE_FOLDED)
		return -ENOTSUP;
	free(t->encoded);
	t->encoded = (char *)calloc(1, 65536);
	if (!t->encoded)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);
		size_t at = strlen(t->encoded);

		for (uint32_t k = stack->n; k-- > 0;) {
			uint32_t id = *FUSEE_AT(uint32_t, p->stack_locations, stack->first + k);
			const struct fusee_location *l = FUSEE_AT(struct fusee_location,
								  p->locations, id);
			const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
								 l->first_line);
			const struct fusee_function *f = FUSEE_AT(struct fusee_function,
								  p->functions, line->function);
			const struct fusee_str *name = FUSEE_AT(struct fusee_str, p->strings,
								f->name);

			at += (size_t)snprintf(t->encoded + at, 65536 - at, "%.*s%c",
					       (int)name->len, name->p, k ? ';' : ' ');
		}
		snprintf(t->encoded + at, 65536 - at, "%lld\n",
			 (long long)*FUSEE_AT(int64_t, p->values, i));
	}
	*bytes = (struct fusee_str){t->encoded, strlen(t->encoded)};
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

/* Lives for ever. */
static inline const struct fusee_profile *fusee_testing_profile(void)
{
#define S(text)                        \
	{                              \
		text, sizeof(text) - 1 \
	}
#define T(array)                                                              \
	{                                                                     \
		array, sizeof(array) / sizeof((array)[0]), sizeof((array)[0]) \
	}
	static const struct fusee_str strings[] = {S(""),     S("cpu"), S("nanoseconds"),
						   S("main"), S("hot"), S("cold")};
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
		.strings = T(strings),
		.functions = T(functions),
		.mappings = T(mappings),
		.lines = T(lines),
		.locations = T(locations),
		.stack_locations = T(stack_locations),
		.stacks = T(stacks),
		.types = T(types),
		.samples = T(samples),
		.values = T(values),
	};
#undef S
#undef T
	return &p;
}

/* ---- discovery ---- */

static inline int fusee_testing_del(struct fusee_instance *in, struct fusee_str key)
{
	struct fusee_testing *t = fusee_testing_of(in);

	for (uint32_t i = 0; i < t->ntargets; i++)
		if (strlen(t->targets[i].key) == key.len &&
		    !memcmp(t->targets[i].key, key.p, key.len)) {
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
	for (uint32_t i = 0; i < target->labels.n && at < sizeof(to->labels); i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, target->labels, i);

		at += (size_t)snprintf(to->labels + at, sizeof(to->labels) - at, "%.*s=%.*s ",
				       (int)l->key.len, l->key.p, (int)l->str.len, l->str.p);
	}
	return 0;
}

static inline int fusee_testing_begin(struct fusee_instance *in)
{
	fusee_testing_of(in)->ntargets = 0; /* what is not put again is gone */
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

/* ---- unwinders: a file that has symbols, an x86-64 one, and a stack that the test makes up ----
 */

static inline struct fusee_testing **fusee_testing_this(void)
{
	static struct fusee_testing *t; /* host calls that are handed no instance need it */

	return &t;
}

static inline int fusee_testing_file_info(uint64_t file, struct fusee_file_info *info)
{
	(void)file;
	info->machine = 62;
	return 0;
}

static inline int fusee_testing_file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	struct fusee_testing_symbol *s = (*fusee_testing_this())->symbols;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (!strcmp(s[i].name, name)) {
			*at = s[i].at;
			return 0;
		}
	return -ENOENT;
}

static inline int fusee_testing_file_function(uint64_t file, uint64_t vaddr, struct fusee_range *at)
{
	struct fusee_testing_symbol *s = (*fusee_testing_this())->symbols;

	(void)file;
	for (int i = 0; i < FUSEE_TESTING_SYMBOLS && s[i].name; i++)
		if (vaddr >= s[i].at.lo && vaddr < s[i].at.hi) {
			*at = s[i].at;
			return 0;
		}
	return -ENOENT;
}

static inline int fusee_testing_file_slab(struct fusee_instance *in, uint64_t file,
					  const uint32_t *words, uint64_t n)
{
	struct fusee_testing *t = fusee_testing_of(in);

	(void)file;
	if (n > sizeof(t->slab) / sizeof(t->slab[0]))
		return -ENOSPC;
	memcpy(t->slab, words, n * sizeof(*words));
	t->nslab = (uint32_t)n;
	return 0;
}

static inline int fusee_testing_file_claim(struct fusee_instance *in, uint64_t file,
					   const struct fusee_claim *claim)
{
	struct fusee_testing *t = fusee_testing_of(in);

	(void)file;
	if (claim->range.lo >= claim->range.hi || claim->flags != FUSEE_CLAIM_STEP ||
	    claim->arg >> 31)
		return -EINVAL;
	if (t->nclaims == FUSEE_TESTING_SYMBOLS)
		return -ENOSPC;
	t->claims[t->nclaims++] = *claim;
	return 0;
}

static inline int fusee_testing_frame(struct fusee_frame_out *out,
				      const struct fusee_source_frame *f)
{
	struct fusee_testing *t = (struct fusee_testing *)(void *)out;
	size_t at = strlen(t->frames);

	snprintf(t->frames + at, sizeof(t->frames) - at, "%.*s:%u;", (int)f->function.len,
		 f->function.p, f->line);
	return 0;
}

/* ---- for tests ---- */

static inline const struct fusee_option *fusee_testing_option(struct fusee_testing *t,
							      const char *name)
{
	for (uint32_t i = 0; i < t->plugin->options.n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, t->plugin->options, i);

		if (!name || !strcmp(o->name, name))
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

/* ctx with the defaults of all options; called by the others. */
static inline int fusee_testing_prepare(struct fusee_testing *t)
{
	if (t->ctx)
		return 0;
	t->ctx = calloc(1, t->plugin->ctx_size ? t->plugin->ctx_size : 1);
	if (!t->ctx)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->plugin->options.n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, t->plugin->options, i);

		if (o->def)
			fusee_testing_write(t, o, o->def);
	}
	return 0;
}

/* -ENOENT: the plugin has no such option. */
static inline int fusee_testing_set(struct fusee_testing *t, const char *name, const char *value)
{
	const struct fusee_option *o = fusee_testing_option(t, name);
	int r = fusee_testing_prepare(t);

	return r ? r : o ? fusee_testing_write(t, o, value) : -ENOENT;
}

static inline int fusee_testing_init(struct fusee_testing *t)
{
	int r = fusee_testing_prepare(t);

	t->sink = (struct fusee_sink_host){.size = sizeof(t->sink),
					   .encode = fusee_testing_encode,
					   .split = fusee_testing_split,
					   .retry_after = fusee_testing_retry_after};
	t->discovery = (struct fusee_discovery_host){.size = sizeof(t->discovery),
						     .begin = fusee_testing_begin,
						     .put = fusee_testing_put,
						     .del = fusee_testing_del,
						     .commit = fusee_testing_commit,
						     .watch_fd = fusee_testing_watch_fd,
						     .timer = fusee_testing_timer,
						     .wake = fusee_testing_wake};
	t->unwinder = (struct fusee_unwinder_host){.size = sizeof(t->unwinder),
						   .file_info = fusee_testing_file_info,
						   .file_symbol = fusee_testing_file_symbol,
						   .file_function = fusee_testing_file_function,
						   .file_slab = fusee_testing_file_slab,
						   .file_claim = fusee_testing_file_claim,
						   .frame = fusee_testing_frame};
	t->host = (struct fusee_host){.size = sizeof(t->host),
				      .abi_minor = FUSEE_ABI_MINOR,
				      .log = fusee_testing_log,
				      .fail = fusee_testing_fail,
				      .count = fusee_testing_count,
				      .read_secret = fusee_testing_read_secret,
				      .unwinder = &t->unwinder,
				      .sink = &t->sink,
				      .discovery = &t->discovery};
	*fusee_testing_this() = t;
	if (!r && t->plugin->init)
		r = t->plugin->init(t->ctx, (struct fusee_instance *)(void *)t, &t->host);
	return r;
}

/* Hands fusee_testing_profile() over. */
static inline int fusee_testing_consume(struct fusee_testing *t)
{
	const struct fusee_sink_ops *ops = (const struct fusee_sink_ops *)t->plugin->ops;
	struct fusee_delivery d = {.size = sizeof(d),
				   .profile = fusee_testing_profile(),
				   .out = (struct fusee_sink_out *)(void *)t};

	return ops->consume(t->ctx, &d);
}

/* start(), or a tick of the timer that it asked for. */
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

/* Asks about the file with t->symbols. Its claims and its table are kept. */
static inline int fusee_testing_inspect(struct fusee_testing *t)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;

	t->nclaims = t->nslab = 0;
	return ops->inspect(t->ctx, 1);
}

static inline int fusee_testing_emitted(struct fusee_native *n, __u32 kind, __u64 key)
{
	struct fusee_testing *t = *fusee_testing_this();

	for (uint32_t i = 0; i < t->nemitted; i++)
		if (t->emitted[i] == (key ^ (__u64)kind << 56) + n->u.process)
			return 1;
	return 0;
}

/* What is emitted goes to record() at once. */
static inline int fusee_testing_emit(struct fusee_native *n, __u32 kind, __u64 key,
				     const void *bytes, __u32 len)
{
	struct fusee_testing *t = *fusee_testing_this();
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_emission e = {
		.size = sizeof(e), .kind = kind, .key = key, .bytes = {(const char *)bytes, len}};

	if (t->nemitted < sizeof(t->emitted) / sizeof(t->emitted[0]))
		t->emitted[t->nemitted++] = (key ^ (__u64)kind << 56) + n->u.process;
	return ops->record(t->ctx, n->u.process, &e);
}

static inline void fusee_testing_push(struct fusee_testing *t, struct fusee_unwind *u)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	struct fusee_raw_frame raw = {
		.size = sizeof(raw), .process = u->process, .v = {u->pushed[0], u->pushed[1]}};

	u->npushed = 0;
	if (ops->symbolize(t->ctx, &raw, (struct fusee_frame_out *)(void *)t) <= 0)
		strncat(t->frames, "?;", sizeof(t->frames) - strlen(t->frames) - 1);
}

/*
 * The step's turns at one place: n->u.pc, sp, offset and bias are set, n->read reads memory. Frames
 * that it pushes are named and added to t->frames. What it answered last; FUSEE_PASS: the place is
 * in no claim; -ELOOP: it does not come to an end.
 */
static inline int fusee_testing_step(struct fusee_testing *t, struct fusee_native *n)
{
	const struct fusee_unwinder_ops *ops = (const struct fusee_unwinder_ops *)t->plugin->ops;
	int next = FUSEE_PASS;

	n->emitted = fusee_testing_emitted;
	n->emit = fusee_testing_emit;
	n->slab = t->slab;
	n->u.slab_words = t->nslab;
	for (uint32_t i = 0; i < t->nclaims; i++) {
		if (n->u.offset - t->claims[i].range.lo >=
		    t->claims[i].range.hi - t->claims[i].range.lo)
			continue;
		n->u.claim_lo = t->claims[i].range.lo + n->u.bias;
		n->u.claim_arg = t->claims[i].arg;
		for (int turn = 0; turn < FUSEE_TESTING_TURNS; turn++) {
			next = ops->native_step(&n->u);
			if (n->u.npushed)
				fusee_testing_push(t, &n->u);
			if (next != FUSEE_AGAIN)
				return next;
		}
		return -ELOOP;
	}
	return next;
}

static inline void fusee_testing_fini(struct fusee_testing *t)
{
	if (t->plugin->fini)
		t->plugin->fini(t->ctx);
	for (uint32_t i = 0; t->ctx && i < t->plugin->options.n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, t->plugin->options, i);
		char *text;

		if (o->type != FUSEE_STRING && o->type != FUSEE_SECRET)
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
