/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder [--wrong] FILE...: does the dwarf unwinder's decoder read each instruction of these ELF
 * files as Zydis does? Functions, by symbols and by call frame information, are read from their
 * first byte to their last. What is no program or library for x86-64 is passed over. One line for
 * each instruction that differs, 40 at most; the last line is the sum. Exit 1 if any differs.
 *
 * --wrong: the decoder's answer is made wrong at one instruction of 100,000.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "insn_oracle.h"

#define SHOWN 40
#define WRONG_ONE_OF 100000

static const char *const verdict_name[ORACLE_VERDICTS] = {
	[ORACLE_LENGTH] = "another length",
	[ORACLE_EFFECT] = "another effect",
	[ORACLE_TARGET] = "another target",
	[ORACLE_REFUSED] = "not known to our decoder",
	[ORACLE_ACCEPTED] = "not known to the oracle",
};

struct range {
	uint64_t lo, hi;
};

struct ranges {
	struct range *p;
	size_t n, cap;
};

struct run {
	ZydisDecoder oracle;
	int wrong;
	uint64_t files, functions, insns, no_insns, verdicts[ORACLE_VERDICTS];
	unsigned int shown;
	const char *path;
};

static int add(struct ranges *r, uint64_t lo, uint64_t hi)
{
	if (hi <= lo)
		return 0;
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 1024;
		struct range *p = reallocarray(r->p, cap, sizeof(*p));

		if (!p)
			return -1;
		r->p = p;
		r->cap = cap;
	}
	r->p[r->n++] = (struct range){lo, hi};
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->hi > y->hi) - (x->hi < y->hi);
}

/* ---- where functions are ---- */

static void by_symbols(Elf_Scn *scn, const GElf_Shdr *shdr, struct ranges *r)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	for (size_t i = 0; data && shdr->sh_entsize && i < shdr->sh_size / shdr->sh_entsize; i++) {
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		if (GELF_ST_TYPE(sym.st_info) == STT_FUNC ||
		    GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC)
			add(r, sym.st_value, sym.st_value + sym.st_size);
	}
}

static void by_cfi(Elf_Scn *scn, const GElf_Shdr *shdr, const unsigned char *ident,
		   struct ranges *r)
{
	Elf_Data *data = shdr->sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL);
	Dwarf_Off off = 0, next_off;
	Dwarf_CFI_Entry e;

	while (data && data->d_buf && !dwarf_next_cfi(ident, data, true, off, &next_off, &e)) {
		const uint8_t *p = e.fde.start;
		int32_t lo, len;

		/* what all compilers write: pc-relative, 4 bytes; symbols say the others */
		if (!dwarf_cfi_cie_p(&e) && e.fde.end - p >= 8) {
			memcpy(&lo, p, 4);
			memcpy(&len, p + 4, 4);
			lo += (int32_t)(p - (const uint8_t *)data->d_buf);
			add(r, shdr->sh_addr + (uint64_t)(int64_t)lo,
			    shdr->sh_addr + (uint64_t)(int64_t)lo + (uint32_t)len);
		}
		off = next_off;
	}
}

/* ---- reading ---- */

static void show(struct run *run, uint64_t at, const uint8_t *p, size_t n, const struct insn *ours,
		 const struct insn *theirs, enum oracle_verdict v)
{
	run->verdicts[v]++;
	if (run->shown++ >= SHOWN)
		return;
	printf("# %s: %#lx:", run->path, (unsigned long)at);
	for (size_t i = 0; i < n && i < 15 && (i < theirs->len || i < ours->len || !theirs->len);
	     i++)
		printf(" %02x", p[i]);
	printf(": %s: length %d effect %d value %d target %ld address %ld nop %d", verdict_name[v],
	       ours->len, ours->effect, ours->value, (long)ours->target, (long)ours->address,
	       ours->nop);
	printf(" | oracle: %d %d %d %ld %ld %d\n", theirs->len, theirs->effect, theirs->value,
	       (long)theirs->target, (long)theirs->address, theirs->nop);
}

/* One function; returns the address behind the last instruction that was read. */
static uint64_t read_function(struct run *run, const uint8_t *code, uint64_t vaddr, uint64_t lo,
			      uint64_t hi)
{
	struct oracle_insn o;

	run->functions++;
	while (lo < hi) {
		const uint8_t *p = code + (lo - vaddr);
		size_t n = hi - lo;
		struct insn ours, theirs;
		int err = fusee_insn_decode(p, n, &ours);
		int oracle_err = oracle_decode(&run->oracle, p, n, &o, &theirs);
		enum oracle_verdict v;

		if (run->wrong && run->insns % WRONG_ONE_OF == WRONG_ONE_OF - 1)
			ours.len++;
		v = oracle_compare(&ours, err, &theirs, oracle_err);
		run->insns++;
		if (v != ORACLE_AGREES)
			show(run, lo, p, n, &ours, &theirs, v);
		if (err && oracle_err) { /* data: what follows is not known */
			run->no_insns++;
			return hi;
		}
		lo += oracle_err ? ours.len : theirs.len;
	}
	return lo;
}

static void read_section(struct run *run, Elf_Scn *scn, const GElf_Shdr *shdr,
			 const struct ranges *r)
{
	uint64_t end = shdr->sh_addr + shdr->sh_size, done = shdr->sh_addr;
	Elf_Data *data = shdr->sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL);

	if (!data || !data->d_buf || data->d_size < shdr->sh_size)
		return;
	for (size_t i = 0; i < r->n; i++) {
		uint64_t lo = r->p[i].lo, hi = r->p[i].hi;

		if (lo < done || lo >= end)
			continue;
		/* up to where the next function begins */
		for (size_t k = i + 1; k < r->n && r->p[k].lo < hi; k++)
			if (r->p[k].lo > lo)
				hi = r->p[k].lo;
		done = read_function(run, data->d_buf, shdr->sh_addr, lo, hi < end ? hi : end);
	}
}

static void read_elf(struct run *run, Elf *elf)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	struct ranges r = {0};
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM)
			by_symbols(scn, &shdr, &r);
		else if (name && !strcmp(name, ".eh_frame"))
			by_cfi(scn, &shdr, ident, &r);
	}
	if (r.n)
		qsort(r.p, r.n, sizeof(*r.p), by_address);
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR)
			read_section(run, scn, &shdr, &r);
	free(r.p);
}

static void read_file(struct run *run, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	GElf_Ehdr ehdr;

	run->path = path;
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	    ehdr.e_machine == EM_X86_64 && ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
	    (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN)) {
		run->files++;
		read_elf(run, elf);
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct run run = {0};
	uint64_t different = 0;

	elf_version(EV_CURRENT);
	ZydisDecoderInit(&run.oracle, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--wrong"))
			run.wrong = 1;
		else
			read_file(&run, argv[i]);
	for (int i = 0; i < ORACLE_VERDICTS; i++) {
		if (i != ORACLE_AGREES && run.verdicts[i])
			printf("# %lu: %s\n", (unsigned long)run.verdicts[i], verdict_name[i]);
		different += run.verdicts[i];
	}
	printf("# %lu files, %lu functions, %lu instructions, %lu functions end at bytes that are "
	       "no instruction: %lu differences\n",
	       (unsigned long)run.files, (unsigned long)run.functions, (unsigned long)run.insns,
	       (unsigned long)run.no_insns, (unsigned long)different);
	return different != 0;
}
