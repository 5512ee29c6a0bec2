/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A program around the native steps: linked with their objects, run and compared by tool_steps.c.
 */
#include "steps.h"

#define MMAPABLE 1024

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, MMAPABLE);
	__type(key, __u32);
	__type(value, struct steps_input);
} steps_in SEC(".maps");

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, MMAPABLE);
	__type(key, __u32);
	__type(value, struct steps_output);
} steps_out SEC(".maps");

extern int fusee_step_dwarf(__u32 slot);
extern int fusee_step_framepointer(__u32 slot);

/* Takes one step. Not 0: it was the last. A global function is verified once, whatever the loop's
 * length. */
__attribute__((noinline)) int steps_one(__u32 i)
{
	__u32 zero = 0, by = 1;
	struct fusee_unwind *u = fusee_bpf_map_lookup_elem(&fusee_state, &zero);
	struct steps_input *in = fusee_bpf_map_lookup_elem(&steps_in, &zero);
	struct steps_output *out = fusee_bpf_map_lookup_elem(&steps_out, &zero);
	int r;

	if (!u || !in || !out)
		return 1;
	if (steps_locate(u, in))
		return steps_note(u, out, i, 0, STEPS_UNMAPPED);
	r = fusee_step_dwarf(0);
	if (r == FUSEE_PASS) {
		by = 2;
		r = fusee_step_framepointer(0);
	}
	return steps_note(u, out, i, by, u->absent ? STEPS_ABSENT : r);
}

/* By BPF_PROG_TEST_RUN: walks the stack that the input names, in the caller's own memory. */
SEC("raw_tp") int steps_raw(void *ctx)
{
	__u32 zero = 0;
	struct fusee_unwind *u = fusee_bpf_map_lookup_elem(&fusee_state, &zero);
	struct steps_input *in = fusee_bpf_map_lookup_elem(&steps_in, &zero);

	(void)ctx;
	if (!u || !in)
		return 0;
	fusee_window_reset();
	u->machine = 62;
	u->error = 0;
	u->absent = 0;
	u->flags = in->flags;
	u->pc = in->pc;
	u->sp = in->sp;
	u->fp = in->fp;
	u->valid_regs = in->valid_regs;
	for (int i = 0; i < 16; i++)
		u->regs[i] = in->regs[i];
	for (__u32 i = 0; i < STEPS_DEPTH; i++)
		if (steps_one(i))
			break;
	return 0;
}

char STEPS_LICENSE[] SEC("license") = "Dual BSD/GPL";
