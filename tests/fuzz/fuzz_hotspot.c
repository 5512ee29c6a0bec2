// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/hotspot/inspect.c plugins/unwinders/hotspot/required.c plugins/unwinders/hotspot/lists.c plugins/unwinders/hotspot/heaps.c
// sources: plugins/unwinders/hotspot/threads.c plugins/unwinders/hotspot/chunks.c plugins/unwinders/hotspot/fields.c plugins/unwinders/hotspot/thread_names.c plugins/unwinders/hotspot/unloads.c plugins/unwinders/hotspot/memory.c plugins/unwinders/hotspot/names.c plugins/unwinders/hotspot/lines.c plugins/unwinders/hotspot/hotspot.bpf.c
// flags: -Iplugins/unwinders/hotspot
// clang-format on
// A libjvm.so and a process that runs it: inspect() of the bytes; then the lists and the heaps of a
// process of the same bytes, with a table from them and a layout that is right; then the step over
// that memory, with the words that were read, or if there are none with words from the bytes. What
// the step emits, and what the bytes are as emissions, is recorded and symbolized.
#include <fusee/unwinder.bpf.h>

#include "heaps.h"
#include "inspect.h"
#include "lines.h"
#include "memory.h"
#include "names.h"

#define LANGUAGE_WORDS HOTSPOT_TABLE_WORDS
#include "language.h"

int fusee_step_hotspot(struct fusee_unwind *u);

#define FRAMES 40u
#define MOST_BYTES (1u << 17) /* of the process, behind the variables of the layout */
#define LAYOUT_BYTES (8u * LAYOUT_VARIABLES)

/* The beginning of an input; behind it is the memory of the process, from LAYOUT_BYTES on. */
static struct {
	uint64_t pc, sp, fp, rax, rbx, r13, exact;
	uint32_t words[HOTSPOT_WORDS];
	uint8_t entries[REQUIRED]; /* which of the list at the memory's begin; 0: it has none */
} head;

static void *processes;
static uint32_t nclaims;

/* ---- the process ---- */

static int read_process(uint64_t process, uint64_t at, void *to, uint32_t len)
{
	(void)process;
	if (len > 4096 && at >> 18) /* by page, which takes less time */
		return -EFAULT;
	if (at >> 20 == 5) /* what cannot be read, for ever or now */
		return at & 1 << 19 ? -EAGAIN : -EFAULT;
	for (uint32_t i = 0, n; i < len; i += n) {
		size_t from = (at + i) % nbytes;

		n = len - i < nbytes - from ? len - i : (uint32_t)(nbytes - from);
		memcpy((uint8_t *)to + i, bytes + from, n);
	}
	return 0;
}

static int set_words(struct fusee_instance *in, uint64_t process, const uint32_t *words, uint64_t n)
{
	(void)in;
	(void)process;
	if (n != HOTSPOT_WORDS || words[HOTSPOT_NHEAPS] > HOTSPOT_MOST_HEAPS)
		abort();
	return 0;
}

static int claim(struct fusee_instance *in, uint64_t process, const struct fusee_claim *c)
{
	(void)in;
	(void)process;
	if (c->range.lo >= c->range.hi || c->range.hi - c->range.lo > 1ull << 32 ||
	    ++nclaims > HOTSPOT_MOST_HEAPS)
		abort();
	return 0;
}

/* ---- what is emitted ---- */

static void keep(uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	hotspot_names_add(&processes, 1, kind, key, at, len);
}

static void read_named(const struct hotspot_named *named, uint32_t bci)
{
	uint32_t first, line;
	unsigned char *lines;

	if (!named)
		return;
	if (hotspot_name(named).len > hotspot_system_name(named).len && !named->shown)
		abort();
	if (memchr(named->text, 0, hotspot_system_name(named).len + hotspot_file(named).len))
		abort();
	lines = malloc(named->line_bytes ? named->line_bytes : 1);
	if (named->line_bytes)
		memcpy(lines, hotspot_lines(named), named->line_bytes);
	line = hotspot_line(lines, named->line_bytes, bci & 1, bci, &first);
	if (line >= 1u << 24)
		abort();
	free(lines);
}

static void symbolize(uint64_t key, uint64_t what)
{
	const struct hotspot_place *p = hotspot_names_place(&processes, 1, fusee_mix(key, what));

	read_named(hotspot_names_method(&processes, 1, key), (uint32_t)what);
	read_named(hotspot_names_stub(&processes, 1, key), 0);
	if (p && (!p->n || p->n > HOTSPOT_SCOPES))
		abort();
	for (uint32_t i = 0; p && i < p->n; i++)
		read_named(hotspot_names_method(&processes, 1, p->scope[i].method),
			   p->scope[i].bci);
}

/* ---- the step ---- */

static void walk(struct fusee_native *n)
{
	int next = FUSEE_NEXT;

	for (uint32_t i = 0; i < FRAMES && next != FUSEE_STOP && next != FUSEE_PASS; i++) {
		next = fusee_step_hotspot(&n->u);
		if (next < FUSEE_STOP || next > FUSEE_NEXT_OMIT)
			abort();
		if (n->u.npushed)
			symbolize(n->u.pushed[0], n->u.pushed[1]);
		n->u.npushed = 0;
		n->u.flags &= ~(uint32_t)(FUSEE_PC_EXACT | FUSEE_FIRST);
		n->u.valid_regs = 0;
	}
}

static void walk_with(const uint32_t *words)
{
	static struct fusee_native n;

	memset(&n, 0, sizeof(n));
	n.read = process_read;
	n.emit = record;
	n.words = words;
	n.u.words = HOTSPOT_WORDS;
	n.u.process = 1;
	n.u.pc = head.pc;
	n.u.sp = n.u.first_sp = head.sp;
	n.u.fp = head.fp;
	n.u.tls = 1;
	n.u.flags = FUSEE_FIRST | (head.exact & 1 ? FUSEE_PC_EXACT : 0);
	n.u.valid_regs = head.exact & 1 ? 0xffff : 0;
	n.u.regs[FUSEE_X86_RAX] = head.rax;
	n.u.regs[FUSEE_X86_RBX] = head.rbx;
	n.u.regs[FUSEE_X86_R13] = head.r13;
	walk(&n);
}

static void run_process(const struct fusee_self *self)
{
	static struct hotspot_jvm jvm;

	memset(&jvm, 0, sizeof(jvm));
	jvm.known = true;
	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++)
		jvm.table[i] = 8 * i;
	for (uint32_t i = 0; i < REQUIRED; i++)
		jvm.table[LAYOUT_VARIABLES + i] = head.entries[i]
							  ? LAYOUT_BYTES + (head.entries[i] - 1) *
										   LAYOUT_FIELD
							  : 0;
	nclaims = 0;
	for (int tries = 0; tries < 2; tries++) {
		jvm.next_ns = 0;
		hotspot_claim_heaps(self, 1, &jvm);
	}
	hotspot_memory_free(jvm.memory);
	if (jvm.nheaps)
		walk_with(jvm.words);
	walk_with(head.words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t memory[LAYOUT_BYTES + MOST_BYTES];
	struct fusee_unwinder_host mine = unwinder;
	struct fusee_host all = host;
	const struct fusee_self self = {NULL, &all};

	mine.process_read = read_process;
	mine.process_slab = set_words;
	mine.process_claim = claim;
	all.unwinder = &mine;
	begin_input(data, size);
	hotspot_inspect(&self, 1);
	if (size < sizeof(head) + 16 || size > MOST_BYTES)
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	record(NULL, data[0] & 3, data[1] & 7, data + 2,
	       (uint32_t)(size - 2 > FUSEE_EMIT_BYTES ? FUSEE_EMIT_BYTES : size - 2));
	for (uint64_t key = 0; key < 8; key++)
		symbolize(key, data[2]);
	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++)
		memcpy(memory + 8 * i, &hotspot_layout[i].value, 8);
	memcpy(memory + LAYOUT_BYTES, data, size);
	bytes = memory;
	nbytes = LAYOUT_BYTES + size;
	run_process(&self);
	hotspot_names_free(&processes);
	return 0;
}
