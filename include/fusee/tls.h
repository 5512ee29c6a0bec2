/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/tls.h - thread-local variables of a file, in the threads of a process. Optional: all of it
 * is compiled into the plugin. x86-64 with glibc or musl.
 *
 * inspect() finds the way to the file's block of such variables, and puts it into the table:
 *
 *	if (!fusee_find_tls(host, file, offset, &tls))
 *		fusee_tls_put(&tls, words + MY_TLS);
 *
 * The step finds a variable of the interrupted thread with it:
 *
 *	if (fusee_tls_get(u, MY_TLS, &tls) || fusee_tls_address(u, &tls, u->bias, &at))
 *		.. not known
 *
 * Include it after <fusee/unwinder.bpf.h> in a step, after <fusee/plugin.h> in other
 * sources.
 */
#ifndef FUSEE_TLS_H
#define FUSEE_TLS_H

enum fusee_tls_kind {
	FUSEE_TLS_EXECUTABLE = 1, /* the block ends at the thread pointer */
	FUSEE_TLS_STATIC,         /* a word of the file has the distance to the thread pointer */
	FUSEE_TLS_DYNAMIC,        /* a word of the file has the number of its module */
	/* Two words of the file are a descriptor, whose second word is either the distance to the
	 * thread pointer, or the address of the module's number. */
	FUSEE_TLS_DESCRIPTOR,
};

/* A thread-local variable of a file. */
struct fusee_tls {
	unsigned int kind;        /* enum fusee_tls_kind */
	int offset;               /* EXECUTABLE, STATIC: added to the thread pointer; else: in the
				     block */
	unsigned long long vaddr; /* of the word */
	int described;            /* DESCRIPTOR: the place in the block that it is of */
};

#define FUSEE_TLS_WORDS 5 /* of a table, for fusee_tls_put() and fusee_tls_get() */

/*
 * Where the C library keeps the address of a module's block. head: the three words after the first
 * at the thread pointer tp. The first of them is the vector of blocks in both libraries: glibc's
 * elements have 16 bytes, musl's 8. Then glibc has tp once more and two small numbers, musl the
 * previous and the next thread.
 */
static inline unsigned long long fusee_tls_slot(const unsigned long long *head,
						unsigned long long tp, unsigned long long module)
{
	unsigned long long small = head[2] & 0xffffffff, large = head[2] >> 32;

	return head[0] + module * (head[1] == tp && small <= 1 && large <= 2 ? 16 : 8);
}

#define FUSEE_TLS_MODULES 65536u /* a larger number is no module's */
#define FUSEE_TLS_LOWEST 4096u   /* glibc writes ~0 for a block that the thread does not have */

#ifdef FUSEE_UNWINDER_BPF_H
/* Reads what fusee_tls_put() has put at word i of the table. 0 or -1. */
FUSEE_FN int fusee_tls_get(struct fusee_unwind *u, __u64 i, struct fusee_tls *tls)
{
	__u32 w[FUSEE_TLS_WORDS];

	tls->kind = 0;
	for (__u32 k = 0; k < FUSEE_TLS_WORDS; k++)
		if (fusee_slab32(u, i + k, &w[k]))
			return -1;
	tls->kind = w[0];
	tls->offset = (int)w[1];
	tls->vaddr = (__u64)w[3] << 32 | w[2];
	tls->described = (int)w[4];
	return 0;
}

/* *word is the second word of a descriptor. Returns 0 if it is the distance of the variable to the
 * thread pointer then, 1 if it is the number of the module, and -1: not known. Older glibc fills a
 * descriptor when a thread first uses it; before, its words lead to no number of this place. */
FUSEE_FN int fusee_tls_descriptor(struct fusee_unwind *u, const struct fusee_tls *tls, __u64 *word)
{
	__u64 pair[2]; /* the number, and the place in the block */

	if ((__s64)*word < 0) {
		*word += (__u64)(__s64)tls->offset - (__u64)(__s64)tls->described;
		return 0;
	}
	if (fusee_read(u, pair, sizeof(pair), *word) || pair[1] != (__u64)(__s64)tls->described)
		return -1;
	*word = pair[0];
	return 1;
}

/* The address of the variable in the interrupted thread; bias: of the file that has it. 0, or -1:
 * not known, for example if the thread has not used the file's variables yet. */
FUSEE_FN int fusee_tls_address(struct fusee_unwind *u, const struct fusee_tls *tls, __u64 bias,
			       __u64 *at)
{
	__u64 word = 0, head[3], block;
	int dynamic = tls->kind == FUSEE_TLS_DYNAMIC;

	if (!u->tls || !tls->kind)
		return -1;
	if (tls->kind != FUSEE_TLS_EXECUTABLE && fusee_read(u, &word, 8, bias + tls->vaddr))
		return -1;
	if (tls->kind == FUSEE_TLS_DESCRIPTOR) {
		dynamic = fusee_tls_descriptor(u, tls, &word);
		*at = u->tls + word;
		if (dynamic <= 0)
			return dynamic;
	} else if (!dynamic) {
		*at = u->tls + word + (__u64)(__s64)tls->offset;
		return 0;
	}
	if (!word || word >= FUSEE_TLS_MODULES || fusee_read(u, head, sizeof(head), u->tls + 8) ||
	    fusee_read(u, &block, 8, fusee_tls_slot(head, u->tls, word)) ||
	    block < FUSEE_TLS_LOWEST || block + FUSEE_TLS_LOWEST < block)
		return -1;
	*at = block + (__u64)(__s64)tls->offset;
	return 0;
}
#endif

#ifdef FUSEE_PLUGIN_H
#include <elf.h>
#include <errno.h>
#include <string.h>

static inline void fusee_tls_put(const struct fusee_tls *tls, uint32_t words[FUSEE_TLS_WORDS])
{
	words[0] = tls->kind;
	words[1] = (uint32_t)tls->offset;
	words[2] = (uint32_t)tls->vaddr;
	words[3] = (uint32_t)(tls->vaddr >> 32);
	words[4] = (uint32_t)tls->described;
}

/* Element i of a section. 0; -1: it has less. */
static inline int fusee_tls_element(const struct fusee_section *s, uint64_t i, void *to, size_t len)
{
	if (!s->bytes.p || i >= s->bytes.len / len)
		return -1;
	memcpy(to, s->bytes.p + i * len, len);
	return 0;
}

/* Is it a program, not a library? */
static inline int fusee_tls_is_program(const struct fusee_file_info *info,
				       const struct fusee_section *dynamic)
{
	Elf64_Dyn d;

	if (info->type == ET_EXEC)
		return 1;
	for (uint64_t i = 0; !fusee_tls_element(dynamic, i, &d, sizeof(d)); i++)
		if (d.d_tag == DT_FLAGS_1)
			return !!(d.d_un.d_val & DF_1_PIE);
	return 0;
}

/* Where the symbol of a relocation is in the file's block. 0; -1: in another file. */
static inline int fusee_tls_symbol(const struct fusee_section *symbols, uint64_t symbol,
				   uint64_t *value)
{
	Elf64_Sym s;

	*value = 0;
	if (!symbol)
		return 0;
	if (fusee_tls_element(symbols, symbol, &s, sizeof(s)) || s.st_shndx == SHN_UNDEF)
		return -1;
	*value = s.st_value;
	return 0;
}

/* A section without bytes if the file has none of this name. */
static inline void fusee_tls_section(const struct fusee_unwinder_host *host, uint64_t file,
				     const char *name, struct fusee_section *s)
{
	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	if (host->file_section(file, name, s))
		s->bytes.p = NULL;
}

/* A program's block ends at the thread pointer, where its alignment allows. */
static inline int fusee_tls_of_program(const struct fusee_file_info *info, uint64_t offset)
{
	uint64_t mask = info->tls_align ? info->tls_align - 1 : 0;

	return (int)(offset - info->tls_memsz - ((-info->tls_vaddr - info->tls_memsz) & mask));
}

/* Sets *tls if words of this relocation lead to the variable, unless a better way is known. 1:
 * there is none better. */
static inline int fusee_tls_relocation(const struct fusee_section *symbols, const Elf64_Rela *r,
				       uint64_t offset, struct fusee_tls *tls)
{
	uint32_t type = (uint32_t)r->r_info;
	uint64_t value;

	if ((type != R_X86_64_DTPMOD64 && type != R_X86_64_TPOFF64 && type != R_X86_64_TLSDESC) ||
	    fusee_tls_symbol(symbols, r->r_info >> 32, &value))
		return 0;
	value += (uint64_t)r->r_addend;
	if (type == R_X86_64_TLSDESC) {
		if (tls->kind && (tls->kind != FUSEE_TLS_DESCRIPTOR || value != offset))
			return 0;
		*tls = (struct fusee_tls){FUSEE_TLS_DESCRIPTOR, (int)offset, r->r_offset + 8,
					  (int)value};
		return 0;
	}
	if (type == R_X86_64_DTPMOD64) {
		*tls = (struct fusee_tls){FUSEE_TLS_DYNAMIC, (int)offset, r->r_offset, 0};
		return 0;
	}
	*tls = (struct fusee_tls){FUSEE_TLS_STATIC, (int)(offset - value), r->r_offset, 0};
	return 1;
}

/* In inspect(): finds the way to a thread-local variable of the file, by its offset in PT_TLS,
 * which file_symbol() returns for such a symbol. 0; -ENOENT: the file has no such variables, or no
 * word that leads to them; or what the host returned. */
static inline int fusee_find_tls(const struct fusee_unwinder_host *host, uint64_t file,
				 uint64_t offset, struct fusee_tls *tls)
{
	static const char *const names[] = {".rela.dyn", ".rela.plt"};
	struct fusee_file_info info;
	struct fusee_section dynamic, symbols, relocations;
	Elf64_Rela r;
	int err, best = 0;

	memset(tls, 0, sizeof(*tls));
	info.size = sizeof(info);
	err = host->file_info(file, &info);
	if (err)
		return err;
	if (offset >= info.tls_memsz || info.tls_memsz > INT32_MAX)
		return -ENOENT;
	fusee_tls_section(host, file, ".dynamic", &dynamic);
	if (fusee_tls_is_program(&info, &dynamic)) {
		tls->kind = FUSEE_TLS_EXECUTABLE;
		tls->offset = fusee_tls_of_program(&info, offset);
		return 0;
	}
	fusee_tls_section(host, file, ".dynsym", &symbols);
	for (uint32_t k = 0; k < 2; k++) {
		fusee_tls_section(host, file, names[k], &relocations);
		for (uint64_t i = 0; !best && !fusee_tls_element(&relocations, i, &r, sizeof(r));
		     i++)
			best = fusee_tls_relocation(&symbols, &r, offset, tls);
	}
	return tls->kind ? 0 : -ENOENT;
}

/* Outside of the worker: the address of the variable in the thread of a process with this thread
 * pointer, which a step may have emitted. 0; -ENOENT: the thread has no such block; or what
 * process_read() returned. */
static inline int fusee_tls_of_thread(const struct fusee_unwinder_host *host, uint64_t process,
				      uint64_t tp, const struct fusee_tls *tls, uint64_t bias,
				      uint64_t *at)
{
	unsigned long long head[3];
	uint64_t word = 0, block, pair[2] = {0};
	int err = 0;

	if (!tls->kind || !tp)
		return -ENOENT;
	if (tls->kind != FUSEE_TLS_EXECUTABLE)
		err = host->process_read(process, bias + tls->vaddr, &word, 8);
	if (err)
		return err;
	if (tls->kind == FUSEE_TLS_DESCRIPTOR && (int64_t)word >= 0) {
		err = host->process_read(process, word, pair, sizeof(pair));
		if (err || pair[1] != (uint64_t)(int64_t)tls->described)
			return err ? err : -ENOENT;
		word = pair[0];
	} else if (tls->kind != FUSEE_TLS_DYNAMIC) {
		*at = tp + word + (uint64_t)(int64_t)tls->offset -
		      (uint64_t)(int64_t)tls->described;
		return 0;
	}
	if (!word || word >= FUSEE_TLS_MODULES)
		return -ENOENT;
	err = host->process_read(process, tp + 8, head, sizeof(head));
	if (!err)
		err = host->process_read(process, fusee_tls_slot(head, tp, word), &block, 8);
	if (err)
		return err;
	if (block < FUSEE_TLS_LOWEST || block + FUSEE_TLS_LOWEST < block)
		return -ENOENT;
	*at = block + (uint64_t)(int64_t)tls->offset;
	return 0;
}
#endif
#endif
