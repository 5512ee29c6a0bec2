/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "dwarf": makes tables of rows from the unwind information that compilers write for
 * exceptions and debuggers. Its step is dwarf.bpf.c; dwarf.md describes its limits. */
#include <errno.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

#include <fusee/helpers.h>

#include "cfi/cfi.h"
#include "code/codefile.h"
#include "go/gorows.h"
#include "code/madefile.h"
#include "reasons.h"
#include "cfi/x86_64.h"

int fusee_step_dwarf(struct fusee_unwind *u);
FUSEE_EMBED(dwarf_bpf, "dwarf.bpf.o");

struct dwarf {
	struct fusee_self self;
};

/* The executable segments: only their addresses get rows. */
static void read_segments(struct table_build *build, const struct fusee_file_info *info)
{
	FUSEE_FOR_EACH (struct fusee_segment, s, info->segments) {
		uint64_t hi;

		if (!(s->flags & 1) || build->n_texts == TABLE_MAX_TEXTS ||
		    __builtin_add_overflow(s->vaddr, s->filesz, &hi) || hi >= TABLE_MAX_ADDRESS)
			continue;
		build->text[build->n_texts].lo = s->vaddr;
		build->text[build->n_texts++].hi = hi;
	}
}

/* ---- sources ---- */

static int add_cfi(const struct dwarf *d, struct table_build *build, uint64_t file, int debug,
		   struct sheet *all)
{
	struct fusee_section s;
	struct sheet rows = {0};
	struct cfi_section in;
	int err = fusee_file_section(d->self.host->unwinder, file,
				     debug ? ".debug_frame" : ".eh_frame", &s);

	if (err)
		return err == -ENOENT ? 0 : err;
	in = (struct cfi_section){(const uint8_t *)s.bytes.p, s.bytes.len, s.vaddr, debug};
	err = cfi_read(build, &in, &rows);
	if (!err || err == -EBADMSG) {
		int err2 = sheet_add(all, &rows);

		return err2 ? err2 : err;
	}
	sheet_fini(&rows);
	return err;
}

static int add_go(const struct dwarf *d, struct table_build *build, uint64_t file,
		  struct sheet *all)
{
	struct rows rows = {0};
	struct fusee_go_table go;
	int err = fusee_go_find(&go, d->self.host->unwinder, file);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = go_read(build, &go, &rows);
	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err;
}

/* ---- hand-written code without a description ---- */

/* The bytes of returns from signal handlers and of starts of threads and fibers. */
static const struct pattern {
	const char *bytes;
	uint8_t len;
	uint8_t before; /* 1 if callers are return addresses: the step looks up the byte before */
	uint8_t kind;
	bool undescribed; /* looked for only if the file describes no return from signal handlers */
} patterns[] = {
	/* libc's return from a signal handler: mov $15,%rax; syscall */
	{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, 1, DWARF_SIGNAL, true},
	/* musl's start of a thread: xor %ebp,%ebp; pop %rdi; call *%r9; mov %eax,%edi; xor
	   %eax,%eax; mov $60,%al; syscall */
	{"\x31\xed\x5f\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c\x0f\x05", 14, 0, DWARF_END, true},
	/* glibc's __start_context, to which a function of makecontext() returns: mov %rbx,%rsp; mov
	   (%rsp),%rdi; test %rdi,%rdi; je 2f; call __setcontext */
	{"\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8", 13, 1, DWARF_END, false},
	/* make_fcontext of Boost and PHP: push %rbp; jmp *%rbx; finish: xor %rdi,%rdi; call
	 * _exit */
	{"\x55\xff\xe3\x48\x31\xff\xe8", 7, 0, DWARF_END, false},
};

#define MAX_FIBER_TEXT (8u << 20) /* bytes of text that are searched for fibers alone */

static uint64_t text_bytes(const struct table_build *build)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < build->n_texts; i++)
		sum += build->text[i].hi - build->text[i].lo;
	return sum;
}

/* Adds the rule of the first place that has these bytes, if there is one. */
static int add_pattern(struct table_build *build, const struct pattern *p,
		       const struct fusee_section *s, struct sheet *all)
{
	const char *at = memmem(s->bytes.p, s->bytes.len, p->bytes, p->len);
	struct rows rows = {0};
	uint64_t lo, hi;
	int err;

	if (!at)
		return 0;
	lo = s->vaddr + (uint64_t)(at - s->bytes.p);
	hi = lo + p->len;
	if (at - s->bytes.p >= 5 && !memcmp(at - 4, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		lo -= 4;
	lo -= lo - s->vaddr >= p->before ? p->before : 0;
	if (!table_in_text(build, lo, hi))
		return 0;
	err = rows_add(&rows, lo, table_special(build, p->kind, 0, 0, 0));
	if (!err)
		err = rows_add(&rows, hi, DWARF_RULE_NONE);
	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err;
}

static int add_patterns(const struct dwarf *d, struct table_build *build, uint64_t file,
			struct sheet *all)
{
	const bool described = build->signals;
	struct fusee_section s;
	int err = 0;

	if ((described && text_bytes(build) > MAX_FIBER_TEXT) ||
	    fusee_file_section(d->self.host->unwinder, file, ".text", &s))
		return 0;
	for (size_t i = 0; !err && i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!patterns[i].undescribed || !described)
			err = add_pattern(build, &patterns[i], &s, all);
	return err;
}

/* Adds rows for .init or .fini. Its instructions come from several object files and have no
 * description: sub $8,%rsp; calls; add $8,%rsp; ret. */
static int add_init(const struct dwarf *d, struct table_build *build, uint64_t file,
		    const char *name, struct sheet *all)
{
	static const char head[] = "\x48\x83\xec\x08", tail[] = "\x48\x83\xc4\x08\xc3";
	struct rows rows = {0};
	struct fusee_section s;
	uint64_t in, out;
	int err;

	if (fusee_file_section(d->self.host->unwinder, file, name, &s) || s.bytes.len < 9 ||
	    !table_in_text(build, s.vaddr, s.vaddr + s.bytes.len))
		return 0;
	in = !memcmp(s.bytes.p, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0; /* endbr64 */
	out = s.bytes.len - 5;
	if (in + 4 > out || memcmp(s.bytes.p + in, head, 4) || memcmp(s.bytes.p + out, tail, 5))
		return 0;
	err = rows_add(&rows, s.vaddr, DWARF_RULE_SP(1, 0));
	if (!err)
		err = rows_add(&rows, s.vaddr + in + 4, DWARF_RULE_SP(2, 0));
	if (!err)
		err = rows_add(&rows, s.vaddr + out + 4, DWARF_RULE_SP(1, 0));
	if (!err)
		err = rows_add(&rows, s.vaddr + s.bytes.len, DWARF_RULE_NONE);
	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err;
}

/* Adds rows for the stubs that lead to other files; of the linkers only those of binutils describe
 * them. */
static int add_plt(const struct dwarf *d, struct table_build *build, uint64_t file,
		   struct sheet *all)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		struct rows rows = {0};

		err = codefile_add_plt(build, d->self.host->unwinder, file, names[i], &rows);
		if (!err && rows.n)
			err = sheet_add_rules(all, &rows);
		else
			rows_fini(&rows);
	}
	return err;
}

/* Memory that add_code() keeps free for the table: bytes for each row, and in addition. */
#define SPARE_OF_ROW 24u
#define SPARE (1u << 20)

/* Adds rows for the code that has none, by following its instructions. If there is too little
 * memory for these, the rows of the unwind information are kept. */
static int add_code(const struct dwarf *d, struct table_build *build, uint64_t file,
		    const struct fusee_file_info *info, struct sheet *all)
{
	struct rows rows = {0};
	void *spare = malloc(SPARE + SPARE_OF_ROW * (all->rules.n + all->saves.n));
	int err = -ENOMEM;

	if (spare)
		err = codefile_add(build, d->self.host->unwinder, file, info, &all->rules, &rows);
	free(spare);
	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err == -ENOMEM && all->rules.n ? 0 : err;
}

#define PADDING 64u /* bytes between functions, at most */

/* Text of a brief table that has no description: a step there stops, and the sample waits until the
 * code has been read. If there is so much that it would not be read then, nothing is omitted. */
static int omit(struct table_build *build, struct sheet *all)
{
	const struct rows *known = &all->rules;
	struct rows rows = {0};
	uint64_t gaps = text_bytes(build);
	int err = 0;

	for (size_t i = 0; i + 1 < known->n; i++) {
		uint64_t bytes = ROW_VADDR(known->p[i + 1]) - ROW_VADDR(known->p[i]);

		if (ROW_RULE(known->p[i]) != DWARF_RULE_NONE || bytes <= PADDING)
			gaps -= bytes;
	}
	if (gaps > codefile_most) {
		build->unread += gaps;
		return 0;
	}
	for (uint32_t i = 0; i < build->n_texts && !err; i++) {
		err = rows_add(&rows, build->text[i].lo, DWARF_RULE_EXPRESSION);
		if (!err)
			err = rows_add(&rows, build->text[i].hi, DWARF_RULE_NONE);
	}
	build->omitted += text_bytes(build);
	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err;
}

/* Does a program begin at the entry? Old linkers set the entry of a library to the start of
 * .text. */
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

/* Adds the rule END for the code at the entry, as not all descriptions have it: up to its last
 * instruction, or to where a description has the next function. */
static int add_entry(const struct dwarf *d, struct table_build *build, uint64_t file,
		     const struct fusee_file_info *info, struct sheet *all)
{
	uint64_t hi;

	if (!is_entry(d, file, info) || !table_in_text(build, info->entry, info->entry + 1))
		return 0;
	hi = codefile_entry_end(d->self.host->unwinder, file, info->entry);
	for (size_t i = 0; i < all->rules.n; i++) {
		uint64_t at = ROW_VADDR(all->rules.p[i]);

		if (at > info->entry && at < hi &&
		    (ROW_RULE(all->rules.p[i]) == DWARF_RULE_NONE ||
		     ROW_RULE(all->rules.p[i]) == DWARF_RULE_SP(1, 0)))
			hi = at;
	}
	while (hi > info->entry && !table_in_text(build, info->entry, hi))
		hi--;
	return hi > info->entry ? rows_force(&all->rules, info->entry, hi, DWARF_RULE_END) : 0;
}

/* ---- the table ---- */

/* Adds rows for code that was made at run time. -ENOENT: the file is a real file. */
static int add_made(const struct dwarf *d, struct table_build *build, uint64_t file,
		    struct sheet *all)
{
	struct rows rows = {0};
	int err = madefile_add(build, d->self.host->unwinder, file, &rows);

	if (!err)
		return sheet_add_rules(all, &rows);
	rows_fini(&rows);
	return err;
}

static int collect(const struct dwarf *d, struct table_build *build, uint64_t file,
		   const struct fusee_file_info *info, struct sheet *all)
{
	bool brief = info->flags & FUSEE_FILE_BRIEF && text_bytes(build) > CODEFILE_LONG;
	int damaged = 0, err = add_made(d, build, file, all);

	if (err != -ENOENT)
		return err;
	err = 0;

	/* .debug_frame comes last: Go makes it from the same numbers as .gopclntab, without rbp and
	 * ends of stacks. */
	for (int i = 0; i < 3 && !err; i++) {
		err = i == 1 ? add_go(d, build, file, all) : add_cfi(d, build, file, i == 2, all);
		if (err == -EBADMSG) {
			damaged = err;
			err = 0;
		}
	}
	if (!err && !brief)
		err = add_patterns(d, build, file, all);
	if (!err)
		err = add_init(d, build, file, ".init", all);
	if (!err)
		err = add_init(d, build, file, ".fini", all);
	if (!err)
		err = add_entry(d, build, file, info, all);
	if (!err)
		err = add_plt(d, build, file, all);
	if (!err)
		err = brief ? omit(build, all) : add_code(d, build, file, info, all);
	if (!err && !all->rules.n && (damaged || build->damaged))
		return -EBADMSG;
	return err;
}

static void report(const struct dwarf *d, const struct table_build *build)
{
	if (build->damaged)
		fusee_log(&d->self, FUSEE_DEBUG,
			  "unwind information of %u of %u functions is damaged", build->damaged,
			  build->fdes + build->damaged);
	if (build->unread)
		fusee_log(
			&d->self, FUSEE_DEBUG,
			"%llu bytes of code without unwind information have no rows: it would take "
			"too long",
			(unsigned long long)build->unread);
}

/* Packs the rows and hands the table to the host. 1; 0: there are no rows; or -errno. */
static int set_table(const struct dwarf *d, const struct table_build *build, uint64_t file,
		     struct sheet *all)
{
	uint32_t *words;
	uint64_t n;
	int err = table_pack(build, all, X86_64_MACHINE, &words, &n);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = d->self.host->unwinder->file_slab(d->self.in, file, words, n);
	free(words);
	return err < 0 ? err : 1;
}

static int inspect(void *ctx, uint64_t file)
{
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct sheet all = {0};
	struct dwarf *d = ctx;
	struct table_build build;
	int err = d->self.host->unwinder->file_info(file, &info);

	if (err)
		return err;
	if (info.machine != X86_64_MACHINE)
		return 0;
	err = table_build_init(&build);
	read_segments(&build, &info);
	if (!err)
		err = collect(d, &build, file, &info, &all);
	if (!err)
		err = set_table(d, &build, file, &all);
	report(d, &build);
	sheet_fini(&all);
	table_build_fini(&build);
	if (err == -EBADMSG)
		return fusee_fail(&d->self, err, "unwind information is damaged");
	if (err == -E2BIG)
		return fusee_fail(&d->self, err, "more unwind rows than a table can hold");
	if (err < 0)
		return fusee_fail(&d->self, err, "cannot make the unwind table");
	return err && (build.late || build.omitted) ? 2 : err;
}

static const char *const reasons[] = DWARF_REASON_TEXTS;

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_NATIVE | FUSEE_UNWINDER_PAGED,
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
