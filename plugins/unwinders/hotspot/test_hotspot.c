/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/hotspot
/* A JVM that is made up: its lists, its heaps of code, and a stack of interpreted and compiled
 * methods. Then with each read failing in turn, and with each word of the process a lie in turn. */
#include "test.h"

#include <fusee/helpers.h>
#include <fusee/unwinder.bpf.h>

#include "heaps.h"
#include "inspect.h"
#include "lines.h"
#include "memory.h"
#include "names.h"
#include "threads.h"

int fusee_step_hotspot(struct fusee_unwind *u);

#define MEMORY 0x20000 /* bytes from 0 on that the process has */
#define EXPORTS 0x100  /* the exported variables, and the lists */
#define EXPORTS_LISTS 0x180
#define FIELDS 0x200
#define TYPES 0x1000
#define CONSTANTS 0x1800
#define TEXTS 0x2000
#define HEAPS 0x4000 /* the variable; then the array, a heap and its map */
#define CALL_STUB 0x4010
#define VERSION 0x4018
#define MAP 0x4800
#define CODE 0x8000 /* the heap of code: 128 bytes a segment */
#define CODE_END 0xa000
#define OBJECTS 0xc000 /* methods */
#define STACK 0x18000
#define NATIVE 0x1f000 /* where the call stub returns to */
#define WORKER 0x1f100 /* functions of threads of the JVM's own */
#define VM_THREAD 0x1f200

#define INTERPRETER (CODE + 0x0)
#define COMPILED (CODE + 0x400)
#define STUBS (CODE + 0x800)
#define OTHER (CODE + 0xc00) /* a stub of some tests */

struct made {
	struct fusee_native native;
	struct hotspot_jvm jvm;
	struct fusee_unwinder_host host;
	unsigned char memory[MEMORY];
	uint64_t pushed;       /* a sum of what was pushed */
	uint32_t frames;       /* with which a step went on */
	uint32_t reads, fails; /* fails: the number of the read that fails, from 1 on; 0: none */
	uint64_t text, object;
	void *names;
	char said[256];
	char file[64];    /* of the innermost method */
	char stack[512];  /* innermost first, a space behind each */
	char thread[512]; /* its name */
	struct fusee_claim claims[4];
	uint32_t nclaims, nwords;
	struct fusee_claim threads[4]; /* of the file */
	uint32_t nthreads;
	bool stripped;
	uint64_t redefined; /* where JvmtiExport::_redefinition_count is; 0: no symbol says it */
};

static struct made m;

static int copy(void *to, uint64_t at, uint32_t len)
{
	if (++m.reads == m.fails || at >= MEMORY || len > MEMORY - at)
		return -1;
	memcpy(to, m.memory + at, len);
	return 0;
}

static int process_read(uint64_t process, uint64_t at, void *to, uint32_t len)
{
	return copy(to, at, len) ? -EFAULT : 0;
}

static int read_made(struct fusee_native *n, void *to, __u32 len, __u64 at)
{
	return copy(to, at, len);
}

static int emit_made(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	return hotspot_names_add(&m.names, 1, kind, key, bytes, len) < 0 ? -1 : 0;
}

static int claim_made(struct fusee_instance *in, uint64_t process, const struct fusee_claim *c)
{
	CHECK(m.nclaims < 4);
	m.claims[m.nclaims++] = *c;
	return 0;
}

static int words_made(struct fusee_instance *in, uint64_t process, const uint32_t *words,
		      uint64_t n)
{
	m.nwords = (uint32_t)n;
	return 0;
}

/* ---- the file is the memory ---- */

static int file_info(uint64_t file, struct fusee_file_info *info)
{
	info->machine = 62;
	return 0;
}

static int file_section(uint64_t file, const char *name, struct fusee_section *s)
{
	s->bytes = (struct fusee_str){"", 0}; /* what lies at a place is what is written there */
	return strcmp(name, ".rela.dyn") ? -ENOENT : 0;
}

static int file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++)
		if (!strcmp(name, hotspot_layout[i].symbol)) {
			at->lo = EXPORTS + 8 * i;
			return 0;
		}
	if (!strcmp(name, "_ZN11JvmtiExport19_redefinition_countE")) {
		at->lo = m.redefined;
		return m.redefined ? 0 : -ENOENT;
	}
	if (!strncmp(name, "_Z", 2)) {
		at->lo = !strcmp(name, "_ZN12WorkerThread3runEv") ? WORKER
			 : !strcmp(name, "_ZN8VMThread3runEv")    ? VM_THREAD
								  : 0;
		at->hi = at->lo + 0x20;
		return at->lo && !m.stripped ? 0 : -ENOENT;
	}
	at->lo = EXPORTS_LISTS + (strcmp(name, "gHotSpotVMTypes") ? 0 : 8);
	if (!strcmp(name, "gHotSpotVMIntConstants"))
		at->lo = EXPORTS_LISTS + 16;
	return 0;
}

static int file_slab(struct fusee_instance *in, uint64_t file, const uint32_t *words, uint64_t n)
{
	CHECK_INT(n, HOTSPOT_TABLE_WORDS);
	memcpy(m.jvm.table, words, sizeof(m.jvm.table));
	m.jvm.known = true;
	return 0;
}

static int file_claim(struct fusee_instance *in, uint64_t file, const struct fusee_claim *c)
{
	CHECK(m.nthreads < 4);
	m.threads[m.nthreads++] = *c;
	return 0;
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	snprintf(m.said, sizeof(m.said), "%s", text);
	return err;
}

static void put(uint64_t at, uint64_t v)
{
	memcpy(m.memory + at, &v, sizeof(v));
}

static void put_short(uint64_t at, unsigned int v)
{
	unsigned short s = (unsigned short)v;

	memcpy(m.memory + at, &s, sizeof(s));
}

static uint64_t text(const char *t)
{
	uint64_t at = m.text;

	m.text += strlen(t) + 1;
	memcpy(m.memory + at, t, strlen(t) + 1);
	return at;
}

/* ---- the lists ---- */

struct listed {
	const char *type, *field; /* NULL: a type, with its size */
	uint64_t value;
	int is_static; /* 1; 2: a field of two bytes */
};

static const struct listed listed[] = {
	{"CodeCache", "_heaps", HEAPS, 1},
	{"StubRoutines", "_call_stub_return_address", CALL_STUB, 1},
	{"GrowableArrayBase", "_len", 0, 0},
	{"GrowableArray<int>", "_data", 8, 0},
	{"CodeHeap", "_memory", 8, 0},
	{"CodeHeap", "_segmap", 120, 0},
	{"CodeHeap", "_log2_segment_size", 256, 0},
	{"VirtualSpace", "_low_boundary", 0, 0},
	{"VirtualSpace", "_high_boundary", 8, 0},
	{"HeapBlock::Header", "_length", 0, 0},
	{"HeapBlock::Header", "_used", 8, 0},
	{"CodeBlob", "_name", 96, 0},
	{"CodeBlob", "_code_begin", 32, 0},
	{"CodeBlob", "_frame_size", 28, 0},
	{"CodeBlob", "_frame_complete_offset", 20, 0},
	{"CompiledMethod", "_method", 112, 0},
	{"nmethod", "_compile_id", 304, 0},
	{"CompiledMethod", "_scopes_data_begin", 120, 0},
	{"CompiledMethod", "_deopt_handler_begin", 128, 0},
	{"nmethod", "_scopes_pcs_offset", 268, 0},
	{"nmethod", "_dependencies_offset", 272, 0},
	{"nmethod", "_metadata_offset", 260, 0},
	{"nmethod", "_orig_pc_offset", 300, 0},
	{"PcDesc", "_pc_offset", 0, 0},
	{"PcDesc", "_scope_decode_offset", 4, 0},
	{"ConstMethod", "_flags", 28, 0},
	{"ConstMethod", "_constMethod_size", 24, 0},
	{"Method", "_constMethod", 8, 0},
	{"ConstMethod", "_constants", 8, 0},
	{"ConstMethod", "_name_index", 34, 0},
	{"ConstMethod", "_signature_index", 36, 0},
	{"ConstMethod", "_code_size", 32, 0},
	{"ConstantPool", "_pool_holder", 24, 0},
	{"ConstantPool", "_source_file_name_index", 54, 0},
	{"Klass", "_name", 24, 0},
	{"Symbol", "_length", 4, 0},
	{"Symbol", "_body", 6, 0},
	{"Abstract_VM_Version", "_vm_major_version", VERSION, 1},
	{"HeapBlock", NULL, 16, 0},
	{"ConstMethod", NULL, 48, 0},
	{"ConstantPool", NULL, 72, 0},
	{"PcDesc", NULL, 16, 0},
};

static void put_field(uint64_t at, const struct listed *l)
{
	put(at, text(l->type));
	put(at + 8, text(l->field));
	put(at + 16, text(l->is_static == 2 ? "int16_t" : "int"));
	put(at + 24, l->is_static == 1);
	put(at + (l->is_static == 1 ? 40 : 32), l->value);
}

static void make_lists(void)
{
	uint64_t field = FIELDS, type = TYPES;

	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++)
		put(EXPORTS + 8 * i, hotspot_layout[i].value);
	put(EXPORTS_LISTS, FIELDS);
	put(EXPORTS_LISTS + 8, TYPES);
	put(EXPORTS_LISTS + 16, CONSTANTS);
	put(CONSTANTS, text("ConstMethod::_has_linenumber_table"));
	put(CONSTANTS + 8, 1);
	for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
		const struct listed *l = &listed[i];

		if (!l->field) {
			put(type, text(l->type));
			put(type + 32, l->value);
			type += LAYOUT_TYPE;
			continue;
		}
		put_field(field, l);
		field += LAYOUT_FIELD;
	}
}

/* ---- code ---- */

/* A block of code with a blob, of so many segments from `at` on. */
static uint64_t blob(uint64_t at, uint32_t segments, const char *name, uint32_t frame_size)
{
	for (uint32_t i = 0; i < segments; i++)
		m.memory[MAP + (at - CODE) / 128 + i] = (unsigned char)i;
	put(at, segments);
	put(at + 8, 1);
	put(at + 16 + 96, text(name));
	put(at + 16 + 32, at + 0x180); /* where its code begins */
	memcpy(m.memory + at + 16 + 28, &frame_size, 4);
	return at + 16;
}

static void make_code(void)
{
	uint64_t array = HEAPS + 0x20, heap = HEAPS + 0x60;

	memset(m.memory + MAP, 0xff, (CODE_END - CODE) / 128);
	put(HEAPS, array);
	put(array, 1);
	put(array + 8, array + 16);
	put(array + 16, heap);
	put(heap + 8, CODE);
	put(heap + 16, CODE_END);
	put(heap + 120, MAP);
	put(heap + 256, 7);
	blob(INTERPRETER, 8, "Interpreter", 0);
	blob(COMPILED, 8, "nmethod", 6);
	blob(STUBS, 8, "StubRoutines (1)", 0);
	put(CALL_STUB, STUBS + 0x200);
}

static void put_int(uint64_t at, int v)
{
	memcpy(m.memory + at, &v, sizeof(v));
}

#define CALLED 0xa0 /* offset of the return address of the call in COMPILED */
#define HANDLER (COMPILED + 0x300)

/* At the call in `outer`, `inner` was inlined at bci 5, and calls at bci 2. */
static void make_scopes(uint64_t outer, uint64_t inner)
{
	uint64_t blob = COMPILED + 16, scopes = COMPILED + 0x370, pcs = COMPILED + 0x340;
	uint64_t metadata = COMPILED + 0x3c0;
	static const unsigned char outermost[] = {0, 1, 6, 0xff}, inlined[] = {10, 2, 3, 0xff};

	put(blob + 112, outer);
	put_int(blob + 304, 5);
	put(blob + 120, scopes);
	put(blob + 128, HANDLER);
	put_int(blob + 268, (int)(pcs - blob));
	put_int(blob + 272, (int)(pcs - blob) + 3 * 16);
	put_int(blob + 260, (int)(metadata - blob));
	put_int(blob + 300, 8);
	put(metadata, outer);
	put(metadata + 8, inner);
	put_int(pcs, -1);
	put_int(pcs + 16, CALLED);
	put_int(pcs + 20, 20);
	put_int(pcs + 32, 0x1000);
	memcpy(m.memory + scopes + 10, outermost, sizeof(outermost));
	memcpy(m.memory + scopes + 20, inlined, sizeof(inlined));
}

static uint64_t symbol(const char *t)
{
	uint64_t at = (m.object + 7) & ~7ull;

	put_short(at + 4, (unsigned int)strlen(t));
	memcpy(m.memory + at + 6, t, strlen(t));
	m.object = at + 6 + strlen(t);
	return at;
}

/* bci 0: line 100; bci 4: line 103; bci 40: line 99. In the numbers of 17. */
static const unsigned char LINES[] = {0xff, 0, 0xc8, 0, 4 << 3 | 3, 0xff, 72, 7, 0};

/* A method of a class, with 16 bytes of code behind its ConstMethod. */
static uint64_t method(const char *class, const char *name)
{
	uint64_t names[4] = {symbol(name), symbol("()V"), symbol("A.java"), symbol(class)};
	uint64_t at = (m.object + 7) & ~7ull, constants = at + 88, pool = constants + 80;

	put(at + 8, constants);
	put(constants + 8, pool);
	put_short(constants + 34, 1);
	put_short(constants + 36, 2);
	put_short(constants + 32, 16);
	put_short(constants + 28, 1);
	put_int(constants + 24, 10); /* words: 16 bytes of code, 16 of its table of lines */
	memcpy(m.memory + constants + 64, LINES, sizeof(LINES));
	put_short(pool + 54, 3);
	put_short(pool + 128 + 60, 3);
	for (int i = 0; i < 3; i++)
		put(pool + 72 + 8 * (i + 1), names[i]);
	put(pool + 24, pool + 128);
	put(pool + 128 + 24, names[3]);
	m.object = pool + 200;
	return at;
}

/* An interpreted frame with this frame pointer. */
static void interpreted(uint64_t fp, uint64_t method, uint64_t sender_sp, uint64_t caller_fp,
			uint64_t pc)
{
	put(fp - 64, method + 88 + 48 + 3); /* bci 3 */
	put(fp - 24, method);
	put(fp - 8, sender_sp);
	put(fp, caller_fp);
	put(fp + 8, pc);
}

/* A.leaf, interpreted, called by compiled b.C.mid, where b.C.inner was inlined, called by A.main,
 * interpreted, which the call stub has called. */
static void make(void)
{
	uint64_t leaf, mid, inner, main, fp = STACK + 0x100;
	struct fusee_unwind *u = &m.native.u;

	hotspot_names_free(&m.names);
	memset(&m, 0, sizeof(m));
	m.text = TEXTS;
	m.object = OBJECTS;
	m.host.file_info = file_info;
	m.host.file_section = file_section;
	m.host.file_symbol = file_symbol;
	m.host.file_read = process_read;
	m.host.file_slab = file_slab;
	m.host.file_claim = file_claim;
	m.host.process_read = process_read;
	m.host.process_claim = claim_made;
	m.host.process_slab = words_made;
	make_lists();
	make_code();
	leaf = method("A", "leaf");
	mid = method("b/C", "mid");
	main = method("A", "main");
	inner = method("b/C", "inner");
	make_scopes(mid, inner);
	interpreted(fp, leaf, fp + 32, 0x1234, COMPILED + 0x220);
	/* of mid: 6 words from fp + 32 on */
	put(fp + 32 + 32, fp + 0x100);
	put(fp + 32 + 40, INTERPRETER + 0x240);
	interpreted(fp + 0x100, main, fp + 0x120, fp + 0x160, STUBS + 0x200);
	put(fp + 0x160, 0x77);
	put(fp + 0x168, NATIVE);
	u->pc = INTERPRETER + 0x300;
	u->sp = STACK + 0x80;
	u->fp = fp;
	u->tls = 1;
	u->flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	u->valid_regs = 0xffff & ~(1ull << FUSEE_X86_RBP | 1ull << FUSEE_X86_RSP);
	u->regs[FUSEE_X86_R13] = leaf + 88 + 48 + 7; /* bci 7 */
	m.native.read = read_made;
	m.native.emit = emit_made;
}

static int inspect(void)
{
	struct fusee_host host = {.fail = fail, .unwinder = &m.host};
	struct fusee_self self = {.host = &host};

	return hotspot_inspect(&self, 1);
}

static int claim(void)
{
	struct fusee_host host = {.unwinder = &m.host};
	struct fusee_self self = {.host = &host};
	int r;

	if (!m.jvm.known)
		inspect();
	r = hotspot_claim_heaps(&self, 1, &m.jvm);
	hotspot_memory_free(m.jvm.memory);
	m.jvm.memory = NULL;
	return r;
}

/* ---- a walk ---- */

static void say(const char *name, uint64_t at)
{
	size_t n = strlen(m.stack);

	snprintf(m.stack + n, sizeof(m.stack) - n, "%s:%d ", name, (int)at);
}

static const char *name_of(const struct hotspot_named *named)
{
	static char name[256];

	fusee_text_copy(name, sizeof(name), named ? hotspot_name(named) : fusee_text("?"));
	return name;
}

static void note_frame(const struct fusee_unwind *u)
{
	uint64_t key = u->pushed[0], what = u->pushed[1];
	const struct hotspot_named *named;
	const struct hotspot_place *p;

	m.pushed = fusee_mix(fusee_mix(m.pushed, key), what);
	if (what & HOTSPOT_IS_THREAD) {
		const char *thread = hotspot_names_thread(&m.names, 1, key);

		CHECK_INT(u->push_flags, FUSEE_PUSH_THREAD);
		snprintf(m.thread, sizeof(m.thread), "%s", thread ? thread : "?");
		return;
	}
	if (!(what & HOTSPOT_IS_PLACE)) {
		named = what & HOTSPOT_IS_STUB ? hotspot_names_stub(&m.names, 1, key)
					       : hotspot_names_method(&m.names, 1, key);
		if (!*m.stack && named)
			fusee_text_copy(m.file, sizeof(m.file), hotspot_file(named));
		say(name_of(named), what & 0xffffffff);
		return;
	}
	p = hotspot_names_place(&m.names, 1, fusee_mix(key, what));
	if (!p)
		say("?", 0);
	for (uint32_t i = 0; p && i < p->n; i++) {
		named = hotspot_names_method(&m.names, 1, p->scope[i].method);
		say(name_of(named), p->scope[i].bci);
	}
}

/* Frames until the caller is no code of the JVM. What the last step returned. */
static int walk(void)
{
	struct fusee_unwind *u = &m.native.u;
	int r = FUSEE_NEXT;

	*m.stack = *m.thread = '\0';
	m.native.words = m.jvm.words;
	u->words = HOTSPOT_WORDS;
	for (int i = 0;
	     i < 25 && (r == FUSEE_NEXT || r == FUSEE_AGAIN) && u->pc >= CODE && u->pc < CODE_END;
	     i++) {
		uint64_t sp = u->sp;

		u->npushed = 0;
		r = fusee_step_hotspot(u);
		if (u->npushed)
			note_frame(u);
		if (r == FUSEE_NEXT && u->sp <= sp)
			return -1;
		u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST);
		u->valid_regs = 0;
	}
	return r;
}

#define IN_CALLERS "b.C.inner:2 b.C.mid:5 A.main:3 "
#define CALLERS IN_CALLERS "StubRoutines::call_stub:0 "
#define COMPLETE "A.leaf:7 " CALLERS

TEST(a_stack)
{
	make();
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nwords, HOTSPOT_WORDS);
	CHECK_INT(m.nclaims, 1);
	CHECK_INT(m.claims[0].range.lo, CODE);
	CHECK_INT(m.claims[0].range.hi, CODE_END);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
	CHECK_INT(m.native.u.pc, NATIVE);
	CHECK_INT(m.native.u.fp, 0x77);
	CHECK_INT(m.native.u.sp, STACK + 0x100 + 0x170);
}

/* ---- what the step remembers, and what it reads ---- */

static struct {
	uint64_t key, value;
} remembered[64];

static __u64 recall_made(struct fusee_native *n, __u64 key)
{
	for (size_t i = 0; i < sizeof(remembered) / sizeof(*remembered); i++)
		if (remembered[i].key == key)
			return remembered[i].value;
	return 0;
}

static void remember_made(struct fusee_native *n, __u64 key, __u64 value)
{
	size_t i = 0;

	while (remembered[i].key && remembered[i].key != key)
		i++;
	CHECK(i < sizeof(remembered) / sizeof(*remembered));
	remembered[i].key = key;
	remembered[i].value = value;
}

static int is_emitted(struct fusee_native *n, __u32 kind, __u64 key)
{
	return 1;
}

/* The stack again, by a step that remembers. */
static void make_remembering(void)
{
	make();
	CHECK_INT(claim(), 0);
	m.native.recall = recall_made;
	m.native.remember = remember_made;
}

/* What the next step reads. */
static uint32_t reads_of_step(void)
{
	struct fusee_unwind *u = &m.native.u;
	uint32_t before = m.reads;

	m.native.words = m.jvm.words;
	u->words = HOTSPOT_WORDS;
	u->npushed = 0;
	CHECK_INT(fusee_step_hotspot(u), FUSEE_NEXT);
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST);
	u->valid_regs = 0;
	return m.reads - before;
}

/* A frame that was seen before costs few reads. Those of its words on the stack are among them,
 * which the kernel has in its window. */
TEST(reads_of_a_frame)
{
	memset(remembered, 0, sizeof(remembered));
	for (int again = 0; again < 2; again++) {
		make_remembering();
		m.native.emitted = is_emitted;
		reads_of_step();
		/* header, name; return address, and with it the saved frame pointer; and the map
		 * of segments */
		CHECK_INT(reads_of_step(), again ? 4 : 6);
		/* the frame's words, which the kernel has in its window too; the ConstMethod and
		 * its address, the slot of the name, the class and its name, both names' texts; and
		 * the header and the map */
		CHECK_INT(reads_of_step(), again ? 8 : 12);
	}
	/* the caller is compiled as its callee is: the name is the same */
	make_remembering();
	m.native.emitted = is_emitted;
	m.native.u.pc = COMPILED + 0x180 + CALLED;
	m.native.u.sp = STACK + 0x120;
	m.native.u.flags = 0;
	put(STACK + 0x120 + 40, COMPILED + 0x180 + CALLED);
	put(STACK + 0x150 + 40, INTERPRETER + 0x240);
	reads_of_step();
	CHECK_INT(reads_of_step(), 3);
}

/* Several frames at a call of the step, with notes, as in the kernel. */

static struct fusee_note notes[64];

static struct fusee_note *note_made(struct fusee_native *n, __u64 key)
{
	return &notes[key % (sizeof(notes) / sizeof(*notes))];
}

static int go_on_made(struct fusee_native *n, enum fusee_next how)
{
	struct fusee_unwind *u = &n->u;

	CHECK_INT(how, FUSEE_NEXT);
	if (!u->npushed || u->pc < CODE || u->pc >= CODE_END)
		return 0;
	note_frame(u);
	m.frames++;
	u->npushed = 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_GUESSED);
	u->valid_regs = 0;
	return 1;
}

/* A walk of the stack at hand, at this time. Returns m.pushed. */
static uint64_t pushed_at(uint64_t time)
{
	struct fusee_unwind u = m.native.u;

	m.native.u.time_ns = time;
	memset(m.native.u.scratch, 0, sizeof(m.native.u.scratch));
	m.reads = m.frames = 0;
	m.pushed = 0;
	walk();
	m.native.u = u;
	return m.pushed;
}

static uint64_t pushed_with_notes(uint64_t time)
{
	m.native.note = note_made;
	m.native.go_on = go_on_made;
	return pushed_at(time);
}

static uint64_t pushed_without_notes(void)
{
	m.native.note = NULL;
	m.native.go_on = NULL;
	return pushed_at(0);
}

/* b.C.mid, A.main, b.C.mid, A.main. */
static void make_recursion(void)
{
	uint64_t fp = STACK + 0x100;

	memset(notes, 0, sizeof(notes));
	make();
	CHECK_INT(claim(), 0);
	m.native.emitted = is_emitted;
	m.native.u.pc = COMPILED + 0x220;
	m.native.u.sp = fp + 32;
	m.native.u.flags = 0;
	memcpy(m.memory + fp + 0x200, m.memory + fp, 0x180);
	put(fp + 0x100 + 8, COMPILED + 0x220);
	put(fp + 0x100 - 8, fp + 0x200 + 32);
	put(fp + 0x200 + 32 + 32, fp + 0x300);
	put(fp + 0x300 - 8, fp + 0x300 + 0x20);
	put(fp + 0x300, fp + 0x360);
	put(fp + 0x300 + 8, STUBS + 0x200);
}

/* A walk of the same at its second frame: the first frame of a walk is stepped without notes. */
static void begin_at_main(void)
{
	m.native.u.pc = INTERPRETER + 0x240;
	m.native.u.sp = STACK + 0x100 + 32 + 48;
	m.native.u.fp = STACK + 0x200;
}

TEST(known_frames)
{
	uint64_t expected, pushed;
	uint32_t reads;

	make_recursion();
	expected = pushed_without_notes();
	reads = m.reads;
	CHECK_INT(m.frames, 0);
	pushed = pushed_with_notes(1);
	CHECK(pushed == expected);
	CHECK_INT(m.frames, 4);
	/* of the second frames only what is on the stack: a pair, and the words at the frame
	 * pointer; of each caller in the interpreter a look into the map at most */
	CHECK(m.reads <= reads - 3 - 8);
	/* a later walk reads what tells that the compiled method is the same, and its frame's pair,
	 * in place of these, its name, what leads to its block, and the pair once more */
	begin_at_main();
	expected = pushed_without_notes();
	reads = m.reads;
	CHECK(pushed_with_notes(2) == expected);
	CHECK_INT(m.frames, 3);
	CHECK(m.reads <= reads - 3 - 8);
	CHECK(pushed_with_notes(2) == expected);
	CHECK(m.reads <= reads - 4 - 8);
}

/* What is noted does not count where another method is now. */
TEST(other_methods_than_were_known)
{
	for (int what = 0; what < 7; what++) {
		uint64_t expected, before, main, other, name;

		make_recursion();
		pushed_with_notes(1);
		begin_at_main();
		before = pushed_with_notes(2);
		CHECK_INT(m.frames, 3);
		memcpy(&main, m.memory + STACK + 0x200 - 24, 8);
		memcpy(&name, m.memory + main + 88 + 80 + 128 + 24, 8);
		other = method("A", "more");
		if (what == 0) /* compiled again, at the same place, with the same length */
			put_int(COMPILED + 16 + 304, 4711);
		else if (what == 1) /* no method */
			put(COMPILED + 16 + 96, text("some stub"));
		else if (what == 2) /* freed */
			m.memory[COMPILED + 8] = 0;
		else if (what == 3) /* shorter than where it is executed */
			put(COMPILED, 4);
		else if (what == 4) /* another class of the same name, with other methods */
			memcpy(m.memory + main, m.memory + other, 16);
		else if (what == 5) /* a class of another name */
			m.memory[name + 6] = 'Z';
		else /* it cannot be read */
			put(main + 8, MEMORY);
		if (what == 4) {
			put(STACK + 0x200 - 64, other + 88 + 48 + 3);
			put(STACK + 0x400 - 64, other + 88 + 48 + 3);
		}
		expected = pushed_without_notes();
		CHECK(expected != before);
		CHECK(pushed_with_notes(3) == expected);
	}
}

/* What the JVM counts: the table of its counters, behind the variable that leads to it. */

#define COUNTERS 0x1a000
#define COUNTER_TABLE (COUNTERS + 0x40)
#define UNLOADED (COUNTER_TABLE + 32 + 64 + 48)
#define REDEFINED (COUNTERS + 0x10)
#define MAY_REDEFINE (COUNTERS + 0x18)

static void relist(const struct listed *has, size_t n, const char *const *lacks);

static void put_counter(uint64_t at, int bytes, const char *name, int data)
{
	put_int(at, bytes);
	put_int(at + 4, 20);
	put_int(at + 12, 'J' | 1 << 8 | 4 << 16 | 2 << 24);
	put_int(at + 16, data);
	memcpy(m.memory + at + 20, name, strlen(name) + 1);
}

/* by_symbol: how often classes were redefined is known, otherwise whether they may be. */
static void make_counters(bool by_symbol)
{
	static const struct listed has[] = {
		{"PerfMemory", "_prologue", COUNTERS, 1},
		{"JvmtiExport", "_can_hotswap_or_post_breakpoint", MAY_REDEFINE, 1},
	};
	static const char *const lacks[] = {NULL};

	relist(has, 2, lacks);
	put(COUNTERS, COUNTER_TABLE);
	put(COUNTER_TABLE, 0x01000201c0c0feca);
	put_int(COUNTER_TABLE + 8, 32 + 64 + 56); /* bytes in use */
	put_int(COUNTER_TABLE + 24, 32);
	put_int(COUNTER_TABLE + 28, 2);
	put_counter(COUNTER_TABLE + 32, 64, "java.cls.loadedClasses", 48);
	put_counter(COUNTER_TABLE + 32 + 64, 56, "java.cls.unloadedClasses", 48);
	put(UNLOADED, 11);
	put(REDEFINED, 3);
	m.redefined = by_symbol ? REDEFINED : 0;
	m.memory[MAY_REDEFINE] = by_symbol;
	m.jvm = (struct hotspot_jvm){.bias = 0};
	m.nclaims = 0;
	CHECK_INT(claim(), 0);
}

/* The reads of a later walk of b.C.mid's caller A.main and those above it, in a JVM that counts or
 * does not. */
static uint32_t reads_of_later_walk(int counts)
{
	uint64_t expected;

	make_recursion();
	if (counts)
		make_counters(counts == 2);
	pushed_with_notes(1);
	begin_at_main();
	expected = pushed_without_notes();
	CHECK(pushed_with_notes(2) == expected);
	CHECK_INT(m.frames, 3);
	return m.reads;
}

/* An interpreted method that an earlier walk has read is not read again: two reads for a walk, of
 * what the JVM counts, take the place of seven for a method. */
TEST(methods_known_from_earlier_walks)
{
	uint32_t reads = reads_of_later_walk(0);

	CHECK_INT(reads_of_later_walk(1), reads - 7 + 2);
	CHECK_INT(m.jvm.words[HOTSPOT_UNLOADED], UNLOADED);
	CHECK_INT(m.jvm.words[HOTSPOT_REDEFINED], 0);
	CHECK_INT(reads_of_later_walk(2), reads - 7 + 2);
	CHECK_INT(m.jvm.words[HOTSPOT_REDEFINED], REDEFINED);
}

/* After a class was unloaded, or redefined, the memory of its methods may have others, so nothing
 * that was noted of any counts. */
TEST(methods_after_classes_have_changed)
{
	for (int what = 0; what < 8; what++) {
		bool by_symbol = what != 1 && what != 5;
		uint64_t expected, before, main, other, name;

		make_recursion();
		make_counters(by_symbol);
		pushed_with_notes(1);
		begin_at_main();
		before = pushed_with_notes(2);
		memcpy(&main, m.memory + STACK + 0x200 - 24, 8);
		memcpy(&name, m.memory + main + 88 + 80 + 128 + 24, 8);
		other = method("A", "more");
		if (what < 4) { /* another class of the same name, with other methods */
			memcpy(m.memory + main, m.memory + other, 16);
			put(STACK + 0x200 - 64, other + 88 + 48 + 3);
			put(STACK + 0x400 - 64, other + 88 + 48 + 3);
		} else { /* a class of another name */
			m.memory[name + 6] = 'Z';
		}
		if (what % 4 == 0)
			put(UNLOADED, 12);
		else if (what % 4 == 1)
			m.memory[MAY_REDEFINE] = 1;
		else if (what % 4 == 2)
			put(REDEFINED, 4);
		else /* the counters are no more, as where a JVM ends */
			m.jvm.words[HOTSPOT_UNLOADED] = MEMORY;
		expected = pushed_without_notes();
		CHECK(expected != before);
		CHECK(pushed_with_notes(3) == expected);
		CHECK(pushed_with_notes(4) == expected);
	}
	/* what the JVM counts is all that is looked at */
	make_recursion();
	make_counters(true);
	begin_at_main();
	pushed_with_notes(1);
	put(UNLOADED, 12);
	CHECK(pushed_with_notes(2) == pushed_without_notes());
}

/* Two methods of a class have its part of a key in common: three reads less. */
TEST(methods_of_one_class)
{
	uint32_t reads[2];

	for (int same = 0; same < 2; same++) {
		uint64_t leaf, main;

		memset(notes, 0, sizeof(notes));
		make();
		CHECK_INT(claim(), 0);
		m.native.emitted = is_emitted;
		memcpy(&leaf, m.memory + STACK + 0x100 - 24, 8);
		memcpy(&main, m.memory + STACK + 0x200 - 24, 8);
		if (same)
			put(main + 88 + 8, leaf + 88 + 80);
		pushed_with_notes(1);
		reads[same] = m.reads;
	}
	CHECK_INT(reads[1], reads[0] - 3);
}

/* Tables of counters that say nothing: methods are read in each walk. */
TEST(counters_that_are_not_there)
{
	for (int what = 0; what < 9; what++) {
		uint64_t expected;

		make_recursion();
		make_counters(what < 5);
		CHECK(m.jvm.words[HOTSPOT_UNLOADED]);
		if (what == 0) /* -XX:-UsePerfData */
			put(COUNTERS, 0);
		else if (what == 1)
			put_int(COUNTER_TABLE, 4711);
		else if (what == 2) /* another version */
			m.memory[COUNTER_TABLE + 5] = 3;
		else if (what == 3)
			m.memory[UNLOADED - 28] = 'x';
		else if (what == 4) /* no number of 8 bytes */
			m.memory[UNLOADED - 48 + 12] = 'B';
		else if (what == 5) /* neither is known */
			m.jvm.words[HOTSPOT_MAY_REDEFINE] = m.jvm.words[HOTSPOT_REDEFINED] = 0;
		else if (what == 6) /* the first has no end */
			put_int(COUNTER_TABLE + 32, 0);
		else if (what == 7) /* not so many bytes are in use */
			put_int(COUNTER_TABLE + 8, 32 + 64 + 40);
		else
			put_int(UNLOADED - 48 + 16, 52);
		m.jvm.words[HOTSPOT_UNLOADED] = 0;
		m.jvm.next_ns = 0;
		CHECK_INT(claim(), 0);
		CHECK_INT(m.jvm.words[HOTSPOT_UNLOADED], 0);
		begin_at_main();
		expected = pushed_without_notes();
		CHECK(pushed_with_notes(1) == expected);
		CHECK(pushed_with_notes(2) == expected);
	}
}

/* Code is freed and its place is used again: what is remembered of it does not count. */
TEST(another_block_where_one_was)
{
	uint64_t later = COMPILED + 0x200;

	for (int what = 0; what < 4; what++) {
		memset(remembered, 0, sizeof(remembered));
		make_remembering();
		CHECK_INT(walk(), FUSEE_NEXT);
		make_remembering();
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, COMPLETE);
		make_remembering();
		if (what == 0) { /* it is free */
			m.memory[COMPILED + 8] = 0;
			CHECK_INT(walk(), FUSEE_STOP);
			CHECK_STR(m.stack, "A.leaf:7 ");
			continue;
		}
		if (what == 1) { /* its end is another method's, and the rest is free */
			memcpy(m.memory + later + 16, m.memory + COMPILED + 16, 320);
			blob(later, 4, "nmethod", 6);
			m.memory[COMPILED + 8] = 0;
		} else if (what == 2) { /* shorter, as JVMs give back what is not used */
			memcpy(m.memory + later + 16, m.memory + COMPILED + 16, 320);
			blob(later, 4, "nmethod", 6);
			put(COMPILED, 4);
		} else { /* a block from before it on, and what was its header is code */
			memset(m.memory + COMPILED, 0x90, 328);
			blob(COMPILED - 0x200, 12, "some stub", 6);
		}
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK(!strstr(m.stack, "b.C.inner:2 b.C.mid:5"));
		CHECK(what != 3 || strstr(m.stack, "some stub"));
	}
}

/* The JVM has replaced the return address of a frame that it will replace. */
TEST(a_frame_to_be_deoptimized)
{
	uint64_t fp = STACK + 0x100;

	make();
	CHECK_INT(claim(), 0);
	put(fp + 8, HANDLER);
	put(fp + 32 + 8, COMPILED + 0x180 + CALLED);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
}

/* A stub of this name calls the JVM's function that fills A.leaf's frame, which it has put in the
 * place of a compiled one: its sp is `aligned` bytes below its frame. */
static struct fusee_unwind *replace(const char *name, uint64_t aligned)
{
	uint64_t fp = STACK + 0x100, stub_fp = fp - 0x80;
	struct fusee_unwind *u = &m.native.u;

	make();
	blob(OTHER, 8, name, 4);
	put(fp - 16, 0);
	put(fp - 24, MEMORY); /* not the method yet */
	put(stub_fp, fp);
	put(stub_fp + 8, INTERPRETER + 0x240);
	CHECK_INT(claim(), 0);
	u->pc = OTHER + 0x180;
	u->fp = stub_fp;
	u->sp = stub_fp + 16 - 32 - aligned;
	u->flags = FUSEE_FIRST;
	u->valid_regs = 0;
	return u;
}

#define REPLACED "[frame of Java that is replaced]:0 " CALLERS

TEST(frames_that_replace_a_compiled_one)
{
	static const char *const names[] = {"DeoptimizationBlob", "UncommonTrapBlob"};
	uint64_t fp = STACK + 0x100;

	for (int i = 0; i < 4; i++) {
		char is[128];

		replace(names[i / 2], i % 2 * 8);
		snprintf(is, sizeof(is), "%s:0 " REPLACED, names[i / 2]);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, is);
	}
	replace("RuntimeStub", 0); /* a frame is not written otherwise */
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(m.native.u.error, HOTSPOT_NO_INTERPRETED);
	replace("RuntimeStub", 8);
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(m.native.u.error, HOTSPOT_NO_FRAME);
	replace("DeoptimizationBlob", 8);
	put(fp - 16, fp); /* it has called */
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(m.native.u.error, HOTSPOT_NO_INTERPRETED);
	replace("DeoptimizationBlob", 8);
	put(fp - 8, fp); /* the caller's sp is in the frame */
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(m.native.u.error, HOTSPOT_NO_INTERPRETED);
}

/* ---- other releases ---- */

/* The list has these fields, and not those of the same place in `lacks`. */
static void relist(const struct listed *has, size_t n, const char *const *lacks)
{
	uint64_t end = FIELDS;

	for (; *lacks; lacks++)
		for (uint64_t at = TEXTS; at < m.text; at++)
			if (!strcmp((char *)m.memory + at, *lacks))
				m.memory[at] = 'x';
	while (*(uint64_t *)(void *)(m.memory + end))
		end += LAYOUT_FIELD;
	for (size_t i = 0; i < n; i++)
		put_field(end + i * LAYOUT_FIELD, &has[i]);
}

static void check_stack(void)
{
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 1);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
}

/* Offsets of tables count from `base` on. */
static void move_tables(uint64_t blob, uint64_t base, int scopes, int pcs)
{
	put_int(blob + scopes, (int)(COMPILED + 0x370 - base));
	put_int(blob + pcs, (int)(COMPILED + 0x340 - base));
}

static void put_code_offsets(void)
{
	const uint64_t blobs[] = {INTERPRETER + 16, COMPILED + 16, STUBS + 16};

	for (int i = 0; i < 3; i++) {
		put(blobs[i] + 32, 0);
		put_int(blobs[i] + 36, 0x170);
	}
}

/* 8: one heap; offsets, also of the handler; interpreted frames have no mirror; the class has the
 * file's name. */
TEST(the_layout_of_8)
{
	static const struct listed has[] = {
		{"CodeCache", "_heap", HEAPS + 0x30, 1},
		{"GenericGrowableArray", "_len", 0, 0},
		{"CodeBlob", "_code_offset", 36, 0},
		{"nmethod", "_scopes_data_offset", 276, 0},
		{"nmethod", "_deoptimize_offset", 280, 0},
		{"InstanceKlass", "_source_file_name_index", 60, 0},
	};
	static const char *const lacks[] = {"_heaps",
					    "GrowableArrayBase",
					    "_code_begin",
					    "_scopes_data_begin",
					    "_deopt_handler_begin",
					    "_source_file_name_index",
					    NULL};
	uint64_t blob = COMPILED + 16, fps[] = {STACK + 0x100, STACK + 0x200};

	for (int deoptimized = 0; deoptimized < 2; deoptimized++) {
		make();
		put_code_offsets();
		move_tables(blob, blob, 276, 268);
		put(HEAPS, 0);
		put_int(VERSION, 25);
		put_int(blob + 280, (int)(HANDLER - blob));
		relist(has, sizeof(has) / sizeof(*has), lacks);
		for (int i = 0; i < 2; i++) {
			memcpy(m.memory + fps[i] - 56, m.memory + fps[i] - 64, 8);
			put(fps[i] - 64, 0x1111);
		}
		if (deoptimized) {
			put(fps[0] + 8, HANDLER);
			put(fps[0] + 32 + 8, COMPILED + 0x180 + CALLED);
		}
		m.native.u.sp = fps[0] - 56;
		check_stack();
		CHECK_INT(m.jvm.words[HOTSPOT_EXCESS], 0);
		CHECK_STR(m.file, "A.java");
	}
}

/* 23: tables are outside of the heap of code, methods behind what else is there; short numbers. */
TEST(the_layout_of_23)
{
	static const struct listed has[] = {
		{"CodeBlob", "_code_offset", 36, 0},
		{"CodeBlob", "_data_offset", 40, 0},
		{"nmethod", "_method", 112, 0},
		{"nmethod", "_immutable_data", 284, 0},
		{"nmethod", "_scopes_data_offset", 276, 0},
		{"nmethod", "_metadata_offset", 44, 2},
		{"nmethod", "_deopt_handler_offset", 280, 0},
		{"CodeBlob", "_frame_complete_offset", 46, 2},
	};
	static const char *const lacks[] = {
		"_code_begin",      "CompiledMethod",         "_dependencies_offset",
		"_metadata_offset", "_frame_complete_offset", NULL};
	uint64_t blob = COMPILED + 16;

	make();
	put_code_offsets();
	move_tables(blob, COMPILED + 0x320, 276, 268);
	put(blob + 284, COMPILED + 0x320);
	put_int(blob + 40, 0x200);
	put_short(blob + 44, (unsigned)(COMPILED + 0x3c0 - blob - 0x200));
	put_short(blob + 46, 8);
	relist(has, sizeof(has) / sizeof(*has), lacks);
	check_stack();
}

/* 25: methods are in the blob's mutable data, too. */
TEST(the_layout_of_25)
{
	static const struct listed has[] = {
		{"CodeBlob", "_code_offset", 36, 0},
		{"CodeBlob", "_mutable_data", 292, 0},
		{"CodeBlob", "_relocation_size", 40, 0},
		{"nmethod", "_method", 112, 0},
		{"nmethod", "_immutable_data", 284, 0},
		{"nmethod", "_scopes_data_offset", 276, 0},
		{"nmethod", "_deopt_handler_entry_offset", 280, 0},
	};
	static const char *const lacks[] = {"_code_begin", "CompiledMethod", "_dependencies_offset",
					    "_metadata_offset", NULL};
	uint64_t blob = COMPILED + 16, fp = STACK + 0x100;

	make();
	put_code_offsets();
	move_tables(blob, COMPILED + 0x320, 276, 268);
	put(blob + 284, COMPILED + 0x320);
	put(blob + 292, COMPILED + 0x3b0);
	put_int(blob + 300, 8);
	put_int(blob + 40, 16);
	put_int(blob + 280, (int)(HANDLER - blob));
	put(fp + 8, HANDLER);
	put(fp + 32 + 8, COMPILED + 0x180 + CALLED);
	relist(has, sizeof(has) / sizeof(*has), lacks);
	check_stack();
}

/* A virtual thread's outermost frame on this stack returns to a stub that no code calls: there is a
 * gap. */
TEST(callers_in_the_heap)
{
	make();
	CHECK_INT(claim(), 0);
	put(STACK + 0x200 + 8, STUBS + 0x280);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "A.leaf:7 b.C.inner:2 b.C.mid:5 A.main:3 [frames in Java's heap]:0 ");
	/* behind a call it is a stub that has called something */
	make();
	CHECK_INT(claim(), 0);
	m.memory[STUBS + 0x280 - 5] = 0xe8;
	put(STACK + 0x200 + 8, STUBS + 0x280);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "A.leaf:7 b.C.inner:2 b.C.mid:5 A.main:3 StubRoutines:0 ");
}

#define CONTINUATION 0x17000
#define CHUNK_AT 0x17100
#define CHUNK_STACK_AT (CHUNK_AT + 40)
#define IN_STACK "A.leaf:7 " IN_CALLERS
#define GAP "[frames in Java's heap]:0 StubRoutines::call_stub:0 "

/* The frames of b.C.mid and of A.main are in the heap too. */
static void make_chunk(void)
{
	uint64_t top = CHUNK_STACK_AT + 16, fp = top + 120, main;
	uint32_t *w = m.jvm.words;

	put(STACK + 0x200 + 8, STUBS + 0x280);
	put(STACK + 0x260 - 56 + 8, CONTINUATION);
	/* what runs it was called by the stub that native code has called */
	put(STACK + 0x260, STACK + 0x2a0);
	put(STACK + 0x268, STUBS + 0x200);
	put(STACK + 0x2a0, 0x77);
	put(STACK + 0x2a8, NATIVE);
	put_int(CONTINUATION + 16, CHUNK_AT >> 3);
	put_int(CHUNK_AT + 8, 0x1234);
	put_int(CHUNK_AT + 16, 2);
	put_int(CHUNK_AT + 20, 22);
	put_int(CHUNK_AT + 24, 21);
	put(top - 8, COMPILED + 0x180 + CALLED);
	put(top + 32, 11);
	put(top + 40, INTERPRETER + 0x240);
	memcpy(&main, m.memory + STACK + 0x200 - 24, 8);
	interpreted(fp, main, 2, 0, 0x4444);
	w[HOTSPOT_CONTINUATION_TAIL] = 16;
	w[HOTSPOT_CHUNK_SP] = 16;
	w[HOTSPOT_CHUNK_SIZE] = 20;
	w[HOTSPOT_CHUNK_BOTTOM] = 24;
	w[HOTSPOT_CHUNK_PARENT] = 28;
	w[HOTSPOT_CHUNK_STACK] = 40;
	w[HOTSPOT_CHUNK_CLASS] = 0x1234;
	w[HOTSPOT_OOP_SHIFT] = 3;
}

TEST(frames_in_the_heap)
{
	make();
	CHECK_INT(claim(), 0);
	make_chunk();
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, IN_STACK CALLERS);
	CHECK_INT(m.native.u.pc, NATIVE);
	CHECK_INT(m.native.u.fp, 0x77);
	CHECK_INT(m.native.u.sp, STACK + 0x2b0);
	/* no chunk, or a chunk whose frames cannot be: a gap */
	for (int what = 0; what < 4; what++) {
		make();
		CHECK_INT(claim(), 0);
		make_chunk();
		if (what == 0)
			put_int(CHUNK_AT + 8, 0x1235);
		else if (what == 1)
			put_int(CHUNK_AT + 16, 30);
		else if (what == 2)
			put_int(CHUNK_AT + 24, 0x7fffffff);
		else
			m.jvm.words[HOTSPOT_CHUNK_STACK] = 0;
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack + strlen(IN_STACK), GAP);
	}
}

/* Compiled code has saved any frame pointer: that of another carrier's stack, or none. The frame
 * that runs the virtual thread is above the words that its outermost frame passed to it. */
TEST(frames_in_the_heap_by_the_stack)
{
	for (uint64_t below = 0; below < 4; below++)
		for (int chunk = 0; chunk < 2; chunk++) {
			make();
			CHECK_INT(claim(), 0);
			make_chunk();
			put(STACK + 0x200, below % 2 ? STACK + 0x4260 : 7);
			put(STACK + 0x200 - 8, STACK + 0x260 - 56 - 8 * below);
			if (chunk && below > 1) /* of an earlier frame */
				put(STACK + 0x260 - 56 - 8 * below + 56, COMPILED + 0x220);
			m.jvm.words[HOTSPOT_CHUNK_STACK] *= (uint32_t)chunk;
			CHECK_INT(walk(), FUSEE_NEXT);
			CHECK_STR(m.stack + strlen(IN_STACK), chunk ? CALLERS : GAP);
			CHECK_INT(m.native.u.sp, STACK + 0x2b0);
			CHECK_INT(!(m.native.u.flags & FUSEE_GUESSED), chunk);
		}
}

/* The innermost code has called a function of the JVM. */
static void walk_called(uint64_t pc)
{
	m.native.u.pc = pc;
	m.native.u.flags = FUSEE_FIRST;
	m.native.u.valid_regs = 0;
	CHECK_INT(walk(), FUSEE_NEXT);
}

/* An interpreted method may be moved to the heap while it calls the JVM: then the first frame there
 * is its own. */
TEST(interpreted_frames_that_are_moved_to_the_heap)
{
	static const char leaf[] = "A.leaf:3 " IN_CALLERS;
	uint64_t method, top = CHUNK_STACK_AT + 16;

	for (int moved = 0; moved < 2; moved++) {
		make();
		CHECK_INT(claim(), 0);
		make_chunk();
		memcpy(&method, m.memory + STACK + 0x100 - 24, 8);
		if (moved) {
			put(top - 8, INTERPRETER + 0x240);
			put(top - 16, 15);
			interpreted(top + 104, method, 2, 0, 0x4444);
		}
		walk_called(INTERPRETER + 0x240);
		CHECK(!strncmp(m.stack, leaf, strlen(leaf)));
		CHECK_STR(m.stack + strlen(leaf), moved ? GAP : CALLERS);
	}
}

/* Compiled code calls functions of the JVM that move nothing; stubs may call others. */
TEST(native_frames_above_frames_in_the_heap)
{
	static const struct {
		const char *name;
		bool gap;
	} cases[] = {
		{"nmethod", false},
		{"C1 Runtime counter_overflow_blob", false},
		{"C1 Runtime monitorenter_blob", true},
		{"C2 Runtime complete_monitor_locking_blob", true},
		{"StubRoutines (2)", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool stub = !strncmp(cases[i].name, "Stub", 4);
		uint64_t sp = STACK + 0x80;

		make();
		CHECK_INT(claim(), 0);
		make_chunk();
		blob(OTHER, 8, cases[i].name, 4);
		put(OTHER + 16 + 112, *(uint64_t *)(void *)(m.memory + COMPILED + 16 + 112));
		m.memory[OTHER + 0x200 - 5] = 0xe8;
		put(sp + 16, STACK + 0x100);
		put(sp + 24, INTERPRETER + 0x240);
		m.native.u.sp = sp;
		m.native.u.fp = stub ? sp + 16 : 0x1234;
		walk_called(OTHER + 0x200);
		CHECK(strstr(m.stack, "A.leaf:3 " IN_CALLERS));
		CHECK(!strstr(m.stack, "heap") == !cases[i].gap);
	}
}

/* doYield() copies its callers' frames, and then the first frame in the heap is its caller's. */
TEST(frames_that_yield)
{
	static const char *const names[] = {"doYield", "wait0", "sleep0"};

	for (int i = 0; i < 4; i++) {
		uint64_t sp = STACK + 0x80, pc = INTERPRETER + 0x244;

		make();
		CHECK_INT(claim(), 0);
		make_chunk();
		blob(OTHER, 8, "native nmethod", 4);
		put(OTHER + 16 + 112, method("x/Y", names[i % 3]));
		if (i == 3)
			put(CHUNK_STACK_AT + 8, pc);
		put(sp + 16, STACK + 0x100);
		put(sp + 24, pc);
		m.native.u.sp = sp;
		walk_called(OTHER + 0x200);
		CHECK(strstr(m.stack, "A.leaf:3 " IN_CALLERS));
		CHECK(!strstr(m.stack, "heap") == (i == 0 || i == 2));
	}
}

/* Each read fails in turn, or what is read is a lie: what is shown is right as far as it goes. */
TEST(a_damaged_chunk)
{
	static const char complete[] = IN_STACK IN_CALLERS;
	static const uint64_t lies[] = {0, 1, 7, ~0ull, CHUNK_AT, CODE, STACK};
	uint32_t before;

	for (uint32_t k = 1; k < 1000; k++) {
		make();
		claim();
		make_chunk();
		before = m.reads;
		m.fails = before + k;
		walk();
		if (m.reads < m.fails)
			break;
	}
	for (uint64_t at = CONTINUATION; at < CHUNK_STACK_AT + 200; at += 4)
		for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			make();
			claim();
			make_chunk();
			put(at, lies[i]);
			walk();
			CHECK(!strncmp(m.stack, complete, strlen(IN_STACK)));
		}
}

/* ---- names of threads ---- */

#define JAVA_THREAD 0x17000
#define COLLECTED 0x17080
#define HANDLE_AT 0x170a0
#define THREAD_AT 0x17100 /* objects of Java */
#define STRING_AT 0x17180
#define ARRAY_AT 0x17200
#define THREAD_KLASS 0x17400
#define STRING_KLASS 0x17480
#define KLASS_VARIABLES 0x17500
#define KLASS_FIELDS 0x17580
#define KLASS_POOL 0x17600

/* The lists have what leads to names of threads, as in 17: classes with their fields by the numbers
 * of slots of a pool. */
static void list_threads(bool handle)
{
	static const struct listed has[] = {
		{"SystemDictionary", "_well_known_klasses[SystemDictionary::Thread_klass_knum]",
		 KLASS_VARIABLES, 1},
		{"SystemDictionary", "_well_known_klasses[SystemDictionary::String_klass_knum]",
		 KLASS_VARIABLES + 8, 1},
		{"Universe", "_collectedHeap", KLASS_VARIABLES + 16, 1},
		{"Universe", "_narrow_oop._base", KLASS_VARIABLES + 24, 1},
		{"Universe", "_narrow_oop._shift", KLASS_VARIABLES + 32, 1},
		{"CollectedHeap", "_is_gc_active", 16, 0},
		{"InstanceKlass", "_fields", 32, 0},
		{"InstanceKlass", "_java_fields_count", 40, 0},
		{"InstanceKlass", "_constants", 48, 0},
		{"Array<u2>", "_data", 4, 0},
		{"JavaThread", "_threadObj", 24, 0},
	};
	static const struct {
		const char *name;
		int value;
	} constants[] = {{"FieldInfo::field_slots", 6},
			 {"FieldInfo::name_index_offset", 1},
			 {"FieldInfo::signature_index_offset", 2},
			 {"FieldInfo::low_packed_offset", 4},
			 {"FieldInfo::high_packed_offset", 5},
			 {"FIELDINFO_TAG_SIZE", 2}};
	static const char *const lacks[] = {NULL};
	uint64_t last;

	relist(has, sizeof(has) / sizeof(*has), lacks);
	for (last = FIELDS; *(uint64_t *)(void *)(m.memory + last + LAYOUT_FIELD);)
		last += LAYOUT_FIELD;
	put(last + 16, text(handle ? "OopHandle" : "oop"));
	for (uint32_t i = 0; i < sizeof(constants) / sizeof(*constants); i++) {
		put(CONSTANTS + 16 * (i + 1), text(constants[i].name));
		put_int(CONSTANTS + 16 * (i + 1) + 8, constants[i].value);
	}
}

/* Field i of the class, with its name and type in slots from `slot` on. */
static void put_class_field(uint64_t fields, int i, int slot, const char *name, const char *type,
			    unsigned int offset)
{
	uint64_t at = fields + 4 + 12 * (uint64_t)i;

	put_short(at + 2, (unsigned int)slot);
	put_short(at + 4, (unsigned int)slot + 1);
	put_short(at + 8, (offset << 2 | 1) & 0xffff);
	put_short(at + 10, offset << 2 >> 16);
	put(KLASS_POOL + 72 + 8 * (uint64_t)slot, symbol(name));
	put(KLASS_POOL + 72 + 8 * (uint64_t)slot + 8, symbol(type));
}

static void put_class(uint64_t klass, uint64_t fields, int n)
{
	put(klass + 32, fields);
	put_short(klass + 40, (unsigned int)n);
	put(klass + 48, KLASS_POOL);
	put_int(fields, 6 * n);
}

/* The thread of the stack, with this name; wide: of UTF-16. */
static void make_thread(bool handle, const void *name, int bytes, bool wide)
{
	make();
	list_threads(handle);
	put(KLASS_VARIABLES, THREAD_KLASS);
	put(KLASS_VARIABLES + 8, STRING_KLASS);
	put(KLASS_VARIABLES + 16, COLLECTED);
	put_int(KLASS_VARIABLES + 32, 3);
	put_class(THREAD_KLASS, KLASS_FIELDS, 3);
	put_class_field(KLASS_FIELDS, 0, 0, "eetop", "J", 16);
	put_class_field(KLASS_FIELDS, 1, 2, "name", "Ljava/lang/String;", 28);
	put_class_field(KLASS_FIELDS, 2, 4, "group", "Ljava/lang/ThreadGroup;", 32);
	put_class(STRING_KLASS, KLASS_FIELDS + 48, 3);
	put_class_field(KLASS_FIELDS + 48, 0, 6, "hash", "I", 12);
	put_class_field(KLASS_FIELDS + 48, 1, 8, "coder", "B", 16);
	put_class_field(KLASS_FIELDS + 48, 2, 10, "value", "[B", 20);
	put(STACK + 0x260 - 48, STACK + 0x300); /* of the stub that calls Java */
	put(STACK + 0x300, JAVA_THREAD);
	put(JAVA_THREAD + 24, handle ? HANDLE_AT : THREAD_AT);
	put(HANDLE_AT, THREAD_AT);
	put(THREAD_AT + 16, JAVA_THREAD);
	put_int(THREAD_AT + 28, STRING_AT >> 3);
	m.memory[STRING_AT + 16] = wide;
	put_int(STRING_AT + 20, ARRAY_AT >> 3);
	put_int(ARRAY_AT + 12, bytes);
	memcpy(m.memory + ARRAY_AT + 16, name, (size_t)bytes);
}

#define LONG_NAME "http-nio-8080-exec-12"

static void check_thread(const char *name)
{
	CHECK_INT(claim(), 0);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
	CHECK_STR(m.thread, name);
}

TEST(the_name_of_a_thread)
{
	char text[400];

	make_thread(true, LONG_NAME, strlen(LONG_NAME), false);
	check_thread(LONG_NAME);
	make_thread(false, LONG_NAME, strlen(LONG_NAME), false);
	check_thread(LONG_NAME);
	make_thread(true, "f\xfcnf", 4, false);
	check_thread("f\xc3\xbcnf");
	/* of UTF-16, with a pair, and with halves of pairs */
	make_thread(true, "\x1f\x04-\0\x3d\xd8\0\xde", 8, true);
	check_thread("\xd0\x9f-\xf0\x9f\x98\x80");
	make_thread(true,
		    "\0\xde"
		    "a\0"
		    "\x3d\xd8",
		    6, true);
	check_thread("\xef\xbf\xbd"
		     "a"
		     "\xef\xbf\xbd");
	/* a long name is truncated */
	memset(text, 'x', sizeof(text));
	make_thread(true, text, sizeof(text), false);
	text[HOTSPOT_THREAD_BYTES] = '\0';
	check_thread(text);
	make_thread(true, "", 0, false);
	check_thread("");
}

/* A name that is changed, in the same memory. */
TEST(a_thread_is_renamed)
{
	struct fusee_unwind before;

	make_thread(true, LONG_NAME, strlen(LONG_NAME), false);
	before = m.native.u;
	check_thread(LONG_NAME);
	m.memory[ARRAY_AT + 16 + 20] = '3';
	m.native.u = before;
	check_thread("http-nio-8080-exec-13");
}

/* Of what is no thread, or may be moved at this moment, no name is read. */
TEST(no_name_of_a_thread)
{
	for (int what = 0; what < 6; what++) {
		make_thread(true, LONG_NAME, strlen(LONG_NAME), false);
		if (what == 0) /* the object is another's */
			put(THREAD_AT + 16, JAVA_THREAD + 8);
		else if (what == 1)
			m.memory[COLLECTED + 16] = 1;
		else if (what == 2) /* no wrapper: it is above the frame */
			put(STACK + 0x260 - 48, STACK + 0x250);
		else if (what == 3)
			put_int(THREAD_AT + 28, 0);
		else if (what == 4)
			put_int(STRING_AT + 20, 0);
		else /* a class that the JVM has not loaded yet */
			put(KLASS_VARIABLES + 8, 0);
		check_thread("");
	}
}

/* With each read failing in turn there is no name, or the name. */
TEST(a_thread_that_cannot_be_read)
{
	uint32_t named = 0, nameless = 0;

	for (uint32_t k = 1; k < 1000; k++) {
		make_thread(true, LONG_NAME, strlen(LONG_NAME), false);
		claim();
		m.fails = m.reads + k;
		walk();
		if (m.reads < m.fails)
			break;
		CHECK(!*m.thread || !strcmp(m.thread, LONG_NAME));
		named += *m.thread != 0;
		nameless += !*m.thread;
	}
	CHECK(named && nameless > 12);
}

/* Scopes that make no sense: only the compiled method is shown. */
TEST(damaged_scopes)
{
	static const unsigned char bad[][3] = {
		{10, 2, 3}, /* the outermost leads to itself */
		{30, 2, 3}, /* leads to a later one */
		{0, 2, 3},  /* ends in another method */
		{0, 0, 3},  /* has no method */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make();
		CHECK_INT(claim(), 0);
		memcpy(m.memory + COMPILED + 0x370 + 10, bad[i], 3);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "A.leaf:7 b.C.mid:-1 A.main:3 StubRoutines::call_stub:0 ");
	}
}

TEST(lines)
{
	static const struct {
		uint32_t bci, line;
	} cases[] = {{0, 100}, {3, 100}, {4, 103}, {39, 103}, {40, 99}, {1000, 99}};
	/* the same in the numbers of 21, which have no 0 */
	static const unsigned char later[] = {0xff, 1, 0xc9, 1, 4 << 3 | 3, 0xff, 73, 8, 0};
	uint32_t first;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t bci = cases[i].bci, line = cases[i].line;

		CHECK_INT(hotspot_line(LINES, sizeof(LINES), 0, bci, &first), line);
		CHECK_INT(first, 99);
		CHECK_INT(hotspot_line(later, sizeof(later), 1, bci, &first), line);
		/* without its last entry: what is behind the others is not known */
		CHECK_INT(hotspot_line(LINES, 5, 0, bci, &first), bci < 4 ? line : 0);
		for (uint32_t n = 0; n < sizeof(LINES); n++)
			hotspot_line(LINES, n, i & 1, bci, &first);
	}
}

TEST(a_method_has_its_lines)
{
	const struct hotspot_named *named;
	uint64_t key = 0;
	uint32_t first;

	make();
	CHECK_INT(claim(), 0);
	m.native.words = m.jvm.words;
	m.native.u.words = HOTSPOT_WORDS;
	CHECK_INT(fusee_step_hotspot(&m.native.u), FUSEE_NEXT);
	key = m.native.u.pushed[0];
	named = hotspot_names_method(&m.names, 1, key);
	CHECK_INT(named ? named->line_bytes : 0, sizeof(LINES));
	CHECK_INT(named ? hotspot_line(hotspot_lines(named), named->line_bytes, 0, 7, &first) : 0,
		  103);
	CHECK(named && fusee_text_is(hotspot_file(named), "A.java"));
	CHECK(named && fusee_text_is(hotspot_system_name(named), "A.leaf()V"));
}

/* ---- where a compiled method begins and ends ---- */

struct edge_case {
	const char *what;
	unsigned char code[48];
	int at;         /* where in it the method was interrupted */
	int size;       /* bytes between sp and the caller's */
	int is_fp_kept; /* the frame pointer is the caller's still */
};

/* b.C.mid was interrupted, with its frame complete 8 bytes behind its beginning. */
static void check_edge(const struct edge_case *c)
{
	struct fusee_unwind *u = &m.native.u;
	uint64_t code = COMPILED + 0x180, sp = STACK + 0x100;
	uint32_t complete = (uint32_t)sizeof(c->code);

	make();
	memcpy(m.memory + code, c->code, sizeof(c->code));
	memcpy(m.memory + COMPILED + 16 + 20, &complete, 4);
	CHECK_INT(claim(), 0);
	memset(m.memory + sp - 64, 0, 256);
	m.memory[INTERPRETER + 0x240 - 5] = 0xe8;
	if (c->size)
		put(sp + (uint64_t)c->size - 8, INTERPRETER + 0x240);
	else
		u->regs[FUSEE_X86_RDX] = INTERPRETER + 0x240;
	if (!c->is_fp_kept)
		put(sp + (uint64_t)c->size - 16, 0x7777);
	u->pc = code + (uint64_t)c->at;
	u->sp = sp;
	u->fp = 0x5555;
	m.native.words = m.jvm.words;
	u->words = HOTSPOT_WORDS;
	fprintf(stderr, "# %s\n", c->what);
	CHECK_INT(fusee_step_hotspot(u), FUSEE_NEXT);
	CHECK_INT(u->pc, INTERPRETER + 0x240);
	CHECK_INT(u->sp - sp, c->size);
	CHECK_INT(u->fp, c->is_fp_kept ? 0x5555 : 0x7777);
}

TEST(edges_of_compiled_methods)
{
#define C1 0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20, 0x90, 0x90
#define END \
	0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x78, 3, 0, 0, 0x0f, 0x87, 1, 0, 0, 0, 0xc3
	/* leave; testb; je; what waits for a safepoint; cmpq; jne; ret */
#define NATIVE_END                                                                               \
	0xc9, 0x41, 0xf6, 0x47, 0x28, 1, 0x74, 0x16, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d,   \
		0x89, 0x97, 0x38, 5, 0, 0, 0xe9, 0, 0, 0, 0, 0x49, 0x83, 0x7f, 8, 0, 0x0f, 0x85, \
		1, 0, 0, 0, 0xc3
	static const struct edge_case cases[] = {
		{"a native method polls", {NATIVE_END}, 1, 8, 1},
		{"its je", {NATIVE_END}, 6, 8, 1},
		{"where native methods go on", {NATIVE_END}, 30, 8, 1},
		{"jmp with an exception",
		 {0x48, 0x83, 0xc4, 0x60, 0x5d, 0xe9, 1, 2, 0, 0},
		 5,
		 8,
		 1},
		{"the same, of a large frame",
		 {0x48, 0x81, 0xc4, 0x60, 1, 0, 0, 0x5d, 0xe9, 1, 2, 0, 0},
		 8,
		 8,
		 1},
		{"pop %rdx; jmp *%r10", {0x5d, 0x5a, 0x41, 0xff, 0xe2}, 1, 8, 1},
		{"jmp *%r10 behind it", {0x5d, 0x5a, 0x41, 0xff, 0xe2}, 2, 0, 1},
		{"jmp *%rax behind pop %rbp", {0x5d, 0xff, 0xe0}, 1, 8, 1},
		{"the check of the receiver's class", {0x44, 0x8b, 0x56, 8, 0x90, C1}, 0, 8, 1},
		{"the stack is touched", {C1}, 0, 8, 1},
		{"push %rbp", {C1}, 7, 8, 1},
		{"sub $32,%rsp", {C1}, 8, 16, 0},
		{"behind it", {C1}, 12, 48, 0},
		{"sub comes first",
		 {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x20},
		 0,
		 8,
		 1},
		{"mov %rbp,32(%rsp)",
		 {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x20},
		 4,
		 48,
		 1},
		{"add $32,%rsp", {END}, 0, 48, 0},
		{"pop %rbp", {END}, 4, 16, 0},
		{"the poll", {END}, 5, 8, 1},
		{"its jump", {END}, 12, 8, 1},
		{"ret", {END}, 18, 8, 1},
		{"lea, behind a method",
		 {0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0, 0xe9},
		 0,
		 8,
		 1},
		{"mov behind it",
		 {0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0, 0xe9},
		 7,
		 8,
		 1},
		{"jmp behind it",
		 {0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0, 0xe9},
		 14,
		 8,
		 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_edge(&cases[i]);
}

/* A method that begins: its return address is on top of the stack, and r13 is the caller's sp. */
TEST(an_interpreted_method_begins)
{
	struct fusee_unwind *u = &m.native.u;
	uint64_t sp = STACK + 0x100;

	make();
	CHECK_INT(claim(), 0);
	m.memory[COMPILED + 0x220 - 5] = 0xe8;
	put(sp - 24, COMPILED + 0x220);
	u->sp = sp - 24;
	u->regs[FUSEE_X86_R13] = sp + 32;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Interpreter:0 " CALLERS);
}

/* ---- barriers behind methods ---- */

/* In mid, whose frame is so many bytes above sp, at these bytes of code. */
static int walk_from_barrier(const unsigned char *code, uint32_t n, uint32_t below, __u32 flags)
{
	struct fusee_unwind *u = &m.native.u;

	CHECK_INT(claim(), 0);
	memcpy(m.memory + COMPILED + 0x1c0, code, n);
	u->pc = COMPILED + 0x1c0;
	u->sp = STACK + 0x100 + 32 - below;
	u->flags = flags;
	u->valid_regs = 0;
	return walk();
}

#define FROM_BARRIER "b.C.mid:-1 A.main:3 StubRoutines::call_stub:0 "

TEST(a_barrier_has_called)
{
	/* mov 0x8(%rsp),%r9; lea 0x10(%r9,%rbp,8),%r11; add $0x20,%rsp; jmp */
	static const unsigned char code[] = {0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x4d, 0x8d, 0x5c,
					     0xe9, 0x10, 0x48, 0x83, 0xc4, 0x20, 0xeb, 0xc6},
				   large[] = {0x48, 0x81, 0xc4, 0x20, 0, 0, 0, 0xe9, 1, 2, 0, 0};

	make();
	CHECK_INT(walk_from_barrier(code, sizeof(code), 0x20, 0), FUSEE_NEXT);
	CHECK_STR(m.stack, FROM_BARRIER);
	CHECK_INT(m.native.u.pc, NATIVE);
	/* where the return address would be, an old return address is */
	make();
	put(STACK + 0x100 + 40, INTERPRETER + 0x240);
	CHECK_INT(walk_from_barrier(code, sizeof(code), 0x20, 0), FUSEE_NEXT);
	CHECK_STR(m.stack, FROM_BARRIER);
	make();
	CHECK_INT(walk_from_barrier(large, sizeof(large), 0x20, 0), FUSEE_NEXT);
	CHECK_STR(m.stack, FROM_BARRIER);
}

TEST(a_barrier_is_interrupted)
{
	static const unsigned char code[] = {0x4d, 0x89, 0x1f, 0x41, 0x5f, 0xe9, 1, 2, 0, 0};

	make();
	CHECK_INT(walk_from_barrier(code, sizeof(code), 8, FUSEE_PC_EXACT | FUSEE_FIRST),
		  FUSEE_NEXT);
	CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
}

/* Its end is far: pop %rax; jmp. */
TEST(a_loop_with_a_pushed_number)
{
	unsigned char code[150] = {0};

	code[140] = 0x58;
	code[141] = 0xeb;
	make();
	CHECK_INT(walk_from_barrier(code, sizeof(code), 8, FUSEE_PC_EXACT | FUSEE_FIRST),
		  FUSEE_NEXT);
	CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
	make();
	CHECK_INT(walk_from_barrier(code, sizeof(code), 8, 0), FUSEE_STOP);
}

/* As C2 shortens characters (vpor and vptest have the bytes of a jump and of a return) and compares
 * strings. Above the number is the saved frame pointer. */
TEST(a_number_pushed_before_many_jumps)
{
	static const unsigned char code[2][12] = {
		{0xc5, 0xe9, 0xeb, 0xd0, 0xc4, 0xe2, 0x79, 0x17, 0xc3, 0x75, 0x38, 0x58},
		{0x83, 0xfa, 0x01, 0x0f, 0x84, 0xef, 0, 0, 0, 0xe9, 0xcd, 0},
	};

	for (int i = 0; i < 2; i++) {
		make();
		put(STACK + 0x100 + 24, 41);
		CHECK_INT(walk_from_barrier(code[i], 12, 8, FUSEE_PC_EXACT | FUSEE_FIRST),
			  FUSEE_NEXT);
		CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
		CHECK_INT(m.native.u.pc, NATIVE);
		/* an address, or not the interrupted code */
		make();
		put(STACK + 0x100 + 24, 1ull << 32);
		CHECK_INT(walk_from_barrier(code[i], 12, 8, FUSEE_PC_EXACT | FUSEE_FIRST),
			  FUSEE_STOP);
		CHECK_INT(m.native.u.error, HOTSPOT_NO_FRAME);
		make();
		put(STACK + 0x100 + 24, 41);
		CHECK_INT(walk_from_barrier(code[i], 12, 8, 0), FUSEE_STOP);
	}
}

/* C1 copies an array: push %rsi; push %rcx; mov 8(%rsi),%esi; mov 8(%rcx),%ecx; cmp */
TEST(references_pushed_before_jumps)
{
	static const unsigned char code[] = {0x56, 0x51, 0x8b, 0x76, 0x08, 0x8b, 0x49, 0x08},
				   behind[] = {0x48, 0x3b, 0xf1, 0x0f, 0x84, 0x98, 0, 0, 0, 0x8b};

	for (int pushed = 0; pushed < 2; pushed++) {
		make();
		if (pushed)
			memcpy(m.memory + COMPILED + 0x1c0 - sizeof(code), code, sizeof(code));
		put(STACK + 0x100 + 16, 0xf8001234);
		put(STACK + 0x100 + 24, 0xf8001230);
		CHECK_INT(
			walk_from_barrier(behind, sizeof(behind), 16, FUSEE_PC_EXACT | FUSEE_FIRST),
			pushed ? FUSEE_NEXT : FUSEE_STOP);
		if (pushed)
			CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
		if (pushed)
			CHECK_INT(m.native.u.pc, NATIVE);
	}
}

/* C1 is about to call a stub with arguments: push %rcx; push %rsi; call; pop %rcx; pop %rcx. The
 * same with %r8. */
TEST(arguments_of_a_stub_are_pushed)
{
	static const unsigned char low[] = {0x56, 0xe8, 0xf4, 0xef, 0x41, 0x07, 0x59, 0x59, 0x83};
	static const unsigned char high[] = {0x41, 0x50, 0xe8, 0xf4, 0xef, 0x41,
					     0x07, 0x41, 0x58, 0x41, 0x58, 0x83};

	for (unsigned int i = 0; i < 4; i++) { /* at the second push; at the call */
		unsigned int at = i & 1, push = i < 2 ? 1 : 2, size = i < 2 ? 9 : 12;
		const unsigned char *code = (i < 2 ? low : high) + push * at;

		make();
		put(STACK + 0x100 + 16, STACK + 0x400);
		put(STACK + 0x100 + 24, 1ull << 40);
		CHECK_INT(walk_from_barrier(code, size - push * at, 8 + 8 * at,
					    FUSEE_PC_EXACT | FUSEE_FIRST),
			  FUSEE_NEXT);
		CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
		CHECK_INT(m.native.u.pc, NATIVE);
	}
}

/* push %rsi; push %rcx; call; pop %rcx; pop %rcx, with an old return address where that of the
 * method would be without the arguments. */
TEST(arguments_of_a_stub_beside_an_old_address)
{
	static const unsigned char code[] = {0x56, 0x51, 0xe8, 1, 2, 0, 0, 0x59, 0x59, 0x83, 0xf8};
	static const unsigned int at[][2] = {{0, 0}, {1, 8}, {2, 16}, {7, 16}, {8, 8}, {9, 0}};

	for (unsigned int i = 0; i < sizeof(at) / sizeof(*at); i++) {
		make();
		if (at[i][1] == 16)
			put(STACK + 0x100 + 32 + 40 - 16, INTERPRETER + 0x240);
		memcpy(m.memory + COMPILED + 0x1c0 - at[i][0], code, at[i][0]);
		CHECK_INT(walk_from_barrier(code + at[i][0], sizeof(code) - at[i][0], at[i][1],
					    FUSEE_PC_EXACT | FUSEE_FIRST),
			  FUSEE_NEXT);
		CHECK(strstr(m.stack, " A.main:3 StubRoutines::call_stub:0 "));
		CHECK_INT(m.native.u.pc, NATIVE);
	}
}

/* What follows another jump, a return or the beginning of a barrier is none of this place's. */
TEST(code_before_a_barrier)
{
	static const unsigned char code[3][16] = {
		{0xe9, 1, 2, 0, 0, 0x48, 0x83, 0xc4, 0x20, 0xeb, 0xc6},
		{0xc3, 0x48, 0x83, 0xc4, 0x20, 0xeb, 0xc6},
		{0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0xeb, 0xc6},
	};

	for (int i = 0; i < 3; i++) {
		make();
		CHECK_INT(walk_from_barrier(code[i], sizeof(code[i]), 0, 0), FUSEE_NEXT);
		CHECK_STR(m.stack, FROM_BARRIER);
		make();
		CHECK_INT(walk_from_barrier(code[i], sizeof(code[i]), 0x20, 0), FUSEE_STOP);
		CHECK_INT(m.native.u.error, HOTSPOT_NO_FRAME);
	}
}

/* ---- stubs that say nothing of their frame ---- */

#define RETURN (COMPILED + 0x180 + CALLED)

/* A stub of this name is interrupted behind such code; mid has called it, and continues with
 * `behind`. */
static struct fusee_unwind *in_stub(const char *name, const char *code, const char *behind)
{
	struct fusee_unwind *u = &m.native.u;

	make();
	blob(OTHER, 8, name, 0);
	memcpy(m.memory + OTHER + 0x180, code, strlen(code));
	m.memory[RETURN - 5] = 0xe8;
	memcpy(m.memory + RETURN, behind, strlen(behind));
	CHECK_INT(claim(), 0);
	u->pc = OTHER + 0x180 + strlen(code);
	u->regs[FUSEE_X86_R13] = 0;
	return u;
}

TEST(a_stub_with_a_frame_pointer)
{
	struct fusee_unwind *u = in_stub("g1_post_barrier_slow", "\x55\x48\x8b\xec\x50", "");
	uint64_t fp = STACK + 0x100;

	put(fp + 24, RETURN);
	u->fp = fp + 16;
	u->sp = fp + 8;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "g1_post_barrier_slow:0 " CALLERS);
	/* before mov %rsp,%rbp */
	u = in_stub("g1_post_barrier_slow", "\x55\x48\x8b\xec\x50", "");
	put(fp + 24, RETURN);
	u->pc = OTHER + 0x181;
	u->sp = fp + 16;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "g1_post_barrier_slow:0 " CALLERS);
	/* it has called, and its frame pointer is no frame's */
	u = in_stub("g1_post_barrier_slow", "\x55\x48\x8b\xec\x50", "");
	u->fp = fp + 16;
	u->sp = fp + 8;
	u->flags = 0;
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(u->error, HOTSPOT_NO_FRAME);
}

/* It has pushed four registers, and mid two arguments. */
TEST(a_stub_that_pushes)
{
	struct fusee_unwind *u = in_stub("slow_subtype_check Runtime1 stub", "\x57\x56",
					 "\x5e\x5f");
	uint64_t fp = STACK + 0x100;

	memset(m.memory + fp - 64, 0, 96);
	put(fp + 8, RETURN);
	u->sp = fp + 8 - 32;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "slow_subtype_check Runtime1 stub:0 " CALLERS);
}

/* In what it has pushed there are old return addresses. push %rdi; push %rsi; push %rcx; push %rax;
 * nop; pop %rax; pop %rcx; pop %rsi; pop %rdi; ret */
TEST(a_stub_that_pushes_old_addresses)
{
	static const char code[] = "\x57\x56\x51\x50\x90\x58\x59\x5e\x5f\xc3";
	static const uint64_t pushed[] = {0, 1, 2, 3, 4, 4, 3, 2, 1, 0};
	uint64_t fp = STACK + 0x100;

	for (unsigned int i = 0; i < sizeof(code) - 1; i++) {
		struct fusee_unwind *u = in_stub("slow_subtype_check Runtime1 stub", "",
						 "\x5e\x5f");

		memcpy(m.memory + OTHER + 0x180, code, sizeof(code) - 1);
		u->pc = OTHER + 0x180 + i;
		memset(m.memory + fp - 64, 0, 96);
		put(fp + 8, RETURN);
		u->sp = fp + 8 - 8 * pushed[i];
		for (uint64_t k = 1; k <= pushed[i]; k++)
			put(fp + 8 - 8 * k, RETURN);
		put(fp + 16 + 40, RETURN); /* and in mid's frame */
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "slow_subtype_check Runtime1 stub:0 " CALLERS);
	}
}

/* C1's stub that registers a finalizer has a frame of 18 words, and none yet where it looks whether
 * there is one: mov %rdi,%rax; mov 8(%rax),%esi. Or it has pushed a register. */
TEST(a_stub_that_makes_its_frame_late)
{
	uint64_t fp = STACK + 0x100;

	for (uint64_t pushed = 0; pushed < 2; pushed++) {
		struct fusee_unwind *u = in_stub("register_finalizer Runtime1 stub",
						 "\x48\x8b\xc7\x8b\x70\x08", "\x90");

		put_int(OTHER + 16 + 28, 18);
		memset(m.memory + fp - 64, 0, 64);
		put(fp + 24, RETURN);
		u->sp = fp + 24 - 8 * pushed;
		put(fp + 24 + 17 * 8, 0);
		put(fp + 24 + 16 * 8, 0);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "register_finalizer Runtime1 stub:0 " CALLERS);
	}
}

/* The same in full, with old return addresses wherever no other is looked for. mov %rdi,%rax; ..
 * jne; ret; push %rbp; mov %rsp,%rbp; sub $128,%rsp; nop; sub $8,%rsp; nop; add $8,%rsp; leave; ret
 */
TEST(a_stub_with_a_late_frame_and_old_addresses)
{
	static const char code[] = "\x48\x8b\xc7\x0f\x85\x01\x00\x00\x00\xc3\x55\x48\x8b\xec\x48"
				   "\x81\xec\x80\x00\x00\x00\x90\x48\x83\xec\x08\x90\x48\x83\xc4"
				   "\x08\xc9\xc3";
	static const uint64_t at[][2] = {{0, 0},    {3, 0},    {9, 0},    {10, 0},
					 {11, 8},   {14, 8},   {21, 136}, {22, 136},
					 {26, 144}, {27, 144}, {31, 136}, {32, 0}};
	uint64_t ret = STACK + 0x100 + 24, fp = STACK + 0x100;

	for (unsigned int i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct fusee_unwind *u = in_stub("register_finalizer Runtime1 stub", "", "\x90");

		put_int(OTHER + 16 + 20, -1);
		put_int(OTHER + 16 + 28, 18 + 1);
		memcpy(m.memory + OTHER + 0x180, code, sizeof(code) - 1);
		u->pc = OTHER + 0x180 + at[i][0];
		u->sp = ret - at[i][1];
		for (uint64_t k = 1; k < 20; k++)
			put(ret - 8 * k, RETURN);
		put(u->sp + 8 * 18, at[i][1] == 144 || u->sp + 8 * 18 > ret + 8 ? RETURN : 0);
		put(ret, RETURN);
		put(ret - 8, at[i][1] < 8 ? RETURN : fp);
		u->fp = at[i][1] < 8 || at[i][0] == 11 ? fp : ret - 8;
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "register_finalizer Runtime1 stub:0 " CALLERS);
	}
}

/* Below that it has room, which it gives back first (25): sub $32,%rsp; nop; lea 32(%rsp),%rsp; nop
 */
TEST(a_stub_with_room_below_what_it_pushes)
{
	static const char code[] = "\x57\x56\x51\x50\x48\x83\xec\x20\x90\x48\x8d\x64\x24\x20"
				   "\x90\x58\x59\x5e\x5f\xc3";
	static const uint64_t at[][2] = {{0, 0},  {3, 3},  {4, 4},  {8, 8},  {9, 8},
					 {14, 4}, {15, 4}, {16, 3}, {18, 1}, {19, 0}};
	uint64_t fp = STACK + 0x100;

	for (unsigned int i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct fusee_unwind *u = in_stub("C1 Runtime slow_subtype_check_blob", "",
						 "\x5e\x5f");

		memcpy(m.memory + OTHER + 0x180, code, sizeof(code) - 1);
		u->pc = OTHER + 0x180 + at[i][0];
		memset(m.memory + fp - 96, 0, 128);
		put(fp + 8, RETURN);
		u->sp = fp + 8 - 8 * at[i][1];
		for (uint64_t k = 1; k <= at[i][1]; k++)
			put(fp + 8 - 8 * k, RETURN);
		put(fp + 16 + 40, RETURN); /* and in mid's frame */
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "C1 Runtime slow_subtype_check_blob:0 " CALLERS);
	}
}

/* mov (%rsp),%rax begins an adapter to compiled code, whose caller is interpreted. */
TEST(an_adapter_to_compiled_code)
{
	struct fusee_unwind *u = in_stub("I2C/C2I adapters", "", "");
	uint64_t fp = STACK + 0x200;

	for (int moved = 0; moved < 2; moved++) {
		u = in_stub("I2C/C2I adapters", "", "");
		u->fp = fp;
		u->regs[FUSEE_X86_R13] = fp - 0x80 + 8;
		u->sp = fp - 0x80 - (moved ? 0x18 : 0);
		put(fp - 0x80, INTERPRETER + 0x240);
		u->regs[FUSEE_X86_RAX] = moved ? INTERPRETER + 0x240 : 0;
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "I2C/C2I adapters:0 A.main:3 StubRoutines::call_stub:0 ");
	}
	/* r13 is nowhere near */
	u = in_stub("I2C/C2I adapters", "", "");
	u->fp = fp;
	u->sp = fp - 0x80;
	put(fp - 0x80, INTERPRETER + 0x240);
	CHECK_INT(walk(), FUSEE_STOP);
}

/* Its return address is popped. */
TEST(an_adapter_to_the_interpreter)
{
	struct fusee_unwind *u = in_stub("I2C/C2I adapters", "", "");
	uint64_t sp = STACK + 0x100 + 32;

	for (int other = 0; other < 2; other++) {
		u = in_stub("I2C/C2I adapters", "", "");
		memcpy(m.memory + OTHER + 0x180, "\x4c\x8b\xec", 3); /* mov %rsp,%r13 */
		u->sp = sp;
		put(sp - 8, other ? 0 : RETURN);
		u->regs[FUSEE_X86_RAX] = RETURN;
		CHECK_INT(walk(), other ? FUSEE_STOP : FUSEE_NEXT);
		CHECK_STR(m.stack, other ? "I2C/C2I adapters:0 " : CALLERS);
	}
}

/* Its part to the interpreter asks whether the class is initialized, and r13 has the sp of an
 * earlier call. Then it has the return address patched: r13 has sp meanwhile, rax the address. */
TEST(an_adapter_to_the_interpreter_that_asks)
{
	uint64_t sp = STACK + 0x100 + 24;

	for (int noted = 0; noted < 2; noted++) {
		struct fusee_unwind *u = in_stub("I2C/C2I adapters", "", "");

		memset(m.memory + OTHER + 0x180, 0x90, 0xc0);
		memcpy(m.memory + OTHER + 0x188, "\x4c\x8b\xec", 3);
		memcpy(m.memory + OTHER + 0x190, "\x41\xff\xe3", 3);
		if (noted)
			memcpy(m.memory + OTHER + 0x1b0, "\x49\x89\xe5", 3);
		u->pc = OTHER + 0x1c8;
		put(sp, RETURN);
		u->sp = noted ? sp - 0x40 : sp;
		put(sp - 0x40, noted ? 0 : RETURN);
		u->regs[FUSEE_X86_R13] = noted ? sp : sp + 0x48;
		u->regs[FUSEE_X86_RAX] = noted ? RETURN : 0;
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "I2C/C2I adapters:0 " CALLERS);
	}
}

/* push %rdx: a compiled method has jumped here. */
TEST(an_exception_before_its_handler)
{
	struct fusee_unwind *u = in_stub("ExceptionBlob", "", "");
	int size = 2;

	memcpy(m.memory + OTHER + 16 + 28, &size, sizeof(size));
	memcpy(m.memory + OTHER + 0x180, "\x52\x48\x83\xec\x08", 5);
	u->sp = STACK + 0x100 + 32;
	u->regs[FUSEE_X86_RDX] = RETURN;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, CALLERS);
}

/* mov $..,%rbx; jmp: mid calls through code of its own, at its end. It is on the stack once. */
TEST(a_call_through_code_behind_the_method)
{
	static const unsigned char code[] = {0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 1, 2, 3, 4};

	for (int at = 0; at <= 10; at += 10) {
		struct fusee_unwind *u = in_stub("", "", "");
		uint64_t sp = STACK + 0x100 + 32 - 8;

		memcpy(m.memory + RETURN + 0x20, code, sizeof(code));
		u->pc = RETURN + 0x20 + (uint64_t)at;
		u->sp = sp;
		put(sp, RETURN);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, CALLERS);
	}
}

/* The same instructions in the method itself, with a word of an earlier call in its frame. */
TEST(a_method_that_has_code_as_behind_it)
{
	static const unsigned char code[] = {0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 1, 2, 3, 4};
	struct fusee_unwind *u = in_stub("g1_post_barrier_slow", "", "");
	uint64_t sp = STACK + 0x100 + 32;

	memcpy(m.memory + RETURN + 0x20, code, sizeof(code));
	m.memory[OTHER + 0x190 - 5] = 0xe8;
	u->pc = RETURN + 0x20;
	u->sp = sp;
	put(sp, OTHER + 0x190);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, FROM_BARRIER);
}

/* It has called, and has pushed -1 before it saved the frame pointer. */
TEST(the_barrier_where_a_method_begins)
{
	struct fusee_unwind *u = in_stub("StubRoutines (2)", "\x6a\xff\x55\x48\x8b\xec", "");
	uint64_t fp = STACK + 0x100;

	m.memory[u->pc - 5] = 0xe8; /* it is behind a call */
	put(fp + 8, 0x1234);
	put(fp + 16, ~0ull);
	put(fp + 24, RETURN);
	u->fp = fp + 8;
	u->sp = fp;
	u->flags = 0;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "StubRoutines:0 " CALLERS);
	CHECK_INT(u->fp, 0x77);
}

/* Functions of the JVM call the code that writes back caches, and JNI code that which reads a
 * field. */
TEST(a_stub_without_frame_that_is_called_by_native_code)
{
	static const char *const names[] = {"flush_icache_stub", "jni_fast_GetLongField"};

	for (int i = 0; i < 2; i++) {
		struct fusee_unwind *u = &m.native.u;
		char due[64];

		make();
		blob(STUBS, 8, names[i], 0);
		CHECK_INT(claim(), 0);
		u->pc = STUBS + 0x210;
		put(u->sp, NATIVE);
		CHECK_INT(walk(), FUSEE_NEXT);
		snprintf(due, sizeof(due), "%s:0 ", names[i]);
		CHECK_STR(m.stack, due);
		CHECK_INT(u->pc, NATIVE);
		CHECK_INT(u->sp, STACK + 0x88);
	}
}

/* Its frame has the return address and the caller's frame pointer, and nothing more yet. */
TEST(an_interpreted_frame_is_made)
{
	struct fusee_unwind *u = &m.native.u;
	uint64_t fp = STACK + 0x100;

	make();
	CHECK_INT(claim(), 0);
	memset(m.memory + fp - 64, 0, 64);
	u->sp = fp;
	u->regs[FUSEE_X86_RAX] = COMPILED + 0x180 + CALLED;
	u->regs[FUSEE_X86_R13] = fp + 32;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Interpreter:0 " CALLERS);
	/* where its method will be, an earlier frame had its own */
	make();
	CHECK_INT(claim(), 0);
	u->sp = fp - 24;
	u->regs[FUSEE_X86_RAX] = COMPILED + 0x180 + CALLED;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Interpreter:0 " CALLERS);
	/* its method is pushed: it is in rbx too */
	make();
	CHECK_INT(claim(), 0);
	u->sp = fp - 48;
	memcpy(&u->regs[FUSEE_X86_RBX], m.memory + fp - 24, 8);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Interpreter:0 " CALLERS);
	/* rax is something else: it is no such frame */
	make();
	CHECK_INT(claim(), 0);
	memset(m.memory + fp - 64, 0, 64);
	u->sp = fp - 8;
	u->regs[FUSEE_X86_R13] = fp + 32;
	CHECK_INT(walk(), FUSEE_STOP);
}

/* Between its sender's sp and its method, rax is no return address any more where the ConstMethod
 * is read for the address of the bytecodes (25). */
TEST(an_interpreted_frame_whose_method_is_not_pushed)
{
	struct fusee_unwind *u = &m.native.u;
	uint64_t fp = STACK + 0x100, leaf;
	static const struct {
		uint64_t below, rax, r13; /* rax and r13: from leaf on */
		int due;
	} at[] = {{8, 88, 0, FUSEE_NEXT},
		  {8, 88, 88 + 48, FUSEE_NEXT},
		  {16, 1, 88 + 48, FUSEE_NEXT},
		  {8, 1, 88 + 47, FUSEE_STOP},
		  {24, 88, 88 + 48, FUSEE_STOP}};

	for (unsigned i = 0; i < sizeof(at) / sizeof(*at); i++) {
		make();
		CHECK_INT(claim(), 0);
		memcpy(&leaf, m.memory + fp - 24, 8);
		memset(m.memory + fp - 64, 0, 56);
		u->sp = fp - at[i].below;
		u->regs[FUSEE_X86_RAX] = leaf + at[i].rax;
		u->regs[FUSEE_X86_RBX] = leaf;
		u->regs[FUSEE_X86_R13] = leaf + at[i].r13;
		CHECK_INT(walk(), at[i].due);
		if (at[i].due == FUSEE_NEXT)
			CHECK_STR(m.stack, "Interpreter:0 " CALLERS);
	}
}

/* Memory of an unloaded class is used again: all of leaf is where it was, but for a name. */
TEST(a_class_in_the_place_of_another)
{
	uint64_t leaf, pool, name, class;
	struct fusee_unwind before;

	make();
	CHECK_INT(claim(), 0);
	before = m.native.u;
	memcpy(&leaf, m.memory + STACK + 0x100 - 24, 8);
	pool = leaf + 88 + 80;
	memcpy(&name, m.memory + pool + 72 + 8, 8);
	memcpy(&class, m.memory + pool + 128 + 24, 8);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
	m.memory[class + 6] = 'Z';
	m.native.u = before;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Z.leaf:7 " CALLERS);
	m.memory[name + 6] = 'b';
	m.native.u = before;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "Z.beaf:7 " CALLERS);
}

/* ---- what is wrong ---- */

static int is_beginning(void)
{
	const char *complete = COMPLETE;

	return !strncmp(m.stack, complete, strlen(m.stack));
}

/* Each read in turn fails: the stack is complete, or its beginning with a reason. What has no name
 * is emitted with a later sample. */
TEST(each_read_fails_in_turn)
{
	uint32_t n, before, inspected, nameless = 0, ended = 0;

	make();
	claim();
	before = m.reads;
	walk();
	n = m.reads - before;
	CHECK(n > 40);
	for (uint32_t k = 1; k <= n; k++) {
		int r;

		make();
		claim();
		m.fails = m.reads + k;
		r = walk();
		if (strchr(m.stack, '?')) {
			nameless++;
			continue;
		}
		if (r == FUSEE_STOP)
			CHECK(m.native.u.error > 0 && m.native.u.error <= 4);
		ended += r == FUSEE_STOP;
		CHECK(is_beginning());
		CHECK(r != FUSEE_NEXT || !strcmp(m.stack, COMPLETE));
	}
	CHECK(nameless && ended);
	/* of the lists and heaps in the process: nothing is claimed, and later it is */
	make();
	inspect();
	inspected = m.reads;
	for (uint32_t k = inspected + 1; k <= before; k++) {
		make();
		inspect();
		m.fails = k;
		claim();
		m.fails = 0;
		m.jvm.next_ns = 0;
		CHECK_INT(claim(), 0);
		CHECK_INT(m.nclaims, 1);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, COMPLETE);
	}
	CHECK(before > inspected);
	/* of the file: there is no table, or it lacks what may be missing */
	for (uint32_t k = 1; k <= inspected; k++) {
		make();
		m.fails = k;
		inspect();
		CHECK(m.reads >= k);
		claim();
		walk();
	}
}

/* A library is mapped before its JVM makes heaps, so the first code that runs there is claimed at
 * once; tries after that have pauses. */
TEST(heaps_made_after_the_library_is_mapped)
{
	uint64_t heaps;

	for (int late = 0; late < 2; late++) {
		make();
		inspect();
		memcpy(&heaps, m.memory + HEAPS, 8);
		CHECK(heaps);
		put(HEAPS, 0);
		for (int i = 0; i <= late; i++)
			CHECK_INT(claim(), 0);
		CHECK_INT(m.nclaims, 0);
		put(HEAPS, heaps);
		CHECK_INT(claim(), 0);
		CHECK_INT(m.nclaims, !late);
		m.jvm.next_ns = 0;
		CHECK_INT(claim(), 0);
		CHECK_INT(m.nclaims, 1);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, COMPLETE);
	}
}

/* The second heap that the JVM makes comes before the first in its list. */
TEST(heaps_added_before_others)
{
	uint64_t array = HEAPS + 0x20, heap, other = HEAPS + 0x400;

	make();
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 1);
	memcpy(&heap, m.memory + array + 16, 8);
	memcpy(m.memory + other, m.memory + heap, 0x120);
	put(other + 8, 0x6000);
	put(other + 16, 0x7000);
	put(array, 2);
	put(array + 16, other);
	put(array + 24, heap);
	m.jvm.next_ns = 0;
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 2);
	CHECK_INT(m.claims[1].range.lo, 0x6000);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
}

/* Each word of the process is a lie in turn: nothing but its own stacks is wrong. */
TEST(each_word_is_a_lie_in_turn)
{
	static const uint64_t lies[] = {0,     1,    7,      0x7fffffffffff,
					~0ull, CODE, FIELDS, STACK + 0x100};

	for (uint64_t at = 0; at < MEMORY; at += at >= TEXTS && at < HEAPS ? 64 : 8)
		for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			uint64_t is;

			memcpy(&is, m.memory + at, 8);
			if (at > 8 && !is)
				continue;
			make();
			put(at, lies[i]);
			claim();
			CHECK(m.nclaims <= HOTSPOT_MOST_HEAPS);
			walk();
		}
}

TEST(lists_without_end)
{
	uint64_t name;

	make();
	name = text("CodeBlob");
	for (uint64_t at = FIELDS; at + 8 <= MEMORY; at += 8)
		if (at < TEXTS || at >= HEAPS)
			put(at, name);
	CHECK(inspect() < 0);
	CHECK(strstr(m.said, "does not describe"));
	make();
	put(EXPORTS_LISTS, ~0ull - 16);
	CHECK(inspect() < 0);
}

TEST(a_jvm_that_lacks_a_field)
{
	make();
	for (uint64_t at = TEXTS; at < m.text; at++)
		if (!strcmp((char *)m.memory + at, "_compile_id"))
			m.memory[at] = 'x';
	CHECK(inspect() < 0);
	CHECK_STR(m.said, "Java's methods are not named: this JVM does not describe "
			  "nmethod::_compile_id");
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 0);
}

TEST(lists_that_are_laid_out_otherwise)
{
	make();
	CHECK_INT(inspect(), 1);
	put(EXPORTS, LAYOUT_FIELD + 8);
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 0);
}

/* ---- threads of the JVM's own ---- */

TEST(threads_show_what_they_do)
{
	struct fusee_unwind *u = &m.native.u;

	make();
	CHECK_INT(inspect(), 1);
	CHECK_INT(m.nthreads, 2);
	for (uint32_t i = 0; i < m.nthreads; i++) {
		uint64_t pc = m.threads[i].range.lo + 5;
		const char *name = pc < VM_THREAD ? "[GC]" : "[JVM]";

		u->npushed = 0;
		u->words = 0; /* it needs nothing of the process */
		u->pc = pc;
		u->claim_arg = m.threads[i].arg;
		CHECK_INT(fusee_step_hotspot(u), FUSEE_NATIVE_TOO);
		CHECK_INT(u->npushed, 1);
		CHECK_INT(u->pc, pc);
		CHECK(u->pushed[1] == HOTSPOT_IS_WORK);
		CHECK_STR(hotspot_work_name(u->pushed[0]), name);
	}
	CHECK(!hotspot_work_name(0) && !hotspot_work_name(HOTSPOT_VM + 1));
}

TEST(a_jvm_without_symbols)
{
	make();
	m.stripped = true;
	CHECK_INT(inspect(), 1);
	CHECK_INT(m.nthreads, 0);
	CHECK_STR(m.said, "work of the JVM's own threads is not shown: it has no symbols");
	CHECK_INT(claim(), 0);
	CHECK_INT(m.nclaims, 1);
}

/* ---- what was emitted ---- */

TEST(damaged_emissions)
{
	void *names = NULL;
	struct {
		struct hotspot_method head;
		char text[16];
	} method = {{.class_bytes = 3, .name_bytes = 3, .signature_bytes = 3, .file_bytes = 6},
		    "a/Brun()VA.java"};
	struct hotspot_scope scopes[HOTSPOT_SCOPES + 1] = {{.method = 1}};
	const struct hotspot_named *named;

	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 1, &method, 7), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 1, &method, (uint64_t)12 + 14),
		  -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 1, &method, (uint64_t)12 + 16),
		  -EBADMSG);
	CHECK(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 1, &method, (uint64_t)12 + 15) > 0);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 1, &method, (uint64_t)12 + 15), 0);
	named = hotspot_names_method(&names, 1, 1);
	CHECK(named && fusee_text_is(hotspot_name(named), "a.B.run"));
	CHECK(named && fusee_text_is(hotspot_system_name(named), "a.B.run()V"));
	CHECK(named && fusee_text_is(hotspot_file(named), "A.java"));
	/* each text is kept once, with a dot between class and name, also if the class comes again
	 */
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 2, &method, (uint64_t)12 + 15), 24);
	CHECK(hotspot_names_method(&names, 1, 2) == named);
	method.text[2] = 'C';
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 3, &method, (uint64_t)12 + 15),
		  24 + sizeof(*named) + 15 + 1);
	CHECK(fusee_text_is(hotspot_name(hotspot_names_method(&names, 1, 3)), "a.C.run"));
	method.head.file_bytes--;
	method.head.line_bytes++;
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 4, &method, (uint64_t)12 + 15),
		  24 + sizeof(*named) + 15 + 1);
	CHECK(fusee_text_is(hotspot_name(named), "a.B.run"));
	method.head = (struct hotspot_method){.class_bytes = 0xffff};
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_METHOD, 9, &method, (uint64_t)12 + 0xffff),
		  -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, 0, 1, &method, 24), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_PLACE, 1, scopes, 0), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_PLACE, 1, scopes, sizeof(scopes)), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_PLACE, 1, scopes, 15), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_STUB, 1, "", 0), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_THREAD, 1, scopes, 8), -EBADMSG);
	CHECK_INT(hotspot_names_add(&names, 1, HOTSPOT_THREAD, 1, scopes, 8 + 249), -EBADMSG);
	CHECK(!hotspot_names_method(&names, 2, 1));
	hotspot_names_remove(&names, 1);
	CHECK(!hotspot_names_method(&names, 1, 1));
	hotspot_names_free(&names);
}
