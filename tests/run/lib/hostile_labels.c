/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that publishes a thread context as OpenTelemetry's OTEP 4947 says, and lies in each
 * field: for each lie it runs a function of that name. argv[1]: how long, in s of CPU time; another
 * argument: it is honest.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct record {
	uint8_t trace[16], span[8], valid, reserved;
	uint16_t bytes;
	uint8_t attributes[64];
};

__thread struct record *otel_thread_ctx_v1 __attribute__((visibility("default")));

static volatile unsigned long sink;
static double each;

/* Without the C library, as the thread pointer may lead nowhere. */
static double cpu(void)
{
	struct timespec t;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(SYS_clock_gettime), "D"(CLOCK_THREAD_CPUTIME_ID), "S"(&t)
			 : "rcx", "r11", "memory");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define WORK(name)                                                      \
	__attribute__((noinline, noclone)) static void lie_##name(void) \
	{                                                               \
		double until = cpu() + each;                            \
		while (cpu() < until)                                   \
			for (int i = 0; i < 2000; i++)                  \
				sink += (unsigned long)i;               \
		__asm__ volatile("" ::: "memory");                      \
	}
WORK(nothing)
WORK(honest)
WORK(null_page)
WORK(kernel)
WORK(not_canonical)
WORK(last_byte)
WORK(no_access)
WORK(end_of_page)
WORK(valid_0)
WORK(valid_2)
WORK(valid_255)
WORK(attributes)
WORK(itself)
WORK(zeros)
WORK(torn)
WORK(goes)
WORK(thread_pointer)

static void fill(struct record *r, uint8_t with)
{
	memset(r->trace, with, sizeof(r->trace));
	memset(r->span, with, sizeof(r->span));
}

static void publish(struct record *r)
{
	*(struct record *volatile *)&otel_thread_ctx_v1 = r;
}

static void at(uint64_t address, void work(void))
{
	publish((struct record *)address);
	work();
	publish(NULL);
}

static struct record changing;
static void *volatile page;
static volatile int ends;

/* Changes the record of the other thread, and maps and unmaps its page. */
static void *change(void *arg)
{
	for (uint8_t i = 0; !ends; i++) {
		fill(&changing, i & 1 ? 0xaa : 0xbb);
		if (!page)
			continue;
		mprotect(page, 4096, i & 1 ? PROT_NONE : PROT_READ | PROT_WRITE);
	}
	return arg;
}

static void with_another_thread(char *pages)
{
	pthread_t t;

	changing.valid = 1;
	fill(&changing, 0xaa);
	if (pthread_create(&t, NULL, change, NULL))
		_exit(3);
	at((uint64_t)&changing, lie_torn);
	page = pages;
	at((uint64_t)pages, lie_goes);
	ends = 1;
	pthread_join(t, NULL);
}

/* The variable is found by the thread pointer, which a program may set as it likes. */
__attribute__((noinline, optimize("no-stack-protector"))) static void without_thread_pointer(void)
{
	static const uint64_t to[] = {0, 8, 0x7ffffffff000, 0x123456789000};
	unsigned long own, r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(SYS_arch_prctl), "D"(ARCH_GET_FS), "S"(&own)
			 : "rcx", "r11", "memory");
	for (unsigned i = 0; i < sizeof(to) / sizeof(*to); i++) {
		__asm__ volatile("syscall"
				 : "=a"(r)
				 : "0"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(to[i])
				 : "rcx", "r11", "memory");
		lie_thread_pointer();
	}
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(own)
			 : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
	static struct record r;
	static struct {
		struct record *here;
		struct record rest;
	} self;
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	if (argc < 2 || pages == MAP_FAILED)
		return 2;
	each = 0.4;
	lie_nothing(); /* until the process is known */
	each = atof(argv[1]);
	fill(&r, 0x5a);
	r.valid = 1;
	if (argc > 2) {
		each *= 6;
		at((uint64_t)&r, lie_honest);
		return 0;
	}
	at(8, lie_null_page);
	at(0xffff888000000000, lie_kernel);
	at(0x8000000000000000, lie_not_canonical);
	at(0xffffffffffffffff, lie_last_byte);
	mprotect(pages + 4096, 4096, PROT_NONE);
	at((uint64_t)pages + 4096, lie_no_access);
	memset(pages, 0x77, 4096);
	at((uint64_t)pages + 4096 - 20, lie_end_of_page);
	r.valid = 0;
	at((uint64_t)&r, lie_valid_0);
	r.valid = 2;
	at((uint64_t)&r, lie_valid_2);
	r.valid = 255;
	at((uint64_t)&r, lie_valid_255);
	r.valid = 1;
	r.bytes = 0xffff;
	memset(r.attributes, 0xff, sizeof(r.attributes));
	at((uint64_t)&r, lie_attributes);
	self.here = (struct record *)&self;
	((struct record *)&self)->valid = 1;
	at((uint64_t)&self, lie_itself);
	fill(&r, 0);
	at((uint64_t)&r, lie_zeros);
	memset(pages, 0xcc, 4096);
	((struct record *)pages)->valid = 1;
	with_another_thread(pages);
	without_thread_pointer();
	return 0;
}
