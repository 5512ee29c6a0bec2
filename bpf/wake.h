/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Wakes user space where a stack was not unwound because the kernel does not know the process's
 * mappings yet: their records are in the rings, and what they say can be published at once. */
#ifndef BPF_WAKE_H
#define BPF_WAKE_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"
#include "processes.h"

#define WAKE_FIRST_NS 1000000u   /* between two wakes because of a process, at first .. */
#define WAKE_LAST_NS 4096000000u /* .. and at last, if they do not help */

/* Becomes readable. What is in it does not matter. */
struct {
	__uint(type, 27 /* RINGBUF */);
	__uint(max_entries, 4096);
} sampler_wake SEC(".maps");

/* A process because of which user space was woken. */
struct woken {
	__u64 next;    /* not again before that time */
	__u32 pause;   /* ns, before `next` */
	__u32 version; /* of its mappings then; 0: it was unknown */
};

struct {
	__uint(type, 9 /* LRU_HASH */);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct woken);
} sampler_woken SEC(".maps");

/* May user space be woken because of this process? If a wake did not lead to other mappings, the
 * next is twice as far: its code may be such that nothing can be published. */
FUSEE_FN int may_wake(__u32 tgid, __u32 version, __u64 now)
{
	struct woken *w = fusee_bpf_map_lookup_elem(&sampler_woken, &tgid), first = {0};

	if (!w) {
		first.next = now + WAKE_FIRST_NS;
		first.pause = WAKE_FIRST_NS;
		first.version = version;
		return !bpf_map_update_elem(&sampler_woken, &tgid, &first, 0);
	}
	if (w->version != version) {
		w->version = version;
		w->pause = WAKE_FIRST_NS / 2;
	} else if (now < w->next) {
		return 0;
	}
	if (w->pause < WAKE_LAST_NS)
		w->pause *= 2;
	w->next = now + w->pause;
	return 1;
}

/* The stack of this process was not unwound for want of mappings; version: of those that it has. A
 * global function, so that the verifier checks it once. */
__attribute__((noinline)) int sampler_wake_reader(__u32 tgid, __u32 version)
{
	struct sampler_settings *o = settings();
	__u64 now = bpf_ktime_get_ns();

	if (!o || now < *(volatile __u64 *)&o->quiet_until || !may_wake(tgid, version, now))
		return 0;
	*(volatile __u64 *)&o->quiet_until = now + WAKE_FIRST_NS; /* it is on its way */
	bpf_ringbuf_output(&sampler_wake, &tgid, sizeof(tgid), 2 /* BPF_RB_FORCE_WAKEUP */);
	return 1;
}

/* The process runs a new program, whose mappings are in the rings: they are published before it has
 * begun its work, and not at its first tick. */
__attribute__((noinline)) int sampler_wake_exec(__u32 tgid)
{
	bpf_map_delete_elem(&sampler_woken, &tgid);
	return sampler_wake_reader(tgid, 0);
}
#endif
