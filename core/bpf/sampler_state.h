/* SPDX-License-Identifier: Apache-2.0 */
/* What bpf_sampler.c and bpf_language.c (programs), bpf_object.c (what these are linked from),
 * bpf_processes.c, bpf_mappings.c and bpf_tables.c (what they are told) share. Nobody else includes
 * this. */
#ifndef BPF_SAMPLER_STATE_H
#define BPF_SAMPLER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../bpf/maps.h"
#include "../../bpf/records.h"
#include "base/hashmap.h"
#include "bpf/loader.h"
#include "bpf/linker.h"
#include "bpf/sampler.h"
#include "unwind/files.h"

#define SLAB_BYTES (1u << 20) /* FUSEE_SLAB_WORDS of fusee/unwinder.bpf.h */
#define BPF_LINKS 4u
#define SLAB_WORDS (SLAB_BYTES / 4)

struct bpf_object;
struct bpf_link;

/* A free range of words. */
struct bpf_hole {
	uint32_t at, words;
};

/* The program of a language unwinder: bpf_language.c. */
struct bpf_language {
	enum bpf_language_state {
		BPF_LANGUAGE_UNTRIED,
		BPF_LANGUAGE_LOADING, /* in a child process */
		BPF_LANGUAGE_LATER,   /* there was no room for that; tried again by itself */
		BPF_LANGUAGE_READY,
		BPF_LANGUAGE_NONE, /* it has no program, or one that can't be loaded */
	} state;
	struct loader child; /* that loads it */
	uint32_t attempts;
	uint64_t again; /* CLOCK_MONOTONIC ns: if later, when */
};

struct bpf_sampler {
	const struct plugin_set *set; /* borrowed */
	bool elsewhere; /* our numbers of processes are not those that the programs see */
	struct bpf_object *object;
	struct bpf_language languages[FILES_MAX_UNWINDERS]; /* as in the set */
	struct bpf_link *links[BPF_LINKS];
	int program, pids, decisions, output, counts, grid, programs; /* owned by the object */
	int unwinder[SAMPLER_TABLES]; /* index in the set, -1: not there */

	uint32_t nslabs, nchunks;
	int slabs;                         /* fusee_slabs; owned by the object */
	struct map_chunk *chunks;          /* mapped: sampler_processes; [0] is nobody's */
	struct sampler_settings *settings; /* mapped */
	size_t chunks_len;
	struct process **owners; /* of chunks; borrowed, NULL: none, or within a chain */
	uint32_t *free_chunks, nfree;
	struct hashmap placed;  /* file and unwinder -> struct placed * */
	struct bpf_hole *holes; /* by address */
	uint32_t nholes, holes_cap;
	uint64_t used_words;
	uint32_t ids;         /* of tables */
	uint64_t last_change; /* as chunks[0] said when all were looked at */
	uint32_t nchanged;    /* of these, as it was then */
	uint64_t clock;       /* raised at each put: who was used last */
	/* the settings' unknown_ticks when rings were read the last time, and the time before: the
	 * newest records are handed over the next time */
	uint32_t unknown_ticks, older_unknown_ticks;
};

#define BPF_PARTS (2 + SAMPLER_TABLES)

/* bpf_object.c. Which of the set's unwinders step in the kernel. Stacks must be the same wherever
 * they are walked: with native unwinders that the program does not know, or in another order, user
 * space walks. 0; or -ENOTSUP with a sentence. */
int sampler_object_choose(struct bpf_sampler *, char **why);
/* What is linked into one object: the program, the native steps and, unless it is -1, this language
 * unwinder's. How many. */
uint32_t sampler_object_parts(const struct bpf_sampler *, int language,
			      struct linker_part parts[BPF_PARTS]);
/* The linked object in that file, read for its programs and maps; not loaded. 0 or -errno. */
int sampler_object_open(struct bpf_object **ret, int fd);
/* Is this unwinder's program there? Never untried: the first call lets it be loaded. Unless it is
 * ready its claims do not count. */
enum bpf_language_state bpf_language_state(struct bpf_sampler *, uint32_t unwinder);
void bpf_languages_end(struct bpf_sampler *);
/* The file's table of this unwinder (-1: of nobody), put there if it is not. No table: words 0. 0
 * or -errno: there is no room. */
int bpf_tables_place(struct bpf_sampler *, const struct file *, int unwinder,
		     struct slab_range *ret);
/* Writes the mappings into a chain that begins at head, which is closed for readers. 0 or -ENOSPC.
 */
int bpf_mappings_write(struct bpf_sampler *, struct process *, const struct claims *,
		       struct map_chunk *head);
int bpf_tables_init(struct bpf_sampler *);
void bpf_tables_fini(struct bpf_sampler *);
void bpf_tables_stats(const struct bpf_sampler *, struct bpf_sampler_stats *);
int bpf_processes_init(struct bpf_sampler *);
void bpf_processes_fini(struct bpf_sampler *);
void bpf_processes_stats(const struct bpf_sampler *, struct bpf_sampler_stats *);
#endif
