/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/bpf core/linker
/* Objects are joined, and whatever befalls the libraries that do it costs an error and no more:
 * allocations of theirs fail one at a time, and they are given nonsense. */
#include "linker/constant.h"
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
FUSEE_EMBED(offcpu_object, "offcpu.bpf.o");

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

/* ---- constants ---- */

#define NUMBER "fusee_sampler_number"
#define VALUE 0x5a13c7e9u

/* A copy of a sampler's object, at the end of its memory: reading behind it faults. */
struct copy {
	char *memory, *at;
	size_t mapped, len;
};

static struct copy new_copy(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), most = (len + page - 1) / page * page;
	struct copy c = {.mapped = most + page, .len = len};

	CHECK(len <= (size_t)(offcpu_object_end - offcpu_object));
	c.memory = mmap(NULL, c.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(c.memory != MAP_FAILED && !mprotect(c.memory + most, page, PROT_NONE));
	c.at = c.memory + most - len;
	memcpy(c.at, offcpu_object, len);
	return c;
}

static size_t object_len(void)
{
	return (size_t)(offcpu_object_end - offcpu_object);
}

/* Where libbpf finds the value in what it would load; -1: nowhere. */
static ptrdiff_t place_in_rodata(const struct copy *c)
{
	struct bpf_object *o = bpf_object__open_mem(c->at, c->len, NULL);
	const uint32_t value = VALUE;
	const struct bpf_map *map;
	ptrdiff_t at = -1;

	CHECK(o);
	bpf_object__for_each_map(map, o)
	{
		size_t len = 0;
		const char *bytes = bpf_map__initial_value((struct bpf_map *)map, &len);
		const char *found = bytes ? memmem(bytes, len, &value, sizeof(value)) : NULL;

		if (found && strstr(bpf_map__name(map), ".rodata"))
			at = found - bytes;
	}
	bpf_object__close(o);
	return at;
}

TEST(constants_are_found)
{
	struct copy c = new_copy(object_len());
	const uint32_t value = VALUE;
	size_t at = 0;

	libbpf_set_print(quiet);
	CHECK_INT(place_in_rodata(&c), -1);
	CHECK_INT(constant_find(c.at, c.len, NUMBER, &at), 0);
	memcpy(c.at + at, &value, sizeof(value));
	CHECK(place_in_rodata(&c) >= 0);
	CHECK_INT(constant_find(c.at, c.len, NUMBER "s", &at), -ENOENT);
	CHECK_INT(constant_find(c.at, c.len, "usee_sampler_numbe", &at), -ENOENT);
	CHECK_INT(
		constant_find(dwarf_object, (size_t)(dwarf_object_end - dwarf_object), NUMBER, &at),
		-ENOENT);
	munmap(c.memory, c.mapped);
}

/* All that an object lacks of its end is an error, unless the constant is in the rest. */
TEST_FOR(constants_of_truncated_objects, 60)
{
	uint32_t refused = 0;
	size_t at, place;

	CHECK_INT(constant_find(offcpu_object, object_len(), NUMBER, &at), 0);
	for (size_t len = 0; len < object_len(); len += len < 256 ? 1 : 7) {
		struct copy c = new_copy(len);
		int r = constant_find(c.at, len, NUMBER, &place);

		CHECK(r == -EINVAL || r == -ENOENT || (!r && place == at && at + 4 <= len));
		CHECK(len >= sizeof(Elf64_Ehdr) || r == -EINVAL);
		refused += r != 0;
		munmap(c.memory, c.mapped);
	}
	CHECK(refused > 100);
}

/* The parts of an object that name the constant. */
struct named {
	Elf64_Ehdr *head;
	Elf64_Shdr *symbols, *strings, *section;
	Elf64_Sym *symbol;
};

/* Of an object that is right. */
static struct named parts_of(const struct copy *c)
{
	struct named n = {.head = (Elf64_Ehdr *)c->at};
	Elf64_Shdr *all = (Elf64_Shdr *)(c->at + n.head->e_shoff);

	for (uint32_t i = 0; i < n.head->e_shnum; i++)
		if (all[i].sh_type == SHT_SYMTAB)
			n.symbols = &all[i];
	CHECK(n.symbols);
	n.strings = &all[n.symbols->sh_link];
	n.symbol = (Elf64_Sym *)(c->at + n.symbols->sh_offset);
	while (strcmp(c->at + n.strings->sh_offset + n.symbol->st_name, NUMBER) != 0)
		n.symbol++;
	n.section = &all[n.symbol->st_shndx];
	return n;
}

/* A field, what makes it wrong, and what the constant is then. */
struct wrong {
	void *field;
	size_t bytes;
	uint64_t value;
	int expected;
};

#define WRONG(field, value, expected)                       \
	{                                                   \
		&(field), sizeof(field), value, -(expected) \
	}
#define MOST UINT64_MAX

/* Makes field `which` wrong. The error that is expected; 0: there are no more fields. */
static int make_wrong(const struct named *n, uint32_t which)
{
	const size_t len = object_len();
	const struct wrong all[] = {
		WRONG(n->symbol->st_value, n->section->sh_size - 3, EINVAL),
		WRONG(n->symbol->st_value, MOST - 1, EINVAL),
		WRONG(n->symbol->st_shndx, SHN_UNDEF, EINVAL),
		WRONG(n->symbol->st_shndx, SHN_ABS, EINVAL),
		WRONG(n->symbol->st_shndx, n->head->e_shnum, EINVAL),
		WRONG(n->symbol->st_size, 8, EINVAL),
		WRONG(n->symbol->st_name, UINT32_MAX, ENOENT),
		WRONG(n->section->sh_type, SHT_NOBITS, EINVAL),
		WRONG(n->section->sh_size, 3, EINVAL),
		WRONG(n->section->sh_offset, MOST - 2, EINVAL),
		WRONG(n->section->sh_offset, len - 3 - n->symbol->st_value, EINVAL),
		WRONG(n->symbols->sh_link, n->head->e_shnum, EINVAL),
		WRONG(n->symbols->sh_offset, len - 8, EINVAL),
		WRONG(n->symbols->sh_offset, MOST - 8, EINVAL),
		WRONG(n->symbols->sh_size, 0, ENOENT),
		WRONG(n->symbols->sh_type, SHT_PROGBITS, ENOENT),
		WRONG(n->strings->sh_offset, MOST - 4, ENOENT),
		WRONG(n->strings->sh_offset, len - 4, ENOENT),
		WRONG(n->strings->sh_size, n->symbol->st_name + sizeof(NUMBER) - 1, ENOENT),
		WRONG(n->head->e_shoff, MOST - 63, ENOENT),
		WRONG(n->head->e_shnum, 0, ENOENT),
		WRONG(n->head->e_shentsize, 40, EINVAL),
		WRONG(n->head->e_ident[EI_CLASS], ELFCLASS32, EINVAL),
		WRONG(n->head->e_ident[EI_MAG0], 0, EINVAL),
	};

	if (which >= sizeof(all) / sizeof(*all))
		return 0;
	memcpy(all[which].field, &all[which].value, all[which].bytes); /* little-endian */
	return all[which].expected;
}

TEST(constants_of_wrong_objects)
{
	int expected = -1;
	size_t at;

	for (uint32_t i = 0; expected; i++) {
		struct copy c = new_copy(object_len());
		struct named n = parts_of(&c);

		expected = make_wrong(&n, i);
		CHECK_INT(constant_find(c.at, c.len, NUMBER, &at), expected);
		munmap(c.memory, c.mapped);
	}
}
