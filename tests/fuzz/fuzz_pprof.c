/* SPDX-License-Identifier: Apache-2.0 */
// sources: core/pprof/*.c core/profile/build*.c core/loss/*.c core/profile/check.c
// sources: core/profile/omit.c
// sources: core/report/*.c core/export/[!f]*.c core/export/folded.c
// sources: core/base/[!al]*.c core/base/arena.c
// sources: build/gen/profile.pb-c.c
// libs: -lprotobuf-c -ldeflate -lz -lm -lcrypto
/*
 * Any bytes as a profile: refused with a sentence, or a profile that every report can print and
 * that is the same after it was encoded and decoded.
 */
#include "fuzz.h"

#include "pprof/pprof.h"
#include "report/report.h"

static void reports(const struct fusee_profile *p)
{
	struct render_options by, o = {.width = 80, .focus = "[a-m]", .hide = "z"};
	struct buf out = {0};
	int ret;

	for (int filtered = 0; filtered < 2; filtered++) {
		ret = render_top(p, p, &o, &out);
		must(!ret || (p->types.n == 0 && out.len), "top");
		if (ret)
			break;
		must(!render_tree(p, NULL, &o, &out), "tree");
		render_peek(p, NULL, ".", &o, &out);
		must(!render_folded(p, NULL, &o, &out), "folded");
		must(!render_folded(p, p, &o, &out), "folded beside itself");
		must(!render_tree(p, p, &o, &out), "tree beside itself");
		must(!render_top(p, p, &o, &out), "top beside itself");
		by = o;
		by.by = "process,tid";
		render_tree(p, NULL, &by, &out); /* refused where no sample has the labels */
		render_top(p, p, &by, &out);
		must(!render_speedscope(p, NULL, &o, &out), "speedscope");
		must(!render_speedscope(p, p, &o, &out), "speedscope beside itself");
		must(!render_json(p, p, &o, &out), "json");
		must(!render_hottest(p, &o, &out), "hottest");
		must(!render_waits(p, &o, &out), "waits");
		o = (struct render_options){.cumulative = true, .rows = 3, .color = true};
		buf_reset(&out);
	}
	buf_fini(&out);
}

/* Sums of every type: what no step may change. */
static uint64_t sum(const struct fusee_profile *p)
{
	uint64_t s = p->types.n;

	for (uint32_t i = 0; i < p->values.n; i++)
		s += (uint64_t)*FUSEE_AT(int64_t, p->values, i) * (1 + i % p->types.n);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_file *f = NULL, *again = NULL;
	struct buf out = {0};
	const char *text = NULL;

	if (pprof_decode(data, size, &f, &text)) {
		must(text && *text && !f, "an error has its sentence");
		return 0;
	}
	must(!pprof_encode(pprof_profile(f), false, &out), "what was decoded can be encoded");
	must(!pprof_decode(out.p, out.len, &again, &text), "what we encoded can be decoded");
	must(pprof_profile(again)->types.n == pprof_profile(f)->types.n, "the same types");
	must(sum(pprof_profile(f)) == sum(pprof_profile(again)), "the same values");
	reports(pprof_profile(f));
	pprof_free(f);
	pprof_free(again);
	buf_fini(&out);
	return 0;
}
