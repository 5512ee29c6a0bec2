/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REMEMBERED 32
#define MAX_CIES 65536
#define DATA_ALIGN_LIMIT 1024 /* real ones are -8, -4 */

/* A planted bug shows that the fuzzer finds such a thing (tests/fuzz/planted). */
#ifdef FUSEE_PLANTED_BUG
#define SLACK 1
#else
#define SLACK 0
#endif

/* ---- bounded reading ---- */

uint64_t dwt_fixed(struct dwt_cursor *c, unsigned int size)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) + SLACK < size) {
		c->bad = 1;
		return 0;
	}
	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)c->p[i] << 8 * i;
	c->p += size;
	return v;
}

uint64_t dwt_uleb_slow(struct dwt_cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; c->p < c->end; shift += 7) {
		uint8_t b = *c->p++;

		if (shift > 63 || (shift == 63 && (b & 0x7f) > 1))
			break;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = 1;
	return 0;
}

int64_t dwt_sleb(struct dwt_cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; c->p < c->end && shift <= 63; shift += 7) {
		uint8_t b = *c->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (b & 0x40 && shift + 7 < 64)
			v |= ~0ull << (shift + 7);
		return (int64_t)v;
	}
	c->bad = 1;
	return 0;
}

static void skip(struct dwt_cursor *c, uint64_t n)
{
	if (n > (size_t)(c->end - c->p))
		c->bad = 1;
	else
		c->p += n;
}

/* ---- instructions ---- */

struct cie {
	size_t at; /* offset in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding, has_z;
	uint8_t unknown;        /* not even the functions' addresses can be read */
	uint8_t bad;            /* its instructions can't */
	struct dwt_frame frame; /* after its instructions */
};

struct run {
	struct dwt *dwt;
	struct dwt_rows *rows;
	const struct cie *cie;
	struct dwt_cursor c;
	struct dwt_frame frame;
	uint64_t loc, hi;
	uint32_t first, last_rule; /* of this function's rows; ~0: none yet */
	uint32_t depth;
	int64_t saved_fp; /* dwt_x86_64_popped() */
	int initial;      /* these are the CIE's: no addresses, nothing to restore */
	int err;
	struct dwt_frame remembered[MAX_REMEMBERED];
};

enum {
	CFA_SET_LOC = 1,
	CFA_ADVANCE1,
	CFA_ADVANCE2,
	CFA_ADVANCE4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

/* A row for what holds at loc, where it differs from the row before. */
static void emit(struct run *r)
{
	struct dwt_frame frame = r->frame;
	uint32_t rule;

	dwt_x86_64_popped(&frame, &r->saved_fp);
	rule = dwt_x86_64_rule(r->dwt, &frame);
	if (rule == r->last_rule)
		return;
	r->last_rule = rule;
	r->err = dwt_rows_add(r->rows, r->loc, rule);
}

static void advance(struct run *r, uint64_t delta)
{
	uint64_t to;

	if (r->initial || __builtin_mul_overflow(delta, r->cie->code_align, &delta) ||
	    __builtin_add_overflow(r->loc, delta, &to)) {
		r->c.bad = 1;
		return;
	}
	if (!delta)
		return;
	emit(r);
	r->loc = to;
}

static int64_t scaled(struct run *r, int64_t v)
{
	int64_t off = 0;

	if (__builtin_mul_overflow(v, r->cie->data_align, &off))
		r->c.bad = 1;
	return off;
}

static void set(struct run *r, uint64_t reg, enum dwt_place_kind kind, int64_t off)
{
	struct dwt_place *place = dwt_x86_64_place(&r->frame, reg);

	if (place)
		*place = (struct dwt_place){.kind = (uint8_t)kind, .off = off};
}

static void restore(struct run *r, uint64_t reg)
{
	struct dwt_place *place = dwt_x86_64_place(&r->frame, reg);
	struct dwt_frame initial = r->cie->frame;

	if (r->initial)
		r->c.bad = 1;
	else if (place)
		*place = *dwt_x86_64_place(&initial, reg);
}

static void expression(struct run *r, struct dwt_place *place, enum dwt_place_kind kind)
{
	uint64_t len = dwt_uleb(&r->c);
	const uint8_t *p = r->c.p;

	skip(&r->c, len);
	if (!r->c.bad && place)
		*place = (struct dwt_place){.kind = (uint8_t)kind, .expr = p, .len = (uint32_t)len};
}

static void define_cfa(struct run *r, uint64_t reg, int64_t off)
{
	if (reg > UINT16_MAX)
		r->c.bad = 1;
	r->frame.cfa = (struct dwt_place){.kind = DWT_OFFSET, .reg = (uint16_t)reg, .off = off};
}

/* Instructions about the CFA. 0: not one of them. */
static int run_cfa(struct run *r, uint8_t op)
{
	struct dwt_place *cfa = &r->frame.cfa;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = dwt_uleb(&r->c);
		define_cfa(r, reg, (int64_t)dwt_uleb(&r->c));
		return 1;
	case CFA_DEF_CFA_SF:
		reg = dwt_uleb(&r->c);
		define_cfa(r, reg, scaled(r, dwt_sleb(&r->c)));
		return 1;
	case CFA_DEF_CFA_REGISTER:
		r->c.bad |= cfa->kind != DWT_OFFSET;
		define_cfa(r, dwt_uleb(&r->c), cfa->off);
		return 1;
	case CFA_DEF_CFA_OFFSET:
		r->c.bad |= cfa->kind != DWT_OFFSET;
		cfa->off = (int64_t)dwt_uleb(&r->c);
		return 1;
	case CFA_DEF_CFA_OFFSET_SF:
		r->c.bad |= cfa->kind != DWT_OFFSET;
		cfa->off = scaled(r, dwt_sleb(&r->c));
		return 1;
	case CFA_DEF_CFA_EXPRESSION:
		expression(r, cfa, DWT_AT_EXPR);
		return 1;
	default:
		return 0;
	}
}

static void run_register(struct run *r)
{
	uint64_t reg = dwt_uleb(&r->c), from = dwt_uleb(&r->c);
	struct dwt_place *place = dwt_x86_64_place(&r->frame, reg);

	if (from > UINT16_MAX)
		r->c.bad = 1;
	else if (place)
		*place = (struct dwt_place){.kind = DWT_REGISTER, .reg = (uint16_t)from};
}

/* Instructions about a register, whose number comes first. 0: not one of them. */
static int run_rule(struct run *r, uint8_t op)
{
	struct dwt_cursor *c = &r->c;
	uint64_t reg;

	if (op == CFA_REGISTER) {
		run_register(r);
		return 1;
	}
	reg = dwt_uleb(c);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set(r, reg, DWT_OFFSET, scaled(r, (int64_t)dwt_uleb(c)));
		return 1;
	case CFA_OFFSET_EXTENDED_SF:
		set(r, reg, DWT_OFFSET, scaled(r, dwt_sleb(c)));
		return 1;
	case CFA_GNU_NEGATIVE_OFFSET:
		set(r, reg, DWT_OFFSET, -scaled(r, (int64_t)(dwt_uleb(c) & INT32_MAX)));
		return 1;
	case CFA_VAL_OFFSET:
		set(r, reg, DWT_VAL_OFFSET, scaled(r, (int64_t)dwt_uleb(c)));
		return 1;
	case CFA_VAL_OFFSET_SF:
		set(r, reg, DWT_VAL_OFFSET, scaled(r, dwt_sleb(c)));
		return 1;
	case CFA_RESTORE_EXTENDED:
		restore(r, reg);
		return 1;
	case CFA_UNDEFINED:
		set(r, reg, DWT_UNDEFINED, 0);
		return 1;
	case CFA_SAME_VALUE:
		set(r, reg, DWT_SAME, 0);
		return 1;
	case CFA_EXPRESSION:
		expression(r, dwt_x86_64_place(&r->frame, reg), DWT_AT_EXPR);
		return 1;
	case CFA_VAL_EXPRESSION:
		expression(r, dwt_x86_64_place(&r->frame, reg), DWT_VAL_EXPR);
		return 1;
	default:
		return 0;
	}
}

/* The others. Unknown ones can't be skipped: how long they are is not known. */
static void run_other(struct run *r, uint8_t op)
{
	switch (op) {
	case 0:
		break;
	case CFA_ADVANCE1:
		advance(r, dwt_u8(&r->c));
		break;
	case CFA_ADVANCE2:
		advance(r, dwt_fixed(&r->c, 2));
		break;
	case CFA_ADVANCE4:
		advance(r, dwt_fixed(&r->c, 4));
		break;
	case CFA_REMEMBER:
		if (r->depth == MAX_REMEMBERED)
			r->c.bad = 1;
		else
			r->remembered[r->depth++] = r->frame;
		break;
	case CFA_RESTORE_STATE:
		if (!r->depth)
			r->c.bad = 1;
		else
			r->frame = r->remembered[--r->depth];
		break;
	case CFA_GNU_ARGS_SIZE:
		dwt_uleb(&r->c);
		break;
	default:
		if (!run_cfa(r, op) && !run_rule(r, op))
			r->c.bad = 1;
	}
}

/* Runs until the end, or past hi. 0, -EBADMSG, or what adding a row gave. */
static int run(struct run *r)
{
	while (r->c.p < r->c.end && r->loc < r->hi && !r->c.bad && !r->err) {
		uint8_t op = *r->c.p++;

		switch (op >> 6) {
		case 1:
			advance(r, op & 63);
			break;
		case 2:
			set(r, op & 63, DWT_OFFSET, scaled(r, (int64_t)dwt_uleb(&r->c)));
			break;
		case 3:
			restore(r, op & 63);
			break;
		default:
			run_other(r, op);
		}
	}
	if (r->c.bad)
		return -EBADMSG;
	if (!r->err && !r->initial && r->loc < r->hi)
		emit(r);
	return r->err;
}

/* ---- encoded pointers ---- */

enum { PE_OMIT = 0xff, PE_ALIGNED = 0x50, PE_INDIRECT = 0x80, PE_PCREL = 0x10 };

/* Bytes of an encoding's value; 0: variable or unknown. */
static unsigned int pe_size(uint8_t encoding)
{
	static const uint8_t size[16] = {
		[0] = 8, [2] = 2, [3] = 4, [4] = 8, [8] = 8, [10] = 2, [11] = 4, [12] = 8};

	return size[encoding & 15];
}

/* The value alone, as `encoding & 15` says, sign-extended. */
static uint64_t pe_value(struct dwt_cursor *c, uint8_t encoding)
{
	unsigned int size = pe_size(encoding);
	uint64_t v;

	if ((encoding & 15) == 1)
		return dwt_uleb(c);
	if ((encoding & 15) == 9)
		return (uint64_t)dwt_sleb(c);
	if (!size) {
		c->bad = 1;
		return 0;
	}
	v = dwt_fixed(c, size);
	if (encoding & 8 && size < 8 && v >> (8 * size - 1))
		v |= ~0ull << 8 * size;
	return v;
}

/* A personality routine or the like: only its length matters. */
static void pe_skip(struct dwt_cursor *c, uint8_t encoding, const struct dwt_section *s)
{
	uint64_t at = s->vaddr + (uint64_t)(c->p - s->bytes);

	if (encoding == PE_OMIT)
		return;
	if (encoding == PE_ALIGNED) {
		skip(c, (8 - at % 8) % 8 + 8);
		return;
	}
	pe_value(c, encoding);
}

/* ---- entries ---- */

struct entry {
	size_t at;           /* offset of its length */
	struct dwt_cursor c; /* behind the id, up to the entry's end */
	uint64_t id, id_at;  /* id's value and offset */
	int cie, wide;
};

struct reader {
	struct dwt *dwt;
	const struct dwt_section *s;
	struct cie *cies; /* sorted by at */
	size_t n, cap, last;
	struct dwt_rows rows;
	struct dwt_ranges ranges;
	struct run run;
};

/* The entry at *at; moves *at behind it. 1; 0: the end; -EBADMSG. */
static int next_entry(const struct dwt_section *s, size_t *at, struct entry *e)
{
	struct dwt_cursor c = {s->bytes + *at, s->bytes + s->len, 0};
	uint64_t len = 0;

	/* A linker's terminator in the middle is no reason to lose what follows. */
	while (c.p < c.end && !len) {
		e->at = (size_t)(c.p - s->bytes);
		if (c.end - c.p < 4)
			return 0; /* padding */
		len = dwt_fixed(&c, 4);
	}
	if (!len)
		return 0;
	e->wide = len == 0xffffffff;
	if (e->wide)
		len = dwt_fixed(&c, 8);
	if (c.bad || len > (size_t)(c.end - c.p))
		return -EBADMSG;
	c.end = c.p + len;
	*at = (size_t)(c.end - s->bytes);
	e->id_at = (uint64_t)(c.p - s->bytes);
	e->id = dwt_fixed(&c, e->wide && s->debug ? 8 : 4);
	e->cie = s->debug ? e->id == (e->wide ? UINT64_MAX : UINT32_MAX) : !e->id;
	e->c = c;
	return 1;
}

/* Augmentation letters, whose data is in `data`. */
static int read_augmentation(struct cie *cie, const char *letters, struct dwt_cursor *data,
			     const struct dwt_section *s)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = dwt_u8(data);
			break;
		case 'P':
			encoding = dwt_u8(data);
			pe_skip(data, encoding, s);
			break;
		case 'L':
			dwt_u8(data);
			break;
		case 'S':
			cie->frame.signal = 1;
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

static int read_cie_head(struct cie *cie, struct dwt_cursor *c, const struct dwt_section *s)
{
	uint8_t version = dwt_u8(c);
	const char *letters = (const char *)c->p;
	uint64_t ra;

	if (version != 1 && version != 3 && version != 4)
		return -EBADMSG;
	while (dwt_u8(c))
		;
	if (c->bad)
		return -EBADMSG;
	if (!strncmp(letters, "eh", 2)) {
		letters += 2;
		dwt_fixed(c, 8);
	}
	if (version == 4 && (dwt_u8(c) != 8 || dwt_u8(c)))
		return -EBADMSG;
	cie->code_align = dwt_uleb(c);
	cie->data_align = dwt_sleb(c);
	ra = version == 1 ? dwt_u8(c) : dwt_uleb(c);
	if (c->bad || ra != 16 || cie->data_align > DATA_ALIGN_LIMIT ||
	    cie->data_align < -DATA_ALIGN_LIMIT)
		return -EBADMSG;
	if (*letters == 'z') {
		uint64_t len = dwt_uleb(c);
		struct dwt_cursor data = *c;

		cie->has_z = 1;
		skip(c, len);
		if (c->bad)
			return -EBADMSG;
		data.end = c->p;
		return read_augmentation(cie, letters + 1, &data, s);
	}
	return *letters ? -EBADMSG : 0;
}

static int read_cie(struct reader *r, const struct entry *e)
{
	struct run *run_ = &r->run;
	struct cie *cie;

	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct cie *p = reallocarray(r->cies, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		r->cies = p;
		r->cap = cap;
	}
	if (r->n == MAX_CIES)
		return -E2BIG;
	cie = &r->cies[r->n++];
	*cie = (struct cie){.at = e->at};
	dwt_x86_64_start(&cie->frame);
	run_->c = e->c;
	cie->unknown = read_cie_head(cie, &run_->c, r->s) != 0;
	if (cie->unknown)
		return 0;
	run_->cie = cie;
	run_->frame = cie->frame;
	run_->initial = 1;
	run_->depth = 0;
	run_->loc = 0;
	run_->hi = 1;
	run_->err = 0;
	cie->bad = run(run_) != 0;
	cie->frame = run_->frame;
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

/* The function's addresses. -ENOENT: not in this file's text. */
static int read_range(struct reader *r, const struct cie *cie, struct dwt_cursor *c,
		      struct dwt_range *range)
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
	    !dwt_in_text(r->dwt, range->lo, range->hi))
		return -ENOENT;
	return 0;
}

/* Where a function's description can't be read, what it said so far is not to be trusted either. */
static int distrust(struct reader *r, struct dwt_range *range)
{
	r->dwt->damaged++;
	r->rows.n = range->first;
	return dwt_rows_add(&r->rows, range->lo, DWT_RULE_EXPRESSION);
}

static int read_fde(struct reader *r, struct entry *e)
{
	const struct cie *cie = find_cie(r, e);
	struct dwt_range range = {.first = (uint32_t)r->rows.n};
	struct run *run_ = &r->run;
	int err;

	if (!cie || cie->unknown) {
		r->dwt->damaged++;
		return 0;
	}
	err = read_range(r, cie, &e->c, &range);
	if (err) {
		*(err == -ENOENT ? &r->dwt->outside : &r->dwt->damaged) += 1;
		return 0;
	}
	if (cie->has_z)
		skip(&e->c, dwt_uleb(&e->c));
	run_->c = e->c;
	run_->cie = cie;
	run_->frame = cie->frame;
	run_->initial = 0;
	run_->depth = 0;
	run_->loc = range.lo;
	run_->hi = range.hi;
	run_->last_rule = UINT32_MAX;
	run_->saved_fp = 0;
	run_->rows = &r->rows;
	run_->err = 0;
	err = cie->bad || e->c.bad ? -EBADMSG : run(run_);
	if (err == -EBADMSG)
		err = distrust(r, &range);
	if (err)
		return err;
	r->dwt->fdes++;
	range.n = (uint32_t)(r->rows.n - range.first);
	return dwt_ranges_add(&r->ranges, &range);
}

/* One walk over the section: its CIEs, or its functions. */
static int walk(struct reader *r, int cies)
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

int dwt_cfi_read(struct dwt *dwt, const struct dwt_section *s, struct dwt_rows *ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err, truncated = 0;

	if (!r)
		return -ENOMEM;
	r->dwt = dwt;
	r->s = s;
	r->run.dwt = dwt;
	err = walk(r, 1);
	if (!err || err == -EBADMSG) {
		truncated = err;
		err = walk(r, 0);
		if (err == -EBADMSG)
			err = 0;
	}
	if (!err)
		err = dwt_arrange(&r->rows, &r->ranges, ret);
	free(r->cies);
	dwt_rows_fini(&r->rows);
	dwt_ranges_fini(&r->ranges);
	free(r);
	return err ? err : truncated;
}
