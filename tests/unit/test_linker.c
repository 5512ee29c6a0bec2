/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/bpf core/linker
/* Objects are joined, and whatever befalls the libraries that do it costs an error and no more:
 * allocations of theirs fail one at a time, and they are given nonsense. */
#include "linker/linker.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <elf.h>
#include <fusee/plugin.h>
#include <stdatomic.h>

#include "test.h"

FUSEE_EMBED(steps_bpf, "steps.bpf.o");
FUSEE_EMBED(dwarf_object, "dwarf.bpf.o");
FUSEE_EMBED(framepointer_object, "framepointer.bpf.o");

#define NPARTS 3u

static const struct linker_part parts[NPARTS] = {
	{.name = "steps", .from = steps_bpf, .to = steps_bpf_end},
	{.name = "dwarf", .from = dwarf_object, .to = dwarf_object_end},
	{.name = "framepointer", .from = framepointer_object, .to = framepointer_object_end},
};

/* ---- allocations that fail: in the children of the test alone ---- */

struct faults {
	pid_t parent;
	_Atomic uint32_t children, seen; /* seen: by the newest child */
	uint32_t fail_at, in_children;   /* the fail_at-th, in the first so many */
};

static struct faults *faults; /* shared with the children */

static struct faults *new_faults(void)
{
	struct faults *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(f != MAP_FAILED);
	f->parent = getpid();
	return f;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NO_FAULTS 0
#define EXPORTED __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static bool is_due(void)
{
	static pid_t counted;
	pid_t self;

	if (!faults || (self = getpid()) == faults->parent)
		return false;
	if (counted != self) {
		counted = self;
		faults->children++;
		faults->seen = 0;
	}
	return ++faults->seen == faults->fail_at && faults->children <= faults->in_children;
}

/* libbpf's and libelf's too: what a program exports goes before a library's own. */
EXPORTED void *malloc(size_t n)
{
	return is_due() ? (errno = ENOMEM, NULL) : __libc_malloc(n);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	return is_due() ? (errno = ENOMEM, NULL) : __libc_calloc(n, size);
}

EXPORTED void *realloc(void *p, size_t n)
{
	return n && is_due() ? (errno = ENOMEM, NULL) : __libc_realloc(p, n);
}
#else
#define NO_FAULTS 1
#endif

/* ---- */

static int quiet(enum libbpf_print_level level, const char *format, va_list ap)
{
	return 0;
}

static uint32_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What is joined can be opened and has the program, the steps' functions and their maps. */
static void check_object(int fd)
{
	struct bpf_object *o;
	struct stat st;
	void *p;

	CHECK_INT(fstat(fd, &st), 0);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	o = bpf_object__open_mem(p, (size_t)st.st_size, NULL);
	CHECK(o);
	CHECK(bpf_object__next_program(o, NULL));
	CHECK(bpf_object__find_map_by_name(o, "fusee_slabs"));
	bpf_object__close(o);
	munmap(p, (size_t)st.st_size);
	close(fd);
}

TEST(parts_are_joined)
{
	uint32_t before = count_fds();
	char *why;
	int fd;

	CHECK_INT(linker_link(parts, NPARTS, &fd, &why), 0);
	CHECK(!why);
	check_object(fd);
	CHECK_INT(count_fds(), before);
}

/* Some of their allocations fail, one at a time: once, and it is joined all the same; or at each
 * attempt, and it is an error with a sentence, or joined where nothing needed it. */
static uint32_t fail_each(uint32_t in_children, uint32_t most)
{
	uint32_t total, step, failed = 0, before = count_fds();
	char *why;
	int fd, r;

	libbpf_set_print(quiet);
	faults = new_faults();
	CHECK_INT(linker_link(parts, NPARTS, &fd, &why), 0);
	close(fd);
	total = faults->seen;
	CHECK(total > 100);
	step = total / most + 1;
	faults->in_children = in_children;
	for (uint32_t n = 1; n <= total; n += step) {
		faults->children = 0;
		faults->fail_at = n;
		r = linker_link(parts, NPARTS, &fd, &why);
		CHECK(!r == !why);
		if (!r)
			check_object(fd);
		else
			CHECK(strstr(why, "link"));
		failed += r || faults->children > 1;
		CHECK(!r || in_children > 1);
		free(why);
	}
	CHECK_INT(count_fds(), before);
	return failed;
}

TEST_FOR(memory_is_short_for_a_moment, 120)
{
	if (NO_FAULTS)
		SKIP("the sanitizer has allocators of its own");
	CHECK(fail_each(1, 20) > 10);
}

TEST_FOR(memory_is_short, 120)
{
	if (NO_FAULTS)
		SKIP("the sanitizer has allocators of its own");
	CHECK(fail_each(99, 10) > 5);
}

/* A stranger's object: truncated, empty, no object, or with its section headers led astray. */
TEST(nonsense_is_refused)
{
	size_t len = (size_t)(dwarf_object_end - dwarf_object);
	unsigned char *bytes = malloc(len);
	struct linker_part p[2] = {parts[0],
				   {.name = "stranger", .from = bytes, .to = bytes + len}};
	uint32_t before = count_fds();
	char *why;
	int fd;

	CHECK(bytes);
	libbpf_set_print(quiet);
	for (uint32_t i = 0; i < 5; i++) {
		Elf64_Ehdr *h = (Elf64_Ehdr *)bytes;

		memcpy(bytes, dwarf_object, len);
		p[1].to = bytes + len;
		if (i == 0)
			p[1].to = bytes;
		else if (i == 1)
			p[1].to = bytes + len / 2;
		else if (i == 2)
			memset(bytes, 'x', len);
		else if (i == 3)
			h->e_shoff = len - 8;
		else
			h->e_machine = EM_X86_64;
		CHECK(linker_link(p, 2, &fd, &why) < 0);
		CHECK(why && strstr(why, "link"));
		free(why);
	}
	CHECK_INT(count_fds(), before);
	free(bytes);
}
