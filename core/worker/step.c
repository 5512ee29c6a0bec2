// SPDX-License-Identifier: Apache-2.0
/*
 * A step gives libunwind an address space of these parts: the stack copy at its runtime address;
 * the file's unwind sections and read-only segments at their ELF virtual addresses; .debug_frame
 * and a search table of one entry at addresses that no program uses. The entry is the FDE that
 * covers pc: libunwind's own search would trust .eh_frame_hdr, and guess where that has nothing.
 */
#include "worker/internal/step.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/elf.h"
#include "symbols/frames.h"

#ifdef __x86_64__
#include <libunwind.h>

/* Exported for remote unwinding, but not declared in native builds. */
int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t, unw_word_t ip, unw_dyn_info_t *,
				       unw_proc_info_t *, int need, void *arg);

#define MAX_FILES 8
#define TABLE_AT 0xfffe000000000000ull
#define DEBUG_FRAME_AT 0xfffd000000000000ull
#define RSP UNW_X86_64_RSP
#define RIP UNW_X86_64_RIP
/* Registers that a function must preserve; the values of others are lost by a call. */
#define PRESERVED \
	(1u << 3 | 1u << 6 | 1u << 7 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15 | 1u << 16)

struct stepper_file {
	uint8_t key[32];
	int fd;
	struct elf *elf;
	uint64_t used; /* stepper.now of the last use */
	struct fusee_file_info info;
	struct fusee_str
		frames[2]; /* .eh_frame; .debug_frame in the form of .eh_frame, malloc'ed */
	uint64_t frames_at[2];
};

struct stepper {
	unw_addr_space_t space;
	struct stepper_file *files[MAX_FILES];
	uint64_t now; /* counts uses of files */
};

/* One step: the argument of the accessors. */
struct unwind_step {
	const struct protocol_request *q;
	const struct stepper_file *file;
	const char *stack;
	struct {
		int32_t start, fde;
	} table; /* relative to the FDE itself */
	uint64_t fde_at;
	bool signal_frame, no_row, unknown;
};

/* ---- the address space ---- */

/* Copies the part of a word at addr that is in [lo, lo + len). */
static bool copy_word(unw_word_t *value, uint64_t addr, const char *p, uint64_t lo, uint64_t len)
{
	uint64_t n;

	if (addr < lo || addr - lo >= len)
		return false;
	n = len - (addr - lo);
	*value = 0;
	memcpy(value, p + (addr - lo), n < sizeof(*value) ? n : sizeof(*value));
	return true;
}

/* Reads a word of a segment that is mapped read-only, so that memory has the file's bytes. */
static bool read_file(const struct stepper_file *f, uint64_t vaddr, unw_word_t *value)
{
	for (uint32_t i = 0; i < f->info.segments.n; i++) {
		const struct fusee_segment *s = FUSEE_AT(struct fusee_segment, f->info.segments, i);

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return !(s->flags & PF_W) &&
			       !elf_read(f->elf, vaddr, value, sizeof(*value));
	}
	return false;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write,
		      void *arg)
{
	struct unwind_step *w = arg;
	const struct protocol_request *q = w->q;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	/* A word on the stack must be completely in the copy. */
	if (addr >= q->stack_lo && addr - q->stack_lo < q->payload &&
	    q->payload - (addr - q->stack_lo) >= 8) {
		memcpy(value, w->stack + (addr - q->stack_lo), 8);
		return 0;
	}
	if (copy_word(value, addr, (const char *)&w->table, TABLE_AT, sizeof(w->table)))
		return 0;
	for (int i = 0; i < 2; i++)
		if (copy_word(value, addr, w->file->frames[i].p, w->file->frames_at[i],
			      w->file->frames[i].len))
			return 0;
	if (read_file(w->file, addr, value) || read_file(w->file, addr - q->bias, value))
		return 0;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	struct unwind_step *w = arg;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg < 0 || reg > RIP || !(w->q->valid & 1ull << reg)) {
		w->unknown = true;
		return -UNW_EBADREG;
	}
	*value = w->q->regs[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *arg)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need,
			  void *arg)
{
	struct unwind_step *w = arg;
	unw_dyn_info_t table = {
		.format = UNW_INFO_FORMAT_REMOTE_TABLE, .start_ip = ip, .end_ip = ip + 1};
	int r;

	table.u.rti.segbase = w->fde_at;
	table.u.rti.table_data = TABLE_AT;
	table.u.rti.table_len = sizeof(w->table) / sizeof(unw_word_t);
	r = _Ux86_64_dwarf_search_unwind_table(space, ip, &table, info, need, arg);
	w->no_row |= r < 0;
	return r;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	(void)space;
	(void)info;
	(void)arg;
}

static int no_dynamic_info(unw_addr_space_t space, unw_word_t *list, void *arg)
{
	(void)space;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t ip, char *name, size_t len,
		   unw_word_t *offset, void *arg)
{
	(void)space;
	(void)ip;
	(void)name;
	(void)len;
	(void)offset;
	(void)arg;
	return -UNW_ENOINFO;
}

/* ---- files ---- */

static void file_free(struct stepper_file *f)
{
	if (!f)
		return;
	elf_close(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free((void *)f->frames[1].p);
	free(f);
}

static int read_frames(struct stepper_file *f)
{
	struct fusee_section s;
	char *copy;

	if (!elf_section(f->elf, ".eh_frame", &s) && s.bytes.p) {
		f->frames[0] = s.bytes;
		f->frames_at[0] = s.vaddr;
	}
	f->frames_at[1] = DEBUG_FRAME_AT;
	if (elf_section(f->elf, ".debug_frame", &s) || !s.bytes.len)
		return 0;
	copy = malloc(s.bytes.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s.bytes.p, s.bytes.len);
	if (frames_from_debug(copy, s.bytes.len)) {
		free(copy);
		return 0; /* .eh_frame may have the row */
	}
	f->frames[1] = (struct fusee_str){copy, s.bytes.len};
	return 0;
}

/* Consumes fd. */
static int file_new(struct stepper_file **ret, const uint8_t key[32], int fd)
{
	struct stepper_file *f = calloc(1, sizeof(*f));
	int err = -ENOMEM;

	if (!f) {
		close(fd);
		return err;
	}
	f->fd = fd;
	memcpy(f->key, key, sizeof(f->key));
	err = elf_open(&f->elf, fd);
	if (!err)
		err = elf_info(f->elf, &f->info);
	if (!err)
		err = read_frames(f);
	if (err)
		file_free(f);
	else
		*ret = f;
	return err;
}

/* The file of this key, opened if necessary in place of the least recently used. Consumes fd. */
static int file_get(struct stepper *s, const uint8_t key[32], int fd, struct stepper_file **ret)
{
	unsigned int oldest = 0;
	struct stepper_file *f;
	int err;

	for (unsigned int i = 0; i < MAX_FILES; i++) {
		f = s->files[i];
		if (f && !memcmp(f->key, key, sizeof(f->key))) {
			close(fd);
			f->used = ++s->now;
			*ret = f;
			return 0;
		}
		if (!f || (s->files[oldest] && f->used < s->files[oldest]->used))
			oldest = i;
	}
	err = file_new(&f, key, fd);
	if (err)
		return err;
	file_free(s->files[oldest]);
	s->files[oldest] = f;
	f->used = ++s->now;
	*ret = f;
	return 0;
}

/* ---- the step ---- */

static int find_row(struct unwind_step *w)
{
	int err = -ENOENT;

	for (int i = 0; i < 2 && err; i++) {
		struct frames_fde row;

		if (!w->file->frames[i].len)
			continue;
		err = frames_find(w->file->frames[i], w->file->frames_at[i], w->q->regs[RIP], &row);
		if (err)
			continue;
		w->fde_at = w->file->frames_at[i] + row.at;
		w->signal_frame = row.is_signal_frame;
	}
	/* The entry begins at the lowest address, as the FDE is known to cover pc. */
	w->table.start = INT32_MIN;
	return err;
}

static bool get(unw_cursor_t *c, int reg, struct unwind_step *w, uint64_t *value)
{
	unw_word_t v;

	w->unknown = false;
	if (unw_get_reg(c, reg, &v) || w->unknown)
		return false;
	*value = v;
	return true;
}

/* The caller's registers, into q. */
static int take_registers(unw_cursor_t *c, struct unwind_step *w, struct protocol_request *q)
{
	uint64_t regs[17] = {0}, valid = 0;

	for (int i = 0; i <= RIP; i++)
		if ((w->signal_frame || PRESERVED & 1u << i) && get(c, i, w, &regs[i]))
			valid |= 1ull << i;
	if (!(valid & 1ull << RIP) || !(valid & 1ull << RSP) ||
	    (!w->signal_frame && regs[RSP] <= q->regs[RSP]))
		return -EBADMSG;
	memcpy(q->regs, regs, sizeof(regs));
	q->valid = valid;
	return w->signal_frame;
}

static int step(struct stepper *s, struct unwind_step *w, struct protocol_request *q)
{
	unw_save_loc_t rbp;
	unw_cursor_t c;
	int r;

	if (unw_init_remote(&c, s->space, w))
		return -EBADMSG;
	r = unw_step(&c);
	if (w->no_row) /* libunwind has guessed then */
		return -ENOENT;
	if (r < 0)
		return r == -UNW_ENOMEM ? -ENOMEM : -EBADMSG;
	/* libunwind also ends the stack at an undefined rbp, which is no end of the stack. */
	if (!r)
		return !unw_get_save_loc(&c, UNW_X86_64_RBP, &rbp) && rbp.type != UNW_SLT_NONE
			       ? -ENODATA
			       : -EBADMSG;
	return take_registers(&c, w, q);
}

int stepper_step(struct stepper *s, struct protocol_request *q, int fd, const void *stack)
{
	struct protocol_request was = *q;
	struct unwind_step w = {.q = &was, .stack = stack};
	struct stepper_file *f;
	int err;

	if (fd < 0)
		return -EBADF;
	err = file_get(s, q->key, fd, &f);
	if (err)
		return err;
	w.file = f;
	err = find_row(&w);
	return err ? err : step(s, &w, q);
}

int stepper_new(struct stepper **ret)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dynamic_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};
	struct stepper *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->space = unw_create_addr_space(&accessors, 0);
	if (!s->space) {
		free(s);
		return -ENOMEM;
	}
	/* libunwind caches rules by address alone, and files share addresses. */
	unw_set_caching_policy(s->space, UNW_CACHE_NONE);
	*ret = s;
	return 0;
}

void stepper_free(struct stepper *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < MAX_FILES; i++)
		file_free(s->files[i]);
	unw_destroy_addr_space(s->space);
	free(s);
}

#else /* steps by libunwind exist for x86-64 only */
struct stepper {
	int none;
};

int stepper_new(struct stepper **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void stepper_free(struct stepper *s)
{
	free(s);
}

int stepper_step(struct stepper *s, struct protocol_request *q, int fd, const void *stack)
{
	(void)s;
	(void)q;
	(void)stack;
	close(fd);
	return -ENOTSUP;
}
#endif
