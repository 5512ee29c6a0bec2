/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a busy machine does to a profiler, for tests/run/bpf-soak; one program, several parts:
 *
 *	crowd short MS [LIBRARY]     uses MS ms of CPU time; opens and closes the library before
 *	crowd libraries LIBRARY..    opens, calls and closes one after the other, for ever
 *	crowd maps LIBRARY N         maps the library's page of code N times; calls it now here, now
 *	                             there, and maps it anew over one of them, for ever
 *	crowd rotate FILE..          maps the code of these ELF files, eight at a time, for ever
 *	crowd spawn RATE FOLDER PREFIX LIBRARY PROGRAM..
 *	                             RATE processes a second, of those programs (this program,
 *compiled several times), of copies in FOLDER each with a build id of its own, and without exec;
 *until SIGTERM, then prints their number
 *
 * Compiled with -DFLAVOUR=N; with -DLIBRARY it is the library.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef LIBRARY
/* A page of its own, which needs nothing of its surroundings. */
__attribute__((section(".text.page"), aligned(4096), noinline)) unsigned long page(unsigned long n)
{
	unsigned long sum = n;

	for (unsigned long i = 0; i < n; i++) {
		sum += i * sum;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}
__attribute__((section(".text.page"), aligned(4096), used)) static void behind_page(void)
{
}
#else

#define ID "0123456789abcdef" /* build ids begin with it */
#define FRESH 64              /* copies that are there at a time */

static volatile unsigned long sink;
static volatile sig_atomic_t ended;

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(double s)
{
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	nanosleep(&t, NULL);
}

__attribute__((noinline)) static void burn(double ms)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + ms / 1e3;

	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 20000; i++)
			sink += (unsigned long)i;
}

__attribute__((noinline)) static void descend(int depth, double ms)
{
	if (depth)
		descend(depth - 1, ms);
	else
		burn(ms);
	sink++;
}

static void *or_die(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

static void call_library(const char *path, double ms)
{
	void *library = or_die(dlopen(path, RTLD_NOW), path);
	unsigned long (*call)(unsigned long) = (unsigned long (*)(unsigned long))or_die(
		dlsym(library, "page"), "page");
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + ms / 1e3;

	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
		sink += call(20000);
	dlclose(library);
}

static void libraries(char **paths, int n)
{
	for (int i = 0;; i = (i + 1) % n) {
		call_library(paths[i], 4);
		nap(0.02);
	}
}

static void maps(const char *path, long n)
{
	void *library = or_die(dlopen(path, RTLD_NOW), path);
	char *code = or_die(dlsym(library, "page"), "page"), *room;
	Dl_info info;
	off_t offset;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	/* the library's file offsets are its addresses: it has no holes (-Wl,-z,noseparate-code) */
	if (fd < 0 || !dladdr(code, &info))
		exit(1);
	offset = code - (char *)info.dli_fbase;
	room = or_die(mmap(NULL, (size_t)n * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      "mmap");
	srand((unsigned)getpid());
	for (long i = 0;; i++) {
		long at = i < n ? i : rand() % n;
		unsigned long (*call)(unsigned long);
		char *to = or_die(mmap(room + at * 4096, 4096, PROT_READ | PROT_EXEC,
				       MAP_PRIVATE | MAP_FIXED, fd, offset),
				  "mmap");

		if (i < n && i % 50)
			continue;
		call = (unsigned long (*)(unsigned long))to;
		for (int k = 0; k < 20; k++)
			sink += call(20000);
		nap(i < n ? 0.02 : 0.1);
	}
}

/* The file's first segment of code. 0: it has none. */
static size_t code_of(int fd, off_t *offset)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG))
		return 0;
	for (int i = 0; i < e.e_phnum; i++) {
		off_t at = (off_t)(e.e_phoff + (uint64_t)i * e.e_phentsize);

		if (pread(fd, &p, sizeof(p), at) != sizeof(p))
			return 0;
		if (p.p_type == PT_LOAD && p.p_flags & PF_X) {
			*offset = (off_t)(p.p_offset & ~4095ull);
			return p.p_offset + p.p_filesz - (p.p_offset & ~4095ull);
		}
	}
	return 0;
}

#define SLOT (1ul << 28)

static void rotate(char **paths, int n)
{
	char *room = or_die(
		mmap(NULL, 8 * SLOT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		"mmap");

	for (unsigned i = 0;; i++) {
		char *to = room + i % 8 * SLOT;
		int fd = open(paths[i % (unsigned)n], O_RDONLY | O_CLOEXEC);
		off_t offset;
		size_t len = fd < 0 ? 0 : code_of(fd, &offset);

		if (len && len <= SLOT)
			or_die(mmap(to, len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
				    offset),
			       "mmap");
		close(fd);
		descend(10, 2);
		nap(0.5);
	}
}

/* ---- spawn ---- */

static void on_term(int number)
{
	(void)number;
	ended = 1;
}

/* A copy of a program with another build id. false: not made. */
static int copy(const char *from, const char *to, unsigned long number)
{
	static char bytes[1 << 20];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t len = in < 0 ? -1 : read(in, bytes, sizeof(bytes));
	char *id = len > 0 ? memmem(bytes, (size_t)len, ID, sizeof(ID) - 1) : NULL;

	close(in);
	unlink(to);
	out = id ? open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755) : -1;
	if (out < 0)
		return 0;
	memcpy(id + sizeof(ID) - 1 - sizeof(number), &number, sizeof(number));
	len -= write(out, bytes, (size_t)len);
	close(out);
	return !len;
}

struct spawn {
	const char *folder, *prefix, *library;
	char **programs;
	int nprograms;
};

static void spawn(const struct spawn *s, unsigned long number)
{
	const char *program = s->programs[number / 10 % (unsigned)s->nprograms], *ms = "1";
	const char *library = number % 10 == 7 ? s->library : NULL;
	char path[4096];

	if (number % 10 == 9) {
		snprintf(path, sizeof(path), "%s/%sfresh%lu", s->folder, s->prefix,
			 number / 10 % FRESH);
		if (copy(program, path, number))
			program = path;
	}
	if (number % 10 == 3 || number % 10 == 6)
		ms = number % 10 == 3 ? "15" : "30";
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	if (number % 10 == 8) {
		descend(20, 3);
		_exit(0);
	}
	execl(program, program, "short", ms, library, (char *)NULL);
	_exit(127);
}

static int spawn_all(double rate, const struct spawn *s)
{
	double next = seconds(CLOCK_MONOTONIC);
	unsigned long n = 0, failed = 0;
	int status;

	signal(SIGTERM, on_term);
	while (!ended) {
		double now = seconds(CLOCK_MONOTONIC);

		while (waitpid(-1, &status, WNOHANG) > 0)
			failed += !!status;
		if (now < next) {
			nap(next - now);
			continue;
		}
		/* after a stop no flood */
		next = next + 1 / rate < now - 1 ? now : next + 1 / rate;
		spawn(s, n++);
	}
	while (waitpid(-1, &status, 0) > 0)
		failed += !!status;
	printf("%lu %lu\n", n, failed);
	return 0;
}

int main(int argc, char **argv)
{
	const char *part = argc > 2 ? argv[1] : "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(part, "short")) {
		for (int i = 0; argc > 3 && i < 3; i++)
			call_library(argv[3], 0.2);
		descend(5 + FLAVOUR, strtod(argv[2], NULL));
	} else if (!strcmp(part, "libraries")) {
		libraries(argv + 2, argc - 2);
	} else if (!strcmp(part, "maps") && argc == 4) {
		maps(argv[2], strtol(argv[3], NULL, 10));
	} else if (!strcmp(part, "rotate")) {
		rotate(argv + 2, argc - 2);
	} else if (!strcmp(part, "spawn") && argc > 6) {
		const struct spawn s = {argv[3], argv[4], argv[5], argv + 6, argc - 6};

		return spawn_all(strtod(argv[2], NULL), &s);
	} else {
		fputs("crowd: unknown part\n", stderr);
		return 64;
	}
	return 0;
}
#endif
