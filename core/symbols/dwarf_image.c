// SPDX-License-Identifier: Apache-2.0
#include "symbols/internal/dwarf_image.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/internal/source.h"

#define MAX_IMAGE (4ull << 30)

/* The sections that lines and inlined calls need. */
static const char *const copied[] = {".debug_info",     ".debug_abbrev",   ".debug_line",
				     ".debug_str",      ".debug_line_str", ".debug_ranges",
				     ".debug_rnglists", ".debug_addr",     ".debug_str_offsets"};

#define NCOPIED (sizeof(copied) / sizeof(*copied))

/* Where each section is in the image. */
struct image_plan {
	const struct source_section *from[NCOPIED];
	uint64_t at[NCOPIED], names, headers, len;
	uint32_t n;
};

static int make_plan(struct image_plan *p, const struct source *src)
{
	*p = (struct image_plan){.len = sizeof(Elf64_Ehdr)};
	for (size_t i = 0; i < NCOPIED; i++) {
		const struct source_section *c = source_find(src, copied[i]);

		if (!c || !c->size)
			continue;
		p->from[p->n] = c;
		p->at[p->n++] = p->len;
		if (c->size > MAX_IMAGE || p->len + c->size > MAX_IMAGE)
			return -EFBIG;
		p->len = (p->len + c->size + 15) & ~15ull;
	}
	p->names = p->len;
	p->len += 1 + NCOPIED * sizeof(p->from[0]->name);
	p->headers = (p->len + 7) & ~7ull;
	p->len = p->headers + (p->n + 2) * sizeof(Elf64_Shdr);
	return source_find(src, ".debug_info") ? 0 : -ENOENT;
}

static void write_headers(const struct image_plan *p, char *image, uint16_t machine)
{
	Elf64_Ehdr *e = (void *)image;
	Elf64_Shdr *h = (void *)(image + p->headers);
	uint32_t name = 1;

	*e = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_shoff = p->headers,
		.e_ehsize = sizeof(*e),
		.e_shentsize = sizeof(*h),
		.e_shnum = (uint16_t)(p->n + 2),
		.e_shstrndx = (uint16_t)(p->n + 1),
	};
	for (uint32_t i = 0; i < p->n; i++) {
		strcpy(image + p->names + name, p->from[i]->name);
		h[i + 1] = (Elf64_Shdr){.sh_name = name,
					.sh_type = SHT_PROGBITS,
					.sh_offset = p->at[i],
					.sh_size = p->from[i]->size,
					.sh_addralign = 1};
		name += (uint32_t)strlen(p->from[i]->name) + 1;
	}
	h[p->n + 1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = p->names, .sh_size = name, .sh_addralign = 1};
}

int dwarf_image_make(struct dwarf_image *m, const struct source *src)
{
	struct image_plan p;
	int r = make_plan(&p, src);

	*m = (struct dwarf_image){0};
	if (r)
		return r;
	m->p = calloc(1, p.len);
	if (!m->p)
		return -ENOMEM;
	m->len = p.len;
	for (uint32_t i = 0; i < p.n && !r; i++)
		r = source_read(src, p.from[i], m->p + p.at[i]);
	if (r)
		goto out;
	write_headers(&p, m->p, source_machine(src));
	elf_version(EV_CURRENT);
	m->elf = elf_memory(m->p, m->len);
	if (!m->elf)
		r = -EBADMSG;
out:
	if (r)
		dwarf_image_fini(m);
	return r;
}

void dwarf_image_fini(struct dwarf_image *m)
{
	elf_end(m->elf);
	free(m->p);
	*m = (struct dwarf_image){0};
}
