/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF sampler: its programs unwind stacks in the kernel at each tick of the perf events that
 * they are attached to. They are linked with the native unwinders' steps when they are loaded.
 *
 * This header opens it and counts what it did. perf events use bpf/sampler_events.h, what the
 * kernel knows of processes is written through bpf/publish.h, and which processes are sampled
 * through bpf/rates.h. Needs CAP_BPF and CAP_PERFMON. For one thread.
 */
#ifndef BPF_SAMPLER_H
#define BPF_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/maps.h"
#include "plugin/plugin.h"

struct bpf_sampler;
struct probe_points;
struct worker;

struct bpf_sampler_options {
	/* Cap of all unwind tables in the kernel, allocated at once; 0: 4 MiB. */
	uint64_t table_bytes;
	/* Map chunks, of up to 24 executable mappings of a process each; 0: 448, and 32 for each
	 * CPU. */
	uint32_t chunks;
	/* Samplers, borrowed until bpf_sampler_close(): their programs choose the samples, see
	 * bpf/waits.h; NULL, or none: samples are ticks of events. */
	const struct chooser_set *choosers;
	bool beside; /* ticks are samples too */
	/* Not NULL: its samples are hits of these: bpf/probes.h. Borrowed for bpf_sampler_open().
	 */
	const struct probe_points *probes;
	bool probes_beside; /* ticks are samples too */
	bool hooks;         /* hooks are samples too, beside ticks: bpf_hooks_attach_to() */
	bool in_use;        /* their memory is followed until it is freed: bpf/inuse.h */
	bool leaderless;    /* a process is to be probed whose first thread has ended */
	/* Its cache has the pages of tables that were used; borrowed until
	 * bpf_sampler_keep_pages(). NULL: none. */
	struct worker *worker;
};

/* Begins to load programs of language unwinders, each in a child process: of those whose name is in
 * the text, or, of late unwinders, the name of whose run time is, which bpf_publish_wait_programs()
 * waits for; NULL: of all but late unwinders, which it does not wait for. */
void bpf_sampler_load_languages(struct bpf_sampler *, const char *in);

/* Whether new tables are loaded into half of their room only, before walks need their pages. */
void bpf_sampler_fill_half(struct bpf_sampler *, bool half);
/* Whether published processes hold half of the map chunks, or of the room for what of tables stays
 * while they are published. */
bool bpf_sampler_is_half_full(const struct bpf_sampler *);

enum sampler_choice {
	SAMPLER_AUTO,     /* the BPF sampler where it can be opened, else the snapshot sampler */
	SAMPLER_BPF,      /* the BPF sampler, or an error */
	SAMPLER_SNAPSHOT, /* the snapshot sampler: user space unwinds stack copies */
	SAMPLER_STOP,     /* threads are stopped: stop/sampler.h. Of recordings only */
};

/* Their names, by number, but SAMPLER_STOP's; ends with NULL. */
extern const char *const sampler_choices[];

/* No program of a language unwinder is loaded until bpf_sampler_load_languages() or a process has
 * code that the unwinder claims. The set is borrowed. 0; or -errno and, in *why, a malloc'ed
 * sentence or NULL. */
int bpf_sampler_open(struct bpf_sampler **ret, const struct plugin_set *unwinders,
		     const struct bpf_sampler_options *, char **why);
/* Opens it as chosen. 0 and *ret NULL: the snapshot sampler is to be used, because it was chosen
 * or, with *why, because the BPF sampler can't be opened. */
int bpf_sampler_choose(struct bpf_sampler **ret, enum sampler_choice, const struct plugin_set *,
		       const struct bpf_sampler_options *, char **why);
/* Keeps in the worker's cache which pages of tables were used, for the next run; the worker is not
 * used any more. NULL is fine. */
void bpf_sampler_keep_pages(struct bpf_sampler *);
void bpf_sampler_close(struct bpf_sampler *); /* after its events are closed; NULL is fine */

/* The texts of enum tick_result. */
extern const char *const tick_result_texts[TICK_RESULT_COUNT];

/* Pages of tables by page. */
struct page_counts {
	uint64_t loaded;   /* on demand */
	uint64_t reloaded; /* of them, those that were evicted before: frames are too few */
	uint64_t evicted;
	uint64_t refused;    /* not loaded, since too many were a moment ago */
	uint64_t remembered; /* loaded because an earlier run has used them */
};

struct bpf_sampler_stats {
	uint64_t ticks[TICK_RESULT_COUNT]; /* since it was opened, by enum tick_result */
	uint64_t table_bytes, table_cap;   /* unwind tables: in use, and the cap */
	struct page_counts pages;
	uint32_t chunks, chunks_cap; /* map chunks: in use, and the cap */
	uint32_t unfollowed; /* children of selected processes that bpf/rates.h had no room for */
	uint32_t instructions, machine_code; /* verified instructions, bytes of machine code */
};

/* Whether the programs measure the time that they take for ticks, which costs a tick some 50 ns. */
void bpf_sampler_set_timed(struct bpf_sampler *, bool timed);
/* What they measured so far, of all CPUs, in ns. */
uint64_t bpf_sampler_spent(const struct bpf_sampler *);
void bpf_sampler_stats(struct bpf_sampler *, struct bpf_sampler_stats *);
#endif
