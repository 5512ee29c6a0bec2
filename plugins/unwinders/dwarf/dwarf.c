/* SPDX-License-Identifier: Apache-2.0 */
/* The dwarf unwinder: tables of rows from what compilers write for exceptions and debuggers. Its
 * step is dwarf.bpf.c; what it can and can't do stands in dwarf.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "cfi.h"
#include "codefile.h"
#include "gofile.h"
#include "reasons.h"

int fusee_step_dwarf(struct fusee_unwind *u);
FUSEE_EMBED(dwarf_bpf, "dwarf.bpf.o");

struct dwarf {
	struct fusee_self self;
};

static void take_segments(struct dwt *dwt, const struct fusee_file_info *info)
{
	FUSEE_FOR_EACH (struct fusee_segment, s, info->segments) {
		uint64_t hi;

		if (!(s->flags & 1) || dwt->n_texts == DWT_MAX_TEXTS ||
		    __builtin_add_overflow(s->vaddr, s->filesz, &hi) || hi >= DWT_MAX_ADDRESS)
			continue;
		dwt->text[dwt->n_texts].lo = s->vaddr;
		dwt->text[dwt->n_texts++].hi = hi;
	}
}

/* Lays a source's rows under what is there already, and frees them. */
static int add_under(struct dwt_rows *all, struct dwt_rows *more)
{
	struct dwt_rows both = {0};
	int err = more->n ? dwt_overlay(all, more, &both) : 0;

	if (!err && more->n) {
		dwt_rows_fini(all);
		*all = both;
	} else {
		dwt_rows_fini(&both);
	}
	dwt_rows_fini(more);
	return err;
}

/* ---- sources ---- */

static int add_cfi(const struct dwarf *d, struct dwt *dwt, uint64_t file, int debug,
		   struct dwt_rows *all)
{
	struct fusee_section s;
	struct dwt_rows rows = {0};
	struct dwt_section in;
	int err = fusee_file_section(d->self.host->unwinder, file,
				     debug ? ".debug_frame" : ".eh_frame", &s);

	if (err)
		return err == -ENOENT ? 0 : err;
	in = (struct dwt_section){(const uint8_t *)s.bytes.p, s.bytes.len, s.vaddr, debug};
	err = dwt_cfi_read(dwt, &in, &rows);
	if (!err || err == -EBADMSG) {
		int err2 = add_under(all, &rows);

		return err2 ? err2 : err;
	}
	dwt_rows_fini(&rows);
	return err;
}

static int add_go(const struct dwarf *d, struct dwt *dwt, uint64_t file, struct dwt_rows *all)
{
	struct dwt_rows rows = {0};
	struct dwt_go go;
	int err = dwt_go_find(&go, d->self.host->unwinder, file);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = dwt_go_read(dwt, &go, &rows);
	if (!err)
		return add_under(all, &rows);
	dwt_rows_fini(&rows);
	return err;
}

/* ---- hand-written code without a description ---- */

/* libc's way out of a signal handler and musl's start of a thread, by their bytes. */
static const struct pattern {
	const char *bytes;
	uint8_t len, before; /* bytes before it that the rule covers too */
	uint8_t kind;
} patterns[] = {
	/* mov $15,%rax; syscall: the handler returns to its first byte, one less is looked up */
	{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, 1, DWARF_SIGNAL},
	/* xor %ebp,%ebp; pop %rdi; call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall */
	{"\x31\xed\x5f\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c\x0f\x05", 14, 0, DWARF_END},
};

static int is_small(const struct dwt *dwt)
{
	for (uint32_t i = 0; i < dwt->n_texts; i++)
		if (dwt->text[i].hi - dwt->text[i].lo > DWT_MAX_CODE)
			return 0;
	return 1;
}

static int add_patterns(const struct dwarf *d, struct dwt *dwt, uint64_t file, struct dwt_rows *all)
{
	struct dwt_rows rows = {0};
	struct fusee_section s;
	int err = 0;

	if (dwt->signals || !is_small(dwt) ||
	    fusee_file_section(d->self.host->unwinder, file, ".text", &s))
		return 0;
	for (size_t i = 0; !err && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		const struct pattern *p = &patterns[i];
		const char *at = memmem(s.bytes.p, s.bytes.len, p->bytes, p->len);
		uint64_t lo;

		if (!at || at - s.bytes.p < p->before)
			continue;
		lo = s.vaddr + (uint64_t)(at - s.bytes.p);
		if (!dwt_in_text(dwt, lo - p->before, lo + p->len))
			continue;
		err = dwt_rows_add(&rows, lo - p->before, dwt_special(dwt, p->kind, 0, 0, 0));
		if (!err)
			err = dwt_rows_add(&rows, lo + p->len, DWARF_RULE_NONE);
		if (!err)
			err = add_under(all, &rows);
	}
	dwt_rows_fini(&rows);
	return err;
}

/* .init and .fini are put together from pieces of several files, without a description: sub
 * $8,%rsp; calls; add $8,%rsp; ret. */
static int add_init(const struct dwarf *d, struct dwt *dwt, uint64_t file, const char *name,
		    struct dwt_rows *all)
{
	static const char head[] = "\x48\x83\xec\x08", tail[] = "\x48\x83\xc4\x08\xc3";
	struct dwt_rows rows = {0};
	struct fusee_section s;
	uint64_t in, out;
	int err;

	if (fusee_file_section(d->self.host->unwinder, file, name, &s) || s.bytes.len < 9 ||
	    !dwt_in_text(dwt, s.vaddr, s.vaddr + s.bytes.len))
		return 0;
	in = !memcmp(s.bytes.p, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0; /* endbr64 */
	out = s.bytes.len - 5;
	if (in + 4 > out || memcmp(s.bytes.p + in, head, 4) || memcmp(s.bytes.p + out, tail, 5))
		return 0;
	err = dwt_rows_add(&rows, s.vaddr, DWARF_RULE_SP(1, 0));
	if (!err)
		err = dwt_rows_add(&rows, s.vaddr + in + 4, DWARF_RULE_SP(2, 0));
	if (!err)
		err = dwt_rows_add(&rows, s.vaddr + out + 4, DWARF_RULE_SP(1, 0));
	if (!err)
		err = dwt_rows_add(&rows, s.vaddr + s.bytes.len, DWARF_RULE_NONE);
	if (!err)
		return add_under(all, &rows);
	dwt_rows_fini(&rows);
	return err;
}

/* What still has no rows, by following its instructions. */
static int add_code(const struct dwarf *d, struct dwt *dwt, uint64_t file,
		    const struct fusee_file_info *info, struct dwt_rows *all)
{
	struct dwt_rows rows = {0};
	int err = is_small(dwt)
			  ? dwt_code_add(dwt, d->self.host->unwinder, file, info->entry, all, &rows)
			  : 0;

	if (!err)
		return add_under(all, &rows);
	dwt_rows_fini(&rows);
	return err;
}

/* Old linkers name the start of .text as a library's entry: is this where a program begins? */
static int is_entry(const struct dwarf *d, uint64_t file, const struct fusee_file_info *info)
{
	static const char *const starts[] = {"\x31\xed", "\x48\x31\xed", "\x48\x89\xe7"};
	struct fusee_section s;
	char code[8];
	char *p = code;

	if (!info->entry)
		return 0;
	if (info->type == 2 /* ET_EXEC */ ||
	    fusee_file_section(d->self.host->unwinder, file, ".interp", &s) == 0)
		return 1;
	if (d->self.host->unwinder->file_read(file, info->entry, code, sizeof(code)))
		return 0;
	if (!memcmp(p, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		p += 4;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!memcmp(p, starts[i], strlen(starts[i])))
			return 1;
	return 0;
}

/* The stack ends at the entry, also where its description does not say so. Its code is END up to
 * its last instruction, or to where a description says that another function begins. */
static int add_entry(const struct dwarf *d, struct dwt *dwt, uint64_t file,
		     const struct fusee_file_info *info, struct dwt_rows *all)
{
	uint64_t hi;

	if (!is_entry(d, file, info) || !dwt_in_text(dwt, info->entry, info->entry + 1))
		return 0;
	hi = dwt_entry_end(d->self.host->unwinder, file, info->entry);
	for (size_t i = 0; i < all->n; i++) {
		uint64_t at = DWT_VADDR(all->p[i]);

		if (at > info->entry && at < hi &&
		    (DWT_RULE(all->p[i]) == DWARF_RULE_NONE ||
		     DWT_RULE(all->p[i]) == DWARF_RULE_SP(1, 0)))
			hi = at;
	}
	while (hi > info->entry && !dwt_in_text(dwt, info->entry, hi))
		hi--;
	return hi > info->entry ? dwt_force(all, info->entry, hi, DWT_RULE_END) : 0;
}

/* ---- the table ---- */

static int collect(const struct dwarf *d, struct dwt *dwt, uint64_t file,
		   const struct fusee_file_info *info, struct dwt_rows *all)
{
	int lies = 0, err = 0;

	/* Go's .debug_frame, made from the same numbers as .gopclntab, knows neither rbp nor where
	 * stacks end: it fills what gaps are left. */
	for (int i = 0; i < 3 && !err; i++) {
		err = i == 1 ? add_go(d, dwt, file, all) : add_cfi(d, dwt, file, i == 2, all);
		if (err == -EBADMSG) {
			lies = err;
			err = 0;
		}
	}
	if (!err)
		err = add_patterns(d, dwt, file, all);
	if (!err)
		err = add_init(d, dwt, file, ".init", all);
	if (!err)
		err = add_init(d, dwt, file, ".fini", all);
	if (!err)
		err = add_entry(d, dwt, file, info, all);
	if (!err)
		err = add_code(d, dwt, file, info, all);
	if (!err && !all->n && (lies || dwt->damaged))
		return -EBADMSG;
	return err;
}

static void report(const struct dwarf *d, const struct dwt *dwt)
{
	if (dwt->damaged)
		fusee_log(&d->self, FUSEE_DEBUG,
			  "unwind information of %u of %u functions is damaged", dwt->damaged,
			  dwt->fdes + dwt->damaged);
}

static int give(const struct dwarf *d, const struct dwt *dwt, uint64_t file,
		const struct dwt_rows *all)
{
	uint32_t *words;
	uint64_t n;
	int err = dwt_pack(dwt, all, DWT_MACHINE_X86_64, &words, &n);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = d->self.host->unwinder->file_slab(d->self.in, file, words, n);
	free(words);
	return err < 0 ? err : 1;
}

static int inspect(void *ctx, uint64_t file)
{
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct dwt_rows all = {0};
	struct dwarf *d = ctx;
	struct dwt dwt;
	int err = d->self.host->unwinder->file_info(file, &info);

	if (err)
		return err;
	if (info.machine != DWT_MACHINE_X86_64)
		return 0;
	err = dwt_init(&dwt);
	take_segments(&dwt, &info);
	if (!err)
		err = collect(d, &dwt, file, &info, &all);
	if (!err)
		err = give(d, &dwt, file, &all);
	report(d, &dwt);
	dwt_rows_fini(&all);
	dwt_fini(&dwt);
	if (err == -EBADMSG)
		return fusee_fail(&d->self, err, "unwind information is damaged");
	if (err == -E2BIG)
		return fusee_fail(&d->self, err, "more unwind rows than a table can hold");
	return err < 0 ? fusee_fail(&d->self, err, "cannot make the unwind table") : err;
}

static const char *const reasons[] = DWARF_REASON_TEXTS;

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_NATIVE,
	.order = 10,
	.slab_version = DWARF_TABLE_VERSION,
	.frame_type = "native",
	.reasons = reasons,
	.bpf = dwarf_bpf,
	.bpf_end = dwarf_bpf_end,
	.native_step = fusee_step_dwarf,
	.inspect = inspect,
};

FUSEE_PLUGIN(dwarf, FUSEE_UNWINDER, .version = "0.1.0",
	     .doc = "Steps native code by .eh_frame, .debug_frame and Go's .gopclntab.",
	     .ctx_size = sizeof(struct dwarf), .init = fusee_self_init, .ops = &ops);
