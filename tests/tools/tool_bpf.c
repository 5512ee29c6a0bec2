/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinders' BPF halves, taken out of the plugins, linked with an entry program (walk.bpf.c)
 * and loaded into the running kernel.
 *
 *	tool_bpf load PLUGINS            prints how many instructions the verifier looked at
 *	tool_bpf walk PLUGINS COMMAND..  COMMAND (one of tests/accuracy: it waits at BURN_GATE) is
 *		sampled; each stack as walked in the kernel must equal the stack that the same steps
 *		find natively over a copy of it
 *	tool_bpf wrong PLUGINS COMMAND.. the same with rows that differ in the kernel: must fail
 *	tool_bpf tableless PLUGINS COMMAND..  the same without tables: by frame pointer alone
 *	tool_bpf follow PLUGINS COMMAND.. the same with callee-saved registers, which with
 *		the CFA must be libdw's in each frame
 *	tool_bpf follow-running ..	the same of programs that wait at no gate
 *	tool_bpf follow-wrong ..	the same with wrong places in the kernel: must fail
 *	tool_bpf time PLUGINS HZ SECONDS ROUNDS PROGRAM TWIN ARG..  what a sample of PROGRAM
 *		costs, walked and counted, beside what the kernel's own walk and count of TWIN, a
 *		build with frame pointers, costs: medians of each round, in turn
 *	tool_bpf running ..	the same of programs that wait at no gate: a second after they began
 *
 * Exit 0: so it is; 1: not; 77: this user or kernel does not allow it, with the reason.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fusee/unwinder.bpf.h>

#include "../../plugins/unwinders/dwarf/table.h"
#include "../accuracy/host.h"
#include "cfi_oracle.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
#include "process/safe_open.h"
#include "walk.h"

#define MAX_FILES WALK_MAX_MAPPINGS
#define SLAB_BYTES (1u << 20)
#define PERIOD_NS 2003003 /* 499 Hz */

FUSEE_EMBED(walk_bpf, "walk.bpf.o");

static __attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

/* ---- linking and loading ---- */

static const struct fusee_unwinder_ops *ops_of(const struct plugin_set *set, const char *name)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (!strcmp(set->instances[i]->descriptor->name, name))
			return set->instances[i]->descriptor->ops;
	die("there is no plugin '%s'", name);
}

static void add_object(struct bpf_linker *linker, const char *what, const void *from,
		       const void *to)
{
	size_t len = (size_t)((const char *)to - (const char *)from);
	int fd = memfd_create(what, MFD_CLOEXEC), err;
	char path[64];

	if (fd < 0 || write(fd, from, len) != (ssize_t)len)
		die("no memory for %s", what);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = bpf_linker__add_file(linker, path, NULL);
	if (err)
		die("%s cannot be linked: %s", what, strerror(-err));
	close(fd);
}

/* The entry program and both steps as one object, opened, not loaded. */
static struct bpf_object *link_all(const struct plugin_set *set)
{
	const struct fusee_unwinder_ops *dwarf = ops_of(set, "dwarf");
	const struct fusee_unwinder_ops *fp = ops_of(set, "framepointer");
	int out = memfd_create("linked", MFD_CLOEXEC);
	struct bpf_linker *linker;
	struct bpf_object *object;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
	linker = bpf_linker__new(path, NULL);
	if (!linker)
		die("no linker: %s", strerror(errno));
	add_object(linker, "walk.bpf.o", walk_bpf, walk_bpf_end);
	add_object(linker, "dwarf.bpf.o", dwarf->bpf, dwarf->bpf_end);
	add_object(linker, "framepointer.bpf.o", fp->bpf, fp->bpf_end);
	if (bpf_linker__finalize(linker))
		die("cannot be linked: %s", strerror(errno));
	bpf_linker__free(linker);
	object = bpf_object__open_file(path, NULL);
	if (!object)
		die("the linked object cannot be opened: %s", strerror(errno));
	close(out);
	return object;
}

static struct bpf_map *map_of(struct bpf_object *object, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (!map)
		die("there is no map '%s'", name);
	return map;
}

static char messages[1 << 20];

/* The verifier's log ends with what it did not like: the last of what libbpf says is kept. */
static int keep_message(enum libbpf_print_level level, const char *format, va_list ap)
{
	size_t n = strlen(messages);

	if (level == LIBBPF_WARN)
		vsnprintf(messages + n, sizeof(messages) - n, format, ap);
	return 0;
}

/* A program that no kernel refuses for its contents: -errno when BPF is not for us. */
static int try_bpf(void)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", insns, 2, NULL);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void need_bpf(void)
{
	int err = try_bpf();

	if (err != -EPERM && err != -ENOSYS && err != -EINVAL)
		return;
	printf("# skip: %s\n", err == -EPERM ? "BPF programs need root, or CAP_BPF and CAP_PERFMON"
					     : "this kernel has no BPF for perf events");
	fflush(stdout);
	_exit(77);
}

/* Loads it: `walk`, or the timed programs. */
static void load(struct bpf_object *object, uint32_t frames, bool timed)
{
	struct bpf_program *program;
	int err;

	bpf_object__for_each_program(program, object) bpf_program__set_autoload(
		program, !strncmp(bpf_program__name(program), "time_", 5) == timed);
	bpf_map__set_max_entries(map_of(object, "fusee_frames"), frames);
	bpf_map__set_max_entries(map_of(object, "fusee_frame_states"), frames);
	err = bpf_object__load(object);
	if (err) {
		size_t n = strlen(messages);

		fputs(messages + (n > 8000 ? n - 8000 : 0), stdout);
		die("the kernel does not load it: %s", strerror(-err));
	}
}

/* Says how large it is; its fd. */
static int program_of(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (!program)
		die("there is no program '%s'", name);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
		die("no program information: %s", strerror(errno));
	printf("# %u instructions, %u bytes of machine code, %u instructions verified\n",
	       info.xlated_prog_len / 8, info.jited_prog_len, info.verified_insns);
	return bpf_program__fd(program);
}

/* ---- the target's mappings and their tables ---- */

struct target {
	pid_t pid;
	struct plugin_set set;
	struct walk_mappings maps;
	struct host_file files[MAX_FILES]; /* of each mapping */
	unsigned char *code[MAX_FILES];    /* its bytes: they do not change */
	uint32_t *words;                   /* all tables, as in fusee_frames */
	uint64_t nwords;
	bool tableless, wrong, follow, running;
	Dwarf_CFI *cfi[MAX_FILES]; /* by libdw; NULL: none */
};

static const struct fusee_plugin *dwarf_of(const struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (!strcmp(set->instances[i]->descriptor->name, "dwarf"))
			return set->instances[i]->descriptor;
	die("there is no plugin 'dwarf'");
}

/* The mapping's bias, from the segment that it shows. */
static bool bias_of(struct host_file *file, const struct procfs_mapping *m, __u64 *bias)
{
	struct fusee_file_info info = {.size = sizeof(info)};

	if (elf_info(file->elf, &info))
		return false;
	for (uint32_t i = 0; i < info.segments.n; i++) {
		const struct fusee_segment *s = FUSEE_AT(struct fusee_segment, info.segments, i);

		if (!(s->flags & 1) || m->offset >= s->offset + s->filesz ||
		    m->offset + WALK_PAGE <= s->offset)
			continue;
		*bias = m->lo - (s->vaddr + (m->offset - s->offset));
		return true;
	}
	return false;
}

/* Its file's table goes to the end of all words. */
static void add_table(struct target *t, struct walk_mapping *m, const struct procfs_mapping *from)
{
	struct host_file *file = &t->files[t->maps.n];
	uint64_t room;

	file->fd = safe_open_mapping(t->pid, from);
	if (file->fd < 0 || elf_open(&file->elf, file->fd))
		return; /* anonymous, or the vDSO: stepped by frame pointer, in both walks */
	if (t->follow) {
		elf_version(EV_CURRENT);
		t->cfi[t->maps.n] = dwarf_getcfi_elf(elf_begin(file->fd, ELF_C_READ, NULL));
	}
	if (!bias_of(file, from, &m->bias) || t->tableless ||
	    host_inspect(dwarf_of(&t->set), file) != 1)
		return;
	room = (file->n + FUSEE_PAGE_WORDS - 1) & ~(uint64_t)(FUSEE_PAGE_WORDS - 1);
	t->words = realloc(t->words, (t->nwords + room) * 4);
	if (!t->words)
		die("no memory");
	memcpy(t->words + t->nwords, file->words, file->n * 4);
	m->slab = 1 + t->nwords / FUSEE_PAGE_WORDS;
	m->slab_words = file->n;
	m->slab_id = t->maps.n + 1;
	t->nwords += room;
}

/* The process may have ended when its last samples are walked. */
static void add_code(struct target *t, const struct walk_mapping *m)
{
	size_t len = m->hi - m->lo;
	unsigned char *code = malloc(len);
	struct iovec to = {code, len}, from = {(void *)(uintptr_t)m->lo, len};

	if (code && process_vm_readv(t->pid, &to, 1, &from, 1, 0) == (ssize_t)len)
		t->code[t->maps.n] = code;
	else
		free(code);
}

static int add_mapping(void *arg, const struct procfs_mapping *from)
{
	struct target *t = arg;
	struct walk_mapping *m = &t->maps.mapping[t->maps.n];

	if (t->maps.n == WALK_MAX_MAPPINGS)
		die("too many mappings");
	*m = (struct walk_mapping){.lo = from->lo, .hi = from->hi, .bias = from->lo - from->offset};
	add_code(t, m);
	add_table(t, m, from);
	t->maps.n++;
	return 0;
}

/* Where its table begins in all words. */
static uint64_t words_at(const struct walk_mapping *m)
{
	return m->slab_words ? (m->slab - 1) * FUSEE_PAGE_WORDS : 0;
}

/* Rules of every row off by one word: what the wrong twin puts into the kernel. */
static void spoil(struct target *t, uint32_t *frames)
{
	for (uint32_t i = 0; i < t->maps.n; i++) {
		const struct walk_mapping *m = &t->maps.mapping[i];
		uint32_t *w = frames + words_at(m);

		for (uint32_t row = 0; m->slab_words && row < w[6]; row++)
			if (!(w[w[5] + row] & 0x80000000u))
				w[w[5] + row] += 1 << 16;
	}
}

/* Registers said to be saved one word off. */
static void spoil_saves(struct target *t, uint32_t *frames)
{
	for (uint32_t i = 0; i < t->maps.n; i++) {
		const struct walk_mapping *m = &t->maps.mapping[i];
		uint32_t *w = frames + words_at(m);

		w += m->slab_words ? w[DWARF_SAVES_AT] : 0;

		for (uint32_t k = 0; m->slab_words && k < w[DWARF_SPECIALS]; k++)
			w[w[DWARF_SPECIALS_AT] + DWARF_PATTERN_WORDS * k] += 2;
	}
}

static uint32_t frames_of(const struct target *t)
{
	return 1 + (uint32_t)(t->nwords / FUSEE_PAGE_WORDS);
}

static void *map_memory(struct bpf_object *object, const char *name, size_t len)
{
	void *p = mmap(NULL, (len + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(map_of(object, name)), 0);

	if (p == MAP_FAILED)
		die("%s cannot be mapped: %s", name, strerror(errno));
	return p;
}

static void fill(struct bpf_object *object, struct target *t)
{
	uint32_t n = frames_of(t), zero = 0;
	uint32_t *slabs = map_memory(object, "fusee_slabs", SLAB_BYTES);
	uint32_t *frames = map_memory(object, "fusee_frames", n * FUSEE_PAGE_WORDS * 4ul);
	struct fusee_frame_state *states = map_memory(object, "fusee_frame_states",
						      n * sizeof(*states));

	for (uint32_t i = 0; i < n; i++) {
		states[i].filling = 1;
		slabs[1 + i] = 1u << FUSEE_FRAME_BITS | i;
	}
	if (t->nwords)
		memcpy(frames, t->words, t->nwords * 4);
	if (t->wrong && t->follow)
		spoil_saves(t, frames);
	else if (t->wrong)
		spoil(t, frames);
	if (bpf_map_update_elem(bpf_map__fd(map_of(object, "walk_maps")), &zero, &t->maps, 0))
		die("the mappings cannot be handed over: %s", strerror(errno));
}

/* ---- the same walk, natively ---- */

struct native_walk {
	const struct target *target;
	bool beyond; /* needed memory that is not in the copy */
	uint32_t n;
	struct walk_end end;
	struct walk_frame frames[WALK_MAX_FRAMES];
};

static const struct walk_mapping *mapping_at(const struct target *t, uint64_t at)
{
	for (uint32_t i = 0; i < t->maps.n; i++)
		if (at >= t->maps.mapping[i].lo && at < t->maps.mapping[i].hi)
			return &t->maps.mapping[i];
	return NULL;
}

static int read_code(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct native_walk *w = n->arg;
	const struct walk_mapping *m = mapping_at(w->target, addr);
	const unsigned char *code = m ? w->target->code[m - w->target->maps.mapping] : NULL;

	if (!code || len > m->hi - addr) {
		w->beyond = true;
		return -1;
	}
	memcpy(dst, code + (addr - m->lo), len);
	return 0;
}

static void begin(struct fusee_native *n, struct native_walk *w, const struct walk_record *r)
{
	uint64_t sp = r->regs[FUSEE_X86_RSP], page = sp & ~(uint64_t)(WALK_PAGE - 1);

	*n = (struct fusee_native){
		.u = {.origin = FUSEE_CPU,
		      .machine = 62,
		      .flags = FUSEE_PC_EXACT | FUSEE_FIRST,
		      .pc = r->regs[FUSEE_X86_RIP],
		      .sp = sp,
		      .fp = r->regs[FUSEE_X86_RBP],
		      .valid_regs = 0xffffu & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP)},
		.stack = r->stack + (sp - page),
		.stack_lo = sp,
		.stack_hi = r->pages ? page + r->pages * WALK_PAGE : sp,
		.read = read_code,
		.arg = w,
	};
	memcpy(n->u.regs, r->regs, 16 * 8);
}

static bool locate(struct fusee_native *n, const struct target *t)
{
	struct fusee_unwind *u = &n->u;
	const struct walk_mapping *m = mapping_at(t, u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1);

	if (!m)
		return false;
	u->map_lo = m->lo;
	u->map_hi = m->hi;
	u->bias = m->bias;
	u->offset = u->pc - m->bias;
	u->slab_words = m->slab_words;
	n->slab = t->words + words_at(m);
	return true;
}

static const int saved_reg[5] = {3, 12, 13, 14, 15};

static void note_frame(const struct target *t, struct fusee_native *n,
		       const struct fusee_unwinder_ops *dwarf, struct walk_frame *f)
{
	struct fusee_unwind *u = &n->u;
	uint32_t flags = u->flags;

	*f = (struct walk_frame){.pc = u->pc, .sp = u->sp, .fp = u->fp, .flags = u->flags};
	if (!t->follow)
		return;
	f->valid_regs = (uint32_t)u->valid_regs;
	for (int i = 0; i < 5; i++)
		f->regs[i] = u->regs[saved_reg[i]];
	u->cfa = 0;
	u->flags |= FUSEE_CFA_ONLY;
	dwarf->native_step(u);
	u->flags = flags;
	f->cfa = u->cfa;
}

static void walk_natively(const struct target *t, const struct walk_record *r,
			  struct native_walk *w)
{
	const struct fusee_unwinder_ops *const ops[] = {ops_of(&t->set, "dwarf"),
							ops_of(&t->set, "framepointer")};
	struct fusee_native n;

	w->target = t;
	w->beyond = false;
	w->end = (struct walk_end){WALK_NOBODY, 2};
	begin(&n, w, r);
	n.u.flags |= t->follow ? FUSEE_FOLLOW : 0;
	for (w->n = 0; w->n < WALK_MAX_FRAMES;) {
		int next = FUSEE_PASS, i;

		if (!locate(&n, t)) {
			w->end.error = 0;
			return;
		}
		note_frame(t, &n, ops[0], &w->frames[w->n++]);
		n.u.flags &= ~(__u32)FUSEE_GUESSED;
		for (i = 0; i < 2 && next == FUSEE_PASS; i++)
			next = ops[i]->native_step(&n.u);
		if (next == FUSEE_PASS) {
			w->end.error = 1;
			return;
		}
		if (next != FUSEE_NEXT) {
			w->end = (struct walk_end){i == 1 ? WALK_DWARF : WALK_FRAMEPOINTER,
						   n.u.error};
			return;
		}
		n.u.flags &= ~(__u32)(FUSEE_SIGNAL | FUSEE_FIRST | FUSEE_INEXPRESSIBLE);
	}
}

/* ---- comparing ---- */

struct comparison {
	const struct target *target;
	uint64_t samples, frames, complete, beyond, different, deepest;
	/* of follow: registers and CFAs that are libdw's, that only libdw knows, that are in the
	 * page below the copy, that are others; frames that libdw did not come to, or came to
	 * differently */
	uint64_t equal, only_libdw, below, wrong, unreached, otherwise;
	uint64_t page; /* where the copy of this sample begins */
};

static void show(const char *what, const struct walk_frame *f, uint32_t n, struct walk_end end)
{
	printf("# %s: %u frames, ended by %u with %u\n", what, n, end.unwinder, end.error);
	for (uint32_t i = 0; i < n && i < 40; i++)
		printf("#   pc %llx sp %llx fp %llx flags %x\n", f[i].pc, f[i].sp, f[i].fp,
		       f[i].flags);
}

/* The kernel knows more: it reads below sp too, where registers were popped from. */
static bool same_registers(const struct walk_frame *a, const struct walk_frame *b)
{
	if (b->valid_regs & ~a->valid_regs || a->cfa != b->cfa)
		return false;
	for (int i = 0; i < 5; i++)
		if (b->valid_regs >> saved_reg[i] & 1 && a->regs[i] != b->regs[i])
			return false;
	return true;
}

static bool same(const struct walk_record *r, const struct native_walk *w)
{
	for (uint32_t i = 0; i < w->n && i < r->n; i++) {
		const struct walk_frame *a = &r->frames[i], *b = &w->frames[i];

		if (a->pc != b->pc || a->sp != b->sp || a->fp != b->fp || a->flags != b->flags)
			return false;
		if (a->flags & FUSEE_FOLLOW && !same_registers(a, b))
			return false;
	}
	/* the kernel reads what the copy does not hold: there it may go on */
	if (w->beyond)
		return r->n >= w->n;
	return r->n == w->n && r->end.unwinder == w->end.unwinder && r->end.error == w->end.error;
}

/* ---- against libdw ---- */

static bool read_copy(void *arg, uint64_t addr, uint64_t *value)
{
	const struct walk_record *r = arg;
	uint64_t sp = r->regs[FUSEE_X86_RSP], page = sp & ~(uint64_t)(WALK_PAGE - 1);
	uint64_t low = sp - 128 < page ? page : sp - 128;

	if (addr < low || addr + 8 > page + r->pages * WALK_PAGE)
		return false;
	memcpy(value, r->stack + (addr - page), 8);
	return true;
}

static void compare_value(struct comparison *c, const char *what, bool known, uint64_t value,
			  bool libdw_knows, uint64_t libdws)
{
	if (!known) {
		c->only_libdw += libdw_knows;
		return;
	}
	if (libdw_knows && value == libdws) {
		c->equal++;
		return;
	}
	/* popped already, from below sp, and sp is at the beginning of its page: not in the copy */
	if (!libdw_knows && libdws < c->page && c->page - libdws <= 128) {
		c->below++;
		return;
	}
	if (c->wrong++ < 10)
		printf("#   %s is %llx, libdw's %llx%s\n", what, (unsigned long long)value,
		       (unsigned long long)libdws, libdw_knows ? "" : " not known");
}

static void compare_frame(struct comparison *c, const struct walk_frame *f,
			  const struct oracle_frame *o)
{
	static const char *const names[5] = {"rbx", "r12", "r13", "r14", "r15"};

	for (int i = 0; i < 5; i++)
		compare_value(c, names[i], f->valid_regs >> saved_reg[i] & 1, f->regs[i],
			      o->known >> saved_reg[i] & 1, o->reg[saved_reg[i]]);
	compare_value(c, "rbp", !(f->flags & FUSEE_FP_LOST), f->fp, o->known >> 6 & 1, o->reg[6]);
}

static void compare_with_libdw(struct comparison *c, const struct walk_record *r,
			       const struct walk_frame *frames, uint32_t n)
{
	struct oracle_frame o = {
		.known = 0x1ffff, .exact = true, .read = read_copy, .arg = (void *)r};
	const struct target *t = c->target;

	memcpy(o.reg, r->regs, sizeof(o.reg));
	c->page = o.reg[FUSEE_X86_RSP] & ~(uint64_t)(WALK_PAGE - 1);
	for (uint32_t i = 0; i < n; i++) {
		const struct walk_frame *f = &frames[i];
		const struct walk_mapping *m = mapping_at(t, f->pc - !o.exact);
		uint64_t cfa = 0;
		uint64_t wrong = c->wrong;

		if (f->pc != o.reg[FUSEE_X86_RIP] || f->sp != o.reg[FUSEE_X86_RSP]) {
			c->otherwise++;
			return;
		}
		compare_frame(c, f, &o);
		if (!m || oracle_step(&o, t->cfi[m - t->maps.mapping], m->bias, &cfa)) {
			c->unreached += n - 1 - i;
			return;
		}
		compare_value(c, "CFA", f->cfa != 0, f->cfa, true, cfa);
		if (c->wrong != wrong && c->wrong < 10)
			printf("#   in frame %u of %u, at %llx of its file\n", i, n,
			       (unsigned long long)(f->pc - m->bias));
	}
}

static int on_record(void *arg, void *data, size_t len)
{
	static struct native_walk w;
	struct comparison *c = arg;
	const struct walk_record *r = data;

	if (len < sizeof(*r))
		die("a record of %zu bytes", len);
	walk_natively(c->target, r, &w);
	c->samples++;
	c->frames += r->n;
	c->beyond += w.beyond;
	c->complete += r->end.unwinder == WALK_DWARF && !r->end.error;
	if (r->n > c->deepest)
		c->deepest = r->n;
	if (c->target->follow) {
		compare_with_libdw(c, r, r->frames, r->n);
		compare_with_libdw(c, r, w.frames, w.n);
	}
	if (!same(r, &w) && ++c->different <= 2) {
		show("in the kernel", r->frames, r->n, r->end);
		show("natively", w.frames, w.n, w.end);
	}
	return 0;
}

/* ---- the target ---- */

static int open_event(pid_t pid, int program, uint64_t period)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
		die("no event: %s", strerror(errno));
	return fd;
}

/* Starts it; it has mapped all and stands at its gate when this returns. The gate's fd. */
static int start(char **argv, pid_t *pid)
{
	char dir[] = "/tmp/fusee-XXXXXX", gate[64];
	int fd;

	if (!mkdtemp(dir))
		die("no folder: %s", strerror(errno));
	snprintf(gate, sizeof(gate), "%s/gate", dir);
	if (mkfifo(gate, 0600))
		die("no gate: %s", strerror(errno));
	*pid = fork();
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("BURN_GATE", gate, 1);
		execv(argv[0], argv);
		_exit(127);
	}
	while ((fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
	       !waitpid(*pid, NULL, WNOHANG))
		usleep(2000);
	unlink(gate);
	rmdir(dir);
	if (fd < 0)
		die("'%s' does not come to its gate", argv[0]);
	return fd;
}

/* Starts a program that knows no gate, and stops it when it has mapped all. */
static void start_running(char **argv, pid_t *pid)
{
	*pid = fork();
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], argv);
		_exit(127);
	}
	sleep(1);
	kill(*pid, SIGSTOP);
	if (waitpid(*pid, NULL, WNOHANG))
		die("'%s' ends too soon", argv[0]);
}

/* Samples it until it ends or has given enough. */
static void sample(struct bpf_object *object, struct target *t, int program, int gate,
		   struct comparison *c)
{
	int ring_fd = bpf_map__fd(map_of(object, "walk_ring")),
	    event = open_event(t->pid, program, PERIOD_NS);
	struct ring_buffer *ring = ring_buffer__new(ring_fd, on_record, c, NULL);
	siginfo_t ended = {0};

	if (!ring || ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ||
	    (gate < 0 ? kill(t->pid, SIGCONT) : write(gate, "g", 1) != 1))
		die("cannot begin: %s", strerror(errno));
	while (!waitid(P_PID, (id_t)t->pid, &ended, WEXITED | WNOHANG | WNOWAIT) && !ended.si_pid)
		if (ring_buffer__poll(ring, 20) < 0 && errno != EINTR)
			die("the ring cannot be read: %s", strerror(errno));
	ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
	close(event);
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
}

static int walk(struct target *t, char **argv)
{
	struct comparison c = {.target = t};
	struct bpf_object *object = link_all(&t->set);
	uint64_t counts[2] = {0};
	int program, gate = -1, counts_fd;

	if (t->running)
		start_running(argv, &t->pid);
	else
		gate = start(argv, &t->pid);
	if (procfs_each_mapping(t->pid, add_mapping, t) || !(t->nwords || t->tableless))
		die("no tables of '%s'", argv[0]);
	load(object, frames_of(t), false);
	program = program_of(object, "walk");
	fill(object, t);
	sample(object, t, program, gate, &c);
	waitpid(t->pid, NULL, 0);
	counts_fd = bpf_map__fd(map_of(object, "walk_counts"));
	for (uint32_t i = 0; i < 2; i++)
		bpf_map_lookup_elem(counts_fd, &i, &counts[i]);
	bpf_object__close(object);
	printf("# %llu samples in user mode, %llu found no room; %llu compared: %llu frames, at "
	       "most "
	       "%llu; %llu complete, %llu beyond the copy, %llu different\n",
	       (unsigned long long)counts[0], (unsigned long long)counts[1],
	       (unsigned long long)c.samples, (unsigned long long)c.frames,
	       (unsigned long long)c.deepest, (unsigned long long)c.complete,
	       (unsigned long long)c.beyond, (unsigned long long)c.different);
	if (t->follow)
		printf("# registers and CFAs: %llu as libdw's, %llu not known here, %llu below the "
		       "copy, "
		       "%llu wrong; %llu frames not reached by libdw, %llu reached otherwise\n",
		       (unsigned long long)c.equal, (unsigned long long)c.only_libdw,
		       (unsigned long long)c.below, (unsigned long long)c.wrong,
		       (unsigned long long)c.unreached, (unsigned long long)c.otherwise);
	if (counts[0] != counts[1] + c.samples)
		die("samples are missing");
	/* a comparison of nothing, or of stacks that all end at once, shows nothing */
	if (c.samples < 100 || c.frames < 3 * c.samples ||
	    (!t->tableless && c.complete < c.samples / 2))
		die("too little to compare");
	return c.different || c.wrong || c.otherwise || (t->follow && c.equal < 10 * c.samples);
}

/* ---- what a sample costs ---- */

struct timed {
	struct bpf_object *object;
	struct walk_times *times;
	double hz, seconds;
	/* the walk, and its twin */
	pid_t pid[2];
	int event[2];
};

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* One alone runs and is sampled: the median, 0 of none. */
static uint32_t time_one(struct timed *t, int which, uint32_t *samples)
{
	t->times->n = t->times->frames = t->times->first = 0;
	if (kill(t->pid[which], SIGCONT) || ioctl(t->event[which], PERF_EVENT_IOC_ENABLE, 0))
		die("cannot begin: %s", strerror(errno));
	usleep((useconds_t)(t->seconds * 1e6));
	ioctl(t->event[which], PERF_EVENT_IOC_DISABLE, 0);
	kill(t->pid[which], SIGSTOP);
	*samples = t->times->n < WALK_TIMES ? (uint32_t)t->times->n : WALK_TIMES;
	qsort(t->times->ns, *samples, sizeof(*t->times->ns), by_value);
	return *samples ? t->times->ns[*samples / 2] : 0;
}

static void *map_times(struct bpf_object *object)
{
	void *p = mmap(NULL, (sizeof(struct walk_times) + WALK_PAGE - 1) & ~(WALK_PAGE - 1ul),
		       PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(map_of(object, "walk_times")), 0);

	if (p == MAP_FAILED)
		die("the times cannot be mapped: %s", strerror(errno));
	return p;
}

/* Both, on one CPU; the arguments stand behind the twin's name. */
static void start_both(struct timed *t, char **argv, bool gated, int *gate)
{
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpu);
	for (int i = 1; i >= 0; i--) {
		argv[1] = argv[i];
		if (gated)
			gate[i] = start(argv + 1, &t->pid[i]);
		else
			start_running(argv + 1, &t->pid[i]);
		sched_setaffinity(t->pid[i], sizeof(cpu), &cpu);
	}
}

static void time_rounds(struct timed *t, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		uint32_t n[2], ns[2];
		uint64_t frames, first;

		ns[0] = time_one(t, 0, &n[0]);
		frames = t->times->frames;
		first = t->times->first;
		ns[1] = time_one(t, 1, &n[1]);
		printf("walk %u ns of %u samples, twin %u ns of %u; %llu frames, %llu new\n", ns[0],
		       n[0], ns[1], n[1], (unsigned long long)frames, (unsigned long long)first);
	}
}

static int time_walks(struct target *target, char **argv, bool gated)
{
	struct timed t = {.hz = atof(argv[0]), .seconds = atof(argv[1])};
	static const char *const programs[2] = {"time_walk", "time_peer"};
	int rounds = atoi(argv[2]), gate[2];

	if (t.hz < 1 || t.seconds <= 0)
		die("a rate and a time are required");
	t.object = link_all(&target->set);
	start_both(&t, argv + 3, gated, gate);
	target->pid = t.pid[0];
	if (procfs_each_mapping(target->pid, add_mapping, target) || !target->nwords)
		die("no tables of it");
	load(t.object, frames_of(target), true);
	fill(t.object, target);
	t.times = map_times(t.object);
	for (int i = 0; i < 2; i++) {
		t.event[i] = open_event(t.pid[i], program_of(t.object, programs[i]),
					(uint64_t)(1e9 / t.hz));
		if (!gated)
			continue;
		if (write(gate[i], "g", 1) != 1)
			die("cannot begin: %s", strerror(errno));
		usleep(100000);
		kill(t.pid[i], SIGSTOP);
	}
	time_rounds(&t, rounds);
	for (int i = 0; i < 2; i++) {
		kill(t.pid[i], SIGKILL);
		waitpid(t.pid[i], NULL, 0);
	}
	bpf_object__close(t.object);
	return 0;
}

int main(int argc, char **argv)
{
	static struct target t;
	struct bpf_object *object;

	if (argc < 3 || (argc < 4 && strcmp(argv[1], "load")))
		return 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(keep_message);
	if (plugin_set_open(argv[2], &plugin_host_base, NULL, &t.set))
		die("no plugins in '%s'", argv[2]);
	t.wrong = strstr(argv[1], "wrong");
	t.tableless = !strcmp(argv[1], "tableless");
	t.running = !strcmp(argv[1], "follow-running");
	t.maps.follow = t.follow = !strncmp(argv[1], "follow", 6);
	need_bpf();
	if (!strcmp(argv[1], "time") || !strcmp(argv[1], "running"))
		return argc < 8 ? 64 : time_walks(&t, argv + 3, *argv[1] == 't');
	if (strcmp(argv[1], "load"))
		return walk(&t, argv + 3);
	object = link_all(&t.set);
	load(object, 1, false);
	program_of(object, "walk");
	bpf_object__close(object);
	plugin_set_close(&t.set);
	return 0;
}
