/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one window: equal stacks of equal labels are one entry with a count and a weight.
 * A collector has no pointers to processes and files, only their ids, so processes may be freed
 * before it. For one thread.
 */
#ifndef PIPELINE_COLLECTOR_H
#define PIPELINE_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/sampler.h>

#include "base/buf.h"
#include "base/dict.h"
#include "pipeline/followed.h"
#include "pipeline/frame_set.h"
#include "process/process.h"
#include "unwind/sample.h"
#include "unwind/walk.h"

/* Samples with equal keys are one entry. A dictionary key: no padding. */
struct sample_key {
	uint32_t process; /* id in processes */
	uint32_t tid;     /* 0 unless samples carry thread ids */
	uint32_t comm;    /* id in comms */
	uint32_t stack;   /* id in stacks */
	uint32_t reason;  /* of the pipeline's loss_account; 0: complete */
	uint32_t part;    /* of a sampler: struct fusee_sampler_part.label + 1; 0: of an event */
	uint32_t cpu;     /* and 1, if samples have times; 0: not known */
	uint32_t sampler; /* of a part: the sampler's number; of a hit: COLLECTED_HIT; else 0 */
};

#define COLLECTED_HIT UINT32_MAX /* less the number of its hook */

static inline bool collected_is_hit(const struct sample_key *k)
{
	return k->sampler >= COLLECTED_HIT - UINT8_MAX;
}

/* Of a sample that represents a weight, as it is of a hit of that value: the hits. */
#define HIT_PARTS 1024u

/* When and where a sample was taken, where that is kept. */
struct collected_at {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;     /* UINT32_MAX: not known */
};

struct collected_time {
	uint64_t time_ns;
	uint32_t sample, ids; /* ids in samples, and in `ids`; 0: it carries none */
};

/* Samples of one key that carry the same ids and labels. A dictionary key: no padding. */
struct ids_key {
	uint64_t trace_id[2], span_id;
	uint32_t sample; /* id in samples */
	uint32_t texts;  /* id in texts; 0: no labels */
};

struct sample_sum {
	uint64_t count;
	uint64_t weight; /* ns of CPU time, or off the CPU; or the value of hits */
	uint64_t hits;   /* that the samples represent, in parts of HIT_PARTS */
};

/* A process under one label set. */
struct collected_process {
	pid_t pid;
	uint32_t set;     /* number of the label set */
	uint32_t program; /* id of its executable's file; 0: not known */
	char name[64];    /* of the executable, else of the main thread; not terminated if full */
	uint64_t bytes;   /* of memory for stacks and keys that its samples added */
};

/* A sample of a sampler: set and tid as of collector_add(). */
struct collected_parts {
	uint32_t set, tid, sampler, n;
	struct fusee_sampler_part part[FUSEE_SAMPLER_PARTS];
};

/* The samples that a call has added: a key for each part. */
struct collected_last {
	uint32_t sample[FUSEE_SAMPLER_PARTS], count[FUSEE_SAMPLER_PARTS]; /* ids in samples */
	uint64_t weight[FUSEE_SAMPLER_PARTS], hits;                       /* hits: of the first */
	uint32_t n;
	bool timed;
	uint32_t followed; /* id of the first; 0: it is not followed */
};

/* A hit of a probe, likewise. */
struct collected_hit {
	uint32_t set, tid;
	uint64_t value;    /* not 0 */
	uint32_t followed; /* the id by which its memory is followed; 0: it is not */
	uint8_t hook;      /* number of the hook; 0: of none */
};

struct collector {
	struct arena arena; /* has what grows with the samples */
	struct frame_set frames;
	struct dict stacks;                  /* uint32_t ids of frames, leaf first */
	struct dict comms;                   /* names of threads */
	struct dict processes;               /* key: process id and label set */
	struct dict samples;                 /* struct sample_key; id 0 is none */
	struct sample_sum *sums;             /* by id in samples */
	struct collected_process *collected; /* by id in processes */
	struct dict texts;                   /* labels, as of struct sample_ids */
	struct dict ids;                     /* struct ids_key; id 0 is none */
	struct sample_sum *of_ids;           /* by id in ids: their part of the samples' sums */
	uint32_t nsums, ncollected, nof_ids;
	struct collected_last last;
	uint64_t unkept_ids;       /* samples whose ids found no room: they are in the sums alone */
	uint64_t bytes;            /* of memory */
	uint64_t own_limit;        /* of bytes; 0: that of all */
	uint64_t count, weight_ns; /* sums of all samples */
	uint64_t start_wall_ns, start_ns; /* of the window: CLOCK_REALTIME, CLOCK_MONOTONIC */
	struct buf times; /* struct collected_time, of samples that were added with one */
	struct followed_hits followed;
	uint8_t share; /* the least of the samples' pipeline_route.share; 0: all */
};

/* Limits the memory of all collectors together; 0, the default: no limit. A process may add another
 * stack while its stacks take less than an eighth of the free bytes: a process with ever new stacks
 * loses only its own samples. */
void collector_set_limit(uint64_t bytes);
uint64_t collector_bytes(void);            /* of all collectors */
int collector_new(struct collector **ret); /* 0 or -ENOMEM */
void collector_free(struct collector *);   /* NULL is fine */
/* Gives an empty collector a limit of its own; its bytes do not count for the limit of all. */
void collector_set_own_limit(struct collector *, uint64_t bytes);
/* Adds an unwound sample. set: number of its label set; tid, reason: as in struct sample_key;
 * weight_ns: the CPU time that it represents; at: NULL: not kept. A walk of NULL has no frames, and
 * always has room. 0; -E2BIG: the limit leaves no room for another stack of the process; -ENOMEM.
 */
int collector_add(struct collector *, const struct process *, uint32_t set, uint32_t tid,
		  const char *comm, const struct walk *, uint32_t reason, uint64_t weight_ns,
		  const struct collected_at *at);
/* The same of a hit of this value, which represents the weight of all. */
int collector_add_hit(struct collector *, const struct process *, const struct collected_hit *,
		      const char *comm, const struct walk *, uint32_t reason, uint64_t weight,
		      const struct collected_at *at);
/* The same of a sampler's: a sample for each part. Its time is of the first. */
int collector_add_parts(struct collector *, const struct process *, const struct collected_parts *,
			const char *comm, const struct walk *, uint32_t reason,
			const struct collected_at *at);
/* followed_keep() of its hits. */
int collector_keep(struct collector *, const uint32_t *ids, size_t n);

/* Which followed hits of another collector are added, and how. */
struct collector_carrying {
	/* Those of this process, under label set *set, which is that of their samples; NULL: all.
	 */
	bool (*choose)(void *arg, const struct collected_process *, uint32_t *set);
	void *arg;
	bool sums; /* they have been followed to their end: one hit for each stack has their sums */
};

/* Adds followed hits of another collector, without counting them as samples again. 0 or
 * -ENOMEM. */
int collector_carry(struct collector *, const struct collector *from,
		    const struct collector_carrying *);
/* The samples that the last call has added carry these ids and labels. */
void collector_set_ids(struct collector *, const struct sample_ids *);
/* The sums of the samples that carry no ids, by id in samples; NULL: none do. The caller frees it.
 * 0 or -ENOMEM. */
int collector_without_ids(const struct collector *, struct sample_sum **);
#endif
