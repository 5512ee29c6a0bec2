/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for tests of one plugin. It sets options from text as the core does, keeps what the plugin
 * logged and counted, encodes profiles, and is the control thread for discovery:
 *
 *	struct fake *f = fake_new(&fusee_plugin, "dir", "/tmp/x", "keep", "1h", NULL);
 *	CHECK_INT(fake_init(f), 0);
 *	CHECK_INT(fake_consume(f, profile, 0), -EAGAIN);
 *	CHECK_INT(fake_count(f, "retried"), 1);
 *	fake_free(f);
 *
 * Include it once in a test program, after test.h. Lists are "a,b", maps "k=v,k=v".
 */
#ifndef FAKEHOST_H
#define FAKEHOST_H

#include <poll.h>
#include <sys/epoll.h>

#include <fusee/plugin.h>

#include "base/buf.h"
#include "base/text.h"
#include "profile/builder.h"
#include "pprof/pprof.h"
#include "report/report.h"
#include "pprof/split.h"
#include "test.h"

#define FAKE __attribute__((unused)) static

struct fake_counter {
	char name[256]; /* dropped{reason="no space"} */
	uint64_t n;
};

/* A target that was put; owns its texts. */
struct fake_target {
	struct fusee_target t;
	bool fresh; /* put since begin() */
};

struct fake_watch {
	int fd;
	uint32_t events;
};

struct fake {
	bool early; /* set by the test: an event says when `later` labels are needed */
	struct fusee_host host;
	struct fusee_sink_host sink;
	struct fusee_discovery_host discovery;
	const struct fusee_plugin *plugin;
	void *ctx;
	bool begun;
	pthread_mutex_t lock; /* log, counters and wakes come from any thread */

	char error[1024]; /* of the last fail(), "" none; fake_forget() empties it */
	int fails;
	struct buf logged; /* lines: "4 text\n" */
	struct fake_counter counters[64];
	int ncounters;

	/* sinks: of the last fake_consume() */
	struct buf encoded[FUSEE_FOLDED + 1];
	bool has[FUSEE_FOLDED + 1];
	const struct fusee_profile *delivered;
	int encodes;
	bool retry_named, denied;
	uint64_t lost; /* entries in the parts of lost() */
	uint64_t retry_after;

	/* discovery */
	struct fake_target *targets;
	uint32_t ntargets;
	int begins, commits, puts, dels, refused, wakes;
	bool open; /* between begin and commit */
	struct fake_watch watches[64];
	int nwatches;
	uint64_t timer;
};

FAKE struct fake *fake_of(struct fusee_instance *in)
{
	return (struct fake *)(void *)in;
}

/* ---- what every kind is offered ---- */

FAKE void fake_log(struct fusee_instance *in, int level, const char *text)
{
	struct fake *f = fake_of(in);

	pthread_mutex_lock(&f->lock);
	buf_printf(&f->logged, "%d %s\n", level, text);
	pthread_mutex_unlock(&f->lock);
}

FAKE int fake_fail(struct fusee_instance *in, int err, const char *text)
{
	struct fake *f = fake_of(in);

	CHECK(err < 0 && text && *text);
	snprintf(f->error, sizeof(f->error), "%s", text);
	f->fails++;
	return err;
}

FAKE void fake_add(struct fusee_instance *in, const char *metric, const struct fusee_label *labels,
		   uint32_t n, uint64_t add)
{
	struct fake *f = fake_of(in);
	char name[sizeof(f->counters->name)];
	int len = snprintf(name, sizeof(name), "%s", metric), i;

	for (uint32_t k = 0; k < n; k++)
		len += snprintf(name + len, sizeof(name) - (size_t)len, "%s%.*s=\"%.*s\"%s",
				k ? "," : "{", (int)labels[k].key.len, labels[k].key.p,
				(int)labels[k].str.len, labels[k].str.p, k + 1 < n ? "" : "}");
	pthread_mutex_lock(&f->lock);
	for (i = 0; i < f->ncounters && strcmp(f->counters[i].name, name); i++)
		;
	CHECK(i < (int)(sizeof(f->counters) / sizeof(*f->counters)));
	memcpy(f->counters[i].name, name, sizeof(name));
	f->counters[i].n += add;
	f->ncounters += i == f->ncounters;
	pthread_mutex_unlock(&f->lock);
}

FAKE int fake_read_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b = {0};
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(&b, fd, cap); /* a newline may be the byte that does not fit */
	close(fd);
	if (!r && b.len && b.p[b.len - 1] == '\n')
		b.len--;
	if (!r && b.len >= cap)
		r = -EFBIG;
	if (!r) {
		memcpy(buf, b.p ? b.p : "", b.len);
		buf[b.len] = '\0';
		r = (int)b.len;
	}
	buf_fini(&b);
	return r;
}

/* A counter by its name with labels; 0 if it was never counted. */
FAKE uint64_t fake_count(struct fake *f, const char *name)
{
	uint64_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < f->ncounters; i++)
		if (!strcmp(f->counters[i].name, name))
			n = f->counters[i].n;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* A line of the log holds this text. */
FAKE bool fake_logged(struct fake *f, const char *text)
{
	bool found;

	pthread_mutex_lock(&f->lock);
	found = f->logged.len && memmem(f->logged.p, f->logged.len, text, strlen(text));
	pthread_mutex_unlock(&f->lock);
	return found;
}

FAKE void fake_forget(struct fake *f)
{
	*f->error = '\0';
	f->fails = 0;
	buf_reset(&f->logged);
}

/* ---- sinks ---- */

FAKE int fake_encode(struct fusee_sink_out *out, const struct fusee_profile *p, uint32_t format,
		     struct fusee_str *bytes)
{
	struct fake *f = (struct fake *)(void *)out;
	static const struct render_options none;
	int r = 0;

	if (format < FUSEE_PPROF_GZ || format > FUSEE_FOLDED)
		return -EINVAL;
	if (p != f->delivered || !f->has[format]) {
		buf_reset(&f->encoded[format]);
		f->encodes++;
		r = format == FUSEE_FOLDED
			    ? render_folded(p, NULL, &none, &f->encoded[format])
			    : pprof_encode(p, format == FUSEE_PPROF_GZ, &f->encoded[format]);
		f->has[format] = !r && p == f->delivered;
	}
	*bytes = (struct fusee_str){f->encoded[format].p, f->encoded[format].len};
	return r;
}

FAKE int fake_split(struct fusee_sink_out *out, const struct fusee_profile *p, uint64_t max_samples,
		    uint64_t max_bytes, int (*each)(void *arg, const struct fusee_profile *part),
		    void *arg)
{
	return profile_split(p, max_samples, max_bytes, each, arg);
}

FAKE void fake_retry_after(struct fusee_sink_out *out, uint64_t ns)
{
	struct fake *f = (struct fake *)(void *)out;

	f->retry_named = true;
	f->retry_after = ns;
}

FAKE void fake_denied(struct fusee_sink_out *out)
{
	((struct fake *)(void *)out)->denied = true;
}

FAKE void fake_lost(struct fusee_sink_out *out, const struct fusee_profile *part)
{
	((struct fake *)(void *)out)->lost += part->samples.n;
}

#define FAKE_DENIED (-EACCES) /* of fake_consume(): -EAGAIN after denied() */

/* One attempt to deliver; the 0th is a new delivery. */
FAKE int fake_consume(struct fake *f, const struct fusee_profile *p, uint32_t attempt)
{
	const struct fusee_sink_ops *ops = f->plugin->ops;
	struct fusee_delivery d = {.size = sizeof(d),
				   .attempt = attempt,
				   .profile = p,
				   .out = (struct fusee_sink_out *)(void *)f};
	int r;

	if (!attempt)
		memset(f->has, 0, sizeof(f->has));
	f->delivered = p;
	f->retry_named = f->denied = false;
	f->retry_after = f->lost = 0;
	fake_forget(f);
	r = ops->consume(f->ctx, &d);
	CHECK(!f->denied || r == -EAGAIN);
	return f->denied ? FAKE_DENIED : r;
}

/* A finished profile of `n` stacks "main;work_0", "main;work_1" .., each of 10 ms, of a target with
 * these labels: name, value, .., NULL. It goes with the builder. */
FAKE const struct fusee_profile *fake_profile(struct builder **b, uint32_t id, uint32_t n, ...)
{
	const struct fusee_profile *p = NULL;
	struct fusee_profile *head;
	const char *key;
	va_list ap;

	CHECK_INT(builder_new(b), 0);
	builder_type(*b, "cpu", "nanoseconds");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stack[2];
		int64_t value = 10000000;

		for (uint32_t k = 0; k < 2; k++) {
			char name[32];
			struct fusee_function fn = {0};
			struct fusee_line line = {.line = 1};
			struct fusee_location l = {.address = k ? 1 : 2 + i};

			snprintf(name, sizeof(name), k ? "main" : "work_%u", i);
			fn.name = fn.system_name = builder_cstr(*b, name);
			line.function = builder_function(*b, &fn);
			stack[k] = builder_location(*b, &l, &line, 1);
		}
		builder_sample(*b, builder_stack(*b, stack, 2), NULL, 0, 0, 0, &value);
	}
	va_start(ap, n);
	while ((key = va_arg(ap, const char *)))
		builder_resource(*b, key, va_arg(ap, const char *));
	va_end(ap);
	head = builder_profile(*b);
	head->period_type = builder_cstr(*b, "cpu");
	head->period_unit = builder_cstr(*b, "nanoseconds");
	head->period = 10000000;
	head->start_ns = 1795248900000000000ull; /* 2026-11-21T08:15:00Z */
	head->duration_ns = 10000000000ull;
	memcpy(head->id, &id, sizeof(id));
	CHECK_INT(builder_finish(*b, &p), 0);
	return p;
}

/* ---- discovery ---- */

FAKE struct fusee_str fake_copy(struct fusee_str s)
{
	char *p = calloc(1, s.len + 1);

	CHECK(p);
	if (s.len)
		memcpy(p, s.p, s.len);
	return (struct fusee_str){p, s.len};
}

FAKE void fake_drop(struct fusee_str s)
{
	free((char *)(uintptr_t)s.p);
}

FAKE bool fake_is(struct fusee_str s, const char *text)
{
	return s.len == strlen(text) && (!s.len || !memcmp(s.p, text, s.len));
}

FAKE void fake_target_fini(struct fake_target *t)
{
	fake_drop(t->t.key);
	fake_drop(t->t.cgroup);
	fake_drop(t->t.match_label.key);
	fake_drop(t->t.match_label.str);
	for (uint32_t i = 0; i < t->t.labels.n; i++) {
		fake_drop(FUSEE_AT(struct fusee_label, t->t.labels, i)->key);
		fake_drop(FUSEE_AT(struct fusee_label, t->t.labels, i)->str);
	}
	free((void *)(uintptr_t)t->t.labels.at);
}

/* NULL: there is none of this key. */
FAKE struct fake_target *fake_find(struct fake *f, const char *key)
{
	for (uint32_t i = 0; i < f->ntargets; i++)
		if (fake_is(f->targets[i].t.key, key))
			return &f->targets[i];
	return NULL;
}

/* NULL: it has no such label. Terminated. */
FAKE const char *fake_label(const struct fake_target *t, const char *name)
{
	for (uint32_t i = 0; t && i < t->t.labels.n; i++)
		if (fake_is(FUSEE_AT(struct fusee_label, t->t.labels, i)->key, name))
			return FUSEE_AT(struct fusee_label, t->t.labels, i)->str.p;
	return NULL;
}

/* A label's name: [a-zA-Z_][a-zA-Z0-9_]* */
FAKE bool fake_named(struct fusee_str s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	for (uint64_t i = 0; i < s.len; i++)
		if (!s.p[i] || !strchr(letters, s.p[i]))
			return false;
	return s.len && (s.p[0] < '0' || s.p[0] > '9');
}

FAKE bool fake_target_ok(const struct fusee_target *t)
{
	if (t->size < sizeof(*t) || !t->key.len)
		return false;
	for (uint32_t i = 0; i < t->labels.n; i++)
		if (!fake_named(FUSEE_AT(struct fusee_label, t->labels, i)->key))
			return false;
	switch (t->match) {
	case FUSEE_MATCH_PID:
		return t->pid;
	case FUSEE_MATCH_CGROUP:
		return t->cgroup.len && t->cgroup.p[0] == '/';
	case FUSEE_MATCH_LABEL:
		return fake_named(t->match_label.key) && t->match_label.str.len;
	default:
		return false;
	}
}

FAKE struct fake_target *fake_slot(struct fake *f, struct fusee_str key)
{
	for (uint32_t i = 0; i < f->ntargets; i++) {
		struct fusee_str k = f->targets[i].t.key;

		if (k.len == key.len && !memcmp(k.p, key.p, k.len)) {
			fake_target_fini(&f->targets[i]);
			return &f->targets[i];
		}
	}
	f->targets = realloc(f->targets, (f->ntargets + 1) * sizeof(*f->targets));
	CHECK(f->targets);
	return &f->targets[f->ntargets++];
}

FAKE int fake_put(struct fusee_instance *in, const struct fusee_target *t)
{
	struct fake *f = fake_of(in);
	struct fake_target *to;
	struct fusee_label *labels;

	f->puts++;
	if (!fake_target_ok(t)) {
		f->refused++;
		return -EINVAL;
	}
	to = fake_slot(f, t->key);
	*to = (struct fake_target){.t = *t, .fresh = true};
	to->t.key = fake_copy(t->key);
	to->t.cgroup = fake_copy(t->cgroup);
	to->t.match_label.key = fake_copy(t->match_label.key);
	to->t.match_label.str = fake_copy(t->match_label.str);
	labels = calloc(t->labels.n + 1, sizeof(*labels));
	CHECK(labels);
	for (uint32_t i = 0; i < t->labels.n; i++) {
		labels[i].key = fake_copy(FUSEE_AT(struct fusee_label, t->labels, i)->key);
		labels[i].str = fake_copy(FUSEE_AT(struct fusee_label, t->labels, i)->str);
	}
	to->t.labels = (struct fusee_table){labels, t->labels.n, sizeof(*labels)};
	return t->later.n && !f->early;
}

FAKE void fake_remove(struct fake *f, uint32_t i)
{
	fake_target_fini(&f->targets[i]);
	f->targets[i] = f->targets[--f->ntargets];
}

FAKE int fake_del(struct fusee_instance *in, struct fusee_str key)
{
	struct fake *f = fake_of(in);

	f->dels++;
	for (uint32_t i = 0; i < f->ntargets; i++) {
		struct fusee_str k = f->targets[i].t.key;

		if (k.len == key.len && !memcmp(k.p, key.p, k.len)) {
			fake_remove(f, i);
			return 0;
		}
	}
	return -ENOENT;
}

FAKE int fake_begin(struct fusee_instance *in)
{
	struct fake *f = fake_of(in);

	CHECK(!f->open);
	f->open = true;
	f->begins++;
	for (uint32_t i = 0; i < f->ntargets; i++)
		f->targets[i].fresh = false;
	return 0;
}

FAKE int fake_commit(struct fusee_instance *in)
{
	struct fake *f = fake_of(in);

	CHECK(f->open);
	f->open = false;
	f->commits++;
	for (uint32_t i = f->ntargets; i-- > 0;)
		if (!f->targets[i].fresh)
			fake_remove(f, i);
	return 0;
}

FAKE int fake_watch_fd(struct fusee_instance *in, int fd, uint32_t events)
{
	struct fake *f = fake_of(in);
	int i = 0;

	while (i < f->nwatches && f->watches[i].fd != fd)
		i++;
	if (i == f->nwatches && !events)
		return -ENOENT;
	CHECK(i < (int)(sizeof(f->watches) / sizeof(*f->watches)));
	f->watches[i] = (struct fake_watch){fd, events};
	f->nwatches += i == f->nwatches;
	if (!events)
		f->watches[i] = f->watches[--f->nwatches];
	return 0;
}

FAKE int fake_timer(struct fusee_instance *in, uint64_t period_ns)
{
	fake_of(in)->timer = period_ns;
	return 0;
}

FAKE int fake_wake(struct fusee_instance *in)
{
	struct fake *f = fake_of(in);

	pthread_mutex_lock(&f->lock);
	f->wakes++;
	pthread_mutex_unlock(&f->lock);
	return 0;
}

FAKE int fake_start(struct fake *f)
{
	const struct fusee_discovery_ops *ops = f->plugin->ops;

	return ops->start ? ops->start(f->ctx) : 0;
}

FAKE int fake_tick(struct fake *f)
{
	const struct fusee_discovery_ops *ops = f->plugin->ops;

	CHECK(ops->tick);
	return ops->tick(f->ctx);
}

FAKE int fake_process(struct fake *f, uint32_t kind, uint32_t pid, uint32_t parent)
{
	const struct fusee_discovery_ops *ops = f->plugin->ops;
	struct fusee_process_event e = {sizeof(e), kind, pid, parent};

	CHECK(ops->process && ops->flags & FUSEE_DISCOVERY_PROCESSES);
	return ops->process(f->ctx, &e);
}

/* What the control thread does in one round: wakes and watched descriptors, waiting up to `ms` for
 * the first. How many callbacks were called; -errno of the callback that failed. */
FAKE int fake_round(struct fake *f, int ms)
{
	const struct fusee_discovery_ops *ops = f->plugin->ops;
	struct pollfd fds[64];
	int n = f->nwatches, called = 0, wakes, r;

	for (int i = 0; i < n; i++) {
		fds[i] = (struct pollfd){.fd = f->watches[i].fd};
		fds[i].events = (f->watches[i].events & EPOLLIN ? POLLIN : 0) |
				(f->watches[i].events & EPOLLOUT ? POLLOUT : 0) |
				(f->watches[i].events & EPOLLPRI ? POLLPRI : 0);
	}
	pthread_mutex_lock(&f->lock);
	wakes = f->wakes;
	f->wakes = 0;
	pthread_mutex_unlock(&f->lock);
	CHECK(poll(fds, (nfds_t)n, wakes ? 0 : ms) >= 0);
	if (wakes) {
		r = ops->ready(f->ctx, -1, 0);
		if (r)
			return r;
		called++;
	}
	for (int i = 0; i < n; i++) {
		uint32_t events = (fds[i].revents & POLLIN ? EPOLLIN : 0) |
				  (fds[i].revents & POLLOUT ? EPOLLOUT : 0) |
				  (fds[i].revents & POLLPRI ? EPOLLPRI : 0) |
				  (fds[i].revents & POLLERR ? EPOLLERR : 0) |
				  (fds[i].revents & POLLHUP ? EPOLLHUP : 0);

		if (!events)
			continue;
		r = ops->ready(f->ctx, fds[i].fd, events);
		if (r)
			return r;
		called++;
	}
	return called;
}

/* ---- options ---- */

/* A list or a map; owned by ctx, as a string is. */
FAKE void fake_set_table(void *at, uint32_t type, const char *text)
{
	struct fusee_table t = {.stride = type == FUSEE_MAP ? sizeof(struct fusee_label)
							    : sizeof(struct fusee_str)};
	char *copy = strdup(text), *rest = copy, *item;
	char *to = calloc(strlen(text) + 1, t.stride);

	CHECK(copy && to);
	t.at = to;
	while (*text && (item = strsep(&rest, ","))) {
		char *value = type == FUSEE_MAP ? strchr(item, '=') : NULL;
		struct fusee_label l = {
			.key = fake_copy((struct fusee_str){item, value ? (uint64_t)(value - item)
									: strlen(item)})};

		CHECK(value || type == FUSEE_LIST);
		if (value)
			l.str = fake_copy((struct fusee_str){value + 1, strlen(value + 1)});
		memcpy(to + (size_t)t.n++ * t.stride, &l, t.stride);
	}
	free(copy);
	memcpy(at, &t, sizeof(t));
}

FAKE int64_t fake_choice(const struct fusee_option *o, const char *text)
{
	int64_t i = 0;

	while (o->choices[i] && strcmp(o->choices[i], text))
		i++;
	CHECK(o->choices[i]);
	return i;
}

/* Sets an option from text. A text that is not valid ends the test. */
FAKE void fake_set(void *ctx, const struct fusee_option *o, const char *text)
{
	void *at = (char *)ctx + o->offset;
	char *copy;
	int64_t n = 0;
	uint64_t u = 0;

	switch (o->type) {
	case FUSEE_BOOL:
		*(uint8_t *)at = !strcmp(text, "true");
		return;
	case FUSEE_STRING:
	case FUSEE_SECRET:
		copy = strdup(text);
		CHECK(copy);
		memcpy(at, &copy, sizeof(copy));
		return;
	case FUSEE_LIST:
	case FUSEE_MAP:
		fake_set_table(at, o->type, text);
		return;
	case FUSEE_SIZE:
		CHECK(!text_size(text, &u));
		n = (int64_t)u;
		break;
	case FUSEE_DURATION:
		CHECK(!text_duration(text, &u));
		n = (int64_t)u;
		break;
	case FUSEE_ENUM:
		n = fake_choice(o, text);
		break;
	case FUSEE_PERCENT:
		n = (int64_t)(strtod(text, NULL) * 10000 + 0.5);
		break;
	default:
		CHECK_INT(o->type, FUSEE_INT);
		n = strtoll(text, NULL, 10);
	}
	if (o->min || o->max)
		CHECK(n >= o->min && n <= o->max);
	memcpy(at, &n, sizeof(n));
}

FAKE void fake_clear(void *ctx, const struct fusee_option *o)
{
	void *at = (char *)ctx + o->offset;
	struct fusee_table t;
	char *text;

	if (o->type == FUSEE_STRING || o->type == FUSEE_SECRET) {
		memcpy(&text, at, sizeof(text));
		free(text);
	} else if (o->type == FUSEE_LIST || o->type == FUSEE_MAP) {
		memcpy(&t, at, sizeof(t));
		for (uint32_t i = 0; i < t.n; i++) {
			fake_drop(*FUSEE_AT(struct fusee_str, t, i));
			if (o->type == FUSEE_MAP)
				fake_drop(FUSEE_AT(struct fusee_label, t, i)->str);
		}
		free((void *)(uintptr_t)t.at);
	}
}

/* Texts of processes with this name are not read in time; NULL: all are. */
static const char *fake_late_text;
/* What the text "id" of each process is; NULL: the host has no such text. */
static const char *fake_id;

static int64_t fake_process_text(struct fusee_instance *in, uint32_t pid, const char *name,
				 uint64_t offset, void *buf, uint64_t len)
{
	char path[64];
	ssize_t n;
	int fd;

	if (fake_late_text && !strcmp(name, fake_late_text))
		return -ETIMEDOUT;
	if (fake_id && !strcmp(name, "id"))
		return snprintf(buf, len, "%s", fake_id);
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	if (!strcmp(name, "exe")) {
		n = readlink(path, buf, len);
		return n < 0 ? -errno : n;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, buf, len, (off_t)offset);
	close(fd);
	return n < 0 ? -EIO : n;
}

/* ---- one instance ---- */

/* An instance with its options set: name, text, .., NULL; the others have their defaults. */
FAKE struct fake *fake_new(const struct fusee_plugin *plugin, ...)
{
	struct fake *f = calloc(1, sizeof(*f));
	const char *name, *text;
	bool *given;
	va_list ap;

	CHECK(f && plugin->magic == FUSEE_MAGIC && plugin->ops);
	pthread_mutex_init(&f->lock, NULL);
	f->plugin = plugin;
	f->sink = (struct fusee_sink_host){.size = sizeof(f->sink),
					   .encode = fake_encode,
					   .split = fake_split,
					   .retry_after = fake_retry_after,
					   .denied = fake_denied,
					   .lost = fake_lost};
	f->discovery = (struct fusee_discovery_host){sizeof(f->discovery),
						     0,
						     fake_begin,
						     fake_put,
						     fake_del,
						     fake_commit,
						     fake_watch_fd,
						     fake_timer,
						     fake_wake,
						     fake_process_text,
						     NULL};
	f->host = (struct fusee_host){.size = sizeof(f->host),
				      .abi_minor = FUSEE_ABI_MINOR,
				      .log = fake_log,
				      .fail = fake_fail,
				      .count = fake_add,
				      .read_secret = fake_read_secret,
				      .sink = &f->sink,
				      .discovery = &f->discovery};
	f->ctx = calloc(1, plugin->ctx_size + 1);
	given = calloc(plugin->options.n + 1, sizeof(*given));
	CHECK(f->ctx && given);
	va_start(ap, plugin);
	while ((name = va_arg(ap, const char *))) {
		bool known = false;

		text = va_arg(ap, const char *);
		for (uint32_t i = 0; i < plugin->options.n; i++) {
			const struct fusee_option *o = FUSEE_AT(struct fusee_option,
								plugin->options, i);

			if (strcmp(o->name, name))
				continue;
			fake_set(f->ctx, o, text);
			given[i] = known = true;
		}
		CHECK(known);
	}
	va_end(ap);
	for (uint32_t i = 0; i < plugin->options.n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, plugin->options, i);

		CHECK(given[i] || o->def);
		if (!given[i])
			fake_set(f->ctx, o, o->def);
	}
	free(given);
	return f;
}

FAKE int fake_init(struct fake *f)
{
	f->begun = true;
	return f->plugin->init
		       ? f->plugin->init(f->ctx, (struct fusee_instance *)(void *)f, &f->host)
		       : 0;
}

/* fini too; NULL is fine. */
FAKE void fake_free(struct fake *f)
{
	if (!f)
		return;
	if (f->begun && f->plugin->fini)
		f->plugin->fini(f->ctx);
	for (uint32_t i = 0; i < f->plugin->options.n; i++)
		fake_clear(f->ctx, FUSEE_AT(struct fusee_option, f->plugin->options, i));
	while (f->ntargets)
		fake_remove(f, f->ntargets - 1);
	free(f->targets);
	buf_fini(&f->logged);
	for (int i = 0; i <= FUSEE_FOLDED; i++)
		buf_fini(&f->encoded[i]);
	pthread_mutex_destroy(&f->lock);
	free(f->ctx);
	free(f);
}
#endif
