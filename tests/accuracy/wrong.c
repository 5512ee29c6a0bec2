/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliberately wrong unwinders, to show that the accuracy run finds them. Both are called before
 *all others. (nothing)	believes that every frame is 16 bytes, and that a stack whose next word is
 *no address is complete RARELY		leaves the work to the others, but once in some 50 frames it
 *moves sp by one word before
 */
#include <fusee/plugin.h>
#include <fusee/unwinder.bpf.h>

#ifdef RARELY
static int wrong_step(struct fusee_unwind *u)
{
	static unsigned int seed;

	seed = seed * 1103515245 + 12345;
	if (seed >> 16 & 0x3f)
		return FUSEE_PASS;
	u->sp += 8;
	return FUSEE_PASS;
}
#else
static int wrong_step(struct fusee_unwind *u)
{
	__u64 ret;

	if (fusee_read(u, &ret, sizeof(ret), u->sp + 8))
		return FUSEE_STOP;
	if (ret < 4096 || ret >> 47)
		return FUSEE_STOP;
	u->sp += 16;
	u->pc = ret;
	u->flags &= ~(__u32)FUSEE_PC_EXACT;
	return FUSEE_NEXT;
}
#endif

static const char *const reasons[] = {"none", NULL};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_NATIVE,
	.order = 1,
	.frame_type = "native",
	.reasons = reasons,
	.native_step = wrong_step,
};

FUSEE_PLUGIN(wrong, FUSEE_UNWINDER, .version = "0.1.0", .doc = "A wrong unwinder, for a test.",
	     .ops = &ops);
