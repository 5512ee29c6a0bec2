# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/run/reports: each burns CPU time (its first argument, in seconds) under a chain of calls that it knows."""

FLAGS = "-O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls"

HEAD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#define FN __attribute__((noipa))
volatile long sink;
double seconds;
FN int go_on(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9 < seconds;
}
FN void leaf(void) { for (int i = 0; i < 2000; i++) sink += i; }
FN void burn(void) { while (go_on()) leaf(); sink++; }
"""
MAIN = "int main(int argc, char **argv) { seconds = atof(argv[1]); %s return argc < 0; }\n"

CALLS = HEAD + "FN static void NAME(void) { burn(); sink++; }\n" + MAIN % "NAME();"

CHROOT = HEAD + "FN static void named(void) { burn(); sink++; }\n" + MAIN % "if (chroot(argv[2]) || chdir(\"/\")) return 1; named();"

NESTED = HEAD + r"""
FN void inner(int s) { for (int i = 0; i < 60; i++) leaf(); sink += s; }
FN void outer(int s) { raise(SIGUSR2); for (int i = 0; i < 30; i++) leaf(); sink += s; }
FN void two(void) { raise(SIGUSR1); sink++; }
FN void one(void) { while (go_on()) two(); sink++; }
FN void handle(void)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct sigaction a = {.sa_handler = outer, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, 0);
	sigaction(SIGUSR1, &a, 0);
	a.sa_handler = inner;
	sigaction(SIGUSR2, &a, 0);
}
""" + MAIN % "handle(); one();"

SPLIT = HEAD + r"""
FN long two(long n)
{
	volatile char big[3000];
	big[n & 1023] = 1;
	if (n > 0)
		return two(n - 1) + big[5];
	for (int i = 0; i < 100; i++)
		leaf();
	return sink;
}
FN void *one(void *p) { while (go_on()) sink += two(40); return p; }
""" + MAIN % "pthread_t t; pthread_create(&t, 0, one, 0); pthread_join(t, 0);"

# two fibers that switch to each other; what lies behind their stacks' ends is no stack
FIBERS = HEAD + r"""
ucontext_t first, fibers[2];
FN void two(int k) { for (int i = 0; i < 50; i++) leaf(); swapcontext(&fibers[k], &fibers[1 - k]); sink++; }
FN void one(int k) { while (go_on()) two(k); sink++; }
FN void switch_between(void)
{
	for (int k = 0; k < 2; k++) {
		getcontext(&fibers[k]);
		fibers[k].uc_stack = (stack_t){.ss_sp = memset(malloc(65536), 0x55, 65536), .ss_size = 65536};
		fibers[k].uc_link = &first;
		makecontext(&fibers[k], (void (*)(void))one, 1, k);
	}
	swapcontext(&first, &fibers[0]);
}
""" + MAIN % "switch_between();"

# the first instructions of a fiber, as Boost's make_fcontext has them
FCONTEXT = HEAD + r"""
void enter(void *stack, void (*function)(void));
__asm__("enter: mov %rdi,%rsp\n lea 2f(%rip),%rbp\n mov %rsi,%rbx\n push %rbp\n jmp *%rbx\n2: xor %rdi,%rdi\n call _exit\n hlt\n");
FN void one(void) { burn(); sink++; }
""" + MAIN % "enter((char *)memset(malloc(65536), 0x55, 65536) + 65536 - 64, one);"

IFUNC = HEAD + r"""
FN static long fast(long n) { for (int i = 0; i < 50; i++) leaf(); return n + sink; }
static void *choose(void) { return fast; }
long picked(long) __attribute__((ifunc("choose")));
FN void one(void) { while (go_on()) sink += picked(1); sink++; }
""" + MAIN % "one();"

LTO_ONE = """
extern long two(long);
int go_on(void);
extern double seconds;
double atof(const char *);
__attribute__((noinline)) static long one(long n) { while (go_on()) n += two(n); return n; }
int main(int argc, char **argv) { seconds = atof(argv[1]); return one(argc) == -1; }
"""
LTO_TWO = HEAD + r"""
static inline long three(long n) { for (int i = 0; i < 3000; i++) sink += i * n; return sink; }
long two(long n) { return three(n) + three(n + 1); }
"""

# each page of the program's own file is a mapping of its own, with a gap behind it
MANY = HEAD + r"""
FN void map(int n)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	for (int i = 0; i < n; i++) {
		char *p = mmap(0, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || mmap(p, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 4096) == MAP_FAILED)
			_exit(1);
	}
}
""" + MAIN % "map(atoi(argv[2])); burn();"

# How a thread came to address 0 differs (HOW): the handler burns CPU time and goes back behind it. The stack has return addresses
# of the functions that were called before, so what is guessed from it is wrong.
NOTHING = HEAD + r"""
typedef void function(void);
struct object { long number; function *methods[4]; };
jmp_buf again;
struct object object;
function *volatile nothing, *table[4];
extern void weak(void) __attribute__((weak));
FN void fill(void) { for (int i = 0; i < 50; i++) leaf(); sink++; }
FN void deeper(void) { volatile char room[200]; room[3] = 1; fill(); sink += room[3]; }
FN void handler(int s) { for (int i = 0; i < 100; i++) leaf(); sink += s; siglongjmp(again, 1); }
#if HOW == 0 /* a call by a register */
FN void bad(void) { nothing(); sink++; }
#elif HOW == 1 /* by memory */
FN void call(struct object *o) { o->methods[1](); sink++; }
FN void bad(void) { call(&object); sink++; }
#elif HOW == 2 /* by a table */
FN void call(function **f, long n) { f[n](); sink++; }
FN void bad(void) { call(table, sink & 3); sink++; }
#elif HOW == 3 /* through the PLT */
FN void bad(void) { weak(); sink++; }
#elif HOW == 4 /* of memory that was unmapped */
FN void bad(void) { function *f = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(f, 4096); f(); sink++; }
#elif HOW == 5 /* a jump out of a function without a frame, whose caller called it and not address 0 */
FN void tail(void);
__asm__("tail: xor %eax,%eax\n jmp *%rax\n");
FN void bad(void) { tail(); sink++; }
#elif HOW == 6 /* a jump out of a frame */
FN void bad(void) { deeper(); __asm__ volatile("xor %%eax,%%eax\n jmp *%%rax" ::: "rax", "memory"); deeper(); }
#elif HOW == 7 /* the same, where a return address of another call lies at sp */
FN void bad(void)
{
	deeper();
	__asm__ volatile("mov %0,%%rcx\n lea 1f(%%rip),%%rdx\n push %%rdx\n xor %%eax,%%eax\n jmp *%%rax\n call *%%rcx\n 1:"
			 :: "r"(deeper) : "rax", "rcx", "rdx", "memory");
	deeper();
}
#elif HOW == 8 /* a return to 0, below what was called by the same register */
FN void smash(void);
__asm__("smash: movq $0,(%rsp)\n xor %eax,%eax\n ret\n");
FN void bad(void) { function *volatile f = deeper; f(); f = smash; f(); sink++; }
#endif
FN void one(void) { while (go_on()) if (!sigsetjmp(again, 1)) { deeper(); bad(); } sink++; }
""" + MAIN % "signal(SIGSEGV, handler); one();"

# aligned to 2, as Android's are, and with lengths that are no multiples of 4
NOTES = """
.section .note.android.ident,"a",@note
.balign 2
.long 8, 4, 1
.asciz "Android"
.long 29
.section .note.long,"a",@note
.balign 4
.long 13, 5, 7
.asciz "twelve chars"
.balign 4
.byte 1, 2, 3, 4, 5
.balign 4
.section .note.GNU-stack,"",@progbits
"""

# goroutines of two kinds whose stacks grow, some that give way when another wants to run, and a collector that wants it
GROW = r"""
package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

var sink int64

//go:noinline
func deepA(n int) int64 {
	var room [256]byte
	room[n&255] = byte(n)
	if n > 0 {
		return deepA(n-1) + int64(room[5])
	}
	return sink
}

//go:noinline
func deepB(n int) int64 {
	var room [512]byte
	room[n&255] = byte(n)
	if n > 0 {
		return deepB(n-1) + int64(room[5])
	}
	return sink
}

//go:noinline
func growA(done chan int64) { done <- deepA(150) }

//go:noinline
func growB(done chan int64) { done <- deepB(150) }

func used() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

//go:noinline
func spin() {
	for {
		deepA(1)
	}
}

func main() {
	s, _ := strconv.ParseFloat(os.Args[1], 64)
	runtime.GOMAXPROCS(2)
	go spin()
	go func() {
		for {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for used() < s {
		a, b := make(chan int64), make(chan int64)
		go growA(a)
		go growB(b)
		sink += <-a + <-b
	}
}
"""

PROGRAMS = {"calls.c": CALLS, "chroot.c": CHROOT, "nested.c": NESTED, "split.c": SPLIT, "ifunc.c": IFUNC, "lto1.c": LTO_ONE,
            "lto2.c": LTO_TWO, "many.c": MANY, "notes.s": NOTES, "fibers.c": FIBERS, "fcontext.c": FCONTEXT,
            "nothing.c": NOTHING, "grow.go": GROW}
