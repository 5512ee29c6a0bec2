/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <elf.h>
#include <stdlib.h>

#include "collections.h"
#include "facts.h"
#include "fibers.h"
#include "versions.h"

#define LARGE                                                                              \
	8192 /* vm_exec_core() has 16 KiB and more; no function that it is searched in has \
	      */

/* ---- the interpreter's functions ---- */

/* The bytes of vm_exec_core() until it has its control frame, ec->cfp, in r15; 0: not found. */
static uint32_t end_of_prologue(const struct fusee_code *c)
{
	/* mov 16(%reg),%r15 */
	for (uint32_t i = 0; i + 4 <= c->n && i < 256; i++)
		if (c->at[i] == 0x4c && c->at[i + 1] == 0x8b && (c->at[i + 2] & 0xf8) == 0x78 &&
		    c->at[i + 3] == 16)
			return i + 4;
	return 0;
}

#define NEAR 128 /* the most bytes from the beginning of a function's end to its ret */

/* Returns the byte behind the first pop, ret at or soon behind `from`. 0: there is none. */
static uint32_t end_of_return(const struct fusee_code *c, uint32_t from)
{
	for (uint32_t i = from; i + 2 <= c->n && i < from + NEAR; i++)
		if ((c->at[i] & 0xf8) == 0x58 && c->at[i + 1] == 0xc3)
			return i + 2;
	return 0;
}

/* The target of the jmp or je at byte i. c->n: there is none, or it leaves the function. */
static uint32_t jump_at(const struct fusee_code *c, uint32_t i)
{
	const unsigned char *p = c->at + i;
	uint64_t to = p[0] == 0xe9                     ? i + 5 + (uint64_t)fusee_code_s32(p + 1)
		      : p[0] == 0x0f && p[1] == 0x84   ? i + 6 + (uint64_t)fusee_code_s32(p + 2)
		      : (p[0] == 0xeb || p[0] == 0x74) ? i + 2 + (uint64_t)(signed char)p[1]
						       : c->n;

	return to < c->n ? (uint32_t)to : c->n;
}

/* Finds the end of vm_exec_core(): from the check of the stack's canary to the ret. */
static void find_core_end(const struct fusee_code *c, uint32_t words[2])
{
	static const unsigned char canary[] = {0x64, 0x48, 0x2b,
					       0x04, 0x25, 0x28}; /* sub %fs:40,%rax */

	for (uint32_t i = 8; i + sizeof(canary) <= c->n; i++) {
		if (memcmp(c->at + i, canary, sizeof(canary)))
			continue;
		words[1] = end_of_return(c, i);
		/* mov D(%rsp),%rax before it */
		words[0] = words[1] ? i - (c->at[i - 5] == 0x48 ? 5 : 8) : 0;
		if (words[1])
			return;
	}
}

/* Finds where rb_vm_exec() returns after its call of vm_exec_core(): right behind the call, or at
 * the target of a jump there. */
static void find_exec_end(const struct fusee_code *c, uint64_t core, uint32_t *words)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i + 5 <= c->n && !at; i++)
		if (c->at[i] == 0xe8 && fusee_code_target(c, i + 5) == core)
			at = i + 5;
	if (!at)
		return;
	words[0] = at;
	words[1] = end_of_return(c, at);
	for (uint32_t i = at; i + 6 <= c->n && i < at + 48 && !words[1]; i++) {
		uint32_t to = jump_at(c, i);

		if (to == c->n || !end_of_return(c, to))
			continue;
		words[1] = i + 6;
		words[2] = to;
		words[3] = end_of_return(c, to);
	}
}

#define AFTER_JIT 24 /* bytes in which rb_vm_exec() compares what code of YJIT returned */

/* The immediate of cmpq $imm8,.. at p, where 9 bytes can be read; 0: it is another instruction. */
static uint32_t compared(const unsigned char *p)
{
	uint32_t mode = p[2] >> 6, sib = (p[2] & 7) == 4;

	if (p[0] != 0x48 || p[1] != 0x83 || (p[2] & 0x38) != 0x38)
		return 0;
	return mode == 3 ? p[3] : mode == 1 ? p[4 + sib] : mode == 2 ? p[7 + sib] : 0;
}

/* Finds where rb_vm_exec() calls code of YJIT and compares what that returns: call *%rax; ..; cmpq
 * $Qundef,.. */
static void find_jit_calls(const struct fusee_code *c, uint32_t *words)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 2 + AFTER_JIT + 9 <= c->n && n < 4; i++) {
		uint32_t undef = 0;

		if (c->at[i] != 0xff || c->at[i + 1] != 0xd0)
			continue;
		for (uint32_t k = i + 2; k < i + 2 + AFTER_JIT && !undef; k++)
			undef = compared(c->at + k);
		if (!undef)
			continue;
		words[RUBY_EXEC_JIT + n] = i + 2;
		words[RUBY_EXEC_JIT + n + 1] = i + 2 + AFTER_JIT;
		words[RUBY_UNDEF] = undef;
		n += 2;
	}
}

/* Finds where the functions begin and end, and the core's cold part. 0 or -errno. */
static int find_parts(struct ruby_file *in)
{
	struct fusee_code c;
	int err;

	if (in->core.hi) {
		err = fusee_read_code(in->host, in->file, in->exec, &c);
		if (err)
			return err;
		find_exec_end(&c, in->core.lo, in->words + RUBY_EXEC_END);
		find_jit_calls(&c, in->words);
		free(c.at);
	}
	err = fusee_read_code(in->host, in->file, in->core.hi ? in->core : in->exec, &c);
	if (err)
		return err;
	fusee_find_cold(in->host, in->file, &c, &in->cold);
	in->words[RUBY_CORE_BEGIN_TO] = end_of_prologue(&c);
	find_core_end(&c, in->words + RUBY_CORE_END);
	free(c.at);
	return 0;
}

/* Is it vm_exec_core(), by its size and its prologue? */
static int is_core(const struct ruby_file *in, struct fusee_range r)
{
	struct fusee_code c;
	int is;

	if (r.hi - r.lo < LARGE || fusee_read_code(in->host, in->file, r, &c))
		return 0;
	is = end_of_prologue(&c) != 0;
	free(c.at);
	return is;
}

/* Adds the functions that function i of the search calls. 1: one of them is vm_exec_core(), so that
 * function i is rb_vm_exec(). */
static int follow(struct ruby_file *in, struct ruby_search *s, uint32_t i)
{
	struct fusee_range at;
	struct fusee_code c;

	if (fusee_read_code(in->host, in->file, s->at[i], &c))
		return 0;
	for (uint32_t k = 0; k + 5 <= c.n && !in->core.hi; k++) {
		if ((c.at[k] & 0xfe) != 0xe8 || !ruby_begins(in, fusee_code_target(&c, k + 5), &at))
			continue;
		if (is_core(in, at)) {
			in->exec = s->at[i];
			in->core = at;
		}
		ruby_search_add(s, at);
	}
	free(c.at);
	return in->core.hi != 0;
}

/* Finds rb_vm_exec() and vm_exec_core(). Stripped libraries from 3.3 on have no symbol of
 * rb_vm_exec(): it is searched among the callees of functions that run methods. 0 or -errno. */
static int find_code(struct ruby_file *in)
{
	static const char *const from[] = {"rb_vm_exec", "rb_yield", "rb_funcallv"};
	struct ruby_search s = {.n = 0};
	struct fusee_range at;

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		if (!ruby_function(in, from[i], &at)) {
			if (is_core(in, at)) {
				in->exec = at;
				return find_parts(in);
			}
			ruby_search_add(&s, at);
		}
	for (uint32_t i = 0; i < s.n; i++)
		if (follow(in, &s, i))
			return find_parts(in);
	return -ENOENT;
}

/* ---- the table of symbols ---- */

#define REFERENCES 64

struct references {
	uint64_t at[REFERENCES];
	uint32_t n;
};

/* Adds the addresses, relative to rip, of memory that the code reads or compares. */
static void add_references(struct references *r, const struct fusee_code *c)
{
	for (uint32_t i = 1; i + 5 <= c->n && r->n < REFERENCES; i++)
		if ((c->at[i] & 0xc7) == 5 &&
		    (c->at[i - 1] == 0x8b || c->at[i - 1] == 0x39 || c->at[i - 1] == 0x3b))
			r->at[r->n++] = fusee_code_target(c, i + 5);
}

/* Finds the table of symbols: rb_id2str(), or a function that it calls, reads its last_id, and its
 * ids 16 bytes behind. */
static void find_symbols(struct ruby_file *in)
{
	struct references r = {.n = 0};
	struct fusee_range at;
	struct fusee_code c, next;

	if (ruby_function(in, "rb_id2str", &at) || fusee_read_code(in->host, in->file, at, &c))
		return;
	add_references(&r, &c);
	for (uint32_t i = 0; i + 5 <= c.n; i++) {
		if ((c.at[i] & 0xfe) != 0xe8 ||
		    !ruby_begins(in, fusee_code_target(&c, i + 5), &at) ||
		    fusee_read_code(in->host, in->file, at, &next))
			continue;
		add_references(&r, &next);
		free(next.at);
	}
	free(c.at);
	for (uint32_t i = 0; i < r.n; i++)
		for (uint32_t k = 0; k < r.n; k++)
			if (r.at[k] == r.at[i] + 16)
				ruby_set_address(in->words + RUBY_SYMBOLS, r.at[i]);
}

/* ---- the execution context ---- */

/* 2.7: finds the key of the thread-specific data, a variable that ruby_native_thread_p() passes to
 * pthread_getspecific(). 0 or -errno. */
static int find_key(struct ruby_file *in)
{
	struct fusee_range at;
	struct fusee_code c;
	int err = -ENOENT;

	if (ruby_function(in, "ruby_native_thread_p", &at) ||
	    fusee_read_code(in->host, in->file, at, &c))
		return err;
	/* mov key(%rip),%edi */
	for (uint32_t i = 0; i + 6 <= c.n && err; i++)
		if (c.at[i] == 0x8b && c.at[i + 1] == 0x3d) {
			ruby_set_address(in->words + RUBY_CONTEXT, fusee_code_target(&c, i + 6));
			err = 0;
		}
	free(c.at);
	return err;
}

#define CONTEXT "ruby_current_ec"

/* Is symbol `index` of .dynsym that of the execution context? Sets *offset to its value. */
static int is_context(const struct ruby_file *in, uint64_t index, uint64_t *offset)
{
	struct fusee_section symbols = FUSEE_SIZED(struct fusee_section),
			     names = FUSEE_SIZED(struct fusee_section);
	char name[sizeof(CONTEXT)];
	Elf64_Sym s;

	if (in->host->file_section(in->file, ".dynsym", &symbols) ||
	    in->host->file_section(in->file, ".dynstr", &names) ||
	    index >= symbols.bytes.len / sizeof(s))
		return 0;
	memcpy(&s, (const char *)symbols.bytes.p + index * sizeof(s), sizeof(s));
	if (s.st_name >= names.bytes.len || names.bytes.len - s.st_name < sizeof(name))
		return 0;
	memcpy(name, (const char *)names.bytes.p + s.st_name, sizeof(name));
	*offset = s.st_value;
	return !memcmp(name, CONTEXT, sizeof(name)) && (s.st_info & 15) == STT_TLS;
}

/* Finds the context in a shared library, where it is a thread-local variable: its two words in the
 * GOT have a relocation. 0 or -errno. */
static int find_in_library(struct ruby_file *in)
{
	struct fusee_section s = FUSEE_SIZED(struct fusee_section);
	uint64_t offset;
	Elf64_Rela r;

	if (in->host->file_section(in->file, ".rela.dyn", &s))
		return -ENOENT;
	for (uint64_t i = 0; i < s.bytes.len / sizeof(r); i++) {
		memcpy(&r, (const char *)s.bytes.p + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_X86_64_DTPMOD64 ||
		    !is_context(in, ELF64_R_SYM(r.r_info), &offset) || offset > INT32_MAX)
			continue;
		in->words[RUBY_BY] = RUBY_BY_MODULE;
		ruby_set_address(in->words + RUBY_CONTEXT, r.r_offset);
		in->words[RUBY_CONTEXT_OFFSET] = (uint32_t)offset;
		return 0;
	}
	return -ENOENT;
}

/* The size of the program's thread-local variables, which end at the thread pointer; 0: there are
 * none. */
static uint64_t tls_size(const struct ruby_file *in, const struct fusee_file_info *info)
{
	const struct fusee_segment *first = info->segments.at;
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (!info->segments.n ||
	    in->host->file_read(in->file, first->vaddr - first->offset, &e, sizeof(e)))
		return 0;
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		if (in->host->file_read(in->file,
					first->vaddr - first->offset + e.e_phoff + i * sizeof(p),
					&p, sizeof(p)))
			return 0;
		if (p.p_type == PT_TLS && p.p_align && p.p_memsz < 1u << 24)
			return (p.p_memsz + p.p_align - 1) / p.p_align * p.p_align;
	}
	return 0;
}

/* Finds the context from 3.3 on, where it has no symbol: rb_yield() begins with a read of it, in
 * the library's block of thread-local variables. 0 or -errno. */
static int find_in_code(struct ruby_file *in)
{
	struct fusee_range at;
	uint64_t got, block;
	int64_t offset;
	struct fusee_code c;
	int err = -ENOENT;

	if (ruby_function(in, "rb_yield", &at) || fusee_read_code(in->host, in->file, at, &c))
		return -ENOENT;
	/* lea got(%rip),%rdi; call __tls_get_addr; mov offset(%rax),%reg */
	for (uint32_t i = 0; i + 19 <= c.n && i < 128 && err; i++) {
		got = fusee_code_target(&c, i + 7);
		if (memcmp(c.at + i, "\x48\x8d\x3d", 3) || c.at[i + 7] != 0xe8 ||
		    !ruby_load(c.at + i + 12, &offset) ||
		    in->host->file_read(in->file, got + 8, &block, sizeof(block)))
			continue;
		in->words[RUBY_BY] = RUBY_BY_MODULE;
		ruby_set_address(in->words + RUBY_CONTEXT, got);
		in->words[RUBY_CONTEXT_OFFSET] = (uint32_t)(block + (uint64_t)offset);
		err = 0;
	}
	free(c.at);
	return err;
}

/* Finds the context among the thread-local variables of a program. 0 or -errno. */
static int find_in_program(struct ruby_file *in, const struct fusee_file_info *info)
{
	struct fusee_section s = FUSEE_SIZED(struct fusee_section);
	uint64_t size = tls_size(in, info), offset;

	if (!size || in->host->file_section(in->file, ".dynsym", &s))
		return -ENOENT;
	for (uint64_t i = 0; i < s.bytes.len / sizeof(Elf64_Sym); i++)
		if (is_context(in, i, &offset) && offset < size) {
			in->words[RUBY_BY] = RUBY_BY_OFFSET;
			in->words[RUBY_CONTEXT_OFFSET] = (uint32_t)(offset - size);
			return 0;
		}
	return -ENOENT;
}

static int find_context(struct ruby_file *in, const struct fusee_file_info *info)
{
	if (in->words[RUBY_BY] == RUBY_BY_KEY)
		return find_key(in);
	if (!find_in_library(in) || !find_in_program(in, info))
		return 0;
	return find_in_code(in);
}

/* ---- all of it ---- */

static int claim(const struct ruby_file *in, struct fusee_range at, uint64_t arg)
{
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim, .flags = in->claim_flags,
					   .range = at, .arg = arg);

	return at.lo < at.hi ? in->host->file_claim(in->self->in, in->file, &c) : 0;
}

static uint32_t claim_flags(const struct ruby_file *in)
{
	static const char *const own[] = {"rb_", "ruby_", "onig", "st_", "Init_", NULL};

	return fusee_exports_mostly(in->host, in->file, own)
		       ? FUSEE_CLAIM_STEP | FUSEE_CLAIM_INTERPRETER
		       : FUSEE_CLAIM_STEP;
}

/* Makes the table and claims the code. 1 or -errno. */
static int publish(struct ruby_file *in)
{
	int err = in->host->file_slab(in->self->in, in->file, in->words, RUBY_WORDS);

	if (!err)
		err = claim(in, in->exec, in->core.hi ? RUBY_EXEC : RUBY_CORE);
	if (!err)
		err = claim(in, in->core, RUBY_CORE);
	if (!err)
		err = claim(in, in->cold, RUBY_COLD);
	for (int i = 0; i < 2 && !err; i++)
		err = claim(in, in->coroutine[i], RUBY_COROUTINE);
	return err ? err : 1;
}

/* Says what contradicts the table of this version, if anything does. r: what inspect() returns. */
static int doubt(const struct ruby_file *in, const char *version, int r)
{
	struct fusee_doubt d = ruby_check_facts(in->host, in->file, in->words);

	if (!d.function)
		return r;
	if (d.missing)
		return fusee_fail(
			in->self, r,
			"whether Ruby %s is laid out as releases that were tried (%s) is not "
			"known: it has no %s()",
			version, ruby_tested, d.function);
	return fusee_fail(
		in->self, r,
		"Ruby %s may be laid out otherwise than releases that were tried (%s): its "
		"%s() does not use offset %u",
		version, ruby_tested, d.function, d.offset);
}

int ruby_inspect(const struct fusee_self *self, uint64_t file)
{
	struct ruby_file in = {.self = self, .host = self->host->unwinder, .file = file};
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct fusee_range at;
	char version[8] = "";
	int r;

	if (in.host->file_info(file, &info) || info.machine != 62 ||
	    in.host->file_symbol(file, "ruby_version", &at) ||
	    in.host->file_symbol(file, "rb_id2str", &(struct fusee_range){0}) ||
	    in.host->file_read(file, at.lo, version, sizeof(version) - 1))
		return 0;
	if (ruby_version_words(version, in.words))
		return fusee_fail(self, -ENOTSUP, "Ruby %s is not known: only 2.7 to 3.3 are",
				  version);
	if (find_code(&in))
		return fusee_fail(self, -ENOENT, "the interpreter of Ruby %s was not found in it",
				  version);
	if (find_context(&in, &info))
		return fusee_fail(self, -ENOENT,
				  "the execution contexts of Ruby %s were not found in it",
				  version);
	find_symbols(&in);
	ruby_find_coroutines(&in);
	if (!in.host->file_symbol(file, "ruby_current_vm_ptr", &at))
		ruby_set_address(in.words + RUBY_VM, at.lo);
	ruby_find_collections(&in);
	in.claim_flags = claim_flags(&in);
	r = publish(&in);
	return r > 0 ? doubt(&in, version, r) : r;
}
