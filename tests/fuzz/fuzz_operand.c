// SPDX-License-Identifier: Apache-2.0
// sources: core/probes/operand.c core/probes/filter.c
/* Any text as the arguments of a probe's note, and as a filter: a place that the program may read,
 * or a clause that says what is not read. */
#include "fuzz.h"

#include "probes/filter.h"
#include "probes/operand.h"

static void check(const struct probe_operand *o)
{
	must(o->kind == OPERAND_NUMBER || o->kind == OPERAND_REGISTER || o->kind == OPERAND_MEMORY,
	     "it is somewhere");
	must(o->bits == 8 || o->bits == 16 || o->bits == 32 || o->bits == 64, "it has a size");
	must(o->base < REGISTER_WORDS || o->base == NO_REGISTER, "its register is one");
	must(o->index < REGISTER_WORDS || o->index == NO_REGISTER, "its index is one");
	must(o->kind != OPERAND_REGISTER || o->base != NO_REGISTER, "it has a register");
	must(o->shift <= 8, "it is moved by some bits at most");
}

static void filter(const char *text, const struct probe_operand *o)
{
	const struct filter_terms terms = {FILTER_DESCRIBED, false, true};
	struct probe_filter f;
	char *why;
	int r = filter_parse(text, &terms, &f, &why);

	must(!r == !why, "a text that is no filter has a sentence");
	free(why);
	if (r)
		return;
	must(f.argument < FILTER_DESCRIBED, "a filter has an argument");
	must(f.operator!= FILTER_NONE, "a filter compares");
	r = filter_describe(&f, o, &why);
	must(!r == !why, "a type that has no such number has a sentence");
	must(r || (f.bits >= 8 && f.bits <= 64), "it has a type");
	free(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = body_of(data, size), why[64];
	struct probe_operand o = {.kind = OPERAND_NUMBER, .bits = 64};
	struct operand_symbol symbol;

	if (!text)
		return 0;
	for (uint32_t i = 0; i < 4; i++) {
		memset(why, 1, sizeof(why));
		if (!operand_find(text, i, &o, &symbol, why, sizeof(why))) {
			check(&o);
			must(!symbol.p || (symbol.p > text && symbol.len &&
					   symbol.p + symbol.len < text + strlen(text)),
			     "its variable is in the text");
		} else
			must(strnlen(why, sizeof(why)) < sizeof(why), "a clause ends");
	}
	o.bits = o.bits ? o.bits : 64;
	filter(text, &o);
	free(text);
	return 0;
}
