// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD=faults.so FUSEE_FAULTS=FILE[:COMMAND]: the allocations of one process are counted and
 * one of them fails, whoever asks: the program, libc, and every library, on every thread. FILE is a
 * struct control, shared with the test, which says when. The first process that starts with it
 * counts; with :COMMAND, the first of `fusee COMMAND`. What it forks belongs to it, what it
 * starts does not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAMES 28
#define TRACED (1u << 17)
/* without a call for its address, which the sanitizers have a version of */
#define IN_PLACE _Thread_local __attribute__((tls_model("initial-exec")))

/* tests/run/agent-faults knows this layout. */
struct control {
	_Atomic uint64_t seen;    /* allocations since the test wrote a 0 here */
	_Atomic uint64_t fail_at; /* this one fails, from 1; 0: none does */
	_Atomic uint64_t hit;     /* it has */
	_Atomic uint32_t pid;     /* whose */
	_Atomic uint32_t started; /* processes so far */
	uint64_t frames[FRAMES];  /* of the call that failed: offsets in .. */
	char modules[FRAMES][32]; /* .. these files */
	uint64_t place, nth;      /* place not 0: not by number, but the nth of that place fails */
	_Atomic uint64_t met;
	uint64_t trace;          /* not 0: the places of all are written down */
	uint64_t places[TRACED]; /* of allocation n + 1 */
};

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static struct control *control;

/* Is this `fusee COMMAND`? */
static int runs(const char *command)
{
	char text[4096] = {0};
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 2);
	size_t first = strlen(text) + 1;

	if (fd >= 0)
		close(fd);
	return (ssize_t)first < n && !strcmp(text + first, command);
}

__attribute__((constructor)) static void begin(void)
{
	char path[4096];
	const char *name = getenv("FUSEE_FAULTS");
	void *frames[4];
	char *colon;
	struct control *c;
	int fd;

	if (!name)
		return;
	snprintf(path, sizeof(path), "%s", name);
	colon = strrchr(path, ':');
	if (colon)
		*colon = '\0';
	if (colon && colon[1] && !runs(colon + 1))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	c = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		_exit(125);
	close(fd);
	if (atomic_fetch_add(&c->started, 1))
		return;
	backtrace(frames, 4); /* what it allocates, now */
	atomic_store(&c->pid, (uint32_t)getpid());
	atomic_store(&c->seen, 0);
	control = c;
}

/* What the program starts has an environment of its own making: we come along. Called in a child
 * right behind its fork(). */
int execve(const char *path, char *const argv[], char *const env[])
{
	static char preload[4096], faults[4096];
	char *all[256];
	size_t n = 0;

	while (env[n] && n < 250) {
		all[n] = env[n];
		n++;
	}
	if (getenv("FUSEE_FAULTS")) {
		snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("LD_PRELOAD"));
		snprintf(faults, sizeof(faults), "FUSEE_FAULTS=%s", getenv("FUSEE_FAULTS"));
		all[n++] = preload;
		all[n++] = faults;
	}
	all[n] = NULL;
	return (int)syscall(SYS_execve, path, argv, all);
}

static void note(void)
{
	void *frames[FRAMES];
	int n = backtrace(frames, FRAMES);

	for (int i = 0; i < n; i++) {
		const char *base;
		Dl_info info;

		if (!dladdr(frames[i], &info) || !info.dli_fname)
			continue;
		base = strrchr(info.dli_fname, '/');
		snprintf(control->modules[i], sizeof(control->modules[i]), "%s",
			 base ? base + 1 : info.dli_fname);
		control->frames[i] = (uint64_t)((char *)frames[i] - (char *)info.dli_fbase);
	}
}

/* The callers, as far as they are the same in each run: in their pages. Never 0. */
static uint64_t place_of(void)
{
	uint64_t hash = 0xcbf29ce484222325;
	void *frames[FRAMES];
	int n = backtrace(frames, FRAMES);

	for (int i = 2; i < n; i++)
		hash = (hash ^ ((uintptr_t)frames[i] & 4095)) * 0x100000001b3;
	return hash | 1;
}

static int is_due(void)
{
	uint64_t n = atomic_fetch_add(&control->seen, 1) + 1;

	if (control->trace && n <= TRACED)
		control->places[n - 1] = place_of();
	if (!control->place)
		return n == control->fail_at;
	return place_of() == control->place &&
	       atomic_fetch_add(&control->met, 1) + 1 == control->nth;
}

static int fails(void)
{
	if (!control || !atomic_load_explicit(&control->fail_at, memory_order_relaxed) || !is_due())
		return 0;
	note();
	atomic_store(&control->hit, 1);
	errno = ENOMEM;
	return 1;
}

#define NEXT(name, fallback)                              \
	static __typeof__(&fallback) next;                \
	static IN_PLACE int looking;                      \
	if (!next && !looking) {                          \
		looking = 1;                              \
		*(void **)&next = dlsym(RTLD_NEXT, name); \
		looking = 0;                              \
	}                                                 \
	__typeof__(&fallback) call = next ? next : fallback

void *malloc(size_t n)
{
	NEXT("malloc", __libc_malloc);
	return fails() ? NULL : call(n);
}

void *calloc(size_t n, size_t size)
{
	NEXT("calloc", __libc_calloc);
	return fails() ? NULL : call(n, size);
}

void *realloc(void *p, size_t n)
{
	NEXT("realloc", __libc_realloc);
	return n && fails() ? NULL : call(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

void *memalign(size_t align, size_t n)
{
	NEXT("memalign", __libc_memalign);
	return fails() ? NULL : call(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p = memalign(align, n);

	if (p)
		*ret = p;
	return p ? 0 : ENOMEM;
}
