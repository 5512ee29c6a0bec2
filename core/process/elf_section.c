// SPDX-License-Identifier: Apache-2.0
/* Reads the contents of sections once, uncompresses them and keeps them until elf_close(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/holes.h"
#include "process/internal/elf_internal.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif
#define NO_SECTION UINT32_MAX
#define ZDEBUG_HEADER 12 /* "ZLIB" and the size, 8 bytes, big endian */

/* "" if its position is invalid. */
static const char *name_of(const struct elf *e, const Elf64_Shdr *s)
{
	return s->sh_name < e->names_len ? e->names + s->sh_name : "";
}

uint32_t elf_section_find(const struct elf *e, const char *name, uint32_t type)
{
	for (uint32_t i = 1; i < e->nsections; i++)
		if (name ? !strcmp(name_of(e, &e->sections[i]), name)
			 : e->sections[i].sh_type == type)
			return i;
	return NO_SECTION;
}

static struct elf_bytes *bytes_new(uint32_t section, uint64_t len)
{
	struct elf_bytes *b = len > ELF_MAX_SECTION ? NULL : malloc(sizeof(*b) + len + 1);

	if (!b)
		return NULL;
	b->next = NULL;
	b->section = section;
	b->len = len;
	b->bytes[len] = 0; /* ends a text at the end of the section */
	return b;
}

static int inflate_zlib(char *to, uint64_t to_len, const char *from, uint64_t len)
{
	z_stream z = {0};
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)from;
	z.avail_in = (uInt)len; /* both are at most ELF_MAX_SECTION */
	z.next_out = (Bytef *)to;
	z.avail_out = (uInt)to_len;
	r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_STREAM_END && !z.avail_out ? 0 : -EBADMSG;
}

static int inflate_zstd(char *to, uint64_t to_len, const char *from, uint64_t len)
{
	size_t n = ZSTD_decompress(to, to_len, from, len);

	return ZSTD_isError(n) || n != to_len ? -EBADMSG : 0;
}

/* Replaces *raw by its uncompressed contents; on failure by NULL. */
static int expand(struct elf_bytes **raw, bool zdebug)
{
	struct elf_bytes *from = *raw, *to = NULL;
	uint64_t head = zdebug ? ZDEBUG_HEADER : sizeof(Elf64_Chdr), len = 0;
	Elf64_Chdr c = {.ch_type = ELFCOMPRESS_ZLIB};
	int err = -EBADMSG;

	if (from->len < head)
		goto out;
	if (zdebug) {
		for (int i = 4; i < ZDEBUG_HEADER; i++)
			len = len << 8 | (unsigned char)from->bytes[i];
	} else {
		memcpy(&c, from->bytes, sizeof(c));
		len = c.ch_size;
	}
	/* zlib reaches 1032 : 1 at most; zstd more, but not for sections of real files. */
	if (len > ELF_MAX_SECTION || len / 4096 > from->len)
		goto out;
	err = -ENOMEM;
	to = bytes_new(from->section, len);
	if (!to)
		goto out;
	if (c.ch_type == ELFCOMPRESS_ZLIB)
		err = inflate_zlib(to->bytes, len, from->bytes + head, from->len - head);
	else if (c.ch_type == ELFCOMPRESS_ZSTD)
		err = inflate_zstd(to->bytes, len, from->bytes + head, from->len - head);
	else
		err = -EBADMSG;
out:
	free(from);
	if (err) {
		free(to);
		to = NULL;
	}
	*raw = to;
	return err;
}

static const struct elf_bytes *already_read(const struct elf *e, uint32_t i)
{
	for (const struct elf_bytes *b = e->read; b; b = b->next)
		if (b->section == i)
			return b;
	return NULL;
}

int elf_section_bytes(struct elf *e, uint32_t i, const struct elf_bytes **ret)
{
	const Elf64_Shdr *s = &e->sections[i];
	const char *name = name_of(e, s);
	struct elf_bytes *b;
	bool zdebug;
	int err;

	*ret = already_read(e, i);
	if (*ret)
		return 0;
	if (s->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (s->sh_size > ELF_MAX_SECTION || s->sh_offset > e->size ||
	    s->sh_size > e->size - s->sh_offset || holes_prevail(e->fd, s->sh_offset, s->sh_size))
		return -EBADMSG;
	b = bytes_new(i, s->sh_size);
	if (!b)
		return -ENOMEM;
	err = elf_pread(e, b->bytes, b->len, s->sh_offset);
	if (err) {
		free(b);
		return err;
	}
	zdebug = !strncmp(name, ".zdebug_", 8) && b->len >= 4 && !memcmp(b->bytes, "ZLIB", 4);
	if (zdebug || s->sh_flags & SHF_COMPRESSED)
		err = expand(&b, zdebug);
	if (err)
		return err;
	b->next = e->read;
	e->read = b;
	*ret = b;
	return 0;
}

/* The index of .zdebug_info for .debug_info. */
static uint32_t find_old_compressed(const struct elf *e, const char *name)
{
	char z[64] = ".z";

	if (strncmp(name, ".debug_", 7) || strlen(name) > sizeof(z) - 3)
		return NO_SECTION;
	strcpy(z + 2, name + 1);
	return elf_section_find(e, z, 0);
}

/* ---- files without section headers: unwind tables by program headers ---- */

static const Elf64_Phdr *find_segment(const struct elf *e, uint32_t type)
{
	for (uint32_t i = 0; i < e->nsegments; i++)
		if (e->segments[i].p_type == type)
			return &e->segments[i];
	return NULL;
}

/* The address of .eh_frame by .eh_frame_hdr, in its usual encoding only (pcrel, sdata4). */
static int eh_frame_address(struct elf *e, const Elf64_Phdr *hdr, uint64_t *vaddr)
{
	unsigned char head[8];
	int32_t rel;
	int err;

	if (hdr->p_filesz < sizeof(head))
		return -EBADMSG;
	err = elf_pread(e, head, sizeof(head), hdr->p_offset);
	if (err)
		return err;
	if (head[0] != 1 || head[1] != 0x1b)
		return -ENOENT;
	memcpy(&rel, head + 4, sizeof(rel));
	*vaddr = hdr->p_vaddr + 4 + (uint64_t)(int64_t)rel;
	return 0;
}

/* The length of .eh_frame, which ends with an entry of length 0 or with its segment. */
static uint64_t eh_frame_length(const char *p, uint64_t len)
{
	uint64_t at = 0;
	uint32_t n;

	while (len - at >= sizeof(n)) {
		memcpy(&n, p + at, sizeof(n));
		if (!n)
			return at + sizeof(n);
		if (n == UINT32_MAX || n > len - at - sizeof(n))
			break;
		at += sizeof(n) + n;
	}
	return at;
}

static int segment_as_section(struct elf *e, const char *name, struct fusee_section *ret)
{
	const Elf64_Phdr *hdr = find_segment(e, PT_GNU_EH_FRAME);
	bool frames = !strcmp(name, ".eh_frame");
	const struct fusee_segment *s = NULL;
	uint64_t vaddr, len;
	struct elf_bytes *b;
	int err;

	if (e->nsections || !hdr || (!frames && strcmp(name, ".eh_frame_hdr")))
		return -ENOENT;
	vaddr = hdr->p_vaddr;
	err = frames ? eh_frame_address(e, hdr, &vaddr) : 0;
	if (err)
		return err;
	for (uint32_t i = 0; i < e->nloads && !s; i++)
		if (vaddr >= e->loads[i].vaddr && vaddr - e->loads[i].vaddr < e->loads[i].filesz)
			s = &e->loads[i];
	if (!s)
		return -EBADMSG;
	len = s->filesz - (vaddr - s->vaddr);
	if (!frames && hdr->p_filesz < len)
		len = hdr->p_filesz;
	b = bytes_new(NO_SECTION, len);
	if (!b)
		return len > ELF_MAX_SECTION ? -EBADMSG : -ENOMEM;
	b->next = e->read;
	e->read = b;
	err = elf_pread(e, b->bytes, len, s->offset + (vaddr - s->vaddr));
	if (err)
		return err;
	*ret = (struct fusee_section){
		.size = sizeof(*ret),
		.type = SHT_PROGBITS,
		.flags = SHF_ALLOC,
		.vaddr = vaddr,
		.offset = s->offset + (vaddr - s->vaddr),
		.bytes = {b->bytes, frames ? eh_frame_length(b->bytes, len) : len},
	};
	return 0;
}

int elf_section(struct elf *e, const char *name, struct fusee_section *ret)
{
	uint32_t i = elf_section_find(e, name, 0);
	const struct elf_bytes *b;
	const Elf64_Shdr *s;
	int err;

	if (i == NO_SECTION)
		i = find_old_compressed(e, name);
	if (i == NO_SECTION)
		return segment_as_section(e, name, ret);
	s = &e->sections[i];
	*ret = (struct fusee_section){
		.size = sizeof(*ret),
		.type = s->sh_type,
		.flags = s->sh_flags & ~(uint64_t)SHF_COMPRESSED,
		.vaddr = s->sh_addr,
		.offset = s->sh_offset,
	};
	if (s->sh_type == SHT_NOBITS)
		return 0;
	err = elf_section_bytes(e, i, &b);
	if (!err)
		ret->bytes = (struct fusee_str){b->bytes, b->len};
	return err;
}

bool elf_has_section(const struct elf *e, const char *name)
{
	uint32_t i = elf_section_find(e, name, 0);

	if (i == NO_SECTION)
		i = find_old_compressed(e, name);
	return i != NO_SECTION && e->sections[i].sh_type != SHT_NOBITS && e->sections[i].sh_size;
}
