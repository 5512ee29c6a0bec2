/* SPDX-License-Identifier: Apache-2.0 */
#include "refs.h"

#include <string.h>

enum { LEA = 0x8d, CALL = 0xe8, JUMP = 0xe9 };

struct scan {
	const struct code *text;
	const struct code_entries *stretches;
	struct code_entries *maybe;
	uint64_t lo, hi; /* of all stretches */
};

/* The displacement of 4 bytes at `at` is relative to what follows it. */
static int add_target(const struct scan *s, size_t at)
{
	uint64_t vaddr;
	int32_t by;
	size_t i;

	memcpy(&by, s->text->bytes + at, sizeof(by));
	vaddr = s->text->vaddr + at + 4 + (uint64_t)(int64_t)by;
	if (vaddr < s->lo || vaddr >= s->hi)
		return 0;
	i = code_entries_below(s->stretches, vaddr + 1);
	return i % 2 ? code_entries_add(s->maybe, vaddr) : 0;
}

/* Adds the targets of one opcode in [at, end), which is text that call frame information
 * describes. */
static int scan_for(const struct scan *s, size_t at, size_t end, int opcode)
{
	const uint8_t *bytes = s->text->bytes, *p;
	int err = 0;

	while (!err && end - at > 5 && (p = memchr(bytes + at, opcode, end - at - 5))) {
		at = (size_t)(p - bytes) + 1;
		if (opcode != LEA)
			err = add_target(s, at);
		else if ((p[1] & 0xc7) == 5 && p > bytes && (p[-1] & 0xf8) == 0x48)
			err = add_target(s, at + 1);
	}
	return err;
}

static int scan_described(const struct scan *s, uint64_t lo, uint64_t hi)
{
	uint64_t from = s->text->vaddr, end = from + s->text->len;
	int err;

	lo = lo < from ? from : lo;
	hi = hi > end ? end : hi;
	if (lo >= hi)
		return 0;
	err = scan_for(s, lo - from, hi - from, LEA);
	if (!err)
		err = scan_for(s, lo - from, hi - from, CALL);
	return err ? err : scan_for(s, lo - from, hi - from, JUMP);
}

int code_refs_add(const struct code *text, const struct code_entries *stretches,
		  struct code_entries *maybe)
{
	struct scan s = {.text = text, .stretches = stretches, .maybe = maybe};
	const struct rows *known = text->known;
	uint64_t lo = 0;
	int described = 0, err = 0;

	if (!stretches->n)
		return 0;
	s.lo = stretches->p[0];
	s.hi = stretches->p[stretches->n - 1];
	for (size_t i = 0; i < known->n && !err; i++) {
		int now = ROW_RULE(known->p[i]) != DWARF_RULE_NONE;

		if (now && !described)
			lo = ROW_VADDR(known->p[i]);
		if (!now && described)
			err = scan_described(&s, lo, ROW_VADDR(known->p[i]));
		described = now;
	}
	return err;
}
