// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/process
/* The ELF reader: compared with libelf on real files; truncated and malformed files, and others
 * that are no files.
 */
#include <gelf.h>
#include <link.h>
#include <zlib.h>
#include <zstd.h>

#include "process/elf.h"
#include "test.h"

static char *small;
static size_t small_len;

static int file_of(const void *p, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, p, len, 0) == (ssize_t)len);
	return fd;
}

/* A small program that every Debian has. */
static void load_small(void)
{
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
	struct stat st;

	CHECK(fd >= 0 && !fstat(fd, &st));
	small_len = (size_t)st.st_size;
	small = malloc(small_len);
	CHECK(small && pread(fd, small, small_len, 0) == (ssize_t)small_len);
	close(fd);
}

/* Asks everything of a file that may be anything; 0 where it could be opened. Answers must lie
 * inside. */
static int ask_all(int fd)
{
	static const char *const names[] = {
		".eh_frame", ".eh_frame_hdr", ".text",   ".debug_frame", ".bss",
		".symtab",   ".dynsym",       ".dynstr", ".shstrtab",    ""};
	struct fusee_file_info info = {.size = sizeof(info)};
	struct fusee_section s;
	struct fusee_range at;
	const char *name;
	uint32_t crc;
	bool imports;
	struct elf *e;
	char buf[64];
	int err = elf_open(&e, fd);

	if (err) {
		CHECK(err == -ENOEXEC || err == -EBADMSG || err == -EIO || err == -ENOMEM);
		return err;
	}
	CHECK_INT(elf_info(e, &info), 0);
	CHECK(info.build_id.len <= 64);
	for (uint32_t i = 0; i < info.segments.n; i++) {
		const struct fusee_segment *g = FUSEE_AT(struct fusee_segment, info.segments, i);

		CHECK(g->filesz <= g->memsz && g->vaddr <= g->vaddr + g->memsz);
		CHECK(!i || g->vaddr >= g[-1].vaddr);
		elf_read(e, g->vaddr, buf, sizeof(buf));
		elf_read(e, g->vaddr + g->filesz - 8, buf, sizeof(buf));
	}
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!elf_section(e, names[i], &s) && s.bytes.p)
			for (uint64_t j = 0; j < s.bytes.len; j += 512)
				((volatile const char *)s.bytes.p)[j];
	elf_symbol(e, "_Z9not_there", &at);
	elf_imports(e, (const char *const[]){"_Z9not_there", NULL}, &imports);
	elf_debuglink(e, &name, &crc);
	elf_close(e);
	return 0;
}

static void same_as_libelf(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct fusee_file_info info = {.size = sizeof(info)};
	unsigned int compared = 0;
	Elf_Scn *scn = NULL;
	size_t names;
	struct elf *e;
	Elf *l;

	CHECK(fd >= 0);
	CHECK_INT(elf_open(&e, fd), 0);
	elf_version(EV_CURRENT);
	l = elf_begin(fd, ELF_C_READ, NULL);
	CHECK(l && !elf_getshdrstrndx(l, &names));
	while ((scn = elf_nextscn(l, scn))) {
		GElf_Shdr h;
		const char *name;
		struct fusee_section s;
		Elf_Data *d;

		CHECK(gelf_getshdr(scn, &h));
		name = elf_strptr(l, names, h.sh_name);
		CHECK_INT(elf_section(e, name, &s), 0);
		CHECK(s.vaddr == h.sh_addr && s.offset == h.sh_offset && s.type == h.sh_type);
		if (h.sh_type == SHT_NOBITS) {
			CHECK(!s.bytes.p);
			continue;
		}
		d = elf_rawdata(scn, NULL);
		CHECK(d && d->d_size == s.bytes.len && !memcmp(d->d_buf, s.bytes.p, d->d_size));
		compared++;
	}
	CHECK(compared > 10);
	CHECK_INT(elf_info(e, &info), 0);
	CHECK(info.machine && info.build_id.len == 20);
	elf_end(l);
	elf_close(e);
	close(fd);
}

TEST(sections_are_what_libelf_reads)
{
	same_as_libelf("/bin/true");
	same_as_libelf("/usr/bin/python3");
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

TEST(symbols_and_bytes_are_what_the_loader_sees)
{
	struct dl_phdr_info libc;
	struct fusee_range at;
	struct elf *e;
	char buf[32];
	int fd;

	if (!dl_iterate_phdr(find_libc, &libc))
		SKIP("libc is not a shared library here");
	fd = open(libc.dlpi_name, O_RDONLY | O_CLOEXEC);
	CHECK_INT(elf_open(&e, fd), 0);
	CHECK_INT(elf_symbol(e, "qsort", &at), 0);
	CHECK(at.hi > at.lo);
#ifndef __SANITIZE_ADDRESS__ /* it puts functions of its own before these */
	CHECK(libc.dlpi_addr + at.lo == (uintptr_t)qsort);
#endif
	CHECK_INT(elf_read(e, at.lo, buf, sizeof(buf)), 0);
	CHECK(!memcmp(buf, (void *)(libc.dlpi_addr + at.lo), sizeof(buf)));
	CHECK_INT(elf_symbol(e, "qsor", &at), -ENOENT);
	CHECK_INT(elf_section(e, ".nope", &(struct fusee_section){0}), -ENOENT);
	CHECK_INT(elf_read(e, 1ull << 60, buf, 1), -ENOENT);
	elf_close(e);
}

/* A table of thousands of symbols: each is found by its name, again and again. */
TEST(symbols_of_a_large_table)
{
	struct fusee_section symbols = {.size = sizeof(symbols)}, names = {.size = sizeof(names)};
	int fd = open("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", O_RDONLY | O_CLOEXEC);
	struct elf *e;
	uint64_t found = 0;

	CHECK(fd >= 0);
	CHECK_INT(elf_open(&e, fd), 0);
	CHECK_INT(elf_section(e, ".dynsym", &symbols), 0);
	CHECK_INT(elf_section(e, ".dynstr", &names), 0);
	CHECK(symbols.bytes.len / sizeof(Elf64_Sym) > 4096);
	for (uint64_t i = 1; i < symbols.bytes.len / sizeof(Elf64_Sym); i += 3) {
		const Elf64_Sym *s = (const void *)(symbols.bytes.p + i * sizeof(*s));
		const char *name = names.bytes.p + s->st_name;
		struct fusee_range at = {0};
		char other[1024];

		if (s->st_shndx == SHN_UNDEF)
			continue;
		CHECK_INT(elf_symbol(e, name, &at), 0);
		found += at.lo == s->st_value;
		snprintf(other, sizeof(other), "%s+", name);
		CHECK_INT(elf_symbol(e, other, &at), -ENOENT);
	}
	/* some have several versions under one name, of which the first is meant */
	CHECK(found > 1500);
	elf_close(e);
	close(fd);
}

TEST(imports_are_undefined_symbols)
{
	static const char *const calls[] = {"no_such_function", "dl_iterate_phdr", NULL};
	static const char *const own[] = {"no_such_function", "elf_imports", NULL};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool imports = false;
	struct elf *e;

	CHECK_INT(elf_open(&e, fd), 0);
	CHECK_INT(elf_imports(e, own, &imports), 0);
	CHECK(!imports);
	CHECK_INT(elf_imports(e, calls, &imports), 0);
	CHECK(imports);
	elf_close(e);
	close(fd);
}

TEST(what_is_no_elf_file_is_refused)
{
	int p[2], fd;

	CHECK(!pipe2(p, O_CLOEXEC));
	CHECK_INT(ask_all(p[0]), -ENOEXEC);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK_INT(ask_all(fd), -ENOEXEC);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	CHECK_INT(ask_all(fd), -ENOEXEC);
	CHECK_INT(ask_all(file_of("", 0)), -ENOEXEC);
	CHECK_INT(ask_all(file_of("\177ELF", 4)), -ENOEXEC);
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	CHECK_INT(ask_all(fd), -ENOEXEC);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	CHECK_INT(ask_all(fd), -ENOEXEC);
	CHECK(elf_open(&(struct elf *){0}, -1) == -EBADF);
}

TEST(truncated_at_every_64_bytes)
{
	unsigned int opened = 0;

	load_small();
	for (size_t len = 0; len < small_len; len += 64) {
		int fd = file_of(small, len);

		if (!ask_all(fd))
			opened++;
		close(fd);
	}
	/* Section headers are at the end, so no shorter file can be complete. */
	CHECK_INT(opened, 0);
}

/* Each byte of all headers, to values that hurt most. */
static void bend(size_t from, size_t to)
{
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};

	CHECK(to <= small_len);
	for (size_t i = from; i < to; i++) {
		char was = small[i];
		int fd;

		for (unsigned int v = 0; v < sizeof(values); v++) {
			small[i] = (char)values[v];
			fd = file_of(small, small_len);
			ask_all(fd);
			close(fd);
		}
		small[i] = was;
	}
}

TEST_FOR(bent_headers, 300)
{
	Elf64_Ehdr *h;

	load_small();
	h = (Elf64_Ehdr *)small;
	bend(0, sizeof(*h) + h->e_phnum * sizeof(Elf64_Phdr));
	bend(h->e_shoff, h->e_shoff + h->e_shnum * sizeof(Elf64_Shdr));
}

TEST(bent_notes)
{
	Elf64_Shdr *s;
	Elf64_Ehdr *h;

	load_small();
	h = (Elf64_Ehdr *)small;
	s = (Elf64_Shdr *)(small + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type == SHT_NOTE)
			bend(s[i].sh_offset, s[i].sh_offset + s[i].sh_size);
}

TEST(a_file_that_shrinks_while_read)
{
	struct fusee_section s;
	struct elf *e;
	char buf[16];
	int fd;

	load_small();
	fd = file_of(small, small_len);
	CHECK_INT(elf_open(&e, fd), 0);
	CHECK(!ftruncate(fd, 4096));
	CHECK_INT(elf_section(e, ".text", &s), -EBADMSG);
	CHECK_INT(elf_read(e, 0, buf, sizeof(buf)), 0);
	CHECK(!ftruncate(fd, 0));
	CHECK_INT(elf_read(e, 0, buf, sizeof(buf)), -EBADMSG);
	elf_close(e);
}

/* 65,535 sections, each with a name of its own 4 GiB of names, in a sparse file of 1 TiB. */
TEST(huge_and_sparse)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_shoff = 4096,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 65535 & 0xfeff,
			.e_shstrndx = 1};
	Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_offset = 1 << 30, .sh_size = 4ull << 30};
	int fd = file_of(&h, sizeof(h));
	struct fusee_section s;
	struct elf *e;

	if (ftruncate(fd, 1ll << 40))
		SKIP("no sparse files of 1 TiB here");
	CHECK(pwrite(fd, &names, sizeof(names), 4096 + sizeof(names)) == sizeof(names));
	CHECK_INT(ask_all(fd), -EBADMSG);
	/* The same with few names, and one section of all that the file holds. */
	names.sh_size = 16;
	CHECK(pwrite(fd, &names, sizeof(names), 4096 + sizeof(names)) == sizeof(names));
	names.sh_name = 1;
	names.sh_size = (1ull << 40) - names.sh_offset;
	CHECK(pwrite(fd, &names, sizeof(names), 4096 + 2 * sizeof(names)) == sizeof(names));
	CHECK(pwrite(fd, "\0.text", 7, 1 << 30) == 7);
	CHECK_INT(elf_open(&e, fd), 0);
	CHECK_INT(elf_section(e, ".text", &s), -EBADMSG);
	elf_close(e);
	/* Section 0 says that there are 4 billion of them. */
	h.e_shnum = 0;
	names.sh_size = 1ull << 32;
	CHECK(pwrite(fd, &h, sizeof(h), 0) == sizeof(h));
	CHECK(pwrite(fd, &names, sizeof(names), 4096) == sizeof(names));
	CHECK_INT(ask_all(fd), -EBADMSG);
	close(fd);
}

/* A file of one section `name`, whose bytes are these. */
static int one_section(const char *name, uint64_t flags, const void *bytes, size_t len)
{
	struct {
		Elf64_Ehdr h;
		Elf64_Shdr s[3];
		char names[64];
	} f = {.h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		     .e_type = ET_DYN,
		     .e_machine = EM_X86_64,
		     .e_shoff = sizeof(Elf64_Ehdr),
		     .e_shentsize = sizeof(Elf64_Shdr),
		     .e_shnum = 3,
		     .e_shstrndx = 1}};
	int fd;

	strcpy(f.names + 1, name);
	f.s[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
			      .sh_offset = (char *)f.names - (char *)&f,
			      .sh_size = sizeof(f.names)};
	f.s[2] = (Elf64_Shdr){.sh_name = 1,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = flags,
			      .sh_offset = sizeof(f),
			      .sh_size = len};
	fd = file_of(&f, sizeof(f));
	CHECK(pwrite(fd, bytes, len, sizeof(f)) == (ssize_t)len);
	return fd;
}

static int compressed_is(int fd, const char *text, size_t len)
{
	struct fusee_section s;
	struct elf *e;
	int err;

	CHECK_INT(elf_open(&e, fd), 0);
	err = elf_section(e, ".debug_frame", &s);
	if (!err)
		CHECK(s.bytes.len == len && !memcmp(s.bytes.p, text, len));
	elf_close(e);
	close(fd);
	return err;
}

TEST(compressed_sections)
{
	static char text[5000], packed[6000], old[6000] = "ZLIB\0\0\0\0\0\0\x13\x88";
	Elf64_Chdr c = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof(text), .ch_addralign = 1};
	uLongf len = sizeof(packed) - sizeof(c);
	size_t n;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 5);
	CHECK(compress((Bytef *)packed + sizeof(c), &len, (Bytef *)text, sizeof(text)) == Z_OK);
	memcpy(packed, &c, sizeof(c));
	memcpy(old + 12, packed + sizeof(c), len);
	n = sizeof(c) + len;
	CHECK_INT(compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, n), text,
				sizeof(text)),
		  0);
	CHECK_INT(compressed_is(one_section(".zdebug_frame", 0, old, 12 + len), text, sizeof(text)),
		  0);
	for (size_t shorter = 0; shorter < n; shorter += 7)
		CHECK_INT(
			compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, shorter),
				      text, sizeof(text)),
			-EBADMSG);
	/* It says more, or less, than there is. */
	for (int d = -1; d <= 1; d += 2) {
		c.ch_size = sizeof(text) + (uint64_t)(int64_t)d;
		memcpy(packed, &c, sizeof(c));
		CHECK_INT(compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, n),
					text, sizeof(text)),
			  -EBADMSG);
	}
	c.ch_size = 1ull << 62;
	memcpy(packed, &c, sizeof(c));
	CHECK_INT(compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, n), text,
				sizeof(text)),
		  -EBADMSG);
	c = (Elf64_Chdr){.ch_type = 2 /* zstd */, .ch_size = sizeof(text), .ch_addralign = 1};
	memcpy(packed, &c, sizeof(c));
	n = ZSTD_compress(packed + sizeof(c), sizeof(packed) - sizeof(c), text, sizeof(text), 1);
	CHECK(!ZSTD_isError(n));
	n += sizeof(c);
	CHECK_INT(compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, n), text,
				sizeof(text)),
		  0);
	CHECK_INT(compressed_is(one_section(".debug_frame", SHF_COMPRESSED, packed, n - 3), text,
				sizeof(text)),
		  -EBADMSG);
}

TEST(debug_links)
{
	const char *name;
	struct elf *e;
	uint32_t crc;

	CHECK_INT(elf_open(&e, one_section(".gnu_debuglink", 0, "a.debug\0\1\2\3\4", 12)), 0);
	CHECK_INT(elf_debuglink(e, &name, &crc), 0);
	CHECK_STR(name, "a.debug");
	CHECK_INT(crc, 0x04030201);
	elf_close(e);
	CHECK_INT(elf_open(&e, one_section(".gnu_debuglink", 0, "a.debug\0\1\2\3", 11)), 0);
	CHECK_INT(elf_debuglink(e, &name, &crc), -EBADMSG);
	elf_close(e);
	CHECK_INT(elf_open(&e, one_section(".gnu_debuglink", 0, "no end", 6)), 0);
	CHECK_INT(elf_debuglink(e, &name, &crc), -EBADMSG);
	elf_close(e);
}

/* Without section headers the unwind tables are still found, and are the same bytes. */
TEST(section_headers_taken_away)
{
	struct fusee_section with, without;
	struct elf *a, *b;
	Elf64_Ehdr *h;

	load_small();
	CHECK_INT(elf_open(&a, file_of(small, small_len)), 0);
	h = (Elf64_Ehdr *)small;
	h->e_shoff = h->e_shnum = h->e_shstrndx = 0;
	CHECK_INT(elf_open(&b, file_of(small, small_len)), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? ".eh_frame" : ".eh_frame_hdr";

		CHECK_INT(elf_section(a, name, &with), 0);
		CHECK_INT(elf_section(b, name, &without), 0);
		CHECK_INT(without.vaddr, with.vaddr);
		CHECK_INT(without.bytes.len, with.bytes.len);
		CHECK(!memcmp(with.bytes.p, without.bytes.p, with.bytes.len));
	}
	elf_close(a);
	elf_close(b);
}
