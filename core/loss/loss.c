/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/loss.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

static const struct {
	const char *text;
	enum loss_stage stage;
} reasons[LOSS_REASONS] = {
	/* The stack reaches its thread's outermost frame. */
	[LOSS_NONE] = {"complete", LOSS_NOWHERE},
	/* The kernel had no room for the sample: fusee did not read in time. */
	[LOSS_RING_FULL] = {"ring full", LOSS_TICK},
	/* The kernel's timer fired late: one sample came for several periods. */
	[LOSS_TIMER_SKIPPED] = {"timer skipped", LOSS_TICK},
	/* The thread ended, or slept, before its period of CPU time was over. */
	[LOSS_UNFINISHED] = {"period not finished", LOSS_TICK},
	/* The thread ran in the kernel, which this user may not sample. */
	[LOSS_KERNEL_NOT_ALLOWED] = {"kernel not allowed", LOSS_TICK},
	/* The kernel stopped the event for a while, because it came too often. */
	[LOSS_THROTTLED] = {"throttled", LOSS_TICK},
	/* Another process traced the thread, as a debugger does, and a thread has one tracer at
	 * most. */
	[LOSS_TRACED] = {"traced already", LOSS_TICK},
	/* The thread could not be stopped: it is another user's, or has more rights. */
	[LOSS_NOT_STOPPED] = {"stop not allowed", LOSS_TICK},
	/* The thread went on before the stack of its wait was read, or too many waits ended at
	 * once. */
	[LOSS_WAIT_LATE] = {"wait over before its stack was read", LOSS_TICK},
	/* A thread came to a probe while its CPU had begun to read the stack of another. */
	[LOSS_HIT_DURING_ANOTHER] = {"probe hit while another was read", LOSS_TICK},
	/* A ring had no room for the stack of a hit, beside CPU time. */
	[LOSS_HIT_NOT_SENT] = {"ring full at a probe", LOSS_TICK},
	/* Either happened to a hit of a probe that the script declares. */
	[LOSS_HOOK_HIT] = {"hit of a script's probe without a stack", LOSS_TICK},
	/* fusee had no memory for the stack. */
	[LOSS_NO_MEMORY] = {"no memory", LOSS_STACK},
	/* The process started another program while the stack was walked by the tables of the
	 * program before. */
	[LOSS_PROCESS_CHANGED] = {"process changed while its stack was walked", LOSS_STACK},
	/* The code at a frame's address was replaced while the stack was walked. */
	[LOSS_CODE_CHANGED] = {"code changed while its stack was walked", LOSS_STACK},
	/* A frame's code was made at run time. When it was read again after the sample, it was
	 * other code, or unmapped. */
	[LOSS_MADE_CHANGED] = {"code made at run time changed", LOSS_STACK},
	/* The BPF sampler could not unwind the stack, and stack copies had used up their share of
	 * the ring. */
	[LOSS_NOT_COPIED] = {"too many stacks to copy", LOSS_STACK},
	/* A language unwinder's step was called again and again and pushed nothing. */
	[LOSS_ENDLESS] = {"an unwinder's frames do not end", LOSS_STACK},
	/* A language unwinder's step returned a caller that is not above its callee. */
	[LOSS_BACKWARDS] = {"an unwinder's caller is not above its callee", LOSS_STACK},
	/* The stack copy has its largest size, and frames lie above it. */
	[LOSS_COPY_FULL] = {"stack larger than its copy", LOSS_STACK},
	/* A page of the stack could not be copied. */
	[LOSS_COPY_SHORT] = {"stack copy ends early", LOSS_STACK},
	/* The worker had not made the file's unwind table yet. */
	[LOSS_NO_TABLE_YET] = {"unwind table not ready in time", LOSS_STACK},
	/* fusee could not read the file that holds the code. */
	[LOSS_FILE_NOT_READABLE] = {"file not readable", LOSS_STACK},
	/* No unwinder knows the function's frame. */
	[LOSS_NO_TABLE] = {"no unwind information", LOSS_STACK},
	/* The return address is in no executable mapping. */
	[LOSS_CALLER_NOT_CODE] = {"caller outside of code", LOSS_STACK},
	/* A uretprobe is attached to the function, and the kernel did not say where it returns to.
	 * */
	[LOSS_RETURN_REPLACED] = {"return address replaced by a uretprobe", LOSS_STACK},
	/* The sampled address is in no executable mapping. */
	[LOSS_CODE_NOT_MAPPED] = {"code not mapped", LOSS_STACK},
	/* The mappings of the process could not be read, or not in time. */
	[LOSS_MAPPINGS_NOT_READ] = {"mappings not read", LOSS_STACK},
	/* The process maps more code, or changes it more often, than is kept of a process. */
	[LOSS_TOO_MANY_MAPPINGS] = {"too many mappings", LOSS_STACK},
	/* The stack has more frames than a stack may have. */
	[LOSS_TOO_DEEP] = {"too deep", LOSS_STACK},
	/* The process has more different stacks in a window, or deeper stacks, than are kept of a
	 * process. */
	[LOSS_PROFILE_FULL] = {"too many different stacks", LOSS_STACK},
	/* The stack passes through an interpreter and was unwound in user space, where the frames
	 * of the interpreted program cannot be read. */
	[LOSS_NO_LANGUAGE] = {"interpreter without its program", LOSS_STACK},
	/* The language's unwinder refused an emission that names frames of the stack, or had no
	 * memory for it. */
	[LOSS_UNRECORDED] = {"names of frames lost", LOSS_STACK},
	/* The kernel recorded no user registers of the thread. */
	[LOSS_NO_REGISTERS] = {"no registers", LOSS_STACK},
	/* 32-bit code is not unwound. */
	[LOSS_32_BIT] = {"32-bit program", LOSS_STACK},
	/* An unwinder plugin has no text for its reason. */
	[LOSS_UNNAMED] = {"unnamed reason", LOSS_STACK},
	/* The sink's queue had no room for the profile. */
	[LOSS_QUEUE_FULL] = {"queue full", LOSS_DELIVERY},
	/* The sink answered that it will never take the profile. */
	[LOSS_REFUSED] = {"refused", LOSS_DELIVERY},
	/* The profile was still queued when the agent or the plan ended. */
	[LOSS_ENDED] = {"ended", LOSS_DELIVERY},
	/* fusee had no memory for the profile, or too many windows waited for symbols. */
	[LOSS_NOT_BUILT] = {"not built", LOSS_DELIVERY},
	/* The sink's spool had no room for newer profiles (spool_size). */
	[LOSS_SPOOL_FULL] = {"spool full", LOSS_DELIVERY},
	/* The profile waited in the sink's spool for too long (spool_age). */
	[LOSS_TOO_OLD] = {"too old", LOSS_DELIVERY},
	/* The profile's bytes in the sink's spool were not as they were written. */
	[LOSS_DAMAGED] = {"damaged", LOSS_DELIVERY},
};

const char *loss_text(enum loss_reason reason)
{
	return reasons[reason].text;
}

enum loss_stage loss_stage(enum loss_reason reason)
{
	return reasons[reason].stage;
}

const char *loss_stage_text(enum loss_stage stage)
{
	static const char *const texts[] = {"complete", "lost", "truncated", "not delivered"};

	return texts[stage];
}

void loss_account_init(struct loss_account *a)
{
	*a = (struct loss_account){.n = LOSS_REASONS};
	for (uint32_t i = 0; i < LOSS_REASONS; i++)
		a->counts[i] = (struct loss_count){reasons[i].text, reasons[i].stage, 0};
}

uint32_t loss_account_reason(struct loss_account *a, const char *text)
{
	for (uint32_t i = LOSS_NONE + 1; i < a->n; i++)
		if (a->counts[i].text == text || !strcmp(a->counts[i].text, text))
			return i;
	if (a->n == LOSS_MAX)
		return LOSS_UNNAMED;
	a->counts[a->n] = (struct loss_count){text, LOSS_STACK, 0};
	return a->n++;
}

void loss_account_add(struct loss_account *a, uint32_t reason, uint64_t n)
{
	uint64_t *const sums[] = {&a->complete, &a->lost, &a->truncated, NULL};
	uint64_t *sum;

	fusee_assert(reason < a->n);
	a->counts[reason].n += n;
	sum = sums[a->counts[reason].stage];
	if (sum) {
		*sum += n;
		a->due += n;
	}
	fusee_assert(a->due == a->complete + a->truncated + a->lost);
}

void loss_account_move(struct loss_account *a, enum loss_reason from, enum loss_reason to,
		       uint64_t n)
{
	uint64_t all = a->counts[from].n;

	fusee_assert(loss_stage(from) == loss_stage(to));
	n = n < all ? n : all;
	a->counts[from].n -= n;
	a->counts[to].n += n;
}

void loss_account_clear(struct loss_account *a)
{
	a->due = a->complete = a->truncated = a->lost = 0;
	for (uint32_t i = 0; i < a->n; i++)
		a->counts[i].n = 0;
	for (uint32_t i = 0; i < LOSS_SAMPLERS; i++)
		a->late[i] = a->late_weight[i] = 0;
}

void loss_account_list(const struct loss_account *a, enum loss_stage stage, struct buf *b)
{
	const char *comma = "";
	char number[32];

	for (uint32_t i = 0; i < a->n; i++) {
		const struct loss_count *c = &a->counts[i];

		if (c->stage != stage || !c->n)
			continue;
		buf_printf(b, "%s%s %s", comma, text_number(number, c->n), c->text);
		comma = ", ";
	}
}

void loss_account_json(const struct loss_account *a, enum loss_stage stage, const char *name,
		       struct json *j)
{
	json_open(j, name);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct loss_count *c = &a->counts[i];

		if (c->stage != stage || (!c->n && stage == LOSS_STACK))
			continue;
		json_key(j, (struct fusee_str){c->text, strlen(c->text)});
		json_uint(j, NULL, c->n);
	}
	json_end(j);
}
