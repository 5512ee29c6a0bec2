/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/symbols
/* The parts that can be shown without a compiler at hand; tests/run/symbols has real programs. */
#include "lib/put_file.h"

#include <elf.h>
#include <sys/inotify.h>

#include "symbols/debugfile.h"
#include "base/ranges.h"
#include "symbols/symbols.h"

TEST(ranges_nest)
{
	struct range r[] = {{100, 200, 0, 0}, {120, 150, 1, 1}, {130, 140, 2, 2}, {150, 160, 3, 1},
			    {200, 200, 4, 0}, {190, 250, 5, 0}, {300, 310, 6, 0}, {300, 310, 7, 1}};
	static const uint64_t want[][2] = {
		{100, 0}, {120, 1}, {130, 2},           {140, 1}, {150, 3},
		{160, 0}, {190, 5}, {250, RANGES_NONE}, {300, 7}, {310, RANGES_NONE}};
	struct segment *s;
	size_t n;

	CHECK_INT(ranges_flatten(r, sizeof(r) / sizeof(*r), &s, &n), 0);
	CHECK_INT(n, sizeof(want) / sizeof(*want));
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(s[i].lo, want[i][0]);
		CHECK_INT(s[i].id, want[i][1]);
	}
	CHECK(!segments_find(s, n, 99));
	CHECK_INT(segments_find(s, n, 139)->id, 2);
	CHECK_INT(segments_find(s, n, UINT64_MAX)->id, RANGES_NONE);
	free(s);
}

/* Every address of many overlapping ranges, against the definition. */
TEST(ranges_by_definition)
{
	struct range r[64], sorted[64];
	struct segment *s;
	uint32_t seed = 1;
	size_t n;

	for (int round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < 64; i++) {
			uint32_t lo = (seed = seed * 1103515245 + 12345) >> 16 & 255;
			uint32_t len = (seed = seed * 1103515245 + 12345) >> 16 & 31;

			r[i] = (struct range){lo, lo + len, i, i};
		}
		memcpy(sorted, r, sizeof(r));
		CHECK_INT(ranges_flatten(sorted, 64, &s, &n), 0);
		for (uint64_t a = 0; a < 300; a++) {
			const struct segment *got = segments_find(s, n, a);
			uint32_t want = RANGES_NONE;

			for (uint32_t i = 0; i < 64; i++)
				if (r[i].lo <= a && a < r[i].hi &&
				    (want == RANGES_NONE || r[i].lo >= r[want].lo))
					want = i;
			CHECK_INT(got ? got->id : RANGES_NONE, want);
		}
		free(s);
	}
}

/* ---- a small ELF file with a symbol table ---- */

struct sym {
	const char *name;
	uint64_t value, size;
	int info;
};

#define FUNC(bind) ELF64_ST_INFO(STB_##bind, STT_FUNC)
#define TEXT 0x1000

static int make_elf(const struct sym *syms, int n)
{
	static const char names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		Elf64_Shdr h[5];
		Elf64_Sym s[32];
		char strings[1024], names[sizeof(names)];
	} f = {0};
	size_t at = 1;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	f.e = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_phoff = sizeof(f.e),
		.e_phentsize = sizeof(f.p),
		.e_phnum = 1,
		.e_shoff = sizeof(f.e) + sizeof(f.p),
		.e_shentsize = sizeof(f.h[0]),
		.e_shnum = 5,
		.e_shstrndx = 4,
		.e_ehsize = sizeof(f.e)};
	f.p = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_vaddr = TEXT, .p_memsz = 0x1000};
	f.h[1] = (Elf64_Shdr){.sh_name = 1,
			      .sh_type = SHT_NOBITS,
			      .sh_addr = TEXT,
			      .sh_size = 0x1000,
			      .sh_flags = SHF_ALLOC | SHF_EXECINSTR};
	f.h[2] = (Elf64_Shdr){.sh_name = 7,
			      .sh_type = SHT_SYMTAB,
			      .sh_offset = (char *)f.s - (char *)&f,
			      .sh_size = sizeof(f.s[0]) * (size_t)n,
			      .sh_entsize = sizeof(f.s[0])};
	f.h[3] = (Elf64_Shdr){.sh_name = 15,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = f.strings - (char *)&f,
			      .sh_size = sizeof(f.strings)};
	f.h[4] = (Elf64_Shdr){.sh_name = 23,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = f.names - (char *)&f,
			      .sh_size = sizeof(names)};
	memcpy(f.names, names, sizeof(names));
	for (int i = 0; i < n; i++) {
		f.s[i] = (Elf64_Sym){.st_name = (uint32_t)at,
				     .st_info = (unsigned char)syms[i].info,
				     .st_shndx = 1,
				     .st_value = syms[i].value,
				     .st_size = syms[i].size};
		strcpy(f.strings + at, syms[i].name);
		at += strlen(syms[i].name) + 1;
	}
	CHECK(fd >= 0 && write(fd, &f, sizeof(f)) == sizeof(f));
	return fd;
}

struct answer {
	char name[128], system_name[128];
	uint32_t n, flags;
};

static void take(void *arg, const struct symbols_frame *f)
{
	struct answer *a = arg;

	if (!a->n++) {
		snprintf(a->name, sizeof(a->name), "%s", f->name);
		snprintf(a->system_name, sizeof(a->system_name), "%s", f->system_name);
		a->flags = f->flags;
	}
}

static struct answer look(struct symbols *s, uint64_t addr)
{
	struct answer a = {0};

	CHECK_INT(symbols_lookup(s, addr, take, &a), 0);
	CHECK_INT(a.n, 1);
	return a;
}

static struct symbols *open_syms(const struct sym *syms, int n)
{
	struct symbols_files files = {make_elf(syms, n), -1, -1};
	struct symbols *s;

	CHECK_INT(symbols_open(&s, &files, true), 0);
	return s;
}

TEST(sizes_count)
{
	static const struct sym syms[] = {
		{"first", TEXT + 0x100, 0x20, FUNC(GLOBAL)},
		{"second", TEXT + 0x140, 0x20, FUNC(LOCAL)},
		{"sizeless", TEXT + 0x200, 0, FUNC(GLOBAL)},
		{"data", TEXT + 0x300, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)},
		{"asm_fn", TEXT + 0x400, 0x10, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)},
		{"huge", TEXT + 0xf00, UINT64_MAX, FUNC(GLOBAL)},
		{"outside", 0x100, 0x10, FUNC(GLOBAL)},
	};
	struct symbols *s = open_syms(syms, 7);

	CHECK_STR(look(s, TEXT + 0x100).name, "first");
	CHECK_STR(look(s, TEXT + 0x11f).name, "first");
	/* in the gap there is a stub, one for all of it */
	CHECK_STR(look(s, TEXT + 0x120).name, "+0x1120");
	CHECK_STR(look(s, TEXT + 0x13e).name, "+0x1120");
	CHECK_INT(look(s, TEXT + 0x13e).flags, SYMBOLS_STUB);
	CHECK_STR(look(s, TEXT + 0x13f).name, "second"); /* it returns to where that begins */
	CHECK_STR(look(s, TEXT + 0x140).name, "second");
	CHECK_STR(look(s, TEXT + 0x200).name, "+0x1160");
	CHECK_STR(look(s, TEXT + 0x300).name, "+0x1160");
	CHECK_STR(look(s, TEXT + 0x40f).name, "asm_fn");
	CHECK_INT(look(s, TEXT + 0xf00).flags, SYMBOLS_STUB);
	CHECK_STR(look(s, TEXT).name, "+0x1000");
	CHECK_INT(look(s, 0x100).flags, SYMBOLS_STUB);
	CHECK_INT(look(s, UINT64_MAX).flags, SYMBOLS_STUB);
	symbols_close(s);
}

TEST(aliases)
{
	static const struct sym syms[] = {
		{"a_local", TEXT + 0x100, 0x20, FUNC(LOCAL)},
		{"__global", TEXT + 0x100, 0x20, FUNC(GLOBAL)},
		{"_global", TEXT + 0x100, 0x20, FUNC(GLOBAL)},
		{"weak", TEXT + 0x100, 0x20, FUNC(WEAK)},
		{"bb", TEXT + 0x200, 0x20, FUNC(GLOBAL)},
		{"aa", TEXT + 0x200, 0x20, FUNC(GLOBAL)},
		{"around", TEXT + 0x300, 0x80, FUNC(GLOBAL)},
		{"within", TEXT + 0x320, 0x10, FUNC(LOCAL)},
		{"_ZN1a1bEv.cold", TEXT + 0x400, 0x10, FUNC(LOCAL)},
	};
	struct symbols *s = open_syms(syms, 9);

	CHECK_STR(look(s, TEXT + 0x110).name, "_global");
	CHECK_STR(look(s, TEXT + 0x210).name, "aa");
	CHECK_STR(look(s, TEXT + 0x31f).name, "around");
	CHECK_STR(look(s, TEXT + 0x320).name, "within");
	CHECK_STR(look(s, TEXT + 0x330).name, "around");
	CHECK_STR(look(s, TEXT + 0x400).name, "a::b");
	CHECK_STR(look(s, TEXT + 0x400).system_name, "_ZN1a1bEv.cold");
	symbols_close(s);
}

/* A file that is no ELF is refused; a file truncated at any byte is refused or gives stubs. */
TEST(truncated)
{
	static const struct sym syms[] = {{"first", TEXT + 0x100, 0x20, FUNC(GLOBAL)}};
	struct symbols_files files = {make_elf(syms, 1), -1, -1};
	struct symbols *s;
	struct stat st;

	CHECK_INT(fstat(files.fd, &st), 0);
	for (off_t len = st.st_size; len >= 0; len -= 7) {
		int r;

		CHECK_INT(ftruncate(files.fd, len), 0);
		r = symbols_open(&s, &files, true);
		CHECK(r == 0 || r == -ENOEXEC);
		if (r)
			continue;
		CHECK(!strcmp(look(s, TEXT + 0x100).name, "first") ||
		      look(s, TEXT + 0x100).flags & SYMBOLS_STUB);
		symbols_close(s);
	}
	CHECK_INT(symbols_open(&s, &files, true), -ENOEXEC);
	files.fd = open("/dev/null", O_RDONLY);
	CHECK_INT(symbols_open(&s, &files, true), -ENOEXEC);
}

/* A file that shrinks between two looks at it: no signal, no crash. */
TEST(shrinks_while_open)
{
	struct symbols_files files = {memfd_create("copy", MFD_CLOEXEC), -1, -1};
	int self = open("/proc/self/exe", O_RDONLY);
	char piece[65536];
	struct symbols *s;
	struct answer a = {0};
	ssize_t n;

	while ((n = read(self, piece, sizeof(piece))) > 0)
		CHECK_INT(write(files.fd, piece, (size_t)n), n);
	CHECK_INT(symbols_open(&s, &files, true), 0);
	CHECK_INT(ftruncate(files.fd, 4096), 0);
	for (uint64_t addr = 0; addr < 1 << 16; addr += 256)
		CHECK_INT(symbols_lookup(s, addr, take, &a), 0);
	symbols_close(s);
}

/* Our own functions, with lines: this test is built with -g. */
static __attribute__((noinline)) int known_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

extern const char __executable_start[];

/* All of an answer, as a number. */
static void mix(uint64_t *hash, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*hash = (*hash ^ ((const unsigned char *)p)[i]) * 0x100000001b3;
}

static void mix_frame(void *arg, const struct symbols_frame *f)
{
	mix(arg, f->name, strlen(f->name) + 1);
	mix(arg, f->system_name, strlen(f->system_name) + 1);
	mix(arg, f->file, strlen(f->file) + 1);
	mix(arg, &f->line, sizeof(f->line));
	mix(arg, &f->column, sizeof(f->column));
	mix(arg, &f->start_line, sizeof(f->start_line));
	mix(arg, &f->flags, sizeof(f->flags));
}

static uint64_t hash_at(struct symbols *s, uint64_t addr)
{
	uint64_t hash = 0xcbf29ce484222325;

	CHECK_INT(symbols_lookup(s, addr, mix_frame, &hash), 0);
	return hash;
}

/* Wherever an answer is said to hold, it does: at each address of [lo, hi). How many spans. */
static uint32_t check_spans(struct symbols *s, uint64_t lo, uint64_t hi)
{
	uint32_t n = 0;

	for (uint64_t at = lo; at < hi; n++) {
		struct symbols_span span;
		uint64_t hash = 0xcbf29ce484222325, from;

		CHECK_INT(symbols_lookup_span(s, at, mix_frame, &hash, &span), 0);
		CHECK(span.lo <= at && at < span.hi);
		from = span.lo < lo ? lo : span.lo;
		if (span.hi > hi)
			span.hi = hi;
		for (uint64_t a = from; a < span.hi; a++)
			CHECK(hash_at(s, a) == hash);
		at = span.hi;
	}
	return n;
}

static uint32_t check_file(const char *path, bool dwarf, uint64_t from, uint64_t len)
{
	struct symbols_files files = {open(path, O_RDONLY | O_CLOEXEC), -1, -1};
	struct symbols *s;
	uint32_t n;

	CHECK(files.fd >= 0);
	CHECK_INT(symbols_open(&s, &files, dwarf), 0);
	n = check_spans(s, from, from + len);
	symbols_close(s);
	close(files.fd);
	return n;
}

TEST_FOR(answers_hold_as_far_as_they_say, 120)
{
	uint64_t here = (uint64_t)(uintptr_t)known_function -
			(uint64_t)(uintptr_t)__executable_start;
	uint64_t len = 48 << 10, from = here > len ? here - len : 0;

	/* with lines and inlined calls, with symbols alone, and where there is no name at all */
	CHECK(check_file("/proc/self/exe", true, from, 2 * len) > 1000);
	CHECK(check_file("/proc/self/exe", false, from, 2 * len) > 100);
	CHECK(check_file("/bin/sh", true, 0, 128 << 10) > 20);
}

TEST(answers_hold_where_symbols_overlap)
{
	static const struct sym syms[] = {
		{"outer", TEXT + 0x100, 0x100, FUNC(GLOBAL)},
		{"inner", TEXT + 0x140, 0x20, FUNC(LOCAL)},
		{"alias", TEXT + 0x140, 0x20, FUNC(GLOBAL)},
		{"across", TEXT + 0x1f0, 0x40, FUNC(GLOBAL)},
		{"sizeless", TEXT + 0x300, 0, FUNC(GLOBAL)},
		{"_ZN1a1bEv", TEXT + 0x310, 8, FUNC(GLOBAL)},
	};
	struct symbols *s = open_syms(syms, sizeof(syms) / sizeof(*syms));
	struct symbols_span f;

	CHECK(check_spans(s, TEXT, TEXT + 0x400) > 5);
	CHECK(symbols_function(s, TEXT + 0x120, &f));
	CHECK(f.lo == TEXT + 0x100 && f.hi == TEXT + 0x200);
	CHECK(symbols_function(s, TEXT + 0x15f, &f));
	CHECK(f.lo == TEXT + 0x140 && f.hi == TEXT + 0x160);
	CHECK(!symbols_function(s, TEXT + 0x304, &f));
	CHECK(!symbols_function(s, 0, &f));
	symbols_close(s);
}

TEST(own_program)
{
	struct symbols_files files = {open("/proc/self/exe", O_RDONLY), -1, -1};
	struct symbols_quality q;
	struct symbols *s;
	struct answer a;
	uint64_t addr = (uint64_t)(uintptr_t)known_function -
			(uint64_t)(uintptr_t)__executable_start;

	CHECK_INT(known_function(1), 2);
	CHECK_INT(symbols_open(&s, &files, true), 0);
	a = look(s, addr);
	CHECK_STR(a.name, "known_function");
	CHECK_INT(a.flags, 0);
	symbols_quality(s, &q);
	CHECK(q.symtab);
	CHECK_STR(q.note, "");
	symbols_close(s);
}

/* A debug file of another program is not used, and that is said. */
TEST(wrong_debug_file)
{
	struct symbols_files files = {open("/proc/self/exe", O_RDONLY), open("/bin/sh", O_RDONLY),
				      -1};
	struct symbols_quality q;
	struct symbols *s;

	CHECK_INT(symbols_open(&s, &files, true), 0);
	symbols_quality(s, &q);
	CHECK_STR(q.note, "the debug file is of another build");
	symbols_close(s);
}

static const char *text_of(int fd)
{
	static char text[64];
	ssize_t n;

	if (fd < 0)
		return "(none)";
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	return text;
}

TEST(debug_files_are_found)
{
	static const uint8_t id[] = {0xab, 0xcd, 0xef};
	const char *root = test_dir();
	char path[256];

	put_file("opt/app/prog", "the program");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog.debug")), "(none)");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog")), "(none)");
	put_file("usr/lib/debug/opt/app/prog.debug", "global");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog.debug")), "global");
	put_file("opt/app/.debug/prog.debug", "folder");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog.debug")), "folder");
	put_file("opt/app/prog.debug", "beside");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog.debug")), "beside");
	put_file("usr/lib/debug/.build-id/ab/cdef.debug", "by id");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", id, 3, "prog.debug")), "by id");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", NULL, 0, "prog.debug")), "beside");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", NULL, 0, "../app/prog.debug")),
		  "(none)");
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", NULL, 0, NULL)), "(none)");
	put_file("usr/lib/debug/.dwz/common.debug", "dwz");
	CHECK_STR(text_of(debugfile_open_alt(root, "../../.dwz/common.debug", NULL, 0)), "dwz");
	/* a path from a file leads to ELF files only, and never to a secret */
	CHECK_STR(text_of(debugfile_open_alt(root, "/opt/app/prog", NULL, 0)), "(none)");
	CHECK_STR(text_of(debugfile_open_alt(root, "/usr/lib/debug/.dwz/common.debug", NULL, 0)),
		  "dwz");
	if (!geteuid()) {
		snprintf(path, sizeof(path), "%s/usr/lib/debug/.dwz/common.debug", root);
		CHECK_INT(chmod(path, 0640), 0);
		CHECK_STR(text_of(debugfile_open_alt(root, "common.debug", NULL, 0)), "(none)");
	}
	/* links stay below the root, and only regular files are opened */
	snprintf(path, sizeof(path), "%s/opt/app/out.debug", root);
	CHECK_INT(symlink("/opt/app/prog", path), 0);
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", NULL, 0, "out.debug")),
		  "the program");
	snprintf(path, sizeof(path), "%s/opt/app/pipe.debug", root);
	CHECK_INT(mkfifo(path, 0644), 0);
	CHECK_STR(text_of(debugfile_open(root, "/opt/app/prog", NULL, 0, "pipe.debug")), "(none)");
}
/* A name can be any text: what others may not read is not even opened. */
TEST(names_of_secret_files)
{
	const char *root = test_dir();
	char path[200], event[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	CHECK(watch >= 0);
	put_file("a/secret", "\177ELF secret");
	put_file("private/open", "\177ELF open");
	snprintf(path, sizeof(path), "%s/a/secret", root);
	CHECK(!chmod(path, 0600));
	CHECK(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	snprintf(path, sizeof(path), "%s/private/open", root);
	CHECK(!chmod(path, 0644));
	CHECK(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	CHECK_STR(text_of(debugfile_open_alt(root, "/private/open", NULL, 0)), "\177ELF open");
	CHECK(read(watch, event, sizeof(event)) > 0);
	if (geteuid()) /* a user may read his own */
		SKIP("needs root");
	snprintf(path, sizeof(path), "%s/private", root);
	CHECK(!chmod(path, 0700));
	CHECK_STR(text_of(debugfile_open_alt(root, "/private/open", NULL, 0)), "(none)");
	CHECK_STR(text_of(debugfile_open_alt(root, "/a/secret", NULL, 0)), "(none)");
	CHECK_STR(text_of(debugfile_open(root, "/a/program", NULL, 0, "secret")), "(none)");
	CHECK_INT(read(watch, event, sizeof(event)), -1);
	close(watch);
}
