// SPDX-License-Identifier: Apache-2.0
#include "symbols/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Pointer encodings of the LSB's .eh_frame. */
#define PE_ABSPTR 0x00
#define PE_UDATA2 0x02
#define PE_UDATA4 0x03
#define PE_UDATA8 0x04
#define PE_SDATA2 0x0a
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_PCREL 0x10

struct cursor {
	const unsigned char *p;
	uint64_t at, end;
	bool bad;
};

static uint64_t fixed(struct cursor *c, unsigned int n)
{
	uint64_t v = 0;

	if (c->bad || n > c->end - c->at) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p + c->at, n);
	c->at += n;
	return v;
}

/* Signed values are read over only, so their sign is ignored. */
static uint64_t leb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint64_t b = fixed(c, 1);

		if (shift < 64)
			v |= (b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static uint64_t pointer(struct cursor *c, unsigned int encoding, uint64_t here)
{
	uint64_t v;

	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		v = fixed(c, 8);
		break;
	case PE_UDATA4:
		v = fixed(c, 4);
		break;
	case PE_SDATA4:
		v = (uint64_t)(int32_t)fixed(c, 4);
		break;
	case PE_UDATA2:
		v = fixed(c, 2);
		break;
	case PE_SDATA2:
		v = (uint64_t)(int16_t)fixed(c, 2);
		break;
	default:
		c->bad = true;
		return 0;
	}
	if (encoding & 0xf0 & ~PE_PCREL)
		c->bad = true; /* text-, data- or function-relative, indirect: compilers write none
				*/
	return encoding & PE_PCREL ? v + here : v;
}

/* The next entry, from its id on. false: the end. wide: 64-bit DWARF. */
static bool next_entry(struct cursor *all, struct cursor *entry, bool *wide)
{
	uint64_t len;

	if (all->end - all->at < 4)
		return false;
	len = fixed(all, 4);
	*wide = len == UINT32_MAX;
	if (*wide)
		len = fixed(all, 8);
	if (!len) /* the terminator */
		return false;
	if (all->bad || len > all->end - all->at) {
		all->bad = true;
		return false;
	}
	*entry = (struct cursor){all->p, all->at, all->at + len, false};
	all->at += len;
	return true;
}

/* The encoding of addresses in a CIE's FDEs. c: after the CIE's id. */
static int cie_encoding(struct cursor *c, unsigned int *encoding, bool *signal_frame)
{
	unsigned int version = (unsigned int)fixed(c, 1);
	const char *augmentation = (const char *)c->p + c->at;
	const char *end = c->bad ? NULL : memchr(augmentation, 0, c->end - c->at);

	if (!end)
		return -EBADMSG;
	c->at += (uint64_t)(end - augmentation) + 1;
	*encoding = PE_ABSPTR;
	*signal_frame = strchr(augmentation, 'S');
	if (version >= 4)
		fixed(c, 2); /* sizes of addresses and segments */
	leb(c);
	leb(c);
	if (version == 1)
		fixed(c, 1);
	else
		leb(c);
	if (*augmentation == 'z')
		leb(c);
	for (const char *a = augmentation + (*augmentation == 'z'); *a && !c->bad; a++) {
		if (*a == 'R')
			*encoding = (unsigned int)fixed(c, 1);
		else if (*a == 'L')
			fixed(c, 1);
		else if (*a == 'P')
			pointer(c, (unsigned int)fixed(c, 1) & 0x0f, 0);
		else if (*a != 'S' && *a != 'B')
			return -EBADMSG;
	}
	return c->bad ? -EBADMSG : 0;
}

/* Reads the CIE at this position, unless it was the last that was read. */
static bool load_cie(struct frames_pass *p, const struct cursor *all, uint64_t at)
{
	struct cursor from = {all->p, at, all->end, false}, cie;
	bool wide;

	if (p->is_cie && p->cie == at)
		return true;
	p->cie = at;
	p->is_cie = next_entry(&from, &cie, &wide) && !fixed(&cie, wide ? 8 : 4) &&
		    !cie_encoding(&cie, &p->encoding, &p->signal_frame);
	return p->is_cie;
}

int frames_next(struct frames_pass *p, struct frames_fde *ret)
{
	struct cursor all = {(const unsigned char *)p->section.p, p->next, p->section.len, false},
		      e;
	bool wide;

	for (;;) {
		uint64_t at = all.at, id_at, id;

		if (!next_entry(&all, &e, &wide))
			return all.bad ? -EBADMSG : 0;
		id_at = e.at;
		id = fixed(&e, wide ? 8 : 4);
		if (e.bad || !id || id > id_at || !load_cie(p, &all, id_at - id))
			continue; /* a CIE, or it cannot be read */
		*ret = (struct frames_fde){.at = at, .is_signal_frame = p->signal_frame};
		ret->start = pointer(&e, p->encoding, p->vaddr + e.at);
		ret->len = pointer(&e, p->encoding & 0x07, 0);
		p->next = all.at;
		if (!e.bad)
			return 1;
	}
}

int frames_find(struct fusee_str section, uint64_t vaddr, uint64_t pc, struct frames_fde *ret)
{
	struct frames_pass p = {.section = section, .vaddr = vaddr};
	int r;

	while ((r = frames_next(&p, ret)) > 0)
		if (pc >= ret->start && pc - ret->start < ret->len)
			return 0;
	return r ? r : -ENOENT;
}

int frames_from_debug(char *bytes, uint64_t len)
{
	struct cursor all = {(const unsigned char *)bytes, 0, len, false}, e;
	bool wide;

	while (next_entry(&all, &e, &wide)) {
		uint64_t id_at = e.at, id = fixed(&e, wide ? 8 : 4);

		if (e.bad)
			return -EBADMSG;
		if (id == (wide ? UINT64_MAX : UINT32_MAX))
			id = 0;
		else if (id < id_at)
			id = id_at - id;
		else
			return -EBADMSG;
		memcpy(bytes + id_at, &id, wide ? 8 : 4);
	}
	return all.bad ? -EBADMSG : 0;
}
