// SPDX-License-Identifier: Apache-2.0
// check: fast, covers plugins/samplers/lock include/fusee/sampler.bpf.h
// include/fusee/testing_sampler.h
/* Which waits are a lock's, who ends them, and the numbers of addresses. */
#include "test.h"

#include <fusee/testing_sampler.h>

int fusee_sampler_program_lock_waits(__u64 *args);
int fusee_sampler_program_lock_release(__u64 *args);

#include "lock.bpf.c"
#include "numbers.h"

#define LOCK_AT 0x7f0012345678ull
#define PRIVATE 128u

static struct pt_regs regs_of[2]; /* of threads 0 and 1 */
static struct task_struct threads[2];
static int running; /* the current thread */

void *bpf_get_current_task_btf(void)
{
	return &threads[running];
}

void *bpf_task_pt_regs(void *task)
{
	return &regs_of[(struct task_struct *)task - threads];
}

static void call(int thread, __u64 op, __u64 address, __u64 value)
{
	regs_of[thread] = (struct pt_regs){0};
#ifdef __TARGET_ARCH_arm64
	regs_of[thread].syscallno = CALL_FUTEX;
	regs_of[thread].regs[0] = address;
	regs_of[thread].regs[1] = op;
	regs_of[thread].regs[2] = value;
#else
	regs_of[thread].orig_ax = CALL_FUTEX;
	regs_of[thread].di = address;
	regs_of[thread].si = op;
	regs_of[thread].dx = value;
#endif
}

static void start(void)
{
	fusee_testing_sampler = (struct fusee_testing_sampler){
		.selected = 1, .period = 100, .now = 1000};
	threads[0] = (struct task_struct){.pid = 10};
	threads[1] = (struct task_struct){.pid = 11};
	running = 1;
}

/* Thread 0 leaves its CPU at 1000, in a call of futex. */
static void waits(__u64 op, __u64 value)
{
	__u64 args[] = {0, (__u64)(uintptr_t)&threads[0], (__u64)(uintptr_t)&threads[1]};

	start();
	call(0, op, LOCK_AT, value);
	threads[0].__state = TASK_INTERRUPTIBLE;
	fusee_sampler_program_lock_waits(args);
}

/* Thread 1 wakes thread 0 at 1500. -> the weight of the sample */
static uint64_t wakes(__u64 op, __u64 address)
{
	__u64 args[] = {(__u64)(uintptr_t)&threads[0]};

	call(1, op, address, 1);
	fusee_testing_sampler.now = 1500;
	fusee_testing_sampler.ntaken = 0;
	fusee_sampler_program_lock_release(args);
	return fusee_testing_sampler.ntaken ? fusee_testing_sampler.taken.weight : 0;
}

TEST(the_thread_that_releases_is_the_sample)
{
	waits(FUTEX_WAIT | PRIVATE, 2);
	CHECK_INT(wakes(FUTEX_WAKE | PRIVATE, LOCK_AT), 500);
	CHECK(fusee_testing_sampler.taken.task == &threads[1]);
	CHECK_INT(fusee_testing_sampler.taken.words[0], (uint32_t)LOCK_AT);
	CHECK_INT(fusee_testing_sampler.taken.words[1], LOCK_AT >> 32);
	CHECK_INT(wakes(FUTEX_WAKE | PRIVATE, LOCK_AT), 0); /* it does not wait any more */
}

TEST(words_of_locks)
{
	static const struct {
		__u64 op, value;
		int is_lock;
	} of[] = {
		{FUTEX_WAIT, 2, 1},
		{FUTEX_WAIT | PRIVATE, 0x80000000u | 1234, 1}, /* robust, musl */
		{FUTEX_WAIT_BITSET | PRIVATE, 2, 1},
		{FUTEX_WAIT_BITSET | PRIVATE, 3, 1}, /* glibc's read-write locks */
		{FUTEX_LOCK_PI | PRIVATE, 0, 1},
		{FUTEX_LOCK_PI2, 0, 1},
		{FUTEX_WAIT | PRIVATE, 0, 0},        /* semaphores of some kind */
		{FUTEX_WAIT_BITSET | PRIVATE, 0, 0}, /* conditions, semaphores */
		{FUTEX_WAIT | PRIVATE, 3, 0},
		{FUTEX_WAIT_BITSET, 1234, 0}, /* the thread that is joined */
		{FUTEX_WAKE, 2, 0},
	};

	for (uint32_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		waits(of[i].op, of[i].value);
		CHECK_INT(wakes(FUTEX_WAKE | PRIVATE, LOCK_AT), of[i].is_lock ? 500 : 0);
	}
}

TEST(what_ends_a_wait_and_is_no_release)
{
	waits(FUTEX_WAIT, 2);
	CHECK_INT(wakes(FUTEX_WAKE, LOCK_AT + 4), 0); /* a timer, while another lock is released */
	waits(FUTEX_WAIT, 2);
	CHECK_INT(wakes(FUTEX_WAIT, LOCK_AT), 0);
	waits(FUTEX_WAIT, 2);
	threads[1].flags = PF_KTHREAD;
	CHECK_INT(wakes(FUTEX_WAKE, LOCK_AT), 0);
	waits(FUTEX_WAIT, 2);
	fusee_testing_sampler.began = 1200; /* its begin was not seen */
	CHECK_INT(wakes(FUTEX_WAKE, LOCK_AT), 0);
	waits(FUTEX_WAIT, 2);
	fusee_testing_sampler.selected = 0;
	CHECK_INT(wakes(FUTEX_WAKE, LOCK_AT), 0);
}

TEST(a_call_that_wakes_at_two_addresses)
{
	waits(FUTEX_WAIT, 2);
	call(1, FUTEX_WAKE_OP, LOCK_AT + 64, 1);
	CHECK(!releases(&threads[1], LOCK_AT));
#ifdef __TARGET_ARCH_arm64
	regs_of[1].regs[4] = LOCK_AT;
#else
	regs_of[1].r8 = LOCK_AT;
#endif
	CHECK(releases(&threads[1], LOCK_AT));
}

TEST(a_thread_that_is_preempted_or_ends_does_not_wait)
{
	__u64 args[] = {0, (__u64)(uintptr_t)&threads[0], (__u64)(uintptr_t)&threads[1]};

	start();
	call(0, FUTEX_WAIT, LOCK_AT, 2);
	fusee_sampler_program_lock_waits(args);
	CHECK(!fusee_sampler_memory(&threads[0]));
	waits(FUTEX_WAIT, 2);
	threads[0].__state = TASK_DEAD;
	fusee_sampler_program_lock_waits(args);
	CHECK(!fusee_sampler_memory(&threads[0]));
}

TEST(numbers_of_addresses)
{
	struct lock_numbers l = {0};

	CHECK_INT(lock_address(&l, 1), 0);
	for (uint64_t i = 1; i <= LOCK_MOST; i++)
		CHECK_INT(lock_number(&l, i * 64), i);
	for (uint64_t i = 1; i <= LOCK_MOST; i++) {
		CHECK_INT(lock_number(&l, i * 64), i);
		CHECK_INT(lock_address(&l, (uint32_t)i), i * 64);
	}
	CHECK_INT(lock_number(&l, 1), LOCK_OTHERS);
	CHECK_INT(lock_address(&l, LOCK_OTHERS), 0);
	CHECK_INT(lock_address(&l, LOCK_MOST + 1), 0);
	lock_numbers_free(&l);
}
