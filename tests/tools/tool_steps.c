/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_steps [--wrong]: links the native steps' BPF objects with the program of steps.bpf.c, loads
 * them, and holds what they answer in the kernel against what the same source answers natively:
 * over this program's own stacks, and over tables and stacks of noise with holes. TAP; exit 77 with
 * a reason where BPF is not to be had. With --wrong each native read is 8 bytes off: every
 * comparison must fail.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../plugins/unwinders/dwarf/reasons.h"
#include "../../plugins/unwinders/dwarf/table.h"
#include "../accuracy/host.h"
#include "steps.h"

FUSEE_EMBED(steps_bpf, "steps.bpf.o");
FUSEE_EMBED(dwarf_object, "dwarf.bpf.o");
FUSEE_EMBED(framepointer_object, "framepointer.bpf.o");

#define FRAMES 2048 /* frame i has page i of all tables, whose entry is word 1 + i of the slabs */
#define TABLE_WORDS ((__u64)FRAMES * FUSEE_PAGE_WORDS)
#define REC __attribute__((noinline, section("steps_rec")))

extern const struct fusee_plugin fusee_plugin;
extern const char __start_steps_rec[], __stop_steps_rec[];
int fusee_step_dwarf(struct fusee_unwind *u);
int fusee_step_framepointer(struct fusee_unwind *u);

static struct bpf_object *object;
static int raw_fd;
static struct steps_input *in;
static struct steps_output *by_kernel, *by_us;
static __u32 *entries, *words; /* of all tables */
static __u64 pages_used;
static int number, failed;
static __u64 wrong; /* --wrong: native reads are this far off, which must be noticed */

static void __attribute__((format(printf, 2, 3))) ok(bool good, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("%sok %d - ", good ? "" : "not ", ++number);
	vprintf(format, ap);
	putchar('\n');
	va_end(ap);
	failed |= !good;
}

/* ---- link and load ---- */

static int skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list ap)
{
	if (level == LIBBPF_WARN) {
		fputs("# ", stderr);
		vfprintf(stderr, format, ap);
	}
	return 0;
}

static int add_object(struct bpf_linker *l, const unsigned char *from, const unsigned char *to)
{
	int fd = memfd_create("object", MFD_CLOEXEC), err = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, from, (size_t)(to - from)) == to - from)
		err = bpf_linker__add_file(l, path, NULL);
	close(fd);
	return err;
}

/* All objects as one, in memory. The fd, or -1. */
static int link_objects(void)
{
	int fd = memfd_create("steps", MFD_CLOEXEC), err;
	struct bpf_linker *l;
	char out[64];

	snprintf(out, sizeof(out), "/proc/self/fd/%d", fd);
	l = bpf_linker__new(out, NULL);
	if (!l)
		return -1;
	err = add_object(l, steps_bpf, steps_bpf_end);
	if (!err)
		err = add_object(l, dwarf_object, dwarf_object_end);
	if (!err)
		err = add_object(l, framepointer_object, framepointer_object_end);
	if (!err)
		err = bpf_linker__finalize(l);
	bpf_linker__free(l);
	return err ? -1 : fd;
}

static void *map_memory(const char *name, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_object__find_map_fd_by_name(object, name), 0);

	if (p == MAP_FAILED) {
		perror("# mmap of a BPF map");
		exit(1);
	}
	return p;
}

static size_t pages(size_t len)
{
	return (len + 4095) & ~(size_t)4095;
}

static __u32 entry_of(__u32 page)
{
	return 1u << FUSEE_FRAME_BITS | page;
}

static int load(int fd)
{
	struct fusee_frame_state *states;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	object = bpf_object__open_file(path, NULL);
	if (!object)
		return -errno;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "fusee_frames"), FRAMES);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "fusee_frame_states"),
				 FRAMES);
	if (bpf_object__load(object))
		return -errno;
	raw_fd = bpf_program__fd(bpf_object__find_program_by_name(object, "steps_raw"));
	in = map_memory("steps_in", pages(sizeof(*in)));
	by_kernel = map_memory("steps_out", pages(sizeof(*by_kernel)));
	entries = (__u32 *)map_memory("fusee_slabs", 1 << 20) + 1;
	words = map_memory("fusee_frames", TABLE_WORDS * 4);
	states = map_memory("fusee_frame_states", pages(FRAMES * sizeof(*states)));
	for (__u32 i = 0; i < FRAMES; i++) {
		states[i].filling = 1;
		entries[i] = entry_of(i);
	}
	by_us = calloc(1, sizeof(*by_us));
	return by_us ? 0 : -ENOMEM;
}

/* ---- both builds ---- */

static int read_self(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct iovec to = {dst, len}, from = {(void *)(uintptr_t)(addr + wrong), len};

	(void)n;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)len ? 0 : -1;
}

static void walk_natively(void)
{
	struct fusee_native n = {.u = {.machine = 62,
				       .flags = in->flags,
				       .pc = in->pc,
				       .sp = in->sp,
				       .fp = in->fp,
				       .valid_regs = in->valid_regs},
				 .read = read_self};

	memcpy(n.u.regs, in->regs, sizeof(in->regs));
	for (__u32 i = 0; i < STEPS_DEPTH; i++) {
		int r = STEPS_UNMAPPED;
		__u32 by = 0;

		if (!steps_locate(&n.u, in)) {
			n.slab = words + (n.u.slab - 1) * FUSEE_PAGE_WORDS;
			by = 1;
			r = fusee_step_dwarf(&n.u);
			if (r == FUSEE_PASS) {
				by = 2;
				r = fusee_step_framepointer(&n.u);
			}
		}
		if (steps_note(&n.u, by_us, i, by, r))
			break;
	}
}

static int walk_in_kernel(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(raw_fd, &opts);
}

/* NULL, or what differs. */
static const char *difference(void)
{
	static char text[256];

	for (__u32 i = 0; i < by_us->n && i < by_kernel->n; i++) {
		const struct steps_frame *a = &by_us->frames[i], *b = &by_kernel->frames[i];

		if (memcmp(a, b, sizeof(*a))) {
			snprintf(text, sizeof(text),
				 "frame %u: pc %llx sp %llx fp %llx flags %x by %u, in the kernel "
				 "pc %llx "
				 "sp %llx fp %llx flags %x by %u",
				 i, a->pc, a->sp, a->fp, a->flags, a->by, b->pc, b->sp, b->fp,
				 b->flags, b->by);
			return text;
		}
	}
	if (by_us->n == by_kernel->n && by_us->result == by_kernel->result &&
	    by_us->error == by_kernel->error && by_us->by == by_kernel->by)
		return NULL;
	snprintf(text, sizeof(text),
		 "end: %u frames, result %u, error %u by %u, in the kernel %u, %u, %u by %u",
		 by_us->n, by_us->result, by_us->error, by_us->by, by_kernel->n, by_kernel->result,
		 by_kernel->error, by_kernel->by);
	return text;
}

/* ---- this program's own stacks ---- */

static __u64 pages_of(__u64 n)
{
	return (n + FUSEE_PAGE_WORDS - 1) / FUSEE_PAGE_WORDS;
}

static bool add_table(const char *path, const struct steps_mapping *m)
{
	struct host_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	struct steps_mapping *to = &in->mappings[in->nmappings];
	bool good;

	good = file.fd >= 0 && !elf_open(&file.elf, file.fd) &&
	       host_inspect(&fusee_plugin, &file) == 1 && pages_of(file.n) <= FRAMES - pages_used &&
	       in->nmappings < STEPS_MAPPINGS;
	if (good) {
		*to = *m;
		to->slab = 1 + pages_used;
		to->slab_words = file.n;
		to->slab_id = in->nmappings + 1;
		memcpy(words + pages_used * FUSEE_PAGE_WORDS, file.words, file.n * 4);
		pages_used += pages_of(file.n);
		in->nmappings++;
	}
	if (file.elf)
		elf_close(file.elf);
	free(file.words);
	if (file.fd >= 0)
		close(file.fd);
	return good;
}

/* Where the file's vaddr 0 is mapped: by the first mapping of each file, whose vaddr is 0. */
static void add_own_tables(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], path[256], rights[8], last[256] = "";
	__u64 base = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct steps_mapping m = {0};
		__u64 offset;

		*path = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %255s", &m.lo, &m.hi, rights, &offset,
			   path) < 4 ||
		    *path != '/')
			continue;
		if (strcmp(path, last))
			base = m.lo - offset;
		strcpy(last, path);
		m.bias = base;
		if (rights[2] == 'x' && !add_table(path, &m))
			printf("# no table of %s\n", path);
	}
	if (f)
		fclose(f);
}

struct found {
	const char *different;
	__u32 n, result, error, recursions;
} found;

/* Both walks from here. Nothing of the frames that they see changes meanwhile. */
static REC __attribute__((no_reorder)) void look(void)
{
	in->flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	in->valid_regs = 0;
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=r"(in->pc), "=m"(in->sp), "=m"(in->fp));
	walk_natively();
	if (walk_in_kernel()) {
		found.different = strerror(errno);
		return;
	}
	found.different = difference();
	found.n = by_us->n;
	found.result = by_us->result;
	found.error = by_us->error;
	found.recursions = 0;
	for (__u32 i = 0; i < by_us->n; i++) {
		const char *pc = (const char *)(uintptr_t)by_us->frames[i].pc;

		found.recursions += pc > __start_steps_rec && pc <= __stop_steps_rec;
	}
}

static volatile int sink;

static REC int recurse(int depth)
{
	volatile char room[64];

	room[depth & 63] = (char)depth;
	if (!depth)
		look();
	else
		sink += recurse(depth - 1);
	return room[depth & 63];
}

static REC int recurse_wide(int depth) /* a frame pointer, and a size known only at run time */
{
	volatile char *room = __builtin_alloca((size_t)(depth % 7 + 1) * 24);

	room[0] = (char)depth;
	if (!depth)
		look();
	else
		sink += recurse_wide(depth - 1);
	return room[0];
}

static int seen;

static REC int compare(const void *a, const void *b)
{
	if (!seen++)
		sink += recurse(8);
	return *(const int *)a - *(const int *)b;
}

static REC void on_signal(int sig)
{
	sink += recurse_wide(sig == SIGUSR1 ? 5 : 4);
}

static REC void *in_thread(void *arg)
{
	sink += recurse(10);
	return arg;
}

static void judge(const char *what, __u32 recursions)
{
	if (found.different)
		printf("# %s\n", found.different);
	ok(!found.different && found.result == FUSEE_STOP && !found.error &&
		   found.recursions == recursions,
	   "%s: the kernel's %u frames are the native frames, complete, %u of %u are ours", what,
	   found.n, found.recursions, recursions);
	found = (struct found){0};
}

static void own_stacks(void)
{
	stack_t own = {.ss_sp = malloc(1 << 20), .ss_size = 1 << 20};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	int numbers[] = {3, 1, 2};
	pthread_t thread;

	add_own_tables();
	recurse(200);
	judge("200 calls", 201); /* recurse(200) .. recurse(0) */
	recurse_wide(300);
	judge("300 calls with alloca", 301);
	qsort(numbers, 3, sizeof(*numbers), compare);
	judge("called back by qsort", 10);
	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	judge("in a signal handler on a stack of its own", 7);
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	judge("in a thread", 12);
	recurse(2000);
	ok(!found.different && found.n == STEPS_DEPTH && found.result == FUSEE_NEXT,
	   "2000 calls: %u equal frames, then too deep", found.n);
}

/* ---- noise ---- */

#define NOISE_TABLE 2048u
#define NOISE_PAGE (FRAMES - 2u)
#define NOISE_STACK (4u * 4096)
#define NOISE_AROUND (1u << 20)

static __u64 state = 88172645463325252ull;

static __u64 noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static __u32 noise_rule(__u32 specials)
{
	__u64 n = noise();
	__u32 slot = n >> 8 & 3, offset = n >> 16 & 15;

	switch (n & 15) {
	case 0:
	case 1:
		return DWARF_RULE_SPECIAL((n >> 8) % (specials + 1));
	case 2:
	case 3:
	case 4:
	case 5:
		return DWARF_RULE_NONE;
	case 6:
		return n >> 8 & 0xffff;
	case 7:
	case 8:
	case 9:
		return DWARF_RULE_FP(offset, slot);
	default:
		return DWARF_RULE_SP(offset, slot);
	}
}

/* A header that leads to rows and specials of noise; now and then a lie in it. */
static void noise_table(__u32 *t, __u32 blocks, __u32 specials)
{
	__u32 rows = NOISE_TABLE - DWARF_HEADER_WORDS - blocks - DWARF_SPECIAL_WORDS * specials;

	for (__u32 i = 0; i < NOISE_TABLE; i++)
		t[i] = (__u32)noise();
	t[DWARF_MAGIC] = DWARF_TABLE_MAGIC;
	t[DWARF_LO] = t[DWARF_LO_HIGH] = 0;
	t[DWARF_BLOCKS] = blocks;
	t[DWARF_INDEX_AT] = DWARF_HEADER_WORDS;
	t[DWARF_ROWS_AT] = DWARF_HEADER_WORDS + blocks;
	t[DWARF_ROWS] = rows;
	t[DWARF_SPECIALS_AT] = NOISE_TABLE - DWARF_SPECIAL_WORDS * specials;
	t[DWARF_SPECIALS] = specials;
	for (__u32 i = 0; i < blocks; i++)
		t[DWARF_HEADER_WORDS + i] = (__u32)(noise() % rows) << 8 | (__u32)(noise() & 0xff);
	for (__u32 i = 0; i < rows; i++)
		t[t[DWARF_ROWS_AT] + i] = noise_rule(specials) << 16 | (__u32)(noise() & 0xffff);
	for (__u32 i = t[DWARF_SPECIALS_AT]; i < NOISE_TABLE; i += DWARF_SPECIAL_WORDS) {
		t[i] = (t[i] & 0xff0f00) | (t[i] >> 24) % (DWARF_GO_GROWS + 2);
		for (int k = 1; k < 4; k++)
			if (noise() % 4)
				t[i + k] = (__u32)(noise() % 64) * 8 - 64;
	}
	if (!(noise() % 8))
		t[noise() % 10] = (__u32)noise();
}

/* The pages of noise are absent, both or one of them; or no longer. */
static void set_absent(bool absent)
{
	__u32 which = absent ? 1 + (__u32)(noise() % 3) : 0;

	for (__u32 k = 0; k < 2; k++)
		entries[NOISE_PAGE + k] = which >> k & 1 ? 0 : entry_of(NOISE_PAGE + k);
}

/* A walk with absent pages ends at one of them, or takes all steps of the complete table. */
static const char *absent_difference(__u64 *ended)
{
	set_absent(true);
	if (walk_in_kernel())
		return strerror(errno);
	if (by_kernel->result == STEPS_ABSENT && by_kernel->n <= by_us->n) {
		++*ended;
		by_us->n = by_kernel->n;
		by_us->result = by_kernel->result;
		by_us->error = by_kernel->error;
		by_us->by = by_kernel->by;
	}
	return difference();
}

/* Words that lead somewhere in the stack, to its holes and its neighbours, or anywhere. */
static __u64 noise_word(const char *stack)
{
	__u64 n = noise();

	switch (n & 7) {
	case 0:
		return noise();
	case 1:
		return noise() % 4096;
	default:
		return (__u64)(uintptr_t)stack + (n >> 8) % (NOISE_STACK + 64) / 8 * 8;
	}
}

static void noise_stack(char *stack)
{
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xc3, 0x5d,
					     0xc9, 0xf3, 0x0f, 0x1e, 0xfa, 0x90};

	for (__u32 i = 0; i < NOISE_STACK; i += 8) {
		__u64 w = noise_word(stack);

		if (i / 4096 == 2)
			continue;
		if (!(noise() % 4))
			for (int k = 0; k < 8; k++)
				w = w << 8 | code[noise() % sizeof(code)];
		memcpy(stack + i, &w, 8);
	}
}

/* No other mapping is near: [vvar] is read by the kernel, but not by process_vm_readv(). The third
 * of the pages is absent. */
static char *noise_memory(void)
{
	char *area = mmap(NULL, 2 * NOISE_AROUND + NOISE_STACK, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = area + NOISE_AROUND;

	if (area == MAP_FAILED || mprotect(stack, NOISE_STACK, PROT_READ | PROT_WRITE)) {
		perror("# memory for noise");
		exit(1);
	}
	memset(stack, 0, NOISE_STACK);
	mprotect(stack + 8192, 4096, PROT_NONE);
	return stack;
}

static void noise_walks(int walks)
{
	char *stack = noise_memory();
	unsigned long steps[3] = {0}, reasons[3][8] = {{0}}, frames = 0, bad = 0;
	const char *different = NULL;
	__u64 len, absent = 0;

	for (int i = 0; i < walks && bad < 5; i++) {
		if (i % 16 == 0) {
			noise_table(words + NOISE_PAGE * FUSEE_PAGE_WORDS, 64, 32);
			noise_stack(stack);
		}
		len = noise() % 8 ? NOISE_TABLE : noise() % NOISE_TABLE;
		*in = (struct steps_input){
			.pc = noise_word(stack),
			.sp = (__u64)(uintptr_t)stack + noise() % NOISE_STACK / 16 * 8,
			.fp = noise_word(stack),
			.valid_regs = noise() & 0xff3f,
			.flags = noise() &
				 (FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_FP_LOST | FUSEE_FOLLOW),
			.nmappings = 1,
			.mappings = {{.hi = ~0ull,
				      .slab = 1 + NOISE_PAGE,
				      .slab_words = len,
				      /* a table that is shorter is another table */
				      .slab_id = len == NOISE_TABLE
							 ? STEPS_MAPPINGS + 1 + (__u64)i / 16
							 : 0,
				      .fold = 64 * 256}},
		};
		for (int k = 0; k < 16; k++)
			in->regs[k] = noise_word(stack);
		/* what is remembered of a walk that ended at an absent page is true too */
		walk_natively();
		different = absent_difference(&absent);
		set_absent(false);
		if (different) {
			bad++;
			printf("# walk %d, pages absent: %s\n", i, different);
		}
		walk_natively();
		/* twice: the second time rules are remembered */
		if (walk_in_kernel() || (different = difference()) || walk_in_kernel() ||
		    (different = difference())) {
			bad++;
			printf("# walk %d: %s\n", i, different ? different : strerror(errno));
			continue;
		}
		frames += by_us->n;
		for (__u32 k = 0; k < by_us->n; k++)
			steps[by_us->frames[k].by % 3]++;
		reasons[by_us->by % 3][by_us->error & 7]++;
	}
	for (int by = 1; by < 3; by++) {
		printf("# %s: %lu steps; ends by reason 0 to 7:",
		       by == 1 ? "dwarf" : "framepointer", steps[by]);
		for (int k = 0; k < 8; k++)
			printf(" %lu", reasons[by][k]);
		putchar('\n');
	}
	for (int k = 0; k < DWARF_REASONS; k++)
		bad += !reasons[1][k];
	ok(absent > (__u64)walks / 10, "%llu walks of noise end at an absent page", absent);
	ok(!bad && steps[1] && steps[2],
	   "noise: %d walks of %lu frames are the same in the kernel, every reason among them",
	   walks, frames);
}

int main(int argc, char **argv)
{
	int fd, err;

	wrong = argc > 1 && !strcmp(argv[1], "--wrong") ? 8 : 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(print_nothing);
	err = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4, 1, NULL);
	if (err == -EPERM)
		return skip("no right to use BPF: needs root, or CAP_BPF and CAP_PERFMON");
	if (err < 0)
		return skip("this kernel has no BPF");
	close(err);
	fd = link_objects();
	ok(fd >= 0, "the steps and the programs around them link");
	if (fd < 0)
		return 1;
	err = load(fd);
	ok(!err, "the kernel loads them%s%s", err ? ": " : "", err ? strerror(-err) : "");
	if (err)
		return 1;
	own_stacks();
	noise_walks(getenv("FUSEE_TEST_LONG") ? 400000 : 20000);
	printf("1..%d\n", number);
	return failed;
}
