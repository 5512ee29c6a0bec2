/* SPDX-License-Identifier: Apache-2.0 */
/* Samples at uprobes, of a BPF sampler that was opened for probes. For one thread. */
#ifndef BPF_PROBES_H
#define BPF_PROBES_H

#include <sys/types.h>

#include "../../bpf/probe_maps.h"
#include "symbols/probe_points.h"
#include "bpf/sampler.h"

struct bpf_link;

/* Probes that are in place.
 * Probes of a process end with the thread whose memory the kernel took them to be of: its first, or
 * another if that had ended, which is also so if another thread has exec'ed in its place; or,
 * where memory is followed, with the process. `watch` has POLLHUP or POLLIN then. Links of many
 * places stay where the first thread ends and others go on. */
struct probe_links {
	struct bpf_link **at; /* a place each */
	size_t n, cap;
	int *many; /* descriptors of links, each of many places */
	size_t nmany, many_cap;
	int watch; /* an event of a thread, or a process; -1: none */
	void *ring;
	bool leaderless; /* the first thread has ended meanwhile */
};

#define PROBE_LINKS_NONE ((struct probe_links){.watch = -1})

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
/* Removes them, for which the kernel waits for each CPU. [any thread] */
void bpf_probes_detach(struct probe_links *);
/* From now on hits are samples: those of this value for certain, others with the probability of the
 * ratio. 0: no hits are. */
void bpf_probes_set_period(struct bpf_sampler *, uint32_t period);
/* Since it was opened, by enum probe_result. Zeros: it was not opened for probes. */
void bpf_probes_counts(const struct bpf_sampler *, uint64_t counts[PROBE_RESULT_COUNT]);
#endif
