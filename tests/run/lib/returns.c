/* SPDX-License-Identifier: Apache-2.0 */
/*
 * returns [holds|spins|forks]: calls functions whose names begin with "probed", over and over; each
 * leaf_X is reached by one chain of calls, that of run_X. holds: instead waits at the end of such a
 * chain; spins: runs there; forks: has a child run there.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FN __attribute__((noipa))
#define SPIN_NS 3000000

static volatile uint64_t sink;
static volatile int is_child;
static _Thread_local jmp_buf back;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

#define LEAF(name)                                \
	FN void leaf_##name(void)                 \
	{                                         \
		for (int i = 0; i < 2000000; i++) \
			sink += i;                \
	}

/* The volatile behind each call keeps it from being the last thing that its caller does. */
#define CALLS(caller, callee) \
	FN void caller(void)  \
	{                     \
		callee();     \
		sink++;       \
	}

LEAF(single)
CALLS(probed_single, leaf_single)
CALLS(run_single, probed_single)

LEAF(deep)
CALLS(probed_d, leaf_deep)
CALLS(plain_c, probed_d)
CALLS(probed_c, plain_c)
CALLS(probed_b, probed_c)
CALLS(plain_a, probed_b)
CALLS(probed_a, plain_a)
CALLS(run_deep, probed_a)

LEAF(recursive)
FN void probed_recursion(int n)
{
	if (n)
		probed_recursion(n - 1);
	else
		leaf_recursive();
	sink++;
}
FN void run_recursive(void)
{
	probed_recursion(40);
	sink++;
}

/* The kernel still has the return addresses of these two when the leaf runs. */
LEAF(jump)
FN void probed_jump_b(void)
{
	volatile char room[64];

	room[0] = 1;
	longjmp(back, room[0]);
}
CALLS(probed_jump_a, probed_jump_b)
CALLS(plain_jump, probed_jump_a)
CALLS(plain_jumped, leaf_jump)
FN void probed_jumps(void)
{
	if (!setjmp(back))
		plain_jump();
	else
		plain_jumped();
	sink++;
}
CALLS(run_jump, probed_jumps)

/* One return address for both: the second finds that it was replaced already. */
LEAF(tail)
CALLS(probed_tail, leaf_tail)
FN void probed_before_tail(void)
{
	sink++;
	probed_tail();
}
CALLS(run_tail, probed_before_tail)

/* A handler on a stack of its own. */
LEAF(signal)
CALLS(probed_in_handler, leaf_signal)
FN void on_signal(int n)
{
	(void)n;
	probed_in_handler();
	sink++;
}
FN void probed_raises(void)
{
	raise(SIGUSR1);
	sink++;
}
CALLS(run_signal, probed_raises)

/* A rule that no table of fusee expresses: user space unwinds a copy of this stack. */
LEAF(copied)
void odd(void);
__asm__(".globl odd\n.type odd,@function\nodd:\n.cfi_startproc\n"
	"mov %rsp,%rax\n.cfi_def_cfa_register 0\nsub $64,%rsp\nand $-64,%rsp\nmov %rax,24(%rsp)\n"
	".cfi_escape 0x0f,6,0x77,24,0x06,0x23,8,0x96\n" /* breg7 24, deref, plus_uconst 8, nop */
	"call leaf_copied\nmov 24(%rsp),%rax\n.cfi_def_cfa 0,8\nmov %rax,%rsp\n"
	".cfi_def_cfa_register 7\nret\n.cfi_endproc\n.size odd,.-odd\n");
CALLS(probed_copied_b, odd)
CALLS(probed_copied_a, probed_copied_b)
CALLS(run_copied, probed_copied_a)

/* Linux 6.18 makes a probe on a nop of five bytes a call. */
LEAF(nop)
CALLS(plain_nop, leaf_nop)
void probed_nop(void), probed_short_nop(void);
__asm__("	.type probed_nop,@function\n"
	"probed_nop:\n"
	"	.cfi_startproc\n"
	"	.byte 0x0f,0x1f,0x44,0x00,0x00\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rbp,-16\n"
	"	mov %rsp,%rbp\n"
	"	call plain_nop\n"
	"	pop %rbp\n"
	"	.cfi_restore %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size probed_nop,.-probed_nop\n"
	"	.type probed_short_nop,@function\n"
	"probed_short_nop:\n"
	"	.cfi_startproc\n"
	"	.byte 0x0f,0x1f,0x44,0x00,0x00\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size probed_short_nop,.-probed_short_nop\n");
CALLS(run_nop, probed_nop)

/* Most time of this goes to the kernel, and to what probed functions return to. */
FN void probed_short(void)
{
	sink++;
}
FN void run_short(void)
{
	for (int i = 0; i < 1000; i++) {
		probed_short();
		probed_short_nop();
	}
	sink++;
}

static void install(void)
{
	struct sigaction on = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	static _Thread_local char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &on, NULL);
}

FN void run_all(void)
{
	static void (*const runs[])(void) = {run_single, run_deep, run_recursive,
					     run_jump,   run_tail, run_signal,
					     run_copied, run_nop,  run_short};

	for (size_t i = 0;; i = (i + 1) % (sizeof(runs) / sizeof(*runs))) {
		int64_t end = now() + SPIN_NS;

		do
			runs[i]();
		while (now() < end);
	}
}

/* ---- at the end of a chain ---- */

static void (*end_of_chain)(void);

FN void leaf_end(void)
{
	end_of_chain();
	sink++;
}
CALLS(probed_y, leaf_end)
CALLS(plain_y, probed_y)
CALLS(probed_z, plain_y)

static void spin(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		sink++;
}

static void hold(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* The child returns through the functions that its parent has called. */
FN void fork_here(void)
{
	pid_t child = fork();

	for (long i = 0; !child && i < 1000000000; i++)
		sink += i;
	if (child)
		waitpid(child, NULL, 0);
	else
		is_child = 1;
}

FN void again(void)
{
	for (int i = 0; i < 6 && !is_child; i++)
		probed_z();
	exit(0);
}

static void *thread(void *arg)
{
	(void)arg;
	run_all();
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t t;

	/* Code right before the page that the kernel will choose for uprobes. */
	mmap((void *)0x7fffffffd000, 4096, PROT_READ | PROT_EXEC,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	end_of_chain = !strcmp(how, "holds") ? hold : !strcmp(how, "spins") ? spin : fork_here;
	if (!strcmp(how, "forks"))
		again();
	if (*how)
		probed_z();
	install();
	pthread_create(&t, NULL, thread, NULL);
	run_all();
	return 0;
}
