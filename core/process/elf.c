// SPDX-License-Identifier: Apache-2.0
/* Reads the header, program headers, section headers and notes of an ELF file. Each number of the
 * file is checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/pread.h"
#include "process/internal/elf_internal.h"

int elf_pread(const struct elf *e, void *buf, uint64_t len, uint64_t off)
{
	uint64_t end;
	int r;

	if (__builtin_add_overflow(off, len, &end) || end > e->size)
		return -EBADMSG;
	r = pread_all(e->fd, buf, len, off);
	return r && r != -EBADMSG ? -EIO : r;
}

static int read_header(struct elf *e)
{
	Elf64_Ehdr *h = &e->header;
	struct stat st;
	int err;

	if (fstat(e->fd, &st))
		return -errno;
	/* A read of a FIFO or device can block, or consume data. */
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(*h))
		return -ENOEXEC;
	e->size = (uint64_t)st.st_size;
	err = elf_pread(e, h, sizeof(*h), 0);
	if (err)
		return err;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_ident[EI_VERSION] != EV_CURRENT)
		return -ENOEXEC;
	if ((h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr)) ||
	    (h->e_shoff && h->e_shentsize != sizeof(Elf64_Shdr)))
		return -EBADMSG;
	return 0;
}

/* An array of n headers at off. */
static int read_array(struct elf *e, void **ret, uint64_t n, uint64_t each, uint64_t off)
{
	void *p;
	int err;

	if (off > e->size || n > (e->size - off) / each)
		return -EBADMSG;
	p = malloc(n * each);
	if (!p)
		return -ENOMEM;
	err = elf_pread(e, p, n * each, off);
	if (err)
		free(p);
	else
		*ret = p;
	return err;
}

/* Section 0 has the counts that do not fit into the header. */
static int read_section_headers(struct elf *e, uint32_t *names, uint64_t *nsegments)
{
	uint64_t n = e->header.e_shnum;
	Elf64_Shdr zero;
	int err;

	*names = e->header.e_shstrndx;
	*nsegments = e->header.e_phnum;
	if (!e->header.e_shoff)
		return *nsegments == PN_XNUM ? -EBADMSG : 0;
	err = elf_pread(e, &zero, sizeof(zero), e->header.e_shoff);
	if (err)
		return err;
	if (!n)
		n = zero.sh_size;
	if (*names == SHN_XINDEX)
		*names = zero.sh_link;
	if (*nsegments == PN_XNUM)
		*nsegments = zero.sh_info;
	if (!n)
		return 0;
	if (n > ELF_MAX_SECTIONS)
		return -EBADMSG;
	err = read_array(e, (void **)&e->sections, n, sizeof(Elf64_Shdr), e->header.e_shoff);
	if (!err)
		e->nsections = (uint32_t)n;
	return err;
}

static int read_section_names(struct elf *e, uint32_t i)
{
	const Elf64_Shdr *s;

	if (!e->nsections || i == SHN_UNDEF)
		return 0;
	if (i >= e->nsections)
		return -EBADMSG;
	s = &e->sections[i];
	if (s->sh_type == SHT_NOBITS || !s->sh_size)
		return 0;
	if (s->sh_size > ELF_MAX_NAMES || s->sh_offset > e->size ||
	    s->sh_size > e->size - s->sh_offset)
		return -EBADMSG;
	e->names = malloc(s->sh_size + 1);
	if (!e->names)
		return -ENOMEM;
	e->names[s->sh_size] = 0;
	e->names_len = s->sh_size + 1;
	return elf_pread(e, e->names, s->sh_size, s->sh_offset);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct fusee_segment *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int read_segments(struct elf *e, uint64_t n)
{
	uint64_t end;
	int err;

	if (!n)
		return 0;
	if (n > ELF_MAX_SEGMENTS)
		return -EBADMSG;
	err = read_array(e, (void **)&e->segments, n, sizeof(Elf64_Phdr), e->header.e_phoff);
	if (err)
		return err;
	e->nsegments = (uint32_t)n;
	e->loads = calloc(n, sizeof(*e->loads));
	if (!e->loads)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->nsegments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type != PT_LOAD)
			continue;
		/* Segments may end beyond the file: debug files keep the original's program
		 * headers. */
		if (p->p_filesz > p->p_memsz ||
		    __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) ||
		    __builtin_add_overflow(p->p_offset, p->p_filesz, &end))
			return -EBADMSG;
		e->loads[e->nloads++] = (struct fusee_segment){
			.offset = p->p_offset,
			.vaddr = p->p_vaddr,
			.filesz = p->p_filesz,
			.memsz = p->p_memsz,
			.flags = p->p_flags,
		};
	}
	qsort(e->loads, e->nloads, sizeof(*e->loads), by_vaddr);
	return 0;
}

int elf_open(struct elf **ret, int fd)
{
	struct elf *e = calloc(1, sizeof(*e));
	uint64_t nsegments = 0;
	uint32_t names = 0;
	int err;

	if (!e)
		return -ENOMEM;
	e->fd = fd;
	err = read_header(e);
	if (!err)
		err = read_section_headers(e, &names, &nsegments);
	if (!err)
		err = read_section_names(e, names);
	if (!err)
		err = read_segments(e, nsegments);
	if (err)
		elf_close(e);
	else
		*ret = e;
	return err;
}

void elf_close(struct elf *e)
{
	if (!e)
		return;
	while (e->read) {
		struct elf_bytes *next = e->read->next;

		free(e->read);
		e->read = next;
	}
	free(e->segments);
	free(e->sections);
	free(e->names);
	free(e->loads);
	free(e->filters[0].bits);
	free(e->filters[1].bits);
	free(e);
}

static int read_note(struct elf *e, uint64_t off, uint64_t len, uint64_t align)
{
	const char *id;
	char *p;
	int err;

	if (len > ELF_MAX_NOTE)
		return -EBADMSG;
	p = malloc(len ? len : 1);
	if (!p)
		return -ENOMEM;
	err = elf_pread(e, p, len, off);
	if (!err) {
		e->build_id_len = elf_note_build_id(p, len, align == 8 ? 8 : 4, &id);
		err = e->build_id_len ? 0 : -ENOENT;
	}
	if (!err)
		memcpy(e->build_id, id, e->build_id_len);
	free(p);
	return err;
}

/* Searches sections first, as program headers of debug files point to no contents. Malformed notes
 * are ignored: the file then has no build ID. */
static int read_build_id(struct elf *e)
{
	int err = -ENOENT;
	uint32_t rest = 64; /* notes to read at most */

	if (e->notes_read)
		return 0;
	for (uint32_t i = 0; i < e->nsections && err && err != -ENOMEM && rest; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if (s->sh_type == SHT_NOTE && rest--)
			err = read_note(e, s->sh_offset, s->sh_size, s->sh_addralign);
	}
	for (uint32_t i = 0; i < e->nsegments && err && err != -ENOMEM && rest; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_NOTE && rest--)
			err = read_note(e, p->p_offset, p->p_filesz, p->p_align);
	}
	if (err == -ENOMEM)
		return err;
	e->notes_read = true;
	return 0;
}

int elf_info(struct elf *e, struct fusee_file_info *info)
{
	int err = read_build_id(e);

	if (err)
		return err;
	*info = (struct fusee_file_info){
		.size = sizeof(*info),
		.machine = e->header.e_machine,
		.type = e->header.e_type,
		.entry = e->header.e_entry,
		.build_id = {e->build_id_len ? e->build_id : NULL, e->build_id_len},
		.segments = {e->loads, e->nloads, sizeof(struct fusee_segment)},
	};
	for (uint32_t i = 0; i < e->nsegments; i++)
		if (e->segments[i].p_type == PT_TLS) {
			info->tls_vaddr = e->segments[i].p_vaddr;
			info->tls_memsz = e->segments[i].p_memsz;
			info->tls_align = e->segments[i].p_align;
		}
	return 0;
}

int elf_read(struct elf *e, uint64_t vaddr, void *buf, uint32_t len)
{
	for (uint32_t i = 0; i < e->nloads; i++) {
		const struct fusee_segment *s = &e->loads[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		if (len > s->filesz - (vaddr - s->vaddr))
			return -ENOENT;
		return elf_pread(e, buf, len, s->offset + (vaddr - s->vaddr));
	}
	return -ENOENT;
}

void elf_headers(const struct elf *e, struct fusee_str headers[3])
{
	headers[0] = (struct fusee_str){(const char *)&e->header, sizeof(e->header)};
	headers[1] = (struct fusee_str){(const char *)e->segments,
					e->nsegments * sizeof(*e->segments)};
	headers[2] = (struct fusee_str){(const char *)e->sections,
					e->nsections * sizeof(*e->sections)};
}

int elf_fd(const struct elf *e)
{
	return e->fd;
}

uint64_t elf_size(const struct elf *e)
{
	return e->size;
}
