/* SPDX-License-Identifier: Apache-2.0 */
/* Samples at uprobes, of a BPF sampler that was opened for probes. For one thread. */
#ifndef BPF_PROBES_H
#define BPF_PROBES_H

#include <sys/types.h>

#include "../../bpf/probe_maps.h"
#include "programs/probe_links.h"
#include "bpf/sampler.h"

/* The keys of enum probe_result. */
extern const char *const probe_result_texts[PROBE_RESULT_COUNT];

/* Puts probes at these places, for all processes that map the files, now or later; only hits of
 * selected processes can be samples. 0; or -errno and, in *why, a malloc'ed sentence or NULL. */
int bpf_probes_attach(struct bpf_sampler *, const struct probe_points *, char **why);
/* The same of a file that is open, for one process (-1: all), and what has its memory. 0, and the
 * links are the caller's; or -errno, and there is no probe. -EOWNERDEAD: its first thread has
 * ended, by which the kernel's links know a process. */
int bpf_probes_attach_to(struct bpf_sampler *, pid_t, int fd, const struct probe_points *,
			 struct probe_links *);
/* Are those of a process one link? */
bool bpf_probes_have_links(const struct bpf_sampler *);
bool bpf_probes_are_put(const struct probe_links *);
/* Have probes of a process ended? watch_says: what poll() has said of `watch`. */
bool bpf_probes_have_ended(struct probe_links *, pid_t, bool watch_says);
/* The same of hooks, of a sampler that was opened for them; points have numbers. At a tracepoint,
 * of all processes: only hits of selected processes can be samples. */
int bpf_hooks_attach_to(struct bpf_sampler *, pid_t, int fd, const struct probe_points *,
			struct probe_links *);
int bpf_hooks_attach(struct bpf_sampler *, const struct probe_point *tracepoint,
		     struct probe_links *);
/* What became of the hits of a hook so far, by enum probe_result; a number may be that of several
 * hooks in turn. 0: of all. */
void bpf_hooks_counts(const struct bpf_sampler *, bool tracepoint, uint32_t hook,
		      uint64_t counts[PROBE_RESULT_COUNT]);
/* Removes them, for which the kernel waits for each CPU. [any thread] */
void bpf_probes_detach(struct probe_links *);
/* From now on hits are samples: those of this value for certain, others with the probability of the
 * ratio. 0: no hits are. */
void bpf_probes_set_period(struct bpf_sampler *, uint32_t period);
/* Since it was opened, by enum probe_result. Zeros: it was not opened for probes. */
void bpf_probes_counts(const struct bpf_sampler *, uint64_t counts[PROBE_RESULT_COUNT]);
#endif
