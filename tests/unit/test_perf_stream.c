/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, measures, covers core/events
#include "test.h"

#include <fusee/unwinder.bpf.h>

#include "base/clock.h"
#include "events/internal/event.h"
#include "events/internal/perf_stream_state.h"
#include "events/process_events.h"
#include "lib/cpu_time.h"

#define MS 1000000ull

struct seen {
	uint64_t samples, weight, last, stacks, unordered;
	int execs, maps;
	uint64_t by_group[4], group_weight[4];
	uint64_t returns;                  /* of all samples, where they are as they should be */
	uint64_t continued, continuations; /* samples with some; continuations */
};

static void on_sample(void *arg, const struct sample *s)
{
	struct seen *n = arg;

	n->samples++;
	n->weight += s->period;
	n->unordered += s->time < n->last;
	n->last = s->time;
	n->by_group[s->group & 3]++;
	n->group_weight[s->group & 3] += s->period;
	for (uint32_t i = 0; i < s->returns.n; i++)
		n->returns += s->returns.page == 4096 && s->returns.at[i].at == 8 * (i + 1) &&
			      s->returns.at[i].pc == 100 + i;
	n->continued += s->continuations.since == 900;
	n->stacks += s->abi == 2 && s->stack_len >= 8 && s->regs[16];
}

static void on_continuation(void *arg, uint64_t time, const struct record_stack *r)
{
	((struct seen *)arg)->continuations += time == 1000 && r->begin.pc == 5 &&
					       r->begin.sp == 6 && record_words(r) == 1;
}

static void on_mapped(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m)
{
	((struct seen *)arg)->maps += m->hi > m->lo;
}

static void on_comm(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec)
{
	((struct seen *)arg)->execs += exec && *comm;
}

static void on_forked(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time)
{
}

static void on_exited(void *arg, pid_t pid, pid_t tid, uint64_t time)
{
}

static void on_lost(void *arg, uint64_t records)
{
}

static struct perf_stream_handlers handlers(struct seen *n)
{
	return (struct perf_stream_handlers){.arg = n,
					     .sample = on_sample,
					     .continuation = on_continuation,
					     .mapped = on_mapped,
					     .comm = on_comm,
					     .forked = on_forked,
					     .exited = on_exited,
					     .lost = on_lost};
}

static void burn(double seconds)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < seconds);
}

TEST(samples_losses_and_the_events_count_agree)
{
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct perf_stream_counts c;
	struct perf_stream *s;
	pid_t pid = fork();
	struct perf_stream_options o = {.pids = &pid,
					.npids = 1,
					.period_ns = 2003009,
					.stack_bytes = 8192,
					.kernel = true};
	uint64_t accounted, ticks;
	int r;

	if (!pid) {
		burn(1.0);
		_exit(0);
	}
	r = perf_stream_open(&s, &o);
	if (r == -EACCES || r == -EPERM) {
		kill(pid, SIGKILL);
		SKIP("perf_event_open is not allowed here");
	}
	CHECK_INT(r, 0);
	CHECK_INT(perf_stream_enable(s), 0);
	WAIT_FOR((perf_stream_drain(s, &on, false), waitpid(pid, NULL, WNOHANG) == pid));
	perf_stream_disable(s);
	perf_stream_drain(s, &on, true);
	perf_stream_counts(s, &c);
	accounted = c.samples + c.ring_full + c.skipped;
	ticks = c.count_ns / o.period_ns;
	fprintf(stderr,
		"# %llu samples, %llu skipped, %llu ring full, %llu ticks counted, gaps %d\n",
		(unsigned long long)c.samples, (unsigned long long)c.skipped,
		(unsigned long long)c.ring_full, (unsigned long long)ticks, c.gaps);
	CHECK(n.samples > 300);
	CHECK_INT(n.weight, n.samples * o.period_ns);
	CHECK_INT(n.unordered, 0);
	CHECK(n.stacks == n.samples);
	/* Within one period a CPU (one thread, and what follows its last sample). */
	CHECK(accounted + 8 >= ticks && accounted <= ticks + 8);
	perf_stream_close(s);
}

/* Burns once there is a byte in gate, fork_first: in a child that ends it. */
static pid_t burner(double seconds, bool fork_first, int gate)
{
	pid_t pid = fork();
	char byte;

	if (!pid) {
		if (read(gate, &byte, 1) != 1)
			_exit(1);
		if (fork_first && fork())
			pause();
		burn(seconds);
		if (fork_first)
			kill(getppid(), SIGKILL);
		_exit(0);
	}
	return pid;
}

/* An agent at 99 Hz that unwinds in the kernel has a budget for the machine, not for a CPU. A quiet
 * machine of 2 CPUs takes less than 1 MiB. */
TEST(an_agents_rings_have_16_mib_at_most)
{
	static const uint32_t cpus[] = {1, 2, 8, 12, 16, 24, 32, 64, 192, 256, 512, 768};
	struct perf_stream s = {.o = {.dynamic = true,
				      .bpf = (void *)&s, /* which is not used */
				      .period_ns = 10101010,
				      .stack_bytes = 65528}};

	s.o.ring_bytes = perf_stream_default_rings(&s.o);
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		uint64_t size, events = process_events_ring_size(cpus[i]), least;
		uint32_t copy;

		s.ncpus = cpus[i];
		s.output_bytes = event_group_output_size(&s);
		least = s.output_bytes ? OUTPUT_LEAST : 0;
		size = event_group_ring_size(&s);
		copy = perf_stream_copy_bytes(&s);
		printf("# %u CPUs: rings of events %llu KiB, of the programs %llu to %llu, of "
		       "process events %llu, together %llu to %llu; copies of %u bytes\n",
		       cpus[i], (unsigned long long)size >> 10, (unsigned long long)least >> 10,
		       (unsigned long long)s.output_bytes >> 10, (unsigned long long)events >> 10,
		       (unsigned long long)(size + least + events) * cpus[i] >> 10,
		       (unsigned long long)(size + s.output_bytes + events) * cpus[i] >> 10, copy);
		CHECK((size + s.output_bytes + events) * cpus[i] <= 16u << 20);
		CHECK(cpus[i] > 2 || (size + least + events + 3 * 4096) * cpus[i] <= 1u << 20);
		CHECK(!least || s.output_bytes > least);
		CHECK(copy == 65528 || copy + RECORD_COPY_HEAD <= size / 2);
		CHECK(copy % 8 == 0 && copy >= 4096);
	}
}

/* Rings of an agent that copies stacks. */
TEST(rings_have_a_limit)
{
	static const uint32_t cpus[] = {1, 2, 16, 64, 256, 1024};
	const uint64_t total = 32u << 20;

	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		uint64_t n = cpus[i];
		uint64_t samples = ring_choose_size(65528 * 26, RING_MIN, cpus[i], total) * n;

		CHECK(samples <= total || samples == RING_MIN * n);
	}
	CHECK_INT(ring_choose_size(65528 * 26, RING_MIN, 2, total), 2 << 20);
	CHECK_INT(ring_choose_size(1, RING_MIN, 2, total), RING_MIN);
	CHECK_INT(ring_choose_size(65528 * 26, RING_MIN, 2, 0), RING_MIN);
	/* a small ring has room after the wake, too: the kernel would wake at its end otherwise */
	CHECK_INT(ring_wake_bytes(64u << 10), 16u << 10);
	CHECK_INT(ring_wake_bytes(64u << 20), 256u << 10);
}

/* Two targets of two rates in one ring: the child of the first inherits its events; a removed
 * target has no more samples. */
TEST(targets_come_and_go)
{
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct perf_stream_options o = {
		.dynamic = true, .period_ns = 2003009, .stack_bytes = 1024, .kernel = true};
	struct perf_stream_counts c;
	struct perf_stream *s;
	uint32_t slow, fast, none;
	pid_t first, second;
	uint64_t before, cpu;
	int gate[2];

	if (perf_stream_open(&s, &o))
		SKIP("perf_event_open is not allowed here");
	CHECK_INT(perf_stream_enable(s), 0);
	CHECK(!pipe(gate));
	first = burner(0.5, true, gate[0]);
	second = burner(3600, false, gate[0]);
	if (perf_stream_add(s, first, 4003009, &slow))
		SKIP("perf_event_open is not allowed here");
	CHECK_INT(perf_stream_add(s, second, 1003009, &fast), 0);
	CHECK_INT(perf_stream_add(s, 4194301, 1003009, &none), -ESRCH);
	CHECK(write(gate[1], "xx", 2) == 2);
	waitpid(first, NULL, 0);
	WAIT_FOR(cpu_ns(second) > 300 * MS);
	perf_stream_drain(s, &on, true);
	CHECK(slow && fast && slow != fast);
	CHECK(n.by_group[slow] > 60 && n.by_group[slow] < 200);
	CHECK_INT(n.group_weight[slow], n.by_group[slow] * 4003009);
	CHECK(n.by_group[fast] > 150);
	CHECK_INT(n.by_group[0], 0);
	perf_stream_remove(s, fast);
	perf_stream_drain(s, &on, true);
	before = n.samples;
	perf_stream_remove(s, slow);
	cpu = cpu_ns(second);
	WAIT_FOR(cpu_ns(second) > cpu + 50 * MS);
	perf_stream_drain(s, &on, true);
	CHECK_INT(n.samples, before);
	perf_stream_counts(s, &c);
	CHECK(c.count_ns > 600000000u && c.samples == n.samples);
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	perf_stream_close(s);
}

/* What is still in a ring is not lost, also when the target's events are closed; no figure falls.
 */
TEST(unread_samples_are_no_loss)
{
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct perf_stream_options o = {
		.dynamic = true, .period_ns = 2003009, .stack_bytes = 1024, .kernel = true};
	struct perf_stream_counts unread, removed, last;
	struct perf_stream *s;
	uint32_t group;

	if (perf_stream_open(&s, &o) || perf_stream_add(s, getpid(), o.period_ns, &group))
		SKIP("perf_event_open is not allowed here");
	CHECK_INT(perf_stream_enable(s), 0);
	burn(0.4);
	perf_stream_counts(s, &unread);
	CHECK_INT(unread.samples, 0);
	CHECK_INT(unread.ring_full, 0);
	perf_stream_remove(s, group);
	perf_stream_counts(s, &removed);
	CHECK(removed.skipped >= unread.skipped);
	perf_stream_drain(s, &on, true);
	perf_stream_counts(s, &last);
	fprintf(stderr, "# %llu samples; skipped %llu, %llu, %llu\n",
		(unsigned long long)last.samples, (unsigned long long)unread.skipped,
		(unsigned long long)removed.skipped, (unsigned long long)last.skipped);
	CHECK(last.samples > 50);
	CHECK_INT(last.skipped, removed.skipped);
	CHECK(last.samples + last.skipped <= last.count_ns / o.period_ns + 2);
	perf_stream_close(s);
}

static void map_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
}

TEST(what_is_newer_than_the_limit_waits)
{
	struct perf_stream_options o = {.dynamic = true, .period_ns = 1000000, .stack_bytes = 1024};
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct perf_stream *s;
	uint64_t between;
	uint32_t group;

	if (perf_stream_open(&s, &o))
		SKIP("perf events are refused");
	CHECK_INT(perf_stream_add(s, getpid(), o.period_ns, &group), 0);
	CHECK_INT(perf_stream_enable(s), 0);
	map_code();
	between = clock_now();
	map_code();
	WAIT_FOR((perf_stream_drain_until(s, &on, between), perf_stream_horizon(s) == between));
	CHECK_INT(n.maps, 1);
	WAIT_FOR((perf_stream_drain(s, &on, false), n.maps == 2));
	perf_stream_close(s);
}

TEST(what_is_young_waits_unless_it_is_read_now)
{
	struct perf_stream_options o = {.dynamic = true, .period_ns = 1000000, .stack_bytes = 1024};
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct perf_stream *s;
	uint32_t group;

	if (perf_stream_open(&s, &o))
		SKIP("perf events are refused");
	CHECK_INT(perf_stream_add(s, getpid(), o.period_ns, &group), 0);
	CHECK_INT(perf_stream_enable(s), 0);
	perf_stream_drain_until(s, &on, UINT64_MAX);
	map_code();
	map_code();
	perf_stream_drain_now(s, &on, UINT64_MAX);
	CHECK_INT(n.maps, 2);
	/* as far as nothing older can follow */
	CHECK(perf_stream_horizon(s) < clock_now());
	perf_stream_close(s);
}

TEST(a_record_that_lies_is_refused)
{
	static union {
		struct perf_event_header h;
		uint64_t words[8192];
	} u;
	struct event_form f = {.kernel = true, .read = true, .lost = true, .settled = true};
	struct event_sample e;
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);

	srand(3);
	for (int i = 0; i < 200000; i++) {
		u.h.type = (uint32_t[]){PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
					PERF_RECORD_FORK, PERF_RECORD_EXIT}[rand() % 5];
		u.h.misc = 0;
		u.h.size = (uint16_t)(8 + 8 * (rand() % 60));
		for (int w = 1; w < 60; w++)
			u.words[w] = rand() % 3 ? (uint64_t)(rand() % 64) : (uint64_t)rand() << 33;
		if (u.h.type == PERF_RECORD_SAMPLE) {
			if (event_parse_sample(&f, &u.h, &e)) {
				const char *end = (char *)&u + u.h.size;

				CHECK(!e.s.stack_len ||
				      (const char *)e.s.stack + e.s.stack_len <= end);
				CHECK(!e.s.nkernel ||
				      (const char *)(e.s.kernel + e.s.nkernel) <= end);
			}
		} else {
			event_parse_sideband(&u.h, &on);
		}
	}
}

static bool holds(const void *p, size_t size, const char *text)
{
	return memmem(p, size, text, strlen(text));
}

/* A sample has the stack of its record; nothing of it stays once it is used. */
TEST(a_used_copy_is_wiped)
{
	static struct bpf_record_reader reader;
	static struct record_copy copy;
	struct sample s;

	copy.tick.head = (struct record_head){
		.kind = RECORD_COPY, .size = RECORD_COPY_HEAD + RECORD_PAGE, .pid = 7, .tid = 7};
	copy.bytes = copy.limit = RECORD_PAGE;
	copy.regs[FUSEE_X86_RSP] = 0x7ffc00001ff0; /* 16 bytes of its first page */
	memcpy(copy.stack, "a secret, ", 10);
	memcpy(copy.stack + RECORD_PAGE - 10, "and more", 8);
	CHECK(bpf_record_read(&reader.record, &copy, copy.tick.head.size));
	CHECK(bpf_record_sample(&reader, 1, 0, &s));
	CHECK(holds(s.stack, s.stack_len, "a secret") && holds(s.stack, s.stack_len, "and more"));
	bpf_record_wipe(&reader, &s);
	CHECK(!holds(&reader, sizeof(reader), "a secret") &&
	      !holds(&reader, sizeof(reader), "and more"));
}

/* A record of each kind is read at its own sizes, and at no others. */
TEST(records_are_of_a_known_kind_and_size)
{
	static const struct {
		uint16_t kind;
		uint32_t least, most;
	} kinds[] = {{RECORD_STACK, RECORD_STACK_HEAD, sizeof(struct record_stack)},
		     {RECORD_COPY, RECORD_COPY_HEAD, sizeof(struct record_copy)},
		     {RECORD_DEFERRED, 48, 48},
		     {RECORD_MISSED, 64, 64},
		     {RECORD_EMISSION, 32, sizeof(union record)},
		     {RECORD_RETURNS, 56, sizeof(struct record_returns)},
		     {RECORD_LABELS, RECORD_LABELS_HEAD, sizeof(struct record_labels)},
		     {RECORD_CONTINUATION, RECORD_STACK_HEAD, sizeof(struct record_stack)}};
	static union record from, to;

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint32_t least = kinds[i].least, most = kinds[i].most;

		from.head = (struct record_head){.kind = kinds[i].kind, .size = least, .pid = 7};
		CHECK(bpf_record_read(&to, &from, least));
		CHECK_INT(to.head.pid, 7);
		CHECK(bpf_record_read(&to, &from, least + 4));
		CHECK(!bpf_record_read(&to, &from, least - 1));
		CHECK(!bpf_record_read(&to, &from, sizeof(from.head) - 1));
		from.head.size = least - 1;
		CHECK(!bpf_record_read(&to, &from, most));
		from.head.size = most;
		CHECK(bpf_record_read(&to, &from, most));
		from.head.size = most + 1;
		CHECK(!bpf_record_read(&to, &from, UINT32_MAX));
	}
	from.head.size = 64;
	from.head.kind = 0;
	CHECK(!bpf_record_read(&to, &from, 64));
	from.head.kind = RECORD_LABELS + 1;
	CHECK(!bpf_record_read(&to, &from, 64));
}

/* Adds a sample as the kernel writes it, of the event with this id: words, then a BPF record. */
static void add_sample(struct ring *r, const uint64_t *words, uint32_t n, const void *raw)
{
	struct perf_event_header h = {.type = PERF_RECORD_SAMPLE};
	uint32_t len = raw ? ((const struct record_head *)raw)->size + 4 : 0;
	char *to = r->data + r->page->data_head + sizeof(h);

	memcpy(to, words, n * sizeof(*words));
	to += n * sizeof(*words);
	if (raw) {
		memcpy(to, &len, 4);
		memcpy(to + 4, raw, len - 4);
		to += 4 + len;
	}
	h.size = (uint16_t)(to - (r->data + r->page->data_head));
	memcpy(r->data + r->page->data_head, &h, sizeof(h));
	r->page->data_head += h.size;
}

/* A tick that the BPF programs leave to its event stands for what they say, and is of no group:
 * they have chosen it by the rate that its process had. */
TEST(a_deferred_tick_has_the_weight_of_its_moment)
{
	static struct perf_event_mmap_page page;
	static char data[4096];
	static struct perf_stream s;
	struct stream_cpu c = {.output = 1,
			       .output_id = 7,
			       .ring = {.page = &page, .data = data, .size = sizeof(data)}};
	struct event_group g = {.number = 2};
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	const struct record_deferred r = {.tick = {.head = {.kind = RECORD_DEFERRED,
							    .flags = RECORD_CPU_EVENT,
							    .size = sizeof(r),
							    .pid = 40,
							    .tid = 41},
						   .period = 52000000}};
	/* id, pid and tid, time, CPU, period; no registers, no stack */
	const uint64_t sent[] = {7, 40 | 41ull << 32, 1000, 0};
	const uint64_t own[] = {9, 40 | 41ull << 32, 1001, 0, 10000000, 0, 0};

	s = (struct perf_stream){.cpus = &c, .ncpus = 1, .online_fd = -1, .epoll = -1};
	CHECK_INT(hashmap_put(&s.group_by_event, 9, &g), 0);
	add_sample(&c.ring, sent, 4, &r);
	add_sample(&c.ring, own, 7, NULL);
	perf_stream_drain(&s, &on, true);
	CHECK(n.by_group[0] == 1 && !n.by_group[2]);
	CHECK_INT(n.weight, 52000000);
	/* without the programs: of the event's group, which has both */
	add_sample(&c.ring, own, 7, NULL);
	perf_stream_drain(&s, &on, true);
	CHECK_INT(n.by_group[2], 1);
	CHECK_INT(n.group_weight[2], 10000000);
	CHECK_INT(g.samples, 2);
	CHECK_INT(s.account.records.samples, 2);
	CHECK_INT(s.account.records.invalid, 0);
	hashmap_fini(&s.group_by_event);
}

/* A continuation has frames of user code; the copy says that there are some. */
TEST(continuations_are_checked)
{
	static struct perf_event_mmap_page page;
	static char data[8192];
	static struct perf_stream s;
	static struct record_copy copy;
	static struct record_stack r;
	struct stream_cpu c = {.output = 1,
			       .output_id = 7,
			       .ring = {.page = &page, .data = data, .size = sizeof(data)}};
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	const uint64_t sent[] = {7, 40 | 41ull << 32, 1000, 0};

	s = (struct perf_stream){.cpus = &c, .ncpus = 1, .online_fd = -1, .epoll = -1};
	r.tick.head = (struct record_head){
		.kind = RECORD_CONTINUATION, .size = RECORD_STACK_HEAD + 8, .pid = 40, .tid = 41};
	r.begin.pc = 5;
	r.begin.sp = 6;
	copy.tick.head = (struct record_head){
		.kind = RECORD_COPY, .size = RECORD_COPY_HEAD, .pid = 40, .tid = 41};
	copy.continued = 900;
	add_sample(&c.ring, sent, 4, &r);
	add_sample(&c.ring, sent, 4, &copy);
	perf_stream_drain(&s, &on, true);
	CHECK_INT(n.continuations, 1);
	CHECK_INT(n.continued, 1);
	CHECK_INT(s.account.records.invalid, 0);
	r.nkernel = 1;
	add_sample(&c.ring, sent, 4, &r);
	r.nkernel = 0;
	r.tick.head.flags = RECORD_PART; /* without its end */
	add_sample(&c.ring, sent, 4, &r);
	r.tick.head.flags = 0;
	r.tick.head.size = RECORD_STACK_HEAD;
	add_sample(&c.ring, sent, 4, &r);
	perf_stream_drain(&s, &on, true);
	CHECK_INT(n.continuations, 1);
	CHECK_INT(s.account.records.invalid, 3);
	missed_ticks_fini(&s.account.missed);
}

/* What uretprobes have replaced is that of the next sample, if it is of the same thread. */
TEST(replaced_returns_are_of_the_next_sample)
{
	static struct perf_event_mmap_page page;
	static char data[8192];
	static struct perf_stream s;
	struct stream_cpu c = {.output = 1,
			       .output_id = 7,
			       .ring = {.page = &page, .data = data, .size = sizeof(data)}};
	struct seen n = {0};
	struct perf_stream_handlers on = handlers(&n);
	struct record_returns r = {.tick = {.head = {.kind = RECORD_RETURNS,
						     .size = RECORD_RETURNS_HEAD + 32,
						     .pid = 40,
						     .tid = 41}},
				   .page = 4096,
				   .n = 2,
				   .at = {{8, 100}, {16, 101}}};
	const struct record_deferred deferred = {.tick = {.head = {.kind = RECORD_DEFERRED,
								   .size = sizeof(deferred),
								   .pid = 40,
								   .tid = 41}}};
	const uint64_t sent[] = {7, 40 | 41ull << 32, 1000, 0};
	const uint64_t own[] = {9, 40 | 41ull << 32, 1001, 0, 10000000, 0, 0};
	const uint64_t other[] = {9, 40 | 42ull << 32, 1001, 0, 10000000, 0, 0};

	s = (struct perf_stream){.cpus = &c, .ncpus = 1, .online_fd = -1, .epoll = -1};
	add_sample(&c.ring, sent, 4, &r);
	add_sample(&c.ring, sent, 4, &deferred);
	add_sample(&c.ring, own, 7, NULL);
	add_sample(&c.ring, own, 7, NULL);
	add_sample(&c.ring, sent, 4, &r);
	add_sample(&c.ring, other, 7, NULL);
	add_sample(&c.ring, own, 7, NULL);
	perf_stream_drain(&s, &on, true);
	CHECK_INT(n.samples, 4);
	CHECK_INT(n.returns, 2);
	CHECK_INT(s.account.records.invalid, 0);
	/* more than the record holds */
	r.n = 3;
	add_sample(&c.ring, sent, 4, &r);
	add_sample(&c.ring, own, 7, NULL);
	perf_stream_drain(&s, &on, true);
	CHECK_INT(n.returns, 2);
	CHECK_INT(s.account.records.invalid, 1);
}
