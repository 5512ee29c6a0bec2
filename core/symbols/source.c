// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/source.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/holes.h"
#include "base/pread.h"
#include "process/elf_note.h"

#define MAX_SECTIONS 65536
#define PIECE 65536
#define MAX_RATIO 1040 /* deflate reaches 1032; debug information about 5 */

struct source {
	Elf *elf;
	int fd; /* -1: in memory */
	const uint8_t *memory;
	uint64_t len; /* of the file */
	GElf_Ehdr header;
	struct source_section *sections;
	size_t n;
	GElf_Phdr *code; /* executable PT_LOADs */
	size_t ncode;
};

/* Reads len bytes at offset. -EIO: not all could be read, as the file may have shrunk. */
static int read_raw(const struct source *s, uint64_t offset, void *buf, size_t len)
{
	if (s->fd >= 0)
		return pread_all(s->fd, buf, len, offset) ? -EIO : 0;
	if (offset > s->len || len > s->len - offset)
		return -EIO;
	memcpy(buf, s->memory + offset, len);
	return 0;
}

/* Sets the compression and the uncompressed size. */
static void read_packing(const struct source *s, struct source_section *c, const char *name)
{
	Elf64_Chdr header;
	uint8_t old[12];

	c->packing = SOURCE_PLAIN;
	c->size = c->stored;
	if (c->flags & SHF_COMPRESSED) {
		c->packing = SOURCE_UNKNOWN;
		if (c->stored < sizeof(header) || read_raw(s, c->offset, &header, sizeof(header)))
			return;
		c->size = header.ch_size;
		c->offset += sizeof(header);
		c->stored -= sizeof(header);
		if (header.ch_type == ELFCOMPRESS_ZLIB)
			c->packing = SOURCE_ZLIB;
		else if (header.ch_type == 2 /* ELFCOMPRESS_ZSTD */)
			c->packing = SOURCE_ZSTD;
	} else if (!strncmp(name, ".zdebug_", 8)) {
		c->packing = SOURCE_UNKNOWN;
		if (c->stored < 12 || read_raw(s, c->offset, old, 12) || memcmp(old, "ZLIB", 4))
			return;
		c->size = 0;
		for (int i = 4; i < 12; i++)
			c->size = c->size << 8 | old[i];
		c->offset += 12;
		c->stored -= 12;
		c->packing = SOURCE_ZLIB;
	}
	/* a size that no compression reaches would only cost memory */
	if (c->packing != SOURCE_PLAIN && c->size / MAX_RATIO > c->stored) {
		c->packing = SOURCE_UNKNOWN;
		c->size = c->stored;
	}
}

static int add_section(struct source *s, size_t names, Elf_Scn *scn)
{
	struct source_section *c = &s->sections[s->n];
	GElf_Shdr header;
	const char *name;

	if (!gelf_getshdr(scn, &header))
		return -EBADMSG;
	name = elf_strptr(s->elf, names, header.sh_name);
	if (!name || strlen(name) >= sizeof(c->name))
		return 0;
	if (header.sh_type != SHT_NOBITS &&
	    (header.sh_offset > s->len || header.sh_size > s->len - header.sh_offset))
		return 0; /* beyond the end of a truncated file: as if missing */
	*c = (struct source_section){
		.vaddr = header.sh_addr,
		.flags = header.sh_flags,
		.offset = header.sh_offset,
		.stored = header.sh_type == SHT_NOBITS ? 0 : header.sh_size,
		.type = header.sh_type,
	};
	if (header.sh_type == SHT_NOBITS)
		c->size = header.sh_size;
	else
		read_packing(s, c, name);
	if (!strncmp(name, ".zdebug_", 8)) {
		c->name[0] = '.';
		strcpy(c->name + 1, name + 2);
	} else {
		strcpy(c->name, name);
	}
	s->n++;
	return 0;
}

static int read_sections(struct source *s)
{
	size_t n, names;
	Elf_Scn *scn = NULL;

	if (elf_getshdrnum(s->elf, &n) || elf_getshdrstrndx(s->elf, &names) || n > MAX_SECTIONS)
		return 0; /* a file without section headers is valid */
	s->sections = calloc(n + 1, sizeof(*s->sections));
	if (!s->sections)
		return -ENOMEM;
	for (size_t i = 0; i < n && (scn = elf_nextscn(s->elf, scn)); i++) {
		int r = add_section(s, names, scn);

		if (r)
			return r == -ENOMEM ? r : 0;
	}
	return 0;
}

static int read_segments(struct source *s)
{
	size_t n;

	if (elf_getphdrnum(s->elf, &n) || n > 4096)
		return 0;
	s->code = calloc(n + 1, sizeof(*s->code));
	if (!s->code)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr *p = &s->code[s->ncode];

		if (gelf_getphdr(s->elf, (int)i, p) && p->p_type == PT_LOAD && p->p_flags & PF_X)
			s->ncode++;
	}
	return 0;
}

/* Owns s, also on failure. */
static int finish_open(struct source **ret, struct source *s)
{
	int r = -ENOEXEC;

	if (!s->elf || elf_kind(s->elf) != ELF_K_ELF || !gelf_getehdr(s->elf, &s->header))
		goto out;
	if (s->header.e_ident[EI_CLASS] != ELFCLASS64 || s->header.e_ident[EI_DATA] != ELFDATA2LSB)
		goto out;
	r = read_segments(s);
	if (!r)
		r = read_sections(s);
out:
	if (r)
		source_close(s);
	else
		*ret = s;
	return r;
}

int source_open(struct source **ret, int fd)
{
	struct source *s = calloc(1, sizeof(*s));
	off_t end;

	if (!s)
		return -ENOMEM;
	end = lseek(fd, 0, SEEK_END);
	s->len = end < 0 ? 0 : (uint64_t)end;
	s->fd = fd;
	elf_version(EV_CURRENT);
	s->elf = elf_begin(fd, ELF_C_READ, NULL);
	return finish_open(ret, s);
}

int source_open_memory(struct source **ret, const void *image, size_t len)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->len = len;
	s->fd = -1;
	s->memory = image;
	elf_version(EV_CURRENT);
	s->elf = elf_memory((char *)(uintptr_t)image, len);
	return finish_open(ret, s);
}

void source_close(struct source *s)
{
	if (!s)
		return;
	elf_end(s->elf);
	free(s->sections);
	free(s->code);
	free(s);
}

uint16_t source_machine(const struct source *s)
{
	return s->header.e_machine;
}

bool source_is_code(const struct source *s, uint64_t vaddr)
{
	for (size_t i = 0; i < s->ncode; i++)
		if (vaddr >= s->code[i].p_vaddr && vaddr - s->code[i].p_vaddr < s->code[i].p_memsz)
			return true;
	return false;
}

const struct source_section *source_section(const struct source *s, size_t i)
{
	return i < s->n ? &s->sections[i] : NULL;
}

const struct source_section *source_find(const struct source *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->sections[i].type != SHT_NOBITS && !strcmp(s->sections[i].name, name))
			return &s->sections[i];
	return NULL;
}

static int read_zlib(const struct source *s, const struct source_section *c, uint8_t *to)
{
	z_stream z = {.next_out = to};
	uint64_t in = 0, rest = c->size;
	uint8_t *piece = malloc(PIECE);
	int r = -ENOMEM, state = Z_OK;

	if (!piece)
		return r;
	if (inflateInit(&z) != Z_OK)
		goto out;
	while (state == Z_OK && (rest || z.avail_out)) {
		if (!z.avail_out) {
			z.avail_out = rest > UINT32_MAX ? UINT32_MAX : (uInt)rest;
			rest -= z.avail_out;
		}
		if (!z.avail_in) {
			size_t n = c->stored - in < PIECE ? (size_t)(c->stored - in) : PIECE;

			r = n ? read_raw(s, c->offset + in, piece, n) : -EBADMSG;
			if (r)
				goto out;
			in += n;
			z.next_in = piece;
			z.avail_in = (uInt)n;
		}
		state = inflate(&z, Z_NO_FLUSH);
	}
	r = (state == Z_OK || state == Z_STREAM_END) && !rest && !z.avail_out ? 0 : -EBADMSG;
out:
	inflateEnd(&z);
	free(piece);
	return r;
}

static int read_zstd(const struct source *s, const struct source_section *c, uint8_t *to)
{
	uint8_t *packed = malloc(c->stored ? c->stored : 1);
	size_t n;
	int r = -ENOMEM;

	if (!packed)
		return r;
	r = read_raw(s, c->offset, packed, c->stored);
	if (r)
		goto out;
	n = ZSTD_decompress(to, c->size, packed, c->stored);
	r = ZSTD_isError(n) || n != c->size ? -EBADMSG : 0;
out:
	free(packed);
	return r;
}

int source_read(const struct source *s, const struct source_section *c, void *buf)
{
	if (c->type == SHT_NOBITS)
		return -ENOENT;
	switch (c->packing) {
	case SOURCE_PLAIN:
		return read_raw(s, c->offset, buf, c->size);
	case SOURCE_ZLIB:
		return c->size ? read_zlib(s, c, buf) : 0;
	case SOURCE_ZSTD:
		return read_zstd(s, c, buf);
	}
	return -ENOTSUP;
}

int source_load(const struct source *s, const char *name, uint64_t max, char **ret, size_t *len)
{
	const struct source_section *c = source_find(s, name);
	char *p;
	int r;

	if (!c)
		return -ENOENT;
	if (c->size > max)
		return -EFBIG;
	if (s->fd >= 0 && holes_prevail(s->fd, c->offset, c->stored))
		return -EBADMSG;
	p = malloc(c->size + 1);
	if (!p)
		return -ENOMEM;
	r = source_read(s, c, p);
	if (r) {
		free(p);
		return r;
	}
	p[c->size] = 0;
	*ret = p;
	*len = c->size;
	return 0;
}

int source_read_at(const struct source *s, uint64_t vaddr, void *buf, size_t len)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct source_section *c = &s->sections[i];
		uint64_t at = vaddr - c->vaddr;

		if (!(c->flags & SHF_ALLOC) || c->type == SHT_NOBITS || c->packing != SOURCE_PLAIN)
			continue;
		if (vaddr >= c->vaddr && at <= c->size && len <= c->size - at)
			return read_raw(s, c->offset + at, buf, len);
	}
	return -ENOENT;
}

size_t source_build_id(const struct source *s, uint8_t id[64])
{
	for (size_t i = 0; i < s->n; i++) {
		const struct source_section *c = &s->sections[i];
		const char *found;
		char note[4096];
		uint32_t n;

		if (c->type != SHT_NOTE || c->packing != SOURCE_PLAIN || c->size > sizeof(note))
			continue;
		if (source_read(s, c, note))
			continue;
		n = elf_note_build_id(note, c->size, 4, &found);
		if (!n)
			continue;
		memcpy(id, found, n);
		return n;
	}
	return 0;
}

int source_crc(const struct source *s, uint32_t *crc)
{
	uint8_t *piece = malloc(PIECE);
	uLong sum = crc32(0, NULL, 0);
	int r = 0;

	if (!piece)
		return -ENOMEM;
	for (uint64_t at = 0; at < s->len && !r;) {
		size_t n = s->len - at < PIECE ? (size_t)(s->len - at) : PIECE;

		r = read_raw(s, at, piece, n);
		if (!r)
			sum = crc32(sum, piece, (uInt)n);
		at += n;
	}
	free(piece);
	*crc = (uint32_t)sum;
	return r;
}
