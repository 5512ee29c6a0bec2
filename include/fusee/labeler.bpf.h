/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/labeler.bpf.h - the step of a labeler, which says what a thread works on when it is
 * sampled.
 *
 * A labeler is a plugin of kind FUSEE_UNWINDER with FUSEE_UNWINDER_LABELS in its flags: see
 * <fusee/labeler.h>. Its step is compiled for the kernel and natively, as an unwinder's:
 *
 *	static int my_step(struct fusee_unwind *u) { ... return FUSEE_LABEL_GIVEN; }
 *	FUSEE_LABELER_STEP(my, my_step);
 *
 * It is called once for each sample of a process for which the plugin has set words, before the
 * stack is walked. u->tls and the registers are the interrupted thread's. It finds the words with
 * fusee_process_word(), reads the thread's memory with fusee_read() and fusee_read_str(), and says
 * what it has found with fusee_label_ids(), fusee_label_text() or both. It has no table, pushes and
 * emits nothing, remembers nothing, and leaves the other fields as they are. Its object has neither
 * programs nor global variables that can be written; names of its maps, if it has any, begin with
 * the plugin's.
 *
 * What it reads belongs to the target, which can write anything there. Samples that a kernel could
 * not unwind carry what was read with them, as other memory may be there later.
 */
#ifndef FUSEE_LABELER_BPF_H
#define FUSEE_LABELER_BPF_H

#include <fusee/unwinder.bpf.h>

/* What a labeler's step returns. The last three are counted. */
enum fusee_label {
	FUSEE_LABEL_NONE,       /* the thread works on nothing that has a label */
	FUSEE_LABEL_GIVEN,      /* fusee_label_ids() or fusee_label_text() was called */
	FUSEE_LABEL_UNREADABLE, /* the thread has a label, which cannot be read */
	FUSEE_LABEL_INCOMPLETE, /* .. which the thread was writing */
	FUSEE_LABEL_MORE,       /* as FUSEE_LABEL_GIVEN, and there are labels that were not given */
};

/* The thread works on this span of this trace: 16 and 8 bytes, as they are in trace contexts. Zeros
 * are no ids. They go into u->pushed, which a labeler has no other use for, as numbers: the first
 * two words are the trace's. */
FUSEE_FN void fusee_label_ids(struct fusee_unwind *u, const void *trace_id, const void *span_id)
{
	__u64 words[3];

	__builtin_memcpy(words, trace_id, 16);
	__builtin_memcpy(words + 2, span_id, 8);
	u->pushed[0] = __builtin_bswap64(words[0]);
	u->pushed[1] = __builtin_bswap64(words[1]);
	u->pushed[2] = __builtin_bswap64(words[2]);
}

/* What is kept of a sample's labels. More labels are omitted, and longer texts truncated, which is
 * counted; a truncated text ends with "...". */
#define FUSEE_LABEL_TEXTS 8u
#define FUSEE_LABEL_KEY 64u    /* bytes */
#define FUSEE_LABEL_VALUE 128u /* bytes */

/* The thread works on something that has this label: addresses and bytes of its texts in the
 * thread's memory, which are copied. A label without a name or a value is none; of labels with the
 * same name the first is kept. 0, or -1: they cannot be read. */
FUSEE_FN int fusee_label_text(struct fusee_unwind *u, __u64 key, __u64 key_len, __u64 value,
			      __u64 value_len);

#ifndef __bpf__
FUSEE_FN int fusee_label_text(struct fusee_unwind *u, __u64 key, __u64 key_len, __u64 value,
			      __u64 value_len)
{
	struct fusee_native *n = (struct fusee_native *)u;

	return n->label ? n->label(n, key, key_len, value, value_len) : -1;
}
#elif defined(FUSEE_CORE)
int fusee_core_label(__u64 key, __u64 key_len, __u64 value, __u64 value_len);
#else
__attribute__((noinline, weak)) int fusee_core_label(__u64 key, __u64 key_len, __u64 value,
						     __u64 value_len)
{
	__asm__ volatile("" : "+r"(key), "+r"(key_len), "+r"(value), "+r"(value_len));
	return -1;
}

FUSEE_FN int fusee_label_text(struct fusee_unwind *u, __u64 key, __u64 key_len, __u64 value,
			      __u64 value_len)
{
	(void)u;
	return fusee_core_label(key, key_len, value, value_len);
}
#endif

#ifdef __bpf__
/* The core gives each labeler's function a number of its own, in place of the 0, when it links the
 * object. */
#define FUSEE_LABELER_STEP(name, step)                               \
	__attribute__((noinline)) int fusee_label_step_0(__u32 slot) \
	{                                                            \
		struct fusee_unwind *u = fusee_current();            \
                                                                     \
		__asm__ volatile("" : "+r"(slot));                   \
		return u ? step(u) : FUSEE_LABEL_NONE;               \
	}                                                            \
	char LICENSE[] SEC("license") = "Dual BSD/GPL"
#else
#define FUSEE_LABELER_STEP(name, step) FUSEE_NATIVE_STEP(name, step)
#endif
#endif
