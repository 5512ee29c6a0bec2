/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <errno.h>
#include <fusee/bytes.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define MAX_CIES 65536
#define DATA_ALIGN_LIMIT 1024 /* compilers write -8 and -4 */

/* ---- encoded pointers ---- */

enum { PE_OMIT = 0xff, PE_ALIGNED = 0x50, PE_INDIRECT = 0x80, PE_PCREL = 0x10 };

/* Bytes of an encoding's value; 0: variable or unknown. */
static unsigned int pe_size(uint8_t encoding)
{
	static const uint8_t size[16] = {
		[0] = 8, [2] = 2, [3] = 4, [4] = 8, [8] = 8, [10] = 2, [11] = 4, [12] = 8};

	return size[encoding & 15];
}

/* Reads a value of the format `encoding & 15`, sign-extended. */
static uint64_t pe_value(struct cursor *c, uint8_t encoding)
{
	unsigned int size = pe_size(encoding);
	uint64_t v;

	if ((encoding & 15) == 1)
		return cursor_uleb(c);
	if ((encoding & 15) == 9)
		return (uint64_t)cursor_sleb(c);
	if (!size) {
		c->bad = 1;
		return 0;
	}
	v = cursor_fixed(c, size);
	if (encoding & 8 && size < 8 && v >> (8 * size - 1))
		v |= ~0ull << 8 * size;
	return v;
}

/* Skips a pointer, such as a personality routine. */
static void pe_skip(struct cursor *c, uint8_t encoding, const struct cfi_section *s)
{
	uint64_t at = s->vaddr + (uint64_t)(c->p - s->bytes);

	if (encoding == PE_OMIT)
		return;
	if (encoding == PE_ALIGNED) {
		cursor_skip(c, (8 - at % 8) % 8 + 8);
		return;
	}
	pe_value(c, encoding);
}

/* ---- entries ---- */

struct cie {
	size_t at; /* offset in the section */
	struct cfi_common common;
	uint8_t encoding, has_z;
	uint8_t unknown; /* its head cannot be read, so neither can addresses of its functions */
	uint8_t bad;     /* its initial instructions cannot be run */
};

struct entry {
	size_t at;          /* offset of its length */
	struct cursor c;    /* behind the id, up to the entry's end */
	uint64_t id, id_at; /* id's value and offset */
	int cie, wide;
};

struct reader {
	struct table_build *build;
	const struct cfi_section *s;
	struct cie *cies; /* sorted by at */
	size_t n, last;
	uint64_t cap;
	struct sheet sheet; /* not yet in order */
	struct functions ranges, saves_ranges;
	struct cfi_program program;
};

/* Reads the head of the entry at *at, and moves *at behind the entry. 1; 0: the end; -EBADMSG. */
static int next_entry(const struct cfi_section *s, size_t *at, struct entry *e)
{
	struct cursor c = {s->bytes + *at, s->bytes + s->len, 0};
	uint64_t len = 0;

	/* a linker may put a terminator in the middle: entries can follow */
	while (c.p < c.end && !len) {
		e->at = (size_t)(c.p - s->bytes);
		if (c.end - c.p < 4)
			return 0; /* padding */
		len = cursor_fixed(&c, 4);
	}
	if (!len)
		return 0;
	e->wide = len == 0xffffffff;
	if (e->wide)
		len = cursor_fixed(&c, 8);
	if (c.bad || len > (size_t)(c.end - c.p))
		return -EBADMSG;
	c.end = c.p + len;
	*at = (size_t)(c.end - s->bytes);
	e->id_at = (uint64_t)(c.p - s->bytes);
	e->id = cursor_fixed(&c, e->wide && s->debug ? 8 : 4);
	e->cie = s->debug ? e->id == (e->wide ? UINT64_MAX : UINT32_MAX) : !e->id;
	e->c = c;
	return 1;
}

/* Reads the augmentation: what each letter means is in `data`. 0 or -EBADMSG. */
static int read_augmentation(struct cie *cie, const char *letters, struct cursor *data,
			     const struct cfi_section *s)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = cursor_u8(data);
			break;
		case 'P':
			encoding = cursor_u8(data);
			pe_skip(data, encoding, s);
			break;
		case 'L':
			cursor_u8(data);
			break;
		case 'S':
			cie->common.frame.signal = 1;
			break;
		case 'B': /* aarch64's other return address key, memory tagging: no data */
		case 'G':
			break;
		default:
			return -EBADMSG;
		}
	}
	return data->bad ? -EBADMSG : 0;
}

static int read_cie_head(struct cie *cie, struct cursor *c, const struct cfi_section *s)
{
	uint8_t version = cursor_u8(c);
	const char *letters = (const char *)c->p;
	uint64_t ra;

	if (version != 1 && version != 3 && version != 4)
		return -EBADMSG;
	while (cursor_u8(c))
		;
	if (c->bad)
		return -EBADMSG;
	if (!strncmp(letters, "eh", 2)) {
		letters += 2;
		cursor_fixed(c, 8);
	}
	if (version == 4 && (cursor_u8(c) != 8 || cursor_u8(c)))
		return -EBADMSG;
	cie->common.code_align = cursor_uleb(c);
	cie->common.data_align = cursor_sleb(c);
	ra = version == 1 ? cursor_u8(c) : cursor_uleb(c);
	if (c->bad || ra != 16 || cie->common.data_align > DATA_ALIGN_LIMIT ||
	    cie->common.data_align < -DATA_ALIGN_LIMIT)
		return -EBADMSG;
	if (*letters == 'z') {
		uint64_t len = cursor_uleb(c);
		struct cursor data = *c;

		cie->has_z = 1;
		cursor_skip(c, len);
		if (c->bad)
			return -EBADMSG;
		data.end = c->p;
		return read_augmentation(cie, letters + 1, &data, s);
	}
	return *letters ? -EBADMSG : 0;
}

static int read_cie(struct reader *r, const struct entry *e)
{
	struct cfi_program *p = &r->program;
	struct cie *cie;

	if (!fusee_grow(&r->cies, &r->cap, r->n + 1, sizeof(*r->cies)))
		return -ENOMEM;
	if (r->n == MAX_CIES)
		return -E2BIG;
	cie = &r->cies[r->n++];
	*cie = (struct cie){.at = e->at};
	x86_64_start(&cie->common.frame);
	p->c = e->c;
	cie->unknown = read_cie_head(cie, &p->c, r->s) != 0;
	if (cie->unknown)
		return 0;
	p->common = &cie->common;
	p->frame = cie->common.frame;
	p->initial = 1;
	p->depth = 0;
	p->loc = 0;
	p->hi = 1;
	p->err = 0;
	cie->bad = cfi_program_run(p) != 0;
	cie->common.frame = p->frame;
	return 0;
}

static const struct cie *find_cie(struct reader *r, const struct entry *e)
{
	uint64_t at = r->s->debug ? e->id : e->id_at - e->id;
	size_t a = 0, b = r->n;

	if (!r->s->debug && e->id > e->id_at)
		return NULL;
	if (r->last < r->n && r->cies[r->last].at == at)
		return &r->cies[r->last];
	while (a < b) {
		size_t mid = (a + b) / 2;

		if (r->cies[mid].at < at)
			a = mid + 1;
		else
			b = mid;
	}
	if (a == r->n || r->cies[a].at != at)
		return NULL;
	r->last = a;
	return &r->cies[a];
}

/* Reads the addresses of a function. 0; -ENOENT: they are not in this file's text; -EBADMSG. */
static int read_range(struct reader *r, const struct cie *cie, struct cursor *c,
		      struct function_rows *range)
{
	uint8_t encoding = r->s->debug ? 0 : cie->encoding;
	uint64_t at = r->s->vaddr + (uint64_t)(c->p - r->s->bytes), len;

	if (encoding & PE_INDIRECT || ((encoding & 0x70) && (encoding & 0x70) != PE_PCREL))
		return -EBADMSG;
	range->lo = pe_value(c, encoding);
	if ((encoding & 0x70) == PE_PCREL)
		range->lo += at;
	len = pe_value(c, encoding & 7);
	if (c->bad)
		return -EBADMSG;
	if (__builtin_add_overflow(range->lo, len, &range->hi) ||
	    !table_in_text(r->build, range->lo, range->hi))
		return -ENOENT;
	return 0;
}

/* Replaces the rows of a function whose description is damaged: also its first rows may be
 * wrong. */
static int distrust(struct reader *r, const struct function_rows *range, uint32_t first_save)
{
	int err;

	r->build->damaged++;
	r->sheet.rules.n = range->first;
	r->sheet.saves.n = first_save;
	err = rows_add(&r->sheet.rules, range->lo, DWARF_RULE_EXPRESSION);
	return err ? err : rows_add(&r->sheet.saves, range->lo, DWARF_PATTERN_UNKNOWN);
}

static int read_fde(struct reader *r, struct entry *e)
{
	const struct cie *cie = find_cie(r, e);
	struct function_rows range = {.first = (uint32_t)r->sheet.rules.n};
	uint32_t first_save = (uint32_t)r->sheet.saves.n;
	struct cfi_program *p = &r->program;
	int err;

	if (!cie || cie->unknown) {
		r->build->damaged++;
		return 0;
	}
	err = read_range(r, cie, &e->c, &range);
	if (err) {
		*(err == -ENOENT ? &r->build->outside : &r->build->damaged) += 1;
		return 0;
	}
	if (cie->has_z)
		cursor_skip(&e->c, cursor_uleb(&e->c));
	p->c = e->c;
	p->common = &cie->common;
	p->frame = cie->common.frame;
	p->initial = 0;
	p->depth = 0;
	p->loc = range.lo;
	p->hi = range.hi;
	p->last_rule = p->last_pattern = UINT32_MAX;
	p->saved_fp = 0;
	p->to = &r->sheet;
	p->err = 0;
	err = cie->bad || e->c.bad ? -EBADMSG : cfi_program_run(p);
	if (err == -EBADMSG)
		err = distrust(r, &range, first_save);
	if (err)
		return err;
	r->build->fdes++;
	range.n = (uint32_t)(r->sheet.rules.n - range.first);
	err = functions_add(&r->ranges, &range);
	range.first = first_save;
	range.n = (uint32_t)(r->sheet.saves.n - first_save);
	return err ? err : functions_add(&r->saves_ranges, &range);
}

/* One pass over the section: reads all CIEs, or all FDEs. 0 or -errno. */
static int read_entries(struct reader *r, int cies)
{
	struct entry e;
	size_t at = 0;
	int more, err = 0;

	while (!err && (more = next_entry(r->s, &at, &e)) > 0) {
		if (e.c.bad || e.cie != cies)
			continue;
		err = cies ? read_cie(r, &e) : read_fde(r, &e);
	}
	return err ? err : more;
}

int cfi_read(struct table_build *build, const struct cfi_section *s, struct sheet *ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err, truncated = 0;

	if (!r)
		return -ENOMEM;
	r->build = build;
	r->s = s;
	r->program.build = build;
	err = read_entries(r, 1);
	if (!err || err == -EBADMSG) {
		truncated = err;
		err = read_entries(r, 0);
		if (err == -EBADMSG)
			err = 0;
	}
	if (!err)
		err = rows_arrange(&r->sheet.rules, &r->ranges, &ret->rules);
	if (!err)
		err = rows_arrange(&r->sheet.saves, &r->saves_ranges, &ret->saves);
	free(r->cies);
	sheet_fini(&r->sheet);
	functions_fini(&r->ranges);
	functions_fini(&r->saves_ranges);
	free(r);
	return err ? err : truncated;
}
