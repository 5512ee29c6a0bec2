/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made HOW SECONDS: code made at run time whose chain of callers is known, in memory without a
 *file. It has no frame pointer: rbp is a number there, or where nothing else is said its caller's.
 *
 *	main > calls > [outer] > [inner]    the inner function burns
 *	main > calls > [outer] > burn       a function of this file does
 *
 * steady: outer has one frame. twice: likewise, in memory that memfd_create() has made. swapped: it
 *is rewritten every 1.5 s of CPU time, with another size, and what lies on its frame is such that
 *the other size's rule leads to complete stacks with too many `calls`. torn: it ends in a jump
 *through a register, which proves nothing. deep: `calls`, outer and `deeper` call each other 4,000
 *times.
 *
 *	main > keeps > [outer] > burn       keeps has a frame pointer, outer leaves rbp alone
 *
 * bare: no way out proves where its frame is, so rbp leads past `keeps`. fresh: each call is of an
 *outer at another place. used: outer has a frame pointer, too, and no way out proves it.
 *
 *	main > calls > [outer] > burn
 *
 * pushed: outer has pushed the return address, which is behind another path's return.
 * signals: outer itself spins, and a signal's handler burns.
 *
 *	main > enters > [code] > burn
 *
 * joined: as a JIT's, it runs on the frame of an interpreter, which `enters` has called and which
 *has jumped to it, and jumps back. Eight of it have frames of their own on that. The frame holds
 *what remains of calls that have ended.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef void function(void *arg, long n);

static uint8_t *code;
static volatile long sink;

/* A frame of 16 bytes: code made at run time returns to its `add`. */
void calls(function *f, void *arg, long n);
extern char behind_call[], behind_calls[];
__asm__(".text\n"
	".globl calls, behind_call, behind_calls\n"
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
	"behind_calls:\n"
	".cfi_endproc\n"
	".size calls, .-calls\n");

/* The same with a frame pointer. */
void keeps(function *f, void *arg, long n);
__asm__(".globl keeps\n"
	".type keeps, @function\n"
	"keeps:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 6, -16\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register 6\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	call *%rax\n"
	"	pop %rbp\n"
	".cfi_def_cfa 7, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size keeps, .-keeps\n");

/* Calls the interpreter, which goes to f(arg, n) with 72 bytes of a frame. */
void enters(function *f, void *arg, long n);
__asm__(".globl enters\n"
	".type enters, @function\n"
	"enters:\n"
	".cfi_startproc\n"
	"	sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	call interpreter\n"
	"	add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size enters, .-enters\n"
	".type interpreter, @function\n"
	"interpreter:\n"
	".cfi_startproc\n"
	"	push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"	sub $64, %rsp\n"
	".cfi_adjust_cfa_offset 64\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	lea 1f(%rip), %rbx\n"
	"	jmp *%rax\n"
	"1:	add $64, %rsp\n"
	".cfi_adjust_cfa_offset -64\n"
	"	pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size interpreter, .-interpreter\n");

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

/* Calls rdi, and leaves rbp alone. */
static void write_bare(uint8_t *at, int torn)
{
	PUT("\x48\x83\xec\x08\xff\xd7\x48\x83\xc4\x08"); /* sub $8,%rsp; call *%rdi; add $8,%rsp */
	if (torn)
		PUT("\x59\xff\xe1"); /* pop %rcx; jmp *%rcx */
	else
		PUT("\xc3");
}

/* Calls rdi, with a frame that only the use of rbp shows. */
static void write_used(uint8_t *at)
{
	PUT("\x55\x48\x89\xe5\x48\x83\xec\x20"); /* push %rbp; mov %rsp,%rbp; sub $32,%rsp */
	PUT("\x48\x89\x7d\xf8\xff\xd7\x48\x8b\x45\xf8"); /* rdi at -8(%rbp); call *%rdi; .. */
	PUT("\x48\x89\xec\x5d\x59\xff\xe1"); /* mov %rbp,%rsp; pop %rbp, %rcx; jmp *%rcx */
}

/* Calls rdi, with `room` bytes more than the interpreter's frame, and jumps back to it. */
static void write_joined(uint8_t *at, int room)
{
	PUT("\x48\x81\xec"); /* sub $..,%rsp */
	put_number(at, room);
	at += 4;
	PUT("\x48\x89\xf8\x48\x89\xf1\x48\xff\xc9\x75\xfb"); /* mov %rdi,%rax; mov %rsi,%rcx; 1:
								dec; jne 1b */
	PUT("\xff\xd0\x48\x81\xc4");                         /* call *%rax; add $..,%rsp */
	put_number(at, room);
	at += 4;
	PUT("\xff\xe3"); /* jmp *%rbx */
}

/* Leaves return addresses in 4 KiB below sp. */
__attribute__((noinline)) static void remains(long n)
{
	if (n)
		remains(n - 1);
	sink++; /* no tail call */
}

static uint8_t *put_address(uint8_t *at, const void *address)
{
	PUT("\x48\xb8"); /* mov $address,%rax */
	return put(at, (const char *)&address, sizeof(address));
}

/* Goes to rdi, with a return address that no call has pushed. By the row of the return before it,
 * there would be more `calls`. */
static void write_pushed(uint8_t *at)
{
	PUT("\x48\x89\xf1\x48\xff\xc9\x75\xfb");     /* mov %rsi,%rcx; 1: dec %rcx; jne 1b */
	PUT("\x48\x85\xff\x74\x3a\x48\x83\xec\x28"); /* test %rdi,%rdi; je 2f; sub $40,%rsp */
	at = put_address(at, behind_calls);
	PUT("\x48\x89\x04\x24"); /* mov %rax,(%rsp) */
	at = put_address(at, behind_call);
	PUT("\x48\x89\x44\x24\x08\x48\x89\x44\x24\x10"); /* mov %rax,8(%rsp); .. 16(%rsp) */
	PUT("\x48\x89\x44\x24\x18\x48\x89\x44\x24\x20"); /* .. 24(%rsp); .. 32(%rsp) */
	PUT("\x48\x8d\x0d\x05\x00\x00\x00\x51\xff\xe7"); /* lea 3f(%rip),%rcx; push; jmp *%rdi */
	PUT("\xf3\xc3\x48\x83\xc4\x28\xc3");             /* 2: repz ret; 3: add $40,%rsp; ret */
}

/* Spins. The bytes behind the first of `mov` are instructions that pop a word. */
static void write_spin(uint8_t *at)
{
	PUT("\x48\x83\xec\x08\xb8\x5b\x90\x90\x90");     /* sub $8,%rsp; 1: mov $0x9090905b,%eax */
	PUT("\x48\xff\xce\x75\xf6\x48\x83\xc4\x08\xc3"); /* dec %rsi; jne 1b; add $8,%rsp; ret */
}

static void on_signal(int sig)
{
	(void)sig;
	burn(NULL, 1000000);
	sink++; /* no tail call */
}

static void spin_with_signals(uint8_t *at)
{
	struct itimerval often = {{0, 4000}, {0, 4000}};

	write_spin(at);
	signal(SIGPROF, on_signal);
	setitimer(ITIMER_PROF, &often, NULL);
	calls((function *)(void *)at, NULL, 10000000);
}

#define PLACES 3000 /* of fresh code, 64 bytes each */

/* One call, with a caller that has a frame pointer or that calls a pushed return address. false:
 * HOW is another. */
static int call_one(const char *how)
{
	static long round;
	uint8_t *at = code + 4096;

	if (!strcmp(how, "signals")) {
		spin_with_signals(at);
		return 1;
	}
	if (!strcmp(how, "pushed")) {
		write_pushed(at);
		calls((function *)(void *)at, (void *)burn, 100000);
		return 1;
	}
	if (!strcmp(how, "joined")) {
		int i = (int)(round++ % 8);

		write_joined(at + 64 * i, 16 * i);
		remains(100);
		enters((function *)(void *)(at + 64 * i), (void *)burn, 100000);
		return 1;
	}
	if (!strcmp(how, "fresh"))
		at += 64 * (round++ % PLACES);
	if (!strcmp(how, "used"))
		write_used(at);
	else if (!strcmp(how, "bare") || !strcmp(how, "fresh"))
		write_bare(at, !strcmp(how, "bare"));
	else
		return 0;
	keeps((function *)(void *)at, (void *)burn, 100000);
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* twice: of a file in memory that is mapped at another address, too. */
static uint8_t *map_code(int twice)
{
	int fd = twice ? memfd_create("made", 0) : -1;

	if (twice && (fd < 0 || ftruncate(fd, 1 << 18)))
		return MAP_FAILED;
	if (twice && mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		return MAP_FAILED;
	return mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE | PROT_EXEC,
		    twice ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
}

int main(int argc, char **argv)
{
	int swapped = argc > 1 && !strcmp(argv[1], "swapped"),
	    torn = argc > 1 && !strcmp(argv[1], "torn");
	double end = now() + (argc > 2 ? atof(argv[2]) : 5), next = now() + 1.5;
	int room = 16;

	code = map_code(argc > 1 && !strcmp(argv[1], "twice"));
	if (code == MAP_FAILED)
		return 1;
	write_outer(code + 4096, room, behind_call, torn);
	write_inner(code + 16384);
	while (now() < end) {
		if (argc > 1 && call_one(argv[1]))
			continue;
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
