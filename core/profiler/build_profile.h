/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a profile from a collector whose frames are symbolized. For the thread of the profiler. */
#ifndef SAMPLING_BUILD_PROFILE_H
#define SAMPLING_BUILD_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/builder.h"
#include "pipeline/collector.h"
#include "plugin/plugin.h"

struct profiler;
struct profiler_window;

/* Which samples of a collector are in a profile: all, or of CPU time, or of one sampler, or hits of
 * probes. */
enum build_part { BUILD_ALL, BUILD_CPU, BUILD_CHOSEN, BUILD_HITS };

/* Borrowed for the call. */
struct build_options {
	enum build_part part;
	uint64_t period_ns; /* of the default rate, or a number of events of `event` */
	const char *event;  /* what was sampled, "cycles"; NULL: CPU time */
	uint32_t sampler;   /* of BUILD_CHOSEN: the number of the sampler */
	uint8_t hook;       /* of BUILD_HITS: the number of the hook; 0: of none */
	const char *probe;  /* .. and its name, the resource's label `probe`; else NULL */
	bool chosen;        /* by the profiler's samplers: each says a type and a unit */
	bool hits;          /* allocations: how many is a third type, beside their bytes */
	bool in_use;        /* .. and what of them is in use are two more, the default */
	bool timed;         /* calls: how many is a third type, beside their ns */
	bool beside;        /* .. or what they have chosen has such types beside CPU time */
	/* The labels of a label set, valid until the next call; NULL: samples have the labels
	 * `process` and `thread` only. */
	const struct fusee_label *(*labels)(void *arg, uint32_t set, uint32_t *n);
	void *arg;
	const char *const *omit; /* names of labels to leave out, ends with NULL; NULL: none */
	bool one_set;            /* only samples of `set`, whose labels become the resource's */
	uint32_t set;
	/* For a server that symbolizes: locations in files that the server may have are addresses
	 * without functions. Frames that it cannot symbolize keep their functions. */
	bool server_names;
	/* Set if rules of relabeling made the labels, which then include `process` and `host`.
	 * Returns a number, equal for sets with equal labels, which become one set; 0: samples of
	 * the set are excluded. NULL: all sets are separate. */
	uint32_t (*group)(void *arg, uint32_t set);
};

/* Whether samples of this label set are in the profile. */
bool build_has_set(const struct build_options *, uint32_t set);
/* Whether a sample is in the profile. */
bool build_has(const struct build_options *, const struct collector *, const struct sample_key *);
/* The samples of a profile. */
uint64_t build_samples(const struct collector *, const struct build_options *);
/* Is something of the profile in use, even if nothing was allocated? */
bool build_has_in_use(const struct collector *, const struct build_options *);

/* Adds everything except the duration and the losses to the builder: value types samples/count and
 * cpu/nanoseconds, samples, locations, symbols, the start time. The files of the collector's frames
 * must not have been freed (profiler_sweep() keeps them). 0 or -errno. */
int build_profile(struct builder *, const struct profiler *, const struct collector *,
		  const struct build_options *);

/* What losses represent. */
struct build_lost {
	/* Of a lost tick, in the first type behind the number of samples; 0: not known, as of
	 * samples of one of several samplers. */
	uint64_t weight;
	/* The type of late waits of sampler 0, those of sampler i are in the i-th behind; 0: they
	 * are ticks as all others. */
	uint32_t first;
};

/* Of a profile with these options, by the periods. */
struct build_lost build_lost_weights(const struct profiler *, const struct build_options *);

/* Adds the losses of an account: all its figures, and a sample for each reason of lost ticks, so
 * that the sums of the profile are the samples due and their CPU time. The stack of such a sample
 * is one frame, "[lost: ring full]", without a mapping; its label `reason` is the reason. Whose a
 * late wait was is known. */
void build_losses(struct builder *, const struct loss_account *, const struct build_lost *);

/* The same for a closed window. A lost tick represents the average CPU time of the window's
 * samples, as processes may have different rates; period_ns if the window has no samples. Of a
 * part: its samples' reasons; late waits are of the waits, all other lost ticks of CPU time. */
void build_window_losses(struct builder *, const struct profiler_window *,
			 const struct build_options *);
/* Whether there are such lost ticks of the part. */
bool build_window_has_lost(const struct profiler_window *, const struct build_options *);
/* Whether a label of this name is omitted. */
bool build_omits(const struct build_options *, struct fusee_str name);
/* The labels of the set as those of the resource, if the profile is of one set. */
void build_resource(struct builder *, const struct build_options *);
/* The weight of the processes of each program, by its file's id, which is below nfiles. The caller
 * frees it. NULL: no memory. */
uint64_t *build_weigh_programs(const struct collector *, const struct build_options *,
			       uint32_t nfiles);
/* The resource label `host`: the machine's name. */
void build_host(struct builder *);
/* Completes the profile of a collector: adds an id, and a comment if not all samples due by the
 * rates were kept. *ret: as of builder_finish(). 0 or -errno. */
int build_end(struct builder *, const struct collector *, const struct fusee_profile **ret);

/* A file without symbols of its own. */
struct poorly_symbolized_file {
	const char *path;       /* owned by the profiler */
	char build_id[129];     /* hex; "": none */
	uint32_t symbol_source; /* as of symbolizer_symbol_source() */
	uint64_t self_ns;       /* CPU time in its code */
	bool is_interpreter;    /* FUSEE_CLAIM_INTERPRETER */
};
/* Finds at most n such files of the collector, those with the most CPU time first. Returns how
 * many. */
uint32_t build_find_poorly_symbolized(const struct profiler *, const struct collector *,
				      struct poorly_symbolized_file *, uint32_t n);
#endif
