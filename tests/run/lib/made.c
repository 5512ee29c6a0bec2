/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made steady|swapped|torn|deep SECONDS: code made at run time whose chain of callers is known, in
 * memory without a file. It has no frame pointer: rbp is a number there.
 *
 *	main > calls > [outer] > [inner]    the inner function burns
 *	main > calls > [outer] > burn       a function of this file does
 *
 * steady: outer has one frame. swapped: it is rewritten every 1.5 s of CPU time, with another size,
 *and what lies on its frame is such that the other size's rule leads to complete stacks with too
 *many `calls`. torn: it ends in a jump through a register, which proves nothing. deep: `calls`,
 *outer and `deeper` call each other 4,000 times.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef void function(void *arg, long n);

static uint8_t *code;
static volatile long sink;

/* A frame of 16 bytes: code made at run time returns to its `add`. */
void calls(function *f, void *arg, long n);
extern char behind_call[];
__asm__(".text\n"
	".globl calls, behind_call\n"
	".type calls, @function\n"
	"calls:\n"
	".cfi_startproc\n"
	"	sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	call *%rax\n"
	"behind_call:\n"
	"	add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size calls, .-calls\n");

__attribute__((noinline)) void burn(void *arg, long n)
{
	(void)arg;
	for (long i = 0; i < n; i++)
		sink += i;
}

/* arg: how often it is called again */
__attribute__((noinline)) void deeper(void *arg, long n)
{
	static long remaining;

	if (!remaining)
		remaining = (long)arg;
	if (--remaining > 0)
		calls((function *)(void *)(code + 4096), (void *)deeper, n);
	else
		burn(NULL, n);
	sink++; /* no tail call */
}

static uint8_t *put(uint8_t *at, const char *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

#define PUT(bytes) (at = put(at, bytes, sizeof(bytes) - 1))

static void put_number(uint8_t *at, int32_t number)
{
	memcpy(at, &number, sizeof(number));
}

/* dec %rsi until 0, with rbp overwritten meanwhile */
static void write_inner(uint8_t *at)
{
	PUT("\x55\xbd\x11\x00\x00\x00");             /* push %rbp; mov $17,%ebp */
	PUT("\x48\xff\xc6\x48\x83\xee\x02\x7f\xf7"); /* 1: inc; sub $2,%rsi; jg 1b */
	PUT("\x5d\xc3");                             /* pop %rbp; ret */
}

/* Calls rdi, with `room` bytes of its own, in which all words are `word`. Only numbers differ. */
static void write_outer(uint8_t *at, int room, void *word, int torn)
{
	PUT("\x55\xbd\x11\x00\x00\x00\x48\x81\xec"); /* push %rbp; mov $17,%ebp; sub $..,%rsp */
	put_number(at, room);
	at += 4;
	PUT("\x48\xb8"); /* mov $word,%rax */
	memcpy(at, &word, sizeof(word));
	at += sizeof(word);
	PUT("\x48\x89\xe1\xba"); /* mov %rsp,%rcx; mov $..,%edx */
	put_number(at, room / 8);
	at += 4;
	/* 1: mov %rax,(%rcx); add $8,%rcx; dec %edx; jne 1b */
	PUT("\x48\x89\x01\x48\x83\xc1\x08\xff\xca\x75\xf5");
	PUT("\x48\x89\xf8\xff\xd0\x48\x81\xc4"); /* mov %rdi,%rax; call *%rax; add $..,%rsp */
	put_number(at, room);
	at += 4;
	if (torn)
		PUT("\x5d\x59\xff\xe1"); /* pop %rbp; pop %rcx; jmp *%rcx */
	else
		PUT("\x5d\xc3"); /* pop %rbp; ret */
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int swapped = argc > 1 && !strcmp(argv[1], "swapped"),
	    torn = argc > 1 && !strcmp(argv[1], "torn");
	double end = now() + (argc > 2 ? atof(argv[2]) : 5), next = now() + 1.5;
	int room = 16;

	code = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (code == MAP_FAILED)
		return 1;
	write_outer(code + 4096, room, behind_call, torn);
	write_inner(code + 16384);
	while (now() < end) {
		if (swapped && now() > next) {
			room = room == 16 ? 160 : 16;
			write_outer(code + 4096, room, behind_call, 0);
			next = now() + 1.5;
		}
		if (argc > 1 && !strcmp(argv[1], "deep")) {
			deeper((void *)4000, 300000000);
			continue;
		}
		calls((function *)(void *)(code + 4096), code + 16384, 200000);
		calls((function *)(void *)(code + 4096), (void *)burn, 100000);
	}
	return 0;
}
