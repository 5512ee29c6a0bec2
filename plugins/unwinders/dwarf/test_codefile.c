/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* What a file's symbols and relocations say of its code. */
#include "code/codefile.h"

#include <elf.h>

#include "lib/faults.h"
#include "test.h"
#include "cfi/x86_64.h"

#define TEXT 0x1000u

static struct part {
	const char *name;
	const void *p;
	uint64_t len, vaddr;
} sections[8];

static int section(uint64_t file, const char *name, struct fusee_section *s)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!sections[i].name || strcmp(sections[i].name, name))
			continue;
		s->bytes.p = sections[i].p;
		s->bytes.len = sections[i].len;
		s->vaddr = sections[i].vaddr;
		return 0;
	}
	return -ENOENT;
}

static const struct fusee_unwinder_host host = {.size = sizeof(host), .file_section = section};

/* The ELF entry is the first byte of the text. */
static struct fusee_file_info info = {.entry = TEXT};
static uint64_t unread, late, omitted; /* of the last call of rule_at() */
static struct rows known;              /* of described code */

/* The rule at a byte of the text. */
static uint32_t rule_at(uint32_t at)
{
	struct rows rows = {0};
	struct table_build build;
	uint32_t found = DWARF_RULE_NONE;

	CHECK_INT(table_build_init(&build), 0);
	build.text[0].lo = TEXT;
	build.text[0].hi = TEXT + (64u << 20);
	build.n_texts = 1;
	CHECK_INT(codefile_add(&build, &host, 1, &info, &known, &rows), 0);
	unread = build.unread;
	late = build.late;
	omitted = build.omitted;
	for (size_t i = 0; i < rows.n && ROW_VADDR(rows.p[i]) <= TEXT + at; i++)
		found = ROW_RULE(rows.p[i]);
	rows_fini(&rows);
	table_build_fini(&build);
	return found;
}

TEST(parts_of_functions)
{
	/* push %rbx; nop; pop %rbx; ret; 4: an endless loop, without a path to it */
	static const uint8_t code[] = {0x53, 0x90, 0x5b, 0xc3, 0x90, 0xeb, 0xfd};
	static const struct {
		const char *name;
		int function;
	} names[] = {
		{"f", 1},         {"f.cold", 0},   {"f.part.0.cold", 0}, {"f.cold.12", 0},
		{"f.__part.", 0}, {"f.colder", 1}, {"cold", 1},          {"", 1},
	};
	Elf64_Sym symbol = {.st_info = STT_FUNC, .st_shndx = 1, .st_value = TEXT + 4};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		/* the last byte is not in the table: a name without an end */
		uint64_t len = strlen(names[i].name);

		sections[0] = (struct part){".text", code, sizeof(code), TEXT};
		sections[1] = (struct part){".symtab", &symbol, sizeof(symbol), 0};
		sections[2] = (struct part){".strtab", names[i].name, len, 0};
		CHECK_INT(rule_at(1), DWARF_RULE_SP(2, 0));
		CHECK_INT(rule_at(4), names[i].function ? DWARF_RULE_SP(1, 0) : DWARF_RULE_NONE);
	}
	symbol.st_name = 100; /* outside of the names */
	CHECK_INT(rule_at(4), DWARF_RULE_SP(1, 0));
	memset(sections, 0, sizeof(sections));
}

/* Hand-written code calls with sp off a multiple of 16, so the way out proves nothing: but
 * described code leads to the function, and its path ends in code of a function that has a symbol.
 */
TEST(functions_that_described_code_leads_to)
{
	/* 0x20: push %rbx; mov %eax,%eax; pop %rbx; 0x24: ret. 0x40: call 0x60; jmp 0x24. 0x60: ret
	 */
	uint8_t code[0x61] = {0};
	static const uint8_t named[] = {0x53, 0x89, 0xc0, 0x5b, 0xc3},
			     stripped[] = {0xe8, 0x1b, 0, 0, 0, 0xeb, 0xdd};
	static const struct {
		uint8_t bytes[8]; /* lea 0x40(%rip),%rax; lea 0x40(%rip),%r9; call, jmp 0x40 */
		int leads;
	} refs[] = {{{0x48, 0x8d, 0x05, 0x39}, 1},
		    {{0x4c, 0x8d, 0x0d, 0x39}, 1},
		    {{0xe8, 0x3b}, 1},
		    {{0xe9, 0x3b}, 1},
		    {{0x48, 0x8d, 0x05, 0x3a}, 0},
		    {{0x48, 0x8d, 0x45, 0x39}, 0},
		    {{0xe8, 0xff, 0xff, 0xff, 0x7f}, 0}};
	Elf64_Sym symbol = {.st_info = STT_FUNC, .st_shndx = 1, .st_value = TEXT + 0x20};

	CHECK_INT(rows_add(&known, TEXT, DWARF_RULE_SP(1, 0)), 0);
	CHECK_INT(rows_add(&known, TEXT + 0x20, DWARF_RULE_NONE), 0);
	memcpy(code + 0x20, named, sizeof(named));
	memcpy(code + 0x40, stripped, sizeof(stripped));
	code[0x60] = 0xc3;
	sections[0] = (struct part){".text", code, sizeof(code), TEXT};
	sections[1] = (struct part){".symtab", &symbol, sizeof(symbol), 0};
	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		memcpy(code, refs[i].bytes, sizeof(refs[i].bytes));
		CHECK_INT(rule_at(0x21), DWARF_RULE_SP(2, 0));
		CHECK_INT(rule_at(0x40), refs[i].leads ? DWARF_RULE_SP(1, 0) : DWARF_RULE_NONE);
	}
	rows_fini(&known);
	memset(sections, 0, sizeof(sections));
}

/* The ELF entry aligns its stack, and no path goes on behind that: 0: lea 0x40(%rip),%rsi; and
 * $-16,%rsp; 11: call 0x30; hlt. 0x30: push %rbx; 0x31: jmp 0x31. 0x40: push %rbx; 0x41: call
 * *%rax; jmp 0x41 */
TEST(what_the_entry_calls)
{
	static const uint8_t entry[] = {0x48, 0x8d, 0x35, 0x39, 0, 0, 0, 0x48, 0x83,
					0xe4, 0xf0, 0xe8, 0x20, 0, 0, 0, 0xf4},
			     called[] = {0x53, 0xeb, 0xfe},
			     led_to[] = {0x53, 0xff, 0xd0, 0xeb, 0xfc};
	uint8_t code[0x50] = {0};

	memcpy(code, entry, sizeof(entry));
	memcpy(code + 0x30, called, sizeof(called));
	memcpy(code + 0x40, led_to, sizeof(led_to));
	sections[0] = (struct part){".text", code, sizeof(code), TEXT};
	CHECK_INT(rule_at(0x31), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule_at(0x41), DWARF_RULE_SP(2, 0));
	code[3]++; /* to the middle of a function: it would call with a stack that is not aligned */
	CHECK_INT(rule_at(0x41), DWARF_RULE_NONE);
	code[12]++; /* from where a call surely leads */
	CHECK_INT(rule_at(0x31), DWARF_RULE_SP(1, 0));
	code[11] = 0xe9; /* a jump ends the entry's code */
	CHECK_INT(rule_at(0x31), DWARF_RULE_NONE);
	memset(sections, 0, sizeof(sections));
}

#define FAR (5u << 20)

/* push %rbx; jmp FAR. 64: mov %eax,%eax; jmp FAR, without a path to it. FAR: mov %eax,%eax; pop
 * %rbx; ret. */
static uint8_t *large_text(uint64_t len)
{
	static const uint8_t first[] = {0x53, 0xe9, 0xfa, 0xff, 0x4f, 0},
			     second[] = {0x89, 0xc0, 0xe9, 0xb9, 0xff, 0x4f, 0},
			     far[] = {0x89, 0xc0, 0x5b, 0xc3};
	uint8_t *code = malloc(len);

	CHECK(code);
	memset(code, 0, len);
	memcpy(code, first, sizeof(first));
	memcpy(code + 64, second, sizeof(second));
	memcpy(code + FAR, far, sizeof(far));
	return code;
}

/* A large text is read in pieces: a jump to another piece is no call, unless a function begins
 * there. */
TEST(text_in_pieces)
{
	Elf64_Sym symbol = {.st_info = STT_FUNC, .st_shndx = 1, .st_value = TEXT + FAR};
	uint64_t len = 6u << 20;
	uint8_t *code = large_text(len);

	sections[0] = (struct part){".text", code, len, TEXT};
	CHECK_INT(rule_at(0), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule_at(1), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule_at(FAR), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule_at(FAR + 3), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule_at(64), DWARF_RULE_NONE);
	CHECK_INT(unread, 0);
	code[FAR + 2] = 0x90;
	sections[1] = (struct part){".symtab", &symbol, sizeof(symbol), 0};
	CHECK_INT(rule_at(64), DWARF_RULE_SP(1, 0));
	memset(sections, 0, sizeof(sections));
	free(code);
}

TEST(no_time_for_a_text)
{
	uint64_t len = 6u << 20;
	uint8_t *code = large_text(len);

	sections[0] = (struct part){".text", code, len, TEXT};
	codefile_cpu_ns = 0;
	CHECK_INT(rule_at(FAR), DWARF_RULE_NONE);
	CHECK_INT(unread, len);
	CHECK_INT(late, 0);
	codefile_cpu_ns = CODEFILE_CPU_NS;
	codefile_wall_ns = 0; /* of a CPU that others have */
	CHECK_INT(rule_at(FAR), DWARF_RULE_NONE);
	CHECK_INT(unread, len);
	CHECK_INT(late, len);
	codefile_wall_ns = CODEFILE_WALL_NS;
	memset(sections, 0, sizeof(sections));
	free(code);
}

/* Of a text that is far too large nothing is read, and that does not depend on how busy the CPUs
 * are. */
TEST(a_text_that_is_too_large_to_begin_with)
{
	uint64_t len = 6u << 20;
	uint8_t *code = large_text(len);

	sections[0] = (struct part){".text", code, len, TEXT};
	codefile_most = len;
	CHECK(rule_at(FAR) != DWARF_RULE_NONE);
	CHECK_INT(unread, 0);
	codefile_most = len - 1;
	codefile_wall_ns = 0;
	CHECK_INT(rule_at(FAR), DWARF_RULE_NONE);
	CHECK_INT(unread, len);
	CHECK_INT(late, 0);
	codefile_wall_ns = CODEFILE_WALL_NS;
	codefile_most = CODEFILE_MOST;
	memset(sections, 0, sizeof(sections));
	free(code);
}

/* In a brief table a step stops where code has no description, and takes as long as before where
 * it has one. */
TEST(omitted_in_a_brief_table)
{
	uint64_t described[] = {ROW(TEXT, DWARF_RULE_SP(1, 0)), ROW(TEXT + 256, DWARF_RULE_NONE)};
	uint64_t len = 6u << 20;
	uint8_t *code = large_text(len);
	uint32_t rule;

	known = (struct rows){.p = described, .n = 2};
	sections[0] = (struct part){".text", code, len, TEXT};
	rule = rule_at(FAR);
	CHECK(rule != DWARF_RULE_NONE && rule != DWARF_RULE_EXPRESSION);
	CHECK_INT(omitted, 0);
	info.flags = FUSEE_FILE_BRIEF;
	CHECK_INT(rule_at(FAR), DWARF_RULE_EXPRESSION);
	CHECK_INT(omitted, len - 256);
	CHECK_INT(unread, 0);
	CHECK_INT(rule_at(128), DWARF_RULE_NONE); /* the description's row stays */
	/* what is read in no time is not omitted, nor what is never read */
	sections[0].len = 4096;
	CHECK(rule_at(2048) != DWARF_RULE_EXPRESSION);
	CHECK_INT(omitted, 0);
	sections[0].len = len;
	codefile_most = len / 2;
	CHECK_INT(rule_at(FAR), DWARF_RULE_NONE);
	CHECK_INT(omitted, 0);
	codefile_most = CODEFILE_MOST;
	info.flags = 0;
	known = (struct rows){0};
	memset(sections, 0, sizeof(sections));
	free(code);
}

/* A piece that there is no memory for has no rows; those of the other piece stay. */
TEST(no_memory_for_a_piece)
{
	uint64_t len = 6u << 20;
	uint8_t *code = large_text(len);
	int kept = 0, none = 0;

	sections[0] = (struct part){".text", code, len, TEXT};
	for (faults_from(0); faults_next();) {
		struct table_build build;
		struct rows rows = {0};

		if (!table_build_init(&build)) {
			build.text[0].lo = TEXT;
			build.text[0].hi = TEXT + len;
			build.n_texts = 1;
			if (codefile_add(&build, &host, 1, &info, &known, &rows))
				none++;
			else
				kept += build.unread && build.unread < len && rows.n;
			CHECK(!rows.n || ROW_RULE(rows.p[rows.n - 1]) == DWARF_RULE_NONE);
		}
		rows_fini(&rows);
		table_build_fini(&build);
	}
	CHECK(kept && none);
	memset(sections, 0, sizeof(sections));
	free(code);
}

/* Zeros, bytes without an order, and one jump after another: reading ends, at most a piece after
 * its time. */
TEST(hostile_text_ends)
{
	uint64_t len = 24u << 20, v = 1;
	uint8_t *code = calloc(1, len);
	clock_t began;

	CHECK(code);
	codefile_cpu_ns = 200000000;
	sections[0] = (struct part){".text", code, len, TEXT};
	for (int kind = 0; kind < 3; kind++) {
		for (uint64_t i = 0; kind && i < len; i += 2) {
			v = v * 6364136223846793005u + 1442695040888963407u;
			code[i] = kind == 1 ? (uint8_t)(v >> 56) : 0x74;
			code[i + 1] = (uint8_t)(v >> 48);
		}
		began = clock();
		rule_at(0);
		/* `unread` says that the limit was met; a slow machine needs seconds to come to it
		 */
		CHECK(clock() - began < 60 * CLOCKS_PER_SEC);
		CHECK_INT(unread > 0, kind > 0);
	}
	codefile_cpu_ns = CODEFILE_CPU_NS;
	memset(sections, 0, sizeof(sections));
	free(code);
}

/* A stub of the PLT whose relocation has the name of a function that does not return. */
TEST(stubs_of_what_does_not_return)
{
	/* push %rbx; call 0x2000; 6: an endless loop */
	static const uint8_t code[] = {0x53, 0xe8, 0xfa, 0x0f, 0, 0, 0xeb, 0xfe};
	/* endbr64; bnd jmp *0x3000(,%rip): the word at 0x3000 */
	static const uint8_t plt[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x0f, 0, 0};
	static const uint8_t plain[] = {0xff, 0x25, 0xfa, 0x0f, 0, 0};
	static const char names[] = "\0__cxa_throw\0puts\0_ZSt19__throw_logic_errorPKc\0abortive";
	static const struct {
		uint32_t name;
		int returns;
	} cases[] = {{1, 0}, {13, 1}, {18, 0}, {48, 1}, {4000, 1}};
	Elf64_Sym symbols[2] = {{0}};
	Elf64_Rela rela = {0x3000, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0};

	sections[0] = (struct part){".text", code, sizeof(code), TEXT};
	sections[1] = (struct part){".plt.sec", plt, sizeof(plt), 0x2000};
	sections[2] = (struct part){".dynsym", symbols, sizeof(symbols), 0};
	sections[3] = (struct part){".dynstr", names, sizeof(names), 0};
	sections[4] = (struct part){".rela.plt", &rela, sizeof(rela), 0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		symbols[1].st_name = cases[i].name;
		CHECK_INT(rule_at(1), DWARF_RULE_SP(2, 0));
		CHECK_INT(rule_at(6), cases[i].returns ? DWARF_RULE_SP(2, 0) : DWARF_RULE_NONE);
	}
	symbols[1].st_name = 1;
	sections[1] = (struct part){".plt", plain, sizeof(plain), 0x2000};
	CHECK_INT(rule_at(6), DWARF_RULE_NONE);
	rela.r_info = ELF64_R_INFO(7, R_X86_64_JUMP_SLOT); /* no such symbol */
	CHECK_INT(rule_at(6), DWARF_RULE_SP(2, 0));
	memset(sections, 0, sizeof(sections));
}

/* The rule at a byte of a table of stubs; NONE where the section has another form. */
static uint32_t stub_rule(const uint8_t *code, uint64_t len, uint32_t at)
{
	struct table_build build;
	struct rows rows = {0};
	uint32_t found = DWARF_RULE_NONE;

	CHECK_INT(table_build_init(&build), 0);
	build.text[0].lo = TEXT;
	build.text[0].hi = TEXT + 0x1000;
	build.n_texts = 1;
	sections[0] = (struct part){".plt", code, len, TEXT};
	CHECK_INT(codefile_add_plt(&build, &host, 1, ".plt", &rows), 0);
	for (size_t i = 0; i < rows.n && ROW_VADDR(rows.p[i]) <= TEXT + at; i++)
		found = ROW_RULE(rows.p[i]);
	rows_fini(&rows);
	table_build_fini(&build);
	memset(sections, 0, sizeof(sections));
	return found;
}

TEST(stubs_of_linkers)
{
	/* bfd, lld: push n(%rip); jmp *n(%rip); nopl; 16: jmp *n(%rip); push $0; jmp 0 */
	static const uint8_t lazy[] = {0xff, 0x35, 1,    0,    0, 0,    0xff, 0x25, 1,    0,   0,
				       0,    0x0f, 0x1f, 0x40, 0, 0xff, 0x25, 1,    0,    0,   0,
				       0x68, 0,    0,    0,    0, 0xe9, 0xe0, 0xff, 0xff, 0xff};
	/* mold: endbr64; push %r11; push n(%rip); jmp *n(%rip) */
	static const uint8_t mold[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35, 1,
				       0,    0,    0,    0xff, 0x25, 1,    0,    0,    0};
	uint8_t other[sizeof(lazy)];

	CHECK_INT(stub_rule(lazy, sizeof(lazy), 0), DWARF_RULE_SP(2, 0));
	CHECK_INT(stub_rule(lazy, sizeof(lazy), 6), DWARF_RULE_SP(3, 0));
	CHECK_INT(stub_rule(lazy, sizeof(lazy), 12), DWARF_RULE_NONE);
	CHECK_INT(stub_rule(lazy, sizeof(lazy), 16), DWARF_RULE_SP(1, 0));
	CHECK_INT(stub_rule(lazy, sizeof(lazy), 22), DWARF_RULE_SP(1, 0));
	CHECK_INT(stub_rule(lazy, sizeof(lazy), 27), DWARF_RULE_SP(2, 0));
	CHECK_INT(stub_rule(lazy, sizeof(lazy), sizeof(lazy)), DWARF_RULE_NONE);
	CHECK_INT(stub_rule(mold, sizeof(mold), 0), DWARF_RULE_SP(1, 0));
	CHECK_INT(stub_rule(mold, sizeof(mold), 6), DWARF_RULE_SP(2, 0));
	CHECK_INT(stub_rule(mold, sizeof(mold), 12), DWARF_RULE_SP(3, 0));
	for (uint64_t n = 0; n < 6; n++) /* truncated */
		CHECK_INT(stub_rule(lazy, n, 0), DWARF_RULE_NONE);
	memcpy(other, lazy, sizeof(lazy));
	other[27] = 0xe8; /* a call: of another form */
	CHECK_INT(stub_rule(other, sizeof(other), 16), DWARF_RULE_NONE);
}
