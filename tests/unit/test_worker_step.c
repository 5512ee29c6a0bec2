// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/worker
/* A step by libunwind over this program's own rows: frames whose places only DWARF expressions
 * name. */

#include "worker_help.h"

#define RBX 3
#define RBP 6
#define RSP 7
#define RIP 16
#define BIT(n) (1ull << (n))

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* What the assembly below leaves: its registers at a label, and what they were when it was entered.
 */
uint64_t step_regs[17], step_entry_sp, step_return, step_entry_rbx;
static unsigned char stack_copy[65536];
static uint64_t stack_lo;
static uint32_t stack_len;

void step_copy_stack(void);
void step_expression(void);
void step_signal(void);
void step_outermost(void);

/* Its caller's frame and what lies above, as far as this thread's stack goes. */
void step_copy_stack(void)
{
	extern void *__libc_stack_end; /* of glibc's loader: sp at the program's entry */
	uint64_t hi = (uint64_t)(uintptr_t)__libc_stack_end & ~7ull;

	stack_lo = step_regs[RSP];
	stack_len = hi - stack_lo < sizeof(stack_copy) ? (uint32_t)(hi - stack_lo)
						       : sizeof(stack_copy);
#ifdef __SANITIZE_ADDRESS__
	for (uint32_t i = 0; i < stack_len;
	     i += 8) { /* without its checks: this is not ours to read */
		uint64_t word;

		__asm__ volatile("mov (%1), %0" : "=r"(word) : "r"(stack_lo + i));
		memcpy(stack_copy + i, &word, 8);
	}
#else
	memcpy(stack_copy, (void *)(uintptr_t)stack_lo, stack_len);
#endif
}

/*
 * Three functions. rbx is changed in each. The first keeps its CFA in memory and the caller's rbx
 * where only an expression finds it; the second calls itself a signal frame; the third has no
 * caller.
 */
#define ENTER                              \
	"	mov	%rsp, step_entry_sp(%rip)\n" \
	"	mov	(%rsp), %rax\n"              \
	"	mov	%rax, step_return(%rip)\n"   \
	"	mov	%rbx, step_entry_rbx(%rip)\n"
#define SNAPSHOT                           \
	"	mov	$0x1111, %rbx\n"             \
	"	mov	%rbx, 24+step_regs(%rip)\n"  \
	"	mov	%rbp, 48+step_regs(%rip)\n"  \
	"	mov	%rsp, 56+step_regs(%rip)\n"  \
	"	mov	%r12, 96+step_regs(%rip)\n"  \
	"	mov	%r13, 104+step_regs(%rip)\n" \
	"	mov	%r14, 112+step_regs(%rip)\n" \
	"	mov	%r15, 120+step_regs(%rip)\n" \
	"1:	lea	1b(%rip), %rax\n"          \
	"	mov	%rax, 128+step_regs(%rip)\n" \
	"	call	step_copy_stack\n"
#define FUNCTION(name) ".globl " name "\n.type " name ", @function\n" name ":\n	.cfi_startproc\n"

__asm__(".pushsection .text\n" FUNCTION("step_expression") ENTER
	"	lea	8(%rsp), %rax\n"
	"	sub	$56, %rsp\n"
	"	mov	%rax, 40(%rsp)\n"
	"	mov	%rbx, 16(%rsp)\n"
	"	.cfi_escape 0x0f, 3, 0x77, 40, 0x06\n"         /* CFA = *(rsp + 40) */
	"	.cfi_escape 0x10, 3, 4, 0x77, 8, 0x38, 0x22\n" /* rbx at rsp + 8 + 8 */
	SNAPSHOT "	mov	16(%rsp), %rbx\n"
	"	add	$56, %rsp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	.cfi_restore %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n" FUNCTION(
		"step_signal") "	.cfi_signal_frame\n" ENTER "	push	%rbx\n"
			       "	sub	$16, %rsp\n"
			       "	.cfi_escape 0x0f, 2, 0x77, 32\n"    /* CFA = rsp + 32 */
			       "	.cfi_escape 0x10, 3, 2, 0x77, 16\n" /* rbx at rsp + 16 */
	SNAPSHOT "	add	$16, %rsp\n"
			       "	pop	%rbx\n"
			       "	ret\n"
			       "	.cfi_endproc\n" FUNCTION("step_outermost") ENTER
	"	push	%rbx\n"
	"	.cfi_undefined %rip\n"
	"	.cfi_escape 0x0f, 2, 0x77, 16\n" SNAPSHOT "	pop	%rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".popsection\n");

struct stepping {
	struct worker *w;
	struct inspection *i;
	int fd;
	uint64_t bias, regs[17], valid;
};

/* Runs f, and makes ready to step out of it. */
static struct stepping before(void (*f)(void))
{
	struct stepping s = {.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
			     .bias = (uint64_t)(uintptr_t)__ehdr_start,
			     .valid = BIT(RBX) | BIT(RBP) | BIT(RSP) | 0xf000 | BIT(RIP)};
	struct inspected a;

	CHECK_INT(worker_new(&s.w, &(struct worker_options){.request_ms = 10000}), 0);
	a = inspect_fd(s.w, dup(s.fd));
	CHECK_INT(a.err, 0);
	s.i = a.i;
	f();
	memcpy(s.regs, step_regs, sizeof(s.regs));
	s.regs[RIP] -= s.bias;
	return s;
}

struct stepped {
	struct stepping *s;
	int err;
};

static void stepped(void *arg, int err, const uint64_t regs[17], uint64_t valid)
{
	struct stepped *t = arg;

	t->err = err;
	if (err < 0)
		return;
	memcpy(t->s->regs, regs, sizeof(t->s->regs));
	t->s->valid = valid;
}

static int step(struct stepping *s)
{
	struct stepped t = {s, 2};
	struct worker_step step = {.inspection = s->i,
				   .fd = s->fd,
				   .bias = s->bias,
				   .valid = s->valid,
				   .stack_lo = stack_lo,
				   .stack = stack_copy,
				   .len = stack_len};
	int err;

	memcpy(step.regs, s->regs, sizeof(step.regs));
	err = worker_step(s->w, &step, NULL, stepped, &t);
	if (err)
		return err;
	CHECK_INT(worker_wait_until(s->w, 0), 0);
	return t.err;
}

static void after(struct stepping *s)
{
	inspection_unref(s->i);
	worker_stop(s->w);
	close(s->fd);
}

#define TEST_OF_STEP(id) TEST_WITH(id, struct stepping, s, before(step_expression), after(&s))

TEST_OF_STEP(out_of_an_expression)
{
	CHECK_INT(step(&s), 0);
	CHECK_INT(s.regs[RIP], step_return);
	CHECK_INT(s.regs[RSP], step_entry_sp + 8);
	CHECK_INT(s.regs[RBX], step_entry_rbx);
	CHECK_INT(s.regs[RBP], step_regs[RBP]);
	CHECK_INT(s.regs[15], step_regs[15]);
	CHECK_INT(s.valid, BIT(RBX) | BIT(RBP) | BIT(RSP) | 0xf000 | BIT(RIP));
}

/* What is not known stays unknown, and what it takes fails by name: never a wrong caller. */
TEST_OF_STEP(registers_that_are_not_known)
{
	uint64_t regs[17];

	memcpy(regs, s.regs, sizeof(regs));
	s.valid &= ~(BIT(RBP) | BIT(14));
	CHECK_INT(step(&s), 0);
	CHECK_INT(s.regs[RIP], step_return);
	CHECK_INT(s.valid, BIT(RBX) | BIT(RSP) | BIT(12) | BIT(13) | BIT(15) | BIT(RIP));
	memcpy(s.regs, regs, sizeof(regs));
	s.valid = BIT(RBP) | BIT(RIP); /* the expression needs rsp */
	CHECK_INT(step(&s), -EBADMSG);
}

TEST_OF_STEP(a_stack_that_ends_too_early)
{
	uint64_t regs[17], valid = s.valid;
	uint32_t all = stack_len;

	memcpy(regs, s.regs, sizeof(regs));
	for (stack_len = 0; stack_len < 64; stack_len += 4) {
		memcpy(s.regs, regs, sizeof(regs));
		s.valid = valid;
		CHECK_INT(step(&s), -EBADMSG); /* the return address stands at 56 */
	}
	stack_len = 64 < all ? 64 : all;
	CHECK_INT(step(&s), 0);
	CHECK_INT(s.regs[RIP], step_return);
}

TEST(out_of_a_signal_frame)
{
	struct stepping s = before(step_signal);

	CHECK_INT(step(&s), 1);
	CHECK_INT(s.regs[RIP], step_return);
	CHECK_INT(s.regs[RBX], step_entry_rbx);
	after(&s);
}

TEST(the_end_of_the_stack)
{
	struct stepping s = before(step_outermost);

	CHECK_INT(step(&s), -ENODATA);
	after(&s);
}

TEST_OF_STEP(no_row)
{
	s.regs[RIP] = 0x10; /* in the file's header */
	CHECK_INT(step(&s), -ENOENT);
}

TEST_OF_STEP(ends_when_idle)
{
	siginfo_t any;

	CHECK_INT(step(&s), 0);
	WAIT_FOR((worker_dispatch(s.w), waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) < 0));
	CHECK_INT(errno, ECHILD);
}

#define LIMIT_MS (test_within(15) * 100)

/* A file that no process loaded, with these lines for its function at 0x3000, and a stack that none
 * had. */
static struct stepping before_lines(const char *lines)
{
	struct stepping s = {.valid = BIT(RBX) | BIT(RSP) | BIT(RIP), .bias = 0x500000000000};
	char command[640], so[128];
	struct inspected a;

	snprintf(so, sizeof(so), "%s/frames.so", test_dir());
	snprintf(command, sizeof(command),
		 "printf '%%s\\n' %s 'nop' 'nop' 'ret' '.cfi_endproc' | "
		 "${CC:-cc} -shared -nostdlib -x assembler -Wl,-Ttext=0x3000 -o %s -",
		 lines, so);
	if (system(command))
		SKIP("no compiler");
	s.fd = open(so, O_RDONLY | O_CLOEXEC);
	CHECK(s.fd >= 0);
	CHECK_INT(worker_new(&s.w, &(struct worker_options){.request_ms = LIMIT_MS}), 0);
	a = inspect_fd(s.w, dup(s.fd));
	CHECK_INT(a.err, 0);
	s.i = a.i;
	s.regs[RIP] = 0x3002;
	s.regs[RSP] = stack_lo = 0x7fff00000000;
	stack_len = 64;
	memset(stack_copy, 0, 64);
	memcpy(stack_copy + 8, &(uint64_t){0x7000}, 8);
	memcpy(stack_copy + 24, &(uint64_t){0x7fff00000040}, 8);
	memcpy(stack_copy + 56, &(uint64_t){0x1234567}, 8);
	return s;
}

TEST(out_of_debug_frame)
{
	struct stepping s = before_lines(
		"'.cfi_sections .debug_frame' '.text' 'f: .cfi_startproc' 'nop' "
		"'.cfi_escape 0x0f, 3, 0x77, 24, 0x06' '.cfi_escape 0x10, 3, 2, 0x77, 8'");

	CHECK_INT(step(&s), 0);
	CHECK_INT(s.regs[RIP], 0x1234567);
	CHECK_INT(s.regs[RSP], 0x7fff00000040);
	CHECK_INT(s.regs[RBX], 0x7000);
	CHECK_INT(s.valid, BIT(RBX) | BIT(RSP) | BIT(RIP));
	after(&s);
}

/* The expression jumps to its own beginning: refused after its time, and known from then on. */
TEST(an_expression_without_an_end)
{
	struct stepping s = before_lines(
		"'.text' 'f: .cfi_startproc' 'nop' '.cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff'");
	unsigned long long began;

	CHECK_INT(step(&s), -ETIMEDOUT);
	began = test_now_ns();
	CHECK_INT(step(&s), -ETIMEDOUT);
	CHECK(test_now_ns() - began < LIMIT_MS * 900000ull);
	after(&s);
}
