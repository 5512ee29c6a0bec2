/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks: lock.bpf.c measures them, here is what they mean. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include <fusee/helpers.h>

#include "numbers.h"

FUSEE_EMBED(lock_bpf, "lock.bpf.o");

struct lock {
	struct lock_numbers numbers;
	char text[32]; /* of the last label */
};

/* Between the program that releases the lock and the wake of who waits for it. */
static const char *const omit[] = {"try_to_wake_up",
				   "wake_up_q",
				   "rt_mutex_postunlock",
				   "rt_mutex_futex_unlock",
				   "wake_futex_pi",
				   "futex_wake",
				   "futex_wake_op",
				   "futex_unlock_pi",
				   "do_futex",
				   "__do_sys_futex",
				   "__se_sys_futex",
				   "__x64_sys_futex",
				   "__arm64_sys_futex",
				   "x64_sys_call",
				   "do_syscall_64",
				   "entry_SYSCALL_64_after_hwframe",
				   NULL};

/* The words are the lock's address. */
static uint32_t parts(void *ctx, const struct fusee_sampler_sample *s,
		      struct fusee_sampler_part *part)
{
	struct lock *l = ctx;
	uint64_t address = s->words[0] | (uint64_t)s->words[1] << 32;

	part[0] = (struct fusee_sampler_part){s->weight, lock_number(&l->numbers, address), 1};
	return 1;
}

static int label(void *ctx, uint32_t number, struct fusee_label *ret)
{
	struct lock *l = ctx;
	uint64_t address = lock_address(&l->numbers, number);

	if (address)
		snprintf(l->text, sizeof(l->text), "0x%" PRIx64, address);
	else
		snprintf(l->text, sizeof(l->text), "others");
	*ret = (struct fusee_label){.key = FUSEE_TEXT("lock"), .str = fusee_text(l->text)};
	return 0;
}

static int check(void *ctx, char *text, uint32_t cap)
{
	struct utsname u;
	unsigned major, minor;

	(void)ctx;
	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2 || major > 5 ||
	    (major == 5 && minor >= 15))
		return 0;
	snprintf(text, cap, "who releases a lock: Linux 5.15 (bpf_task_pt_regs)");
	return -ENOTSUP;
}

static void fini(void *ctx)
{
	struct lock *l = ctx;

	lock_numbers_free(&l->numbers);
}

static const struct fusee_sampler_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_SAMPLER_TIME,
	.type = "lock",
	.unit = "nanoseconds",
	.amount = "waiting for locks",
	.bpf = lock_bpf,
	.bpf_end = lock_bpf_end,
	.omit = omit,
	.parts = parts,
	.label = label,
	.check = check,
};

FUSEE_PLUGIN(lock, FUSEE_SAMPLER, .version = "1.0",
	     .doc = "Waits for locks, by the stack that releases the lock.",
	     .ctx_size = sizeof(struct lock), .fini = fini, .ops = &ops);
