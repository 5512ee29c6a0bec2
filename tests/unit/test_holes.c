// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/process core/base
/* Files that claim bytes which no disk holds: what counts as such, and that no memory is taken for
 * a section of one. */
#include "base/holes.h"

#include <elf.h>
#include <sys/resource.h>

#include "process/elf.h"
#include "test.h"

#define MIB (1u << 20)

static void fill(int fd, uint64_t offset, uint64_t len)
{
	static char bytes[65536];

	memset(bytes, 1, sizeof(bytes));
	for (uint64_t at = 0; at < len; at += sizeof(bytes))
		CHECK(pwrite(fd, bytes, sizeof(bytes), (off_t)(offset + at)) == sizeof(bytes));
}

TEST(parts_of_files)
{
	int fd = memfd_create("holes", MFD_CLOEXEC), p[2];

	CHECK(fd >= 0 && !ftruncate(fd, 900ll * MIB) && !pipe2(p, O_CLOEXEC));
	CHECK(holes_prevail(fd, 0, 900ull * MIB));
	CHECK(holes_prevail(fd, 12345, 2 * MIB));
	CHECK(!holes_prevail(fd, 0, MIB - 1)); /* small enough to read */
	fill(fd, 4 * MIB, 3 * MIB);
	CHECK(!holes_prevail(fd, 4 * MIB, 3 * MIB));
	CHECK(!holes_prevail(fd, 2 * MIB, 4 * MIB));
	CHECK(!holes_prevail(fd, 3 * MIB, 6 * MIB)); /* half of it */
	CHECK(holes_prevail(fd, 3 * MIB, 7 * MIB));
	CHECK(!holes_prevail(p[0], 0, 2 * MIB));
	CHECK(!holes_prevail(-1, 0, 2 * MIB));
	/* Data and holes by turns, for ever. */
	CHECK(!ftruncate(fd, 0) && !ftruncate(fd, 900ll * MIB));
	for (uint64_t i = 0; i < 2000; i++)
		CHECK(pwrite(fd, "x", 1, (off_t)(i * 8192)) == 1);
	CHECK(!holes_prevail(fd, 0, 16 * MIB));
	close(fd);
	close(p[0]);
	close(p[1]);
}

/* An ELF file whose .eh_frame is 900 MiB of holes. */
static int sparse_elf(void)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	const uint64_t size = 900ull * MIB, names_at = 8192 + size;
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_shoff = names_at + 64,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 3,
			.e_shstrndx = 2};
	Elf64_Shdr s[3] = {{0},
			   {.sh_name = 1,
			    .sh_type = SHT_PROGBITS,
			    .sh_flags = SHF_ALLOC,
			    .sh_addr = 8192,
			    .sh_offset = 8192,
			    .sh_size = size},
			   {.sh_name = 11,
			    .sh_type = SHT_STRTAB,
			    .sh_offset = names_at,
			    .sh_size = sizeof(names)}};
	int fd = memfd_create("sparse", MFD_CLOEXEC);

	CHECK(fd >= 0 && pwrite(fd, &h, sizeof(h), 0) == sizeof(h));
	CHECK(pwrite(fd, names, sizeof(names), (off_t)names_at) == sizeof(names));
	CHECK(pwrite(fd, s, sizeof(s), (off_t)names_at + 64) == sizeof(s));
	return fd;
}

TEST(a_section_without_bytes)
{
	struct rusage before, after;
	struct fusee_section s;
	int fd = sparse_elf();
	struct elf *e;

	CHECK_INT(elf_open(&e, fd), 0);
	CHECK(elf_has_section(e, ".eh_frame"));
	CHECK(!getrusage(RUSAGE_SELF, &before));
	s.size = sizeof(s);
	CHECK_INT(elf_section(e, ".eh_frame", &s), -EBADMSG);
	CHECK(!getrusage(RUSAGE_SELF, &after));
	CHECK(after.ru_maxrss - before.ru_maxrss < 10 << 10); /* KiB */
	elf_close(e);
	close(fd);
}
