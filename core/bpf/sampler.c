/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../bpf/records.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "linker/linker.h"
#include "bpf/probes.h"
#include "programs/programs.h"
#include "bpf/sampler_events.h"
#include "bpf/internal/sampler_state.h"

#define DEFAULT_TABLES (4u << 20)
#define FRAME_BYTES (FUSEE_PAGE_WORDS * 4u)
#define MAX_FRAMES (1u << FUSEE_FRAME_BITS)
/* Map chunks: so many, and so many for each CPU. */
#define SOME_CHUNKS 448u
#define CPU_CHUNKS 32u
#define MAX_ALL_CHUNKS 4096u
/* Keys of emissions that are known to be sent, as many for each CPU. */
#define CPU_SENT 2048u
#define LEAST_SENT 4096u
#define MOST_SENT 65536u
/* Of the time since the last wake this part may be used for the next: 5 %. What was not used is
 * saved up to WAKE_SAVED_NS, so that a moment in which many programs begin is no time of waiting.
 */
#define WAKE_PART 20u
#define WAKE_SAVED_NS 50000000
#define WAKE_NS 200000u /* between two wakes, at least */

/* ---- loading ---- */

static int link_object(struct bpf_sampler *b, char **why)
{
	struct linker_part parts[SAMPLER_PARTS];
	int fd, r = linker_link(parts, sampler_object_parts(b, sampler_object_first(b), -1, parts),
				&fd, why);

	if (r)
		return r;
	r = sampler_object_open(&b->object, fd);
	close(fd);
	return r;
}

static int map_fd(struct bpf_sampler *b, const char *name)
{
	return bpf_object__find_map_fd_by_name(b->object, name);
}

static int size_map(struct bpf_sampler *b, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(b->object, name);

	return map ? bpf_map__set_max_entries(map, entries) : -ENOENT;
}

static int attach(struct bpf_sampler *b, struct bpf_program *p, uint32_t link)
{
	b->links[link] = bpf_program__attach(p);
	return b->links[link] ? 0 : -errno;
}

/* The sampler's programs come last: what they choose is read by then. */
static int attach_tracepoints(struct bpf_sampler *b)
{
	static const char *const names[] = {"sampler_fork", "sampler_exec",   "sampler_exit",
					    "sampler_free", "sampler_mapped", "sampler_tick",
					    "sampler_again"};
	struct bpf_object *object = b->waits.object ? b->waits.object : b->object;
	uint32_t n = 5 + (b->waits.object != NULL) + (waits_samplers(b) > 1);
	struct bpf_program *p;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		p = bpf_object__find_program_by_name(object, names[i]);
		r = p ? attach(b, p, i) : -ENOENT;
	}
	if (r || !b->waits.object)
		return r;
	bpf_object__for_each_program(p, object)
	{
		if (!r && n < SAMPLER_LINKS && sampler_object_is_chooser(p))
			r = attach(b, p, n++);
	}
	return r;
}

static int on_wake(void *arg, void *data, size_t len)
{
	(void)arg;
	(void)data;
	(void)len;
	return 0;
}

static int map_shared(struct bpf_sampler *b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	b->chunks.len = ((size_t)b->chunks.n * sizeof(struct map_chunk) + page - 1) & ~(page - 1);
	b->slabs.fd = map_fd(b, "fusee_slabs");
	b->frames.fd = map_fd(b, "fusee_frames");
	b->frames.states = programs_map_memory(map_fd(b, "fusee_frame_states"),
					       b->frames.n * sizeof(*b->frames.states));
	b->chunks.at = programs_map_memory(map_fd(b, "sampler_chunks"), b->chunks.len);
	b->settings = programs_map_memory(map_fd(b, "sampler_settings"), sizeof(*b->settings));
	if (b->slabs.fd < 0)
		return b->slabs.fd;
	if (!b->chunks.at || !b->settings || !b->frames.states)
		return -errno;
	b->wakes = ring_buffer__new(map_fd(b, "sampler_wake"), on_wake, NULL, NULL);
	if (!b->wakes)
		return -errno;
	b->settings->copy_limit = UINT32_MAX; /* until the first bpf_sampler_begin_round() */
	return 0;
}

static uint32_t possible_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus > 0 ? (uint32_t)cpus : 1;
}

static uint32_t chunks_for_cpus(void)
{
	uint64_t n = SOME_CHUNKS + (uint64_t)possible_cpus() * CPU_CHUNKS;

	return n < MAX_ALL_CHUNKS ? (uint32_t)n : MAX_ALL_CHUNKS;
}

static uint32_t sent_for_cpus(void)
{
	uint64_t n = (uint64_t)possible_cpus() * CPU_SENT;

	return n < LEAST_SENT ? LEAST_SENT : n < MOST_SENT ? (uint32_t)n : MOST_SENT;
}

/* Maps of processes have the memory of the processes that there are. */
static int allocate_on_demand(struct bpf_sampler *b)
{
	static const char *const names[] = {"sampler_pids", "sampler_rates"};
	int r = 0;

	if (!programs_may_allocate())
		return 0;
	for (uint32_t i = 0; !r && i < sizeof(names) / sizeof(*names); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(b->object, names[i]);

		r = map ? bpf_map__set_map_flags(map, BPF_F_NO_PREALLOC) : -ENOENT;
	}
	return r;
}

static int size_maps(struct bpf_sampler *b)
{
	const struct {
		const char *name;
		uint32_t n;
	} sizes[] = {
		{"fusee_slabs", b->slabs.n},
		{"fusee_frames", b->frames.n},
		{"fusee_frame_states", b->frames.n},
		{"sampler_chunks", b->chunks.n},
		{"sampler_copies", possible_cpus()},
		{"sampler_sent", sent_for_cpus()},
		{"sampler_spaces", b->inuse.followed ? INUSE_SPACES : 1},
	};
	int r = allocate_on_demand(b);

	for (uint32_t i = 0; !r && i < sizeof(sizes) / sizeof(*sizes); i++)
		r = size_map(b, sizes[i].name, sizes[i].n);
	return r;
}

/* The programs that follow processes are those of the object of waits, if there is one. */
static int exclude_processes(struct bpf_sampler *b)
{
	struct bpf_program *p;
	int r = 0;

	bpf_object__for_each_program(p, b->object)
	{
		if (!r && strcmp(bpf_program__name(p), "sampler_tick") != 0)
			r = bpf_program__set_autoload(p, false);
	}
	return r;
}

static int load(struct bpf_sampler *b, char **why)
{
	struct bpf_program *tick = bpf_object__find_program_by_name(b->object, "sampler_tick");
	int r = size_maps(b);

	if (!r && b->waits.sampled)
		r = waits_prepare(b, b->object, possible_cpus());
	b->probes.object = b->probes.sampled ? b->object : NULL;
	if (!r && b->probes.sampled)
		r = probes_size(&b->probes);
	if (b->probes.sampled)
		uprobe_link_set_type(b->object, b->probes.type);
	if (!r && b->probes.sampled && !b->probes.tracepoints)
		r = inuse_prepare(b->object, b->inuse.followed);
	if (!r)
		r = sampler_object_exclude_languages(b, b->object);
	if (!r && b->waits.beside)
		r = exclude_processes(b);
	if (!r)
		r = bpf_object__load(b->object);
	if (r)
		return r;
	b->fds.tick = bpf_program__fd(tick);
	b->fds.pids = map_fd(b, "sampler_pids");
	b->fds.output = map_fd(b, "sampler_output");
	b->fds.counts = map_fd(b, "sampler_counts");
	b->fds.cpu_ticks = map_fd(b, "sampler_cpu_ticks");
	b->fds.cpu_periods = map_fd(b, "sampler_cpu_periods");
	b->fds.rates = map_fd(b, "sampler_rates");
	b->fds.threads = map_fd(b, "sampler_threads");
	b->fds.programs = map_fd(b, "sampler_programs");
	r = map_shared(b);
	return r ? r : sampler_open_others(b, possible_cpus(), why);
}

static char *explain(int r, const char *what)
{
	const char *refusal = libbpf_log_refusal(); /* with rights */
	bool denied = !refusal && (r == -EPERM || r == -EACCES);
	char *text;

	return asprintf(&text, "%s: %s%s", what, refusal ? refusal : strerror(-r),
			denied ? " (it needs CAP_BPF and CAP_PERFMON)" : "") < 0
		       ? NULL
		       : text;
}

static int init_parts(struct bpf_sampler *b)
{
	int r = slabs_init(b);

	if (!r)
		r = frames_init(b);
	return r ? r : chunks_init(b);
}

/* Tables by page are in frames, all others in slabs. */
static void size_tables(struct bpf_sampler *b, uint64_t bytes)
{
	const char *given = secure_getenv("FUSEE_TABLE_BYTES"); /* for tests */

	if (given)
		(void)text_size(given, &bytes);
	if (bytes < FRAME_BYTES)
		bytes = DEFAULT_TABLES;
	b->slabs.n = b->paged || bytes < SLAB_BYTES ? 1 : (uint32_t)(bytes / SLAB_BYTES);
	b->frames.n = b->paged ? (uint32_t)(bytes / FRAME_BYTES) : 1;
	if (b->frames.n > MAX_FRAMES)
		b->frames.n = MAX_FRAMES;
}

static struct bpf_sampler *new_sampler(const struct plugin_set *set,
				       const struct bpf_sampler_options *o)
{
	struct bpf_sampler *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->set = set;
	b->waits.choosers = o->choosers && o->choosers->n ? o->choosers : NULL;
	b->waits.sampled = b->waits.choosers && !o->beside;
	b->waits.beside = b->waits.choosers && o->beside;
	b->inuse.followed = o->probes && o->in_use;
	probes_prepare(b, o);
	b->worker = o->worker;
	b->foreign_pids = !programs_see_our_pids();
	b->chunks.n = (o->chunks ? o->chunks : chunks_for_cpus()) + 1;
	return b;
}

/* Checks the objects of plugins that are linked. 0 or -errno, *why: a sentence or NULL. */
static int check_objects(const struct bpf_sampler *b, char **why)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < waits_samplers(b); i++)
		r = sampler_object_check_chooser(b->waits.choosers->at[i], why);
	return r;
}

/* Links, loads and attaches it. 0; or -errno with *why: a sentence or NULL, *what: what failed. */
static int start(struct bpf_sampler *b, const struct bpf_sampler_options *o, char **why,
		 const char **what)
{
	int r;

	size_tables(b, o->table_bytes);
	*what = "its parts cannot be linked";
	r = link_object(b, why);
	if (r)
		return r;
	*what = "the kernel does not load it";
	r = load(b, why);
	if (r)
		return r;
	*what = "it cannot follow processes";
	r = attach_tracepoints(b);
	if (!r && o->probes)
		r = bpf_probes_attach(b, o->probes, why);
	if (r)
		return r;
	*what = "no memory";
	return init_parts(b);
}

static void warn_labeler(const struct plugin_set *set, int labeler, const char *why, int r)
{
	log_warning("the labeler '%s' cannot be used, samples are without its labels: %s",
		    set->instances[labeler]->descriptor->name, why ? why : strerror(-r));
}

/* Omits labelers: those in the bits of `without`, and those whose object is no labeler's,
 * which are added to them. */
static void omit_labelers(struct bpf_sampler *b, uint32_t *without)
{
	uint32_t n = b->labelers.n;

	b->labelers.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		int labeler = b->labelers.at[i], r = 0;
		char *why = NULL;

		if (!(*without >> labeler & 1))
			r = sampler_object_check_labeler(b->set->instances[labeler], &why);
		if (r) {
			warn_labeler(b->set, labeler, why, r);
			*without |= 1u << labeler;
		}
		free(why);
		if (!(*without >> labeler & 1))
			b->labelers.at[b->labelers.n++] = labeler;
	}
}

/* Opens it with the set's labelers, but for those in the bits of `without`, by number in the set.
 * *labelers: the bits of those that are linked. */
static int open_with(struct bpf_sampler **ret, const struct plugin_set *set,
		     const struct bpf_sampler_options *o, uint32_t *without, uint32_t *labelers,
		     char **why)
{
	struct bpf_sampler *b = new_sampler(set, o);
	const char *what = "no memory";
	int r = b ? 0 : -ENOMEM;

	*why = NULL;
	*labelers = 0;
	if (b) {
		libbpf_log_start();
		r = sampler_object_choose(b, why);
	}
	if (!r) {
		omit_labelers(b, without);
		for (uint32_t i = 0; i < b->labelers.n; i++)
			*labelers |= 1u << b->labelers.at[i];
		what = "a plugin's BPF half cannot be checked";
		r = check_objects(b, why);
	}
	if (!r)
		r = start(b, o, why, &what);
	if (r) {
		if (!*why)
			*why = explain(r, what);
		bpf_sampler_close(b);
	} else {
		*ret = b;
	}
	return r;
}

/* With all labelers, else without one of them, else without any. */
int bpf_sampler_open(struct bpf_sampler **ret, const struct plugin_set *set,
		     const struct bpf_sampler_options *o, char **why)
{
	uint32_t without = 0, labelers, remaining, all, some;
	int r = open_with(ret, set, o, &without, &labelers, why), r2 = r;
	char *text = *why;

	if (!r || !labelers)
		return r;
	for (remaining = labelers; r2 && remaining; remaining &= remaining - 1) {
		/* one labeler: this is without any */
		some = without | (remaining & -remaining);
		r2 = open_with(ret, set, o, &some, &all, why);
		if (!r2)
			warn_labeler(set, __builtin_ctz(remaining), text, r);
		else
			free(*why);
	}
	*why = NULL;
	if (r2) {
		some = without | labelers;
		r2 = open_with(ret, set, o, &some, &all, why);
		for (remaining = labelers; !r2 && remaining; remaining &= remaining - 1)
			warn_labeler(set, __builtin_ctz(remaining), text, r);
	}
	free(text);
	return r2;
}

const char *const sampler_choices[] = {"auto", "bpf", "snapshot", NULL};

int bpf_sampler_choose(struct bpf_sampler **ret, enum sampler_choice choice,
		       const struct plugin_set *set, const struct bpf_sampler_options *o,
		       char **why)
{
	int r;

	*ret = NULL;
	*why = NULL;
	if (choice == SAMPLER_SNAPSHOT)
		return 0;
	r = bpf_sampler_open(ret, set, o, why);
	return choice == SAMPLER_BPF ? r : 0;
}

void bpf_sampler_close(struct bpf_sampler *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < SAMPLER_LINKS; i++)
		bpf_link__destroy(b->links[i]);
	waits_close(b);
	probes_close(b);
	inuse_close(b);
	chunks_fini(b);
	slabs_fini(b);
	frames_fini(b);
	if (b->frames.states)
		munmap(b->frames.states, b->frames.n * sizeof(*b->frames.states));
	if (b->chunks.at)
		munmap(b->chunks.at, b->chunks.len);
	if (b->settings)
		munmap(b->settings, sizeof(*b->settings));
	language_programs_fini(b);
	ring_buffer__free(b->wakes);
	bpf_object__close(b->object);
	free(b);
}

int bpf_sampler_attach(struct bpf_sampler *b, int event)
{
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, b->fds.tick) ? -errno : 0;
}

void bpf_sampler_set_copy_bytes(struct bpf_sampler *b, uint32_t bytes)
{
	b->settings->copy_bytes = bytes < RECORD_MAX_COPY ? bytes : RECORD_MAX_COPY;
}

int bpf_sampler_set_output(struct bpf_sampler *b, int cpu, int event)
{
	return bpf_map_update_elem(b->fds.output, &cpu, &event, 0) ? -errno : 0;
}

void bpf_sampler_begin_round(struct bpf_sampler *b, uint64_t copy_bytes)
{
	__atomic_store_n(&b->settings->copy_limit, (uint32_t)(copy_bytes / 1024), __ATOMIC_RELAXED);
	__atomic_add_fetch(&b->settings->round, 1, __ATOMIC_RELAXED);
	slabs_load_required(b);
	b->unknown_ticks.older = b->unknown_ticks.newest;
	b->unknown_ticks.newest = __atomic_load_n(&b->settings->unknown_ticks, __ATOMIC_RELAXED);
}

int bpf_sampler_wake_fd(const struct bpf_sampler *b)
{
	return ring_buffer__epoll_fd(b->wakes);
}

bool bpf_sampler_take_wake(struct bpf_sampler *b)
{
	return ring_buffer__consume(b->wakes) > 0;
}

void bpf_sampler_woke(struct bpf_sampler *b, uint64_t took_ns)
{
	uint64_t now = clock_now(), quiet = WAKE_NS;
	uint64_t earned = (now - b->wake_time) / WAKE_PART;

	b->wake_time = now;
	b->wake_saved_ns += earned < WAKE_SAVED_NS ? (int64_t)earned : WAKE_SAVED_NS;
	if (b->wake_saved_ns > WAKE_SAVED_NS)
		b->wake_saved_ns = WAKE_SAVED_NS;
	b->wake_saved_ns -= (int64_t)took_ns;
	/* Readings that had much else to do count once. */
	if (b->wake_saved_ns < -(int64_t)took_ns)
		b->wake_saved_ns = -(int64_t)took_ns;
	if (b->wake_saved_ns < 0)
		quiet += (uint64_t)-b->wake_saved_ns * WAKE_PART;
	__atomic_store_n(&b->settings->quiet_until, now + quiet, __ATOMIC_RELAXED);
}

bool bpf_sampler_may_wake(const struct bpf_sampler *b)
{
	return b->wake_saved_ns > 0;
}

#define TICK_TEXT(name, text) text,

const char *const tick_result_texts[TICK_RESULT_COUNT] = {TICK_RESULTS(TICK_TEXT)};

static void sum_ticks(int counts, uint64_t *ticks)
{
	int ncpus = libbpf_num_possible_cpus();
	uint64_t *values = ncpus > 0 ? calloc((size_t)ncpus, sizeof(*values)) : NULL;

	for (uint32_t i = 0; values && i < TICK_RESULT_COUNT; i++) {
		if (bpf_map_lookup_elem(counts, &i, values))
			continue;
		for (int c = 0; c < ncpus; c++)
			ticks[i] += values[c];
	}
	free(values);
}

void bpf_sampler_fill_half(struct bpf_sampler *b, bool half)
{
	b->frames.half = half;
}

bool bpf_sampler_is_half_full(const struct bpf_sampler *b)
{
	return b->chunks.nfree < (b->chunks.n - 1) / 2 ||
	       b->slabs.room.used_words > (uint64_t)b->slabs.n * SLAB_WORDS / 2;
}

void bpf_sampler_stats(struct bpf_sampler *b, struct bpf_sampler_stats *s)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	*s = (struct bpf_sampler_stats){0};
	sum_ticks(b->fds.counts, s->ticks);
	if (b->waits.beside)
		sum_ticks(bpf_object__find_map_fd_by_name(b->waits.object, "sampler_counts"),
			  s->ticks);
	for (uint32_t i = 0; i < PROBE_OBJECTS; i++)
		if (probes_at(b, i)->beside)
			sum_ticks(bpf_object__find_map_fd_by_name(probes_at(b, i)->object,
								  "sampler_counts"),
				  s->ticks);
	s->table_bytes = b->slabs.room.used_words * 4 +
			 (uint64_t)(b->frames.n - b->frames.nfree) * FRAME_BYTES;
	s->table_cap = (uint64_t)b->slabs.n * SLAB_BYTES + (uint64_t)b->frames.n * FRAME_BYTES;
	s->pages = b->frames.counts;
	s->chunks = b->chunks.n - 1 - b->chunks.nfree;
	s->chunks_cap = b->chunks.n - 1;
	s->unfollowed = __atomic_load_n(&b->settings->unfollowed, __ATOMIC_RELAXED);
	if (!bpf_obj_get_info_by_fd(b->fds.tick, &info, &len)) {
		s->instructions = info.verified_insns;
		s->machine_code = info.jited_prog_len;
	}
}
