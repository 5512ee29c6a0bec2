/* SPDX-License-Identifier: Apache-2.0 */
/* struct bpf_sampler and its parts, for the files of core/bpf only. Each part has its own file. */
#ifndef BPF_SAMPLER_STATE_H
#define BPF_SAMPLER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/unwinder.bpf.h>

#include "../../../bpf/maps.h"
#include "base/hashmap.h"
#include "linker/libbpf_log.h"
#include "linker/linker.h"
#include "sandbox/loader.h"
#include "bpf/inuse.h"
#include "bpf/publish.h"
#include "bpf/probes.h"
#include "bpf/sampler.h"
#include "programs/probe_links.h"
#include "programs/slab_room.h"
#include "inspection/used_pages.h"
#include "files/files.h"

#define SLAB_BYTES (1u << 20) /* FUSEE_SLAB_WORDS of fusee/unwinder.bpf.h */
#define SLAB_WORDS (SLAB_BYTES / 4)
#define CHOOSER_LINKS 8u /* programs of a sampler's plugin at most */
#define SAMPLER_LINKS (7u + CHOOSER_LINKS * MAX_SAMPLERS)

struct fusee_scope;
struct bpf_object;
struct bpf_link;
struct bpf_program;
struct ring_buffer;

/* ---- tables.c: unwind tables in the slabs ---- */

struct slabs {
	int fd;                /* map fusee_slabs; owned by the object */
	uint32_t n;            /* slabs, of SLAB_WORDS each */
	struct hashmap tables; /* file and unwinder -> struct slab_table * */
	struct slab_room room;
	uint32_t ids;       /* numbers of tables that were given */
	uint32_t nreplaced; /* tables for which their files have others now */
	uint64_t clock;     /* publications so far: the measure of which table was used last */
	uint64_t copied, copied_most; /* bytes of copies of tables; above which unused are freed */
};

/* ---- pages.c: pages of tables in frames ---- */

/* A table whose pages are loaded on demand. */
struct paged_table {
	const uint32_t *words; /* all of it; borrowed */
	uint64_t n;
	uint32_t at;                /* place of its entries in the slabs, a word for each page */
	uint32_t npages, nresident; /* its pages; those that are in frames */
	/* By page: what is in the slabs, or 0 there and here PAGE_NEVER or PAGE_EVICTED. */
	uint32_t *entries;
	uint8_t *seen; /* a bit for each page that was read: pages_seen() */
};

/* Why a page was loaded, from the best reason to the worst. A page that no walk has read yields to
 * pages with a better reason. */
enum page_reason {
	PAGE_REMEMBERED, /* an earlier run has used it: it yields to none */
	PAGE_REQUIRED,   /* on demand, or with its complete table */
	PAGE_NEAR,       /* it is near a page that an earlier run has used */
	PAGE_WIDE,       /* .. not so near */
	PAGE_FAR,        /* an earlier run has used some page of its table */
};

struct frame_owner {
	struct paged_table *table; /* NULL: the frame is free */
	uint32_t page;
	enum page_reason reason;
};

struct frames {
	bool half;                        /* bpf_sampler_fill_half() */
	int fd;                           /* map fusee_frames; owned by the object */
	struct fusee_frame_state *states; /* map fusee_frame_states, mapped */
	uint32_t n;
	struct frame_owner *owners;
	uint32_t *free, nfree; /* stack of free frames */
	uint32_t hand;         /* where the search for a frame to evict goes on */
	uint32_t nrequired;    /* settings->nrequired when it was last read */
	uint64_t loads;        /* that may be made on demand now .. */
	uint64_t loads_ns;     /* .. as of then */
	uint32_t none_idle; /* no idle page was loaded for this enum page_reason or a worse one */
	struct page_counts counts;
};

/* ---- chunks.c: map chunks ---- */

struct chunks {
	struct map_chunk *at; /* map sampler_chunks, mapped; [0] belongs to no process */
	size_t len;           /* bytes */
	uint32_t n;
	struct published **owners; /* by first chunk; borrowed, NULL: free, or not a first chunk */
	uint32_t *free, nfree;     /* stack of free chunks */
	uint32_t versions;         /* the last that was given; even */
	uint64_t last_change;      /* [0].changed when all were looked through */
	uint32_t nunconfirmed;     /* found then */
};

/* ---- language.c: a language unwinder's program ---- */

struct language_program {
	enum language_program_state {
		LANGUAGE_UNTRIED,
		LANGUAGE_LOADING, /* in a child process */
		LANGUAGE_LATER,   /* resources were short: retried at `retry_ns` */
		LANGUAGE_READY,
		LANGUAGE_NONE, /* the unwinder has no program, or it can't be loaded */
	} state;
	struct loader child; /* that loads it */
	bool awaited;        /* a process has code that the unwinder claims, or is to have it */
	uint32_t attempts;
	uint64_t retry_ns; /* CLOCK_MONOTONIC */
};

/* Maps and programs of the loaded object, which owns the descriptors. */
struct sampler_fds {
	int tick; /* program sampler_tick */
	int pids, rates, threads, output, counts, programs;
	int cpu_ticks, cpu_periods;
};

struct wait_ring;

struct waits {
	const struct chooser_set *choosers; /* whose programs choose; NULL: none is loaded */
	bool sampled;                       /* the object is that of waits */
	bool beside;                        /* there are two objects: CPU time, and this */
	struct bpf_object *object;          /* with the programs of waits; NULL: none are sampled */
	int programs;                       /* its map sampler_programs */
	struct wait_ring *rings;            /* of each possible CPU */
	uint32_t n;
	int cpus;    /* map sampler_wait_cpus */
	char *scope; /* map sampler_scope, mapped; NULL: not sampled. By waits_scope() */
};

/* What runs the walk: ticks of events, samplers of plugins, probes in files, or at tracepoints. */
enum sampler_object { OBJECT_TICKS, OBJECT_WAITS, OBJECT_PROBES, OBJECT_TRACEPOINTS };

struct probes {
	enum sampler_object which;  /* OBJECT_PROBES or OBJECT_TRACEPOINTS */
	bool sampled;               /* the object is that of probes */
	bool beside;                /* there is another object with probes, beside CPU time */
	struct bpf_object *object;  /* with the programs at probes; NULL: none are sampled */
	enum uprobe_link_type type; /* of its programs */
	bool hooks;                 /* of hooks, whose places are not known yet */
	uint32_t tracepoints;       /* so many are sampled; 0: the object is that of uprobes */
	uint32_t used;              /* a bit for each enum probe_program of its places */
	uint32_t numbers;           /* of places, where one has a filter; else 0 */
	int cpus, counts;           /* maps sampler_probe_cpus, sampler_hooks */
	int programs;               /* map sampler_programs of an object beside */
	struct probe_links links;
};

/* ---- inuse.c: allocations that are followed ---- */

struct inuse {
	bool followed;             /* they are */
	int programs[3];           /* to free, to allocate, which may throw */
	int maps[4];               /* by enum bpf_inuse_map, and that of the state */
	struct inuse_state *state; /* map, mapped */
};

struct labelers {
	int at[SAMPLER_LABELERS]; /* numbers in the set, of those that are linked */
	uint32_t n;
};

struct unknown_ticks {
	uint32_t newest, older;
};

struct bpf_sampler {
	const struct plugin_set *set; /* borrowed */
	struct worker *worker;        /* borrowed, for its cache; NULL: none */
	struct waits waits;
	struct probes probes;
	struct probes hooks[2]; /* in files, and at tracepoints */
	struct inuse inuse;
	bool foreign_pids; /* our pids differ from those that the programs see */
	struct bpf_object *object;
	struct bpf_link *links[SAMPLER_LINKS];
	struct sampler_fds fds;
	struct language_program languages[FILES_MAX_UNWINDERS]; /* by number in the set */
	struct labelers labelers;
	int unwinder[SAMPLER_TABLES];      /* number in the set of each native step; -1: none */
	struct sampler_settings *settings; /* mapped */
	struct ring_buffer *wakes;         /* map sampler_wake */
	int64_t wake_saved_ns; /* time that wakes may use; below 0: they have used more */
	uint64_t wake_time;    /* .. as of then */
	struct {
		uint32_t now, ever; /* bits: indices of sampler_cpu_ticks that are in use */
	} cpu_events;
	struct slabs slabs;
	struct frames frames;
	uint32_t paged; /* bit i: unwinder i of the set has FUSEE_UNWINDER_PAGED */
	uint32_t late;  /* the same, FUSEE_UNWINDER_LATE */
	struct chunks chunks;
	/* settings->unknown_ticks at the last two readings of the rings: the newest records are
	 * read one round later. */
	struct unknown_ticks unknown_ticks;
};

/* ---- object.c ---- */

#define CHOOSER_PREFIX "fusee_sampler_program_" /* of names of programs */
#define SAMPLER_PARTS (3 + SAMPLER_LABELERS + SAMPLER_TABLES + MAX_SAMPLERS)

/* Finds the set's unwinders that the program steps with, and its first labelers. Stacks must be the
 * same in the kernel and in user space, so other native unwinders, or another order, are refused.
 * 0; or -ENOTSUP with a sentence. */
int sampler_object_choose(struct bpf_sampler *, char **why);
/* Is it an unwinder of code, and no labeler? */
bool sampler_object_is_language(const struct fusee_unwinder_ops *);
/* The first object. */
enum sampler_object sampler_object_first(const struct bpf_sampler *);
/* The objects that are linked into one: the program, the native steps, those of labelers and,
 * unless `language` is -1, the step of this language unwinder; else, of waits, the plugins'.
 * Returns how many. */
uint32_t sampler_object_parts(const struct bpf_sampler *, enum sampler_object, int language,
			      struct linker_part parts[SAMPLER_PARTS]);
/* Reads the programs and maps of the linked object in a file; does not load them. 0 or -errno. */
int sampler_object_open(struct bpf_object **ret, int fd);
/* A sampler's object may have programs at raw tracepoints and maps of its own, but no writable
 * global variables, which all CPUs would write at once. 0, or -EINVAL and, in *why, a malloc'ed
 * sentence or NULL. */
bool sampler_object_is_chooser(const struct bpf_program *);
int sampler_object_check_chooser(const struct fusee_instance *, char **why);
/* An unwinder's or labeler's object may have its step and maps of its own, but neither programs nor
 * such variables. NULL, or what is wrong. For a child process: loader.h. */
const char *sampler_object_wrong_step(const struct fusee_plugin *);
/* The same of a labeler, in a child process. 0 or -errno, *why as above. */
int sampler_object_check_labeler(struct fusee_instance *, char **why);
/* What only programs of language unwinders use is not made without them. 0 or -errno. */
int sampler_object_exclude_languages(const struct bpf_sampler *, struct bpf_object *);

/* ---- language.c ---- */

/* The state of this unwinder's program. The first call begins to load it, so the answer is never
 * LANGUAGE_UNTRIED. Until it is ready, the machine's frames are shown where the unwinder has
 * claimed code, with a reason. */
enum language_program_state language_program_state(struct bpf_sampler *, uint32_t unwinder);
/* A process has code that this unwinder claims, or is to have it. */
void language_program_await(struct bpf_sampler *, uint32_t unwinder);
void language_programs_fini(struct bpf_sampler *);

/* ---- waits.c ---- */

/* What the running kernel has, and what so many samplers use. Before the object is loaded. 0 or
 * -errno. */
int waits_prepare(const struct bpf_sampler *, struct bpf_object *, uint32_t cpus);
/* How many samplers there are. */
static inline uint32_t waits_samplers(const struct bpf_sampler *b)
{
	return b->waits.choosers ? b->waits.choosers->n : 0;
}
/* Counts processes of sampler_rates with this pid, if there are samplers. */
void waits_count(struct bpf_sampler *, pid_t pid, uint32_t more);
/* Loads an object, which is linked, beside that of CPU time, which is loaded; its languages are
 * excluded, and maps are shared. 0 or -errno. */
int waits_load_beside(struct bpf_sampler *, uint32_t cpus);
/* Lets an object use maps of another that is loaded, by their names: all, or, of two objects whose
 * programs may interrupt one another, those that are not of a program's own. 0 or -errno. */
int waits_share_maps(struct bpf_object *to, struct bpf_object *from, bool all);
/* 0 or -errno. */
int waits_open(struct bpf_sampler *);
/* After a change of which processes are selected that have no rate of their own. */
void waits_set_scope(struct bpf_sampler *);
void waits_close(struct bpf_sampler *);

/* ---- beside.c ---- */

/* Opens what is sampled beside CPU time, and what the first object has of it. 0; or -errno and, in
 * *why, a malloc'ed sentence or NULL. */
int sampler_open_others(struct bpf_sampler *, uint32_t cpus, char **why);

/* ---- probes.c ---- */

#define PROBE_OBJECTS 3u /* of samples, and those of hooks */

static inline struct probes *probes_at(const struct bpf_sampler *b, uint32_t i)
{
	return (struct probes *)(i ? &b->hooks[i - 1] : &b->probes);
}

/* What maps have to hold for these places, and how programs are attached to them. */
void probes_prepare(struct bpf_sampler *, const struct bpf_sampler_options *);
/* Before it is loaded. 0 or -errno. */
int probes_size(const struct probes *);
/* Loads an object, which is linked, beside that of CPU time, as waits_load_beside(). */
int probes_load_beside(const struct bpf_sampler *, struct probes *);
/* Of an object that is loaded. 0 or -errno. */
int probes_open(struct probes *);
void probes_close(struct bpf_sampler *);

/* ---- inuse.c ---- */

/* Of an object of probes, before it is loaded: it follows allocations, or has nothing of it. 0 or
 * -errno. */
int inuse_prepare(struct bpf_object *, bool followed);
/* 0; or -errno and, in *why, a malloc'ed sentence or NULL. */
int inuse_open(struct bpf_sampler *, char **why);
void inuse_close(struct bpf_sampler *);
/* 0 or -errno; what is in place then is detached by the caller. */
int inuse_attach(const struct bpf_sampler *, const struct probe_where *,
		 const struct probe_points *);

/* ---- mappings.c ---- */

#define MAX_MARKS 32u

/* What the kernel noted in the list before: memory was given out then in [lo, hi). */
struct mark {
	uint64_t lo, hi, changed;
};

struct marks {
	struct mark at[MAX_MARKS];
	uint32_t n;
	bool blurred; /* there may be more, of any range */
};

/* Places the tables of native unwinders: loading them takes long, and until the list is written
 * stacks are unwound over the older list. */
void chunks_place(struct bpf_sampler *, struct published *, const struct publication *);
/* Writes the mappings into the list that begins at p->chunk, which no program reads meanwhile, and
 * sets awaits_program and lacks_table. Mappings that are older than a mark on their range keep it.
 * 0 or -ENOSPC. */
int chunks_write(struct bpf_sampler *, struct published *p, const struct publication *,
		 const struct marks *);

/* ---- chunks.c ---- */

int chunks_init(struct bpf_sampler *); /* chunks.at and chunks.n are set. 0 or -ENOMEM */
void chunks_fini(struct bpf_sampler *);
/* A free chunk's index; 0: none. */
uint32_t chunks_alloc(struct bpf_sampler *);
/* Frees a list of chunks; 0: none. */
void chunks_free(struct bpf_sampler *, uint32_t first);

/* ---- pages.c ---- */

/* Writes words into a map of words. 0 or -errno. */
int words_write(int fd, uint64_t at, const uint32_t *words, uint64_t n);
int frames_init(struct bpf_sampler *); /* frames.fd, .states and .n are set. 0 or -ENOMEM */
void frames_fini(struct bpf_sampler *);
/* How many pages a table of so many words has. */
uint32_t pages_of(uint64_t words);
/* Begins to load a table: all of its pages if there is room, else those that earlier runs have used
 * (NULL: none is known). Its words, n and at are set, and room for its entries is at that place. 0;
 * -ENOMEM or -errno. */
int pages_add(struct bpf_sampler *, struct paged_table *, const struct used_pages *);
/* A bit for each page that walks have read so far. */
const uint8_t *pages_seen(struct bpf_sampler *, struct paged_table *);
void pages_remove(struct bpf_sampler *, struct paged_table *);
void pages_free(struct paged_table *); /* its frames stay as they are */
/* Loads pages that a walk needs, unless they are loaded. Pages beyond the table are ignored. */
void pages_load(struct bpf_sampler *, struct paged_table *, const uint32_t *pages, uint32_t n);

/* ---- tables.c ---- */

/* Loads the pages at which walks in the kernel ended. */
void slabs_load_required(struct bpf_sampler *);

int slabs_init(struct bpf_sampler *); /* slabs.fd and slabs.n are set. 0 or -ENOMEM */
void slabs_fini(struct bpf_sampler *);
/* The place of the file's table of this unwinder (-1: none), which is written if it is not in the
 * slabs. No table: words 0. 0; -ENOSPC or -errno. */
int slabs_place(struct bpf_sampler *, const struct file *, int unwinder, struct slab_range *ret);
/* Frees the tables for which their files have others now, and which no list of mappings names. */
void slabs_drop_replaced(struct bpf_sampler *);
/* The place of a table of memory without a file. id: of this content. As above. */
int slabs_place_made(struct bpf_sampler *, uint64_t id, int unwinder,
		     const struct inspection_slab *, struct slab_range *ret);
/* The place of the words that this unwinder has set for the process. As above. */
int slabs_place_words(struct bpf_sampler *, uint64_t process, uint32_t unwinder,
		      const uint32_t *words, uint64_t n, struct slab_range *ret);
#endif
