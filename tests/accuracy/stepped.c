/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepped [--forward] [--wrong] [--steps N] PROGRAM: judges the stacks of a program at each of its
 * instructions. It is a static program without a libc, which loads its addresses as they are
 * linked. Unwind information is hidden, so rows come from instructions alone; with --forward those
 * of the section `made` come as for code made at run time, from the instructions that the steps
 * before have met, ten times. --wrong: every row is wrong.
 *
 * Its calls are followed while it is stepped: a call has pushed its return address, which is of
 * the stack until sp is above. A walk that ends as complete must have found these, and no others.
 * Prints "stacks N complete N wrong N"; exit status 1 if one is wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugins/unwinders/dwarf/cfi/x86_64.h"
#include "../../plugins/unwinders/dwarf/code/forward.h"
#include <fusee/insn.h>
#include "../../plugins/unwinders/dwarf/rows.h"
#include "host.h"
#include "rows_plant.h"

#include <fusee/unwinder.bpf.h>

extern const struct fusee_plugin fusee_plugin;

#define MOST_CALLS 4096
#define MOST_STACK 65536u

struct stepped {
	struct host_file file;
	struct fusee_section text, made;
	uint32_t *forward; /* the table of `made`; NULL: the file's has it */
	uint64_t nforward;
	uint8_t *met; /* of each byte of `made`: 1: executed, 2: a return address */
	pid_t pid;
	struct user_regs_struct regs;
	uint64_t top; /* of the stack */
	uint64_t slots[MOST_CALLS];
	uint32_t n;
	uint64_t popped; /* slot of a return address that the code has popped; 0: none */
	unsigned char stack[MOST_STACK];
	unsigned long stacks, complete, wrong;
};

static bool is_in(const struct fusee_section *s, uint64_t pc)
{
	return pc - s->vaddr < s->bytes.len;
}

/* ---- rows ---- */

static int make_forward(struct stepped *s)
{
	struct forward_start *starts = calloc(2 * s->made.bytes.len + 1, sizeof(*starts));
	struct forward_code code = {.bytes = (const uint8_t *)s->made.bytes.p,
				    .len = s->made.bytes.len,
				    .vaddr = s->made.vaddr};
	struct table_build build;
	struct forward *f = NULL;
	struct sheet sheet = {0};
	struct rows rows = {0};
	size_t n = 0;
	int err = !starts || table_build_init(&build);

	for (uint64_t i = 0; !err && i < s->made.bytes.len; i++)
		for (uint8_t returned = 0; returned < 2; returned++)
			if (s->met[i] & (returned ? 2 : 1))
				starts[n++] = (struct forward_start){s->made.vaddr + i, returned};
	err = err || forward_new(&f, &code, starts, n) || forward_rows(f, &build, &rows) ||
	      sheet_add_rules(&sheet, &rows) ||
	      table_pack(&build, &sheet, X86_64_MACHINE, &s->forward, &s->nforward);
	forward_free(f);
	free(starts);
	sheet_fini(&sheet);
	return err;
}

static int open_program(struct stepped *s, const char *path)
{
	s->file.fd = open(path, O_RDONLY | O_CLOEXEC);
	s->file.hide[0] = ".eh_frame";
	s->file.hide[1] = ".debug_frame";
	s->text.size = s->made.size = sizeof(s->text);
	if (s->file.fd < 0 || elf_open(&s->file.elf, s->file.fd) ||
	    host_inspect(&fusee_plugin, &s->file) != 1 ||
	    elf_section(s->file.elf, ".text", &s->text))
		return 1;
	elf_section(s->file.elf, "made", &s->made);
	s->met = calloc(1, s->made.bytes.len + 1);
	return !s->met;
}

/* ---- the program ---- */

static int start(struct stepped *s, const char *path)
{
	s->pid = fork();
	if (!s->pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	if (s->pid < 0 || waitpid(s->pid, NULL, 0) != s->pid ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs))
		return 1;
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, PTRACE_O_EXITKILL);
	s->top = s->regs.rsp + 8;
	return 0;
}

static enum insn_effect effect_at(const struct stepped *s, uint64_t pc)
{
	const struct fusee_section *in = is_in(&s->made, pc) ? &s->made : &s->text;
	uint64_t at = pc - in->vaddr;
	struct insn insn;

	if (!is_in(in, pc) ||
	    fusee_insn_decode((const uint8_t *)in->bytes.p + at, in->bytes.len - at, &insn))
		return INSN_NOTHING;
	return insn.effect;
}

static void meet(struct stepped *s, uint64_t pc, uint8_t how)
{
	if (is_in(&s->made, pc))
		s->met[pc - s->made.vaddr] |= how;
}

/* Was what it has called the instruction behind the call, which then pops its own address? */
static bool is_next(const struct stepped *s)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s->pid, s->regs.rsp, NULL) == s->regs.rip;
}

static int step(struct stepped *s)
{
	uint64_t sp = s->regs.rsp, word;
	enum insn_effect did = effect_at(s, s->regs.rip);
	int status;

	meet(s, s->regs.rip, 1);
	if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL) ||
	    waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs))
		return 1;
	if (did == INSN_CALL && s->regs.rsp == sp - 8 && s->n < MOST_CALLS && !is_next(s)) {
		s->slots[s->n++] = s->regs.rsp;
		word = (uint64_t)ptrace(PTRACE_PEEKDATA, s->pid, s->regs.rsp, NULL);
		meet(s, word, 2);
	}
	if (s->popped && (did == INSN_JUMP || did == INSN_RETURN || s->popped == s->regs.rsp)) {
		if (s->popped == s->regs.rsp) /* it was pushed again */
			s->slots[s->n++] = s->popped;
		s->popped = 0;
	}
	while (s->n && s->slots[s->n - 1] < s->regs.rsp)
		s->popped = did == INSN_POP ? s->slots[--s->n] : (s->n--, 0);
	return 0;
}

/* ---- the walk ---- */

static void begin(const struct stepped *s, struct fusee_native *n, uint64_t len)
{
	const struct user_regs_struct *r = &s->regs;
	const uint64_t regs[16] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
				   r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	memset(n, 0, sizeof(*n));
	n->u.machine = 62;
	n->u.flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	n->u.pc = r->rip;
	n->u.sp = n->u.first_sp = r->rsp;
	n->u.fp = r->rbp;
	n->u.valid_regs = 0xffff & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP);
	memcpy(n->u.regs, regs, sizeof(regs));
	n->stack = s->stack;
	n->stack_lo = r->rsp;
	n->stack_hi = r->rsp + len;
}

static int walk_step(const struct stepped *s, struct fusee_native *n)
{
	const struct fusee_unwinder_ops *ops = fusee_plugin.ops;
	bool made = s->forward &&
		    is_in(&s->made, n->u.flags & FUSEE_PC_EXACT ? n->u.pc : n->u.pc - 1);

	n->u.error = 0;
	n->u.offset = n->u.pc;
	n->slab = made ? s->forward : s->file.words;
	n->u.slab_words = made ? s->nforward : s->file.n;
	n->ntouched = 0;
	return ops->native_step(&n->u);
}

static void show(const struct stepped *s, uint32_t n, const uint64_t *walked)
{
	printf("# wrong at 0x%llx:", (unsigned long long)s->regs.rip);
	for (uint32_t i = 0; i < n && i < 8; i++)
		printf(" 0x%lx", walked[i]);
	printf("; was called from");
	for (uint32_t i = 0; i < s->n && i < 8; i++) {
		uint64_t word;

		memcpy(&word, s->stack + (s->slots[s->n - 1 - i] - s->regs.rsp), 8);
		printf(" 0x%lx", word);
	}
	printf("\n");
}

static void judge(struct stepped *s)
{
	uint64_t len = s->top - s->regs.rsp, word, walked[MOST_CALLS];
	struct iovec to = {s->stack, len}, from = {(void *)(uintptr_t)s->regs.rsp, len};
	struct fusee_native n;
	bool right = true;
	uint32_t found = 0;
	int r;

	if (len > MOST_STACK || process_vm_readv(s->pid, &to, 1, &from, 1, 0) != (ssize_t)len)
		return;
	s->stacks++;
	begin(s, &n, len);
	while ((r = walk_step(s, &n)) == FUSEE_NEXT && found < MOST_CALLS) {
		n.u.flags &= ~(uint32_t)(FUSEE_SIGNAL | FUSEE_FIRST);
		walked[found] = n.u.pc;
		if (found < s->n)
			memcpy(&word, s->stack + (s->slots[s->n - 1 - found] - s->regs.rsp), 8);
		right = right && found < s->n && word == n.u.pc;
		found++;
	}
	if (r != FUSEE_STOP || n.u.error)
		return;
	s->complete++;
	if (right && found == s->n)
		return;
	if (s->wrong++ < 5)
		show(s, found, walked);
}

int main(int argc, char **argv)
{
	static struct stepped s;
	unsigned long steps = 100000;
	bool forward = false, wrong = false;

	for (int i = 1; i + 1 < argc; i++) {
		forward |= !strcmp(argv[i], "--forward");
		wrong |= !strcmp(argv[i], "--wrong");
		if (!strcmp(argv[i], "--steps"))
			steps = strtoul(argv[i + 1], NULL, 10);
	}
	if (argc < 2 || open_program(&s, argv[argc - 1]) || start(&s, argv[argc - 1])) {
		fprintf(stderr, "usage: stepped [--forward] [--wrong] [--steps N] PROGRAM\n");
		return 2;
	}
	if (wrong)
		plant_many(s.file.words, 1);
	for (unsigned long i = 0; i < steps; i++) {
		if (step(&s)) {
			printf("# it ended, or had a fault, at 0x%llx\n",
			       (unsigned long long)s.regs.rip);
			return 2;
		}
		if (forward && i % (steps / 10) == steps / 10 - 1) {
			free(s.forward);
			s.forward = NULL;
			if (make_forward(&s))
				return 2;
			if (wrong)
				plant_many(s.forward, 1);
		}
		if (!s.popped && (!forward || s.forward))
			judge(&s);
	}
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	printf("stacks %lu complete %lu wrong %lu\n", s.stacks, s.complete, s.wrong);
	return !!s.wrong;
}
