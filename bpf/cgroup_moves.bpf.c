/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts events after which processes may be in other control groups: core/programs/cgroup_moves.c.
 */
#include <fusee/unwinder.bpf.h>

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, __u64);
} moves SEC(".maps");

SEC("raw_tp") /* attached to several tracepoints */
int cgroup_moves_note(void *args)
{
	__u32 zero = 0;
	__u64 *n = fusee_bpf_map_lookup_elem(&moves, &zero);

	(void)args;
	if (n)
		__sync_fetch_and_add(n, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
