// SPDX-License-Identifier: Apache-2.0
/*
 * attack NAME SECONDS: what a hostile process may do to a profiler of all processes, until the time
 * has passed. Writes into the current folder only. tests/run/hostile has what each one did in the
 * past.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double end;
static const char *self;
static volatile uint64_t sum;

/* So that the profiler has samples of this process, and follows what it maps. */
static void burn(unsigned int ms)
{
	double until = now() + ms / 1e3;

	while (now() < until)
		for (int i = 0; i < 1000; i++)
			sum += (uint64_t)i;
}

static void copy_self(const char *to)
{
	char bytes[65536];
	int in = open(self, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)n) != n)
			exit(2);
	close(in);
	close(out);
}

static void map_code(int fd)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (p != MAP_FAILED)
		munmap(p, PAGE);
}

/* One file under ever other names below a path of almost 4 KiB, mapped each time. */
static void renames(void)
{
	char part[201], name[260], before[260] = "file";
	uint32_t i = 0;
	int fd;

	memset(part, 'd', 200);
	part[200] = '\0';
	for (int depth = 0; depth < 17; depth++)
		if ((mkdir(part, 0755) && errno != EEXIST) || chdir(part))
			break;
	copy_self(before);
	while (now() < end) {
		snprintf(name, sizeof(name), "%0200u", i++);
		rename(before, name);
		strcpy(before, name);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		map_code(fd);
		close(fd);
		if (i % 64 == 0)
			burn(1);
	}
}

/* Files without a name, each mapped as code and kept. */
static void memfds(void)
{
	static const char text[] = "no ELF file";

	for (uint32_t i = 0; now() < end; i++) {
		int fd = memfd_create("code", MFD_CLOEXEC);

		if (fd >= 0 && write(fd, text, sizeof(text)) > 0 && i < 40000)
			mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
		if (i % 64 == 0)
			burn(1);
	}
}

/* Programs that exec themselves under another long name each time. */
static void execs(const char *seconds, uint32_t i)
{
	char name[240], before[240], number[16];

	snprintf(before, sizeof(before), "./%0228u", i);
	snprintf(name, sizeof(name), "./%0228u", i + 1);
	if (!i)
		copy_self(before);
	rename(before, name);
	snprintf(number, sizeof(number), "%u", i + 1);
	if (now() < end) {
		execl(name, name, "execs", seconds, number, (char *)NULL);
		exit(2);
	}
}

static void forks(void)
{
	while (now() < end) {
		for (int i = 0; i < 8; i++)
			if (!fork()) {
				burn(1);
				_exit(0);
			}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

static void *short_thread(void *arg)
{
	prctl(PR_SET_NAME, "\x1b[31m\xe2\x80\xaewons");
	return arg;
}

static void threads(void)
{
	pthread_t all[32];

	while (now() < end) {
		int n = 0;

		while (n < 32 && !pthread_create(&all[n], NULL, short_thread, NULL))
			n++;
		while (n--)
			pthread_join(all[n], NULL);
	}
}

/* Code that comes and goes, as fast as it can. */
static void maps(void)
{
	int fd = open(self, O_RDONLY | O_CLOEXEC);

	while (now() < end)
		for (int i = 0; i < 100; i++) {
			map_code(fd);
			mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
}

/* Processes with very many mappings of code each. */
static void many_mappings(void)
{
	int fd = open(self, O_RDONLY | O_CLOEXEC), children = 0;

	for (; children < 20; children++)
		if (!fork())
			break;
	for (int i = 0; children < 20 && i < 30000 && now() < end; i++) {
		/* two neighbours with equal rights would be one mapping */
		char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			break;
		mprotect(p, PAGE, PROT_READ | PROT_EXEC);
	}
	while (now() < end)
		burn(5), usleep(5000);
	while (children == 20 && waitpid(-1, NULL, 0) > 0)
		;
}

static void names(void)
{
	char name[16];

	for (uint32_t i = 0; now() < end; i++) {
		snprintf(name, sizeof(name), "\x1b]0;%x\x07\xe2\x80\xae", i);
		prctl(PR_SET_NAME, name);
		if (i % 1000 == 0)
			burn(1);
	}
}

static uint64_t deeper(uint32_t depth)
{
	volatile char room[64];

	room[0] = (char)depth;
	if (depth)
		return deeper(depth - 1) + (uint64_t)room[0];
	burn(20);
	return sum;
}

/* Stacks that no table reaches the end of. */
static void deep(void)
{
	while (now() < end)
		sum += deeper(40000);
}

/* Functions without a file, in ever new memory, that run. */
static void jit(void)
{
	/* for (ecx = 1 << 20; ecx; ecx--); ret */
	static const uint8_t code[] = {0xb9, 0, 0, 0x10, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

	while (now() < end) {
		char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			break;
		memcpy(p, code, sizeof(code));
		((void (*)(void))(uintptr_t)p)();
		if (rand() % 2)
			munmap(p, PAGE);
	}
}

/* A file that is mapped and run while it shrinks and grows. */
static void truncated(void)
{
	char name[64];

	for (uint32_t i = 0; now() < end; i++) {
		int fd;

		snprintf(name, sizeof(name), "shrinks%u", i % 16);
		copy_self(name);
		fd = open(name, O_RDWR | O_CLOEXEC);
		mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (ftruncate(fd, (off_t)(rand() % 60000)))
			break;
		close(fd);
		burn(1);
	}
}

/* Children that are stopped by ptrace, and zombies. */
static void stopped(void)
{
	pid_t all[64];
	int n = 0;

	for (; n < 64; n++) {
		all[n] = fork();
		if (all[n])
			continue;
		if (n % 2)
			_exit(0);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	while (now() < end)
		burn(10);
	while (n--)
		kill(all[n], SIGKILL);
}

/* An environment and a command line as large as they may be, in ever new processes. */
static void environments(const char *seconds, uint32_t i)
{
	static char text[120000];
	char *args[] = {(char *)self, "environments", (char *)seconds, text, text, NULL};
	char *env[] = {text, text, text, NULL};

	memset(text, 'A' + (int)(i % 26), sizeof(text) - 1);
	memcpy(text, "OTEL_SERVICE_NAME=", 18);
	while (now() < end) {
		if (!fork()) {
			execve(self, args, env);
			_exit(2);
		}
		waitpid(-1, NULL, 0);
	}
}

/* Processes that share their memory and are no threads of each other. */
static int sharer(void *arg)
{
	(void)arg;
	burn(20);
	return 0;
}

static void clones(void)
{
	static char stacks[16][65536];

	while (now() < end) {
		for (int i = 0; i < 16; i++)
			clone(sharer, stacks[i] + sizeof(stacks[i]), CLONE_VM | SIGCHLD, NULL);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

/* User and pid namespaces in each other, as deep as the kernel has them. */
static void nested(void)
{
	while (now() < end) {
		pid_t pid = fork();

		for (int depth = 0; !pid && depth < 30; depth++) {
			if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS))
				break;
			pid = fork();
			if (pid) {
				waitpid(pid, NULL, 0);
				_exit(0);
			}
		}
		if (!pid) {
			burn(20);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Code that runs with a stack pointer that leads to memory of files, to nothing, to itself. */
static void stacks(void)
{
	int fd = open(self, O_RDONLY | O_CLOEXEC);
	char *room = mmap(NULL, 64 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	for (uint32_t i = 0; now() < end; i++) {
		const uintptr_t places[] = {8, (uintptr_t)room + 8 * (i % 8000), UINT64_MAX - 15,
					    (uintptr_t)stacks, 0xdeadbeef000ull + i};
		uint64_t rounds = 20000000, sp = places[i % 5] & ~(uintptr_t)7;

		__asm__ volatile("mov %%rsp, %%rbx\n\tmov %1, %%rsp\n\tmov %1, %%rbp\n"
				 "1:\tdec %0\n\tjnz 1b\n\tmov %%rbx, %%rsp"
				 : "+r"(rounds)
				 : "r"(sp)
				 : "rbx", "rbp", "cc", "memory");
	}
}

#define MAP_TEXT (31u << 20)

/* A process with a perf map of 31 MiB for the code that it runs. */
static void perf_map(const char *text, size_t len, void (*run)(void))
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "perf-%d.map", getpid());
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, len) < 0)
		return;
	while (now() < end)
		run();
}

/* attacks.py removes the files. */
static void perf_maps(void)
{
	static const uint8_t code[] = {0xb9, 0, 0, 0x10, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	char *text = malloc(MAP_TEXT + 256);
	size_t len = 0;

	if (!text || p == MAP_FAILED || chdir("/tmp"))
		exit(3);
	memcpy(p, code, sizeof(code));
	for (size_t n = 0; len < MAP_TEXT; n++)
		len += (size_t)sprintf(text + len, "%zx 20 function_%0100zu\n", (size_t)p + 32 * n,
				       n);
	for (int i = 0; i < 24; i++)
		if (!fork()) {
			perf_map(text, len, (void (*)(void))(uintptr_t)p);
			_exit(0);
		}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Very many small ELF files of different content, each mapped as code and kept. */
static void elves(void)
{
	char name[64];

	for (uint32_t i = 0; now() < end && i < 14000; i++) {
		int fd;

		snprintf(name, sizeof(name), "elf%u", i % 16);
		copy_self(name);
		fd = open(name, O_RDWR | O_CLOEXEC);
		/* in the padding of the header: another file */
		if (pwrite(fd, &i, sizeof(i), 9) < 0)
			exit(2);
		mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
		unlink(name);
		if (i % 32 == 0)
			burn(1);
	}
	while (now() < end)
		burn(10);
}

struct elf_header {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, phoff, shoff;
	uint32_t flags;
	uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

/* One sparse ELF file, of which all is code and unwind information. */
static void sparse(void)
{
	struct elf_header h = {.ident = {0x7f, 'E', 'L', 'F', 2, 1, 1},
			       .type = 3,
			       .machine = 62,
			       .version = 1,
			       .phoff = 64,
			       .ehsize = 64,
			       .phentsize = 56,
			       .phnum = 2};
	struct elf_segment p[2] = {
		{.type = 1, .flags = 5, .filesz = 1000u << 20, .memsz = 1000u << 20, .align = PAGE},
		{.type = 0x6474e550,
		 .flags = 4,
		 .offset = PAGE,
		 .vaddr = PAGE,
		 .filesz = 999u << 20,
		 .memsz = 999u << 20}};
	uint8_t frame_hdr[] = {1, 0x1b, 0x03, 0x3b, 0, 0x10, 0, 0, 0xff, 0xff, 0xff, 0x05};
	int fd = open("sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0755);

	if (ftruncate(fd, 1000u << 20) || pwrite(fd, &h, sizeof(h), 0) < 0 ||
	    pwrite(fd, p, sizeof(p), 64) < 0 || pwrite(fd, frame_hdr, sizeof(frame_hdr), PAGE) < 0)
		exit(2);
	mmap(NULL, 1000u << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	while (now() < end)
		burn(10);
}

/* Addresses of functions that no table has: random return addresses on the stack. */
static void garbage(void)
{
	while (now() < end) {
		volatile uint64_t words[4096];

		for (int i = 0; i < 4096; i++)
			words[i] = ((uint64_t)rand() << 20) ^ (uint64_t)(uintptr_t)&words[i];
		sum += words[17];
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{"renames", renames}, {"memfds", memfds},       {"forks", forks},
	{"threads", threads}, {"maps", maps},           {"many-mappings", many_mappings},
	{"names", names},     {"deep", deep},           {"jit", jit},
	{"stopped", stopped}, {"sparse", sparse},       {"truncated", truncated},
	{"garbage", garbage}, {"clones", clones},       {"nested", nested},
	{"stacks", stacks},   {"perf-maps", perf_maps}, {"elves", elves},
};

int main(int argc, char **argv)
{
	static char path[4096];
	double until;

	if (argc < 3 || readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 2;
	self = path;
	/* a program that execs hands its end on as a time of CLOCK_MONOTONIC: "0@TIME" */
	until = strtod(argv[2], NULL);
	end = strchr(argv[2], '@') ? strtod(strchr(argv[2], '@') + 1, NULL) : now() + until;
	if (!strcmp(argv[1], "execs") || !strcmp(argv[1], "environments")) {
		char seconds[64];

		snprintf(seconds, sizeof(seconds), "0@%.6f", end);
		if (!strcmp(argv[1], "execs"))
			execs(seconds, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
		else if (argc > 3)
			burn(2);
		else
			environments(seconds, (uint32_t)getpid());
		return 0;
	}
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (!strcmp(attacks[i].name, argv[1])) {
			attacks[i].run();
			return 0;
		}
	return 2;
}
