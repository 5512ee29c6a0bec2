/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/ruby
/* The step over processes that are made up. Then with each read failing in turn, and with each word
 * of the process a lie in turn, with and without what the step remembers. */
#include "lib/made_step.h"

#include "versions.h"

int fusee_step_ruby(struct fusee_unwind *u);

/* ---- the step over a made-up process ---- */

#define TLS 0x10000
#define EC 0x11000
#define VM_STACK 0x12000
#define VM_WORDS 512
#define OBJECTS 0x20000
#define VM_POINTER 0x3f000
#define VM 0x3f100
#define SPACE 0x3f800  /* struct rb_objspace */
#define MEMORY 0x40000 /* bytes from 0 on that the process has */
#define C_FRAME 256    /* bytes between the sp of two C frames */

struct made {
	struct fusee_native native;
	uint32_t words[RUBY_WORDS];
	unsigned char memory[MEMORY];
	uint64_t hole; /* a read that touches this address fails; 0: none does */
	uint32_t reads,
		fails; /* fails: the number of the read that fails, from 1 on; 0: none does */
	uint64_t frame, object;
	uint64_t value;     /* where the next environment is made, on the VM's stack */
	uint64_t outermost; /* environment pointer of the frame that was made first */
	uint32_t emitted, nameless;
	struct ruby_function function;
	struct ruby_place place;
};

static int read_made(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct made *m = n->arg;

	if (++m->reads == m->fails || addr >= MEMORY || len > MEMORY - addr ||
	    (m->hole >= addr && m->hole < addr + len))
		return -1;
	memcpy(dst, m->memory + addr, len);
	return 0;
}

static int emit_made(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	struct made *m = n->arg;

	m->emitted++;
	if (kind == RUBY_FUNCTION)
		memcpy(&m->function, bytes, len);
	if (kind == RUBY_FUNCTION && !m->function.is_c)
		m->nameless += !m->function.label_bytes || !m->function.path_bytes;
	if (kind != RUBY_FUNCTION)
		memcpy(&m->place, bytes, len);
	return 0;
}

static void put(struct made *m, uint64_t at, uint64_t v)
{
	memcpy(m->memory + at, &v, sizeof(v));
}

static uint64_t string(struct made *m, const char *text)
{
	uint64_t at = m->object;

	m->object += 64;
	put(m, at, 5 | (m->words[RUBY_STRING_EMBED] == 16 ? (uint64_t)strlen(text) << 14 : 0));
	if (m->words[RUBY_STRING_EMBED] != 16)
		put(m, at + 16, strlen(text));
	memcpy(m->memory + at + m->words[RUBY_STRING_EMBED], text, strlen(text));
	return at;
}

#define METHOD 0x11110001ull
#define BLOCK 0x22220001ull /* in the method of the outermost frame */
#define CFUNC 0x55550001ull
#define FINISH 0x20

/* Makes a control frame inside of the others: of an iseq, or with label NULL of a C function. */
static void call(struct made *m, const char *label, uint64_t flags, uint64_t number)
{
	uint64_t iseq = m->object, body = iseq + 32, ep = m->value + 16, entry = m->object + 600;
	int is_block = (flags & BLOCK) == BLOCK;

	m->object += 768;
	m->value += 40;
	m->frame -= m->words[RUBY_FRAME_SIZE];
	put(m, EC + 16, m->frame);
	put(m, m->frame + 32, ep);
	put(m, ep, is_block ? flags : flags | 2); /* of a method */
	put(m, ep - 16, entry);
	put(m, ep - 8, is_block ? m->outermost | 1 : 0);
	m->outermost = m->outermost ? m->outermost : ep;
	/* what is called <..> is in no method */
	put(m, entry, 0x1a | (label && *label == '<' ? 1 : 6) << 12);
	put(m, entry + 32, entry + 200); /* owner, without a name */
	put(m, entry + 16, entry + 64);
	put(m, entry + 64 + 32, 1);
	if (!label)
		return;
	put(m, m->frame + 16, iseq);
	put(m, iseq + 16, body);
	put(m, body, 1 | 64ull << 32); /* a method of 64 words */
	put(m, body + 8, 0x30000);     /* encoded */
	put(m, m->frame, 0x30000 + 8 * (number + 1));
	put(m, body + 64, string(m, "/a.rb"));
	put(m, body + 80, string(m, label));
	put(m, body + 88, m->words[RUBY_FIRST_LINE] ? 5 << 1 | 1 : 5);
	/* one row: line 9 */
	put(m, body + m->words[RUBY_INSNS], iseq + 24);
	put(m, iseq + 24, 9);
	put(m, body + m->words[RUBY_INSNS] + 16, 1);
}

static const char *version = "3.1.2";

static struct made *make(void)
{
	static struct made m;

	memset(&m, 0, sizeof(m));
	CHECK_INT(ruby_version_words(version, m.words), 0);
	m.words[RUBY_BY] = RUBY_BY_OFFSET;
	m.words[RUBY_CONTEXT_OFFSET] = (uint32_t)-16;
	m.native.read = read_made;
	m.native.emit = emit_made;
	m.native.emitted = is_known;
	m.native.recall = recall_made;
	m.native.remember = remember_made;
	m.native.arg = &m;
	m.native.slab = m.words;
	m.native.u.slab_words = RUBY_WORDS;
	m.native.u.tls = TLS;
	m.native.u.claim_arg = RUBY_CORE;
	m.native.u.sp = 0x8000;
	m.native.u.pc = 0x500;
	put(&m, TLS - 16, EC);
	put(&m, EC, VM_STACK);
	put(&m, EC + 8, VM_WORDS);
	m.frame = VM_STACK + 8 * VM_WORDS;
	m.object = OBJECTS;
	m.value = VM_STACK + 64;
	m.words[RUBY_VM] = VM_POINTER;
	m.words[RUBY_VM_SPACE] = 1112;
	m.words[RUBY_COLLECTIONS] = 440;
	m.words[RUBY_SPACE_FLAGS] = 16;
	put(&m, VM_POINTER, VM);
	put(&m, VM + 1112, SPACE);
	put(&m, SPACE + 440, 7);
	return &m;
}

/* The step again and again at one C frame: the frames that it has pushed; its last answer is in
 * *next. */
static uint32_t frames_of(struct made *m, int *next)
{
	struct fusee_unwind *u = &m->native.u;
	uint32_t n = 0;

	for (int i = 0; i < 64; i++) {
		*next = fusee_step_ruby(u);
		n += u->npushed;
		u->npushed = 0;
		if (*next != FUSEE_AGAIN)
			return n;
	}
	CHECK(!"the step ends");
	return n;
}

static void check_frames(struct made *m, uint32_t n, int last)
{
	int next;

	CHECK_INT(frames_of(m, &next), n);
	CHECK_INT(next, last);
}

TEST(frames_of_a_c_frame_end_at_finish)
{
	struct made *m = make();
	int next;

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, NULL, CFUNC, 0);
	call(m, "block in main", METHOD | FINISH, 4);
	call(m, "inner", METHOD, 2);
	check_frames(m, 2, FUSEE_NATIVE);
	m->native.u.sp += 256;
	check_frames(m, 2, FUSEE_NATIVE);
	CHECK_INT(m->native.u.pushed[1], 0x30000 + 8 * 5);
	m->native.u.sp += 256;
	frames_of(m, &next); /* there are no more */
	CHECK_INT(next, FUSEE_STOP);
	CHECK_INT(m->native.u.error, RUBY_OUT_OF_STEP);
}

TEST(names_and_lines_are_emitted)
{
	struct made *m = make();
	int next;

	call(m, "<main>", METHOD | FINISH, 4);
	CHECK_INT(frames_of(m, &next), 1);
	CHECK_INT(m->emitted, 2);
	CHECK(m->function.label_bytes == 6 && !memcmp(m->function.label, "<main>", 6));
	CHECK(m->function.path_bytes == 5 && !memcmp(m->function.path, "/a.rb", 5));
	CHECK_INT(m->function.first_line, 5);
	CHECK_INT(m->place.line, 9);
}

TEST(a_coroutine_ends_where_no_control_frame_remains)
{
	struct made *m = make();
	int next;

	call(m, "f", METHOD | FINISH, 4);
	CHECK_INT(frames_of(m, &next), 1);
	m->native.u.sp += 256;
	m->native.u.claim_arg = RUBY_COROUTINE;
	check_frames(m, 0, FUSEE_STOP);
	CHECK_INT(m->native.u.error, 0);

	m = make();
	call(m, "outer", METHOD | FINISH, 4);
	call(m, "f", METHOD | FINISH, 4);
	CHECK_INT(frames_of(m, &next), 1);
	m->native.u.claim_arg = RUBY_COROUTINE;
	frames_of(m, &next);
	CHECK_INT(m->native.u.error, RUBY_OUT_OF_STEP);
}

/* Code of YJIT: two saved words, and a return address behind call *%rax in the library. */
TEST(a_frame_of_yjit_takes_the_control_frames_up_to_finish)
{
	static uint32_t words[RUBY_PROCESS_WORDS] = {0, 0, 0x600, 0, 0x700, 0};
	struct made *m = make();
	struct fusee_unwind *u = &m->native.u;

	call(m, "outer", METHOD | FINISH, 4);
	call(m, "<main>", METHOD | FINISH, 4);
	call(m, "inner", METHOD, 4);
	m->native.words = words;
	u->words = RUBY_PROCESS_WORDS;
	u->claim_arg = RUBY_JIT;
	m->memory[0x64e] = 0xff;
	m->memory[0x64f] = 0xd0;
	put(m, u->sp + 16, 0x650);
	check_frames(m, 2, FUSEE_NEXT);
	CHECK_INT(u->pc, 0x650);
	CHECK_INT(u->sp, 0x8000 + 24);
	/* the core that has called it has none of its own */
	u->claim_arg = RUBY_CORE;
	check_frames(m, 0, FUSEE_NATIVE);

	m = make();
	call(m, "f", METHOD | FINISH, 4);
	m->native.words = words;
	m->native.u.words = RUBY_PROCESS_WORDS;
	m->native.u.claim_arg = RUBY_JIT;
	check_frames(m, 0, FUSEE_PASS); /* no return address */
}

TEST(no_context)
{
	struct made *m = make();

	m->native.u.tls = 0;
	check_frames(m, 0, FUSEE_STOP);
	CHECK_INT(m->native.u.error, RUBY_NO_CONTEXT);
}

static struct made *three_calls(void)
{
	struct made *m = make();

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, NULL, CFUNC, 0);
	call(m, "f", METHOD | FINISH, 4);
	return m;
}

/* Every word of the process unreadable in turn, and then every word a lie: the step ends, with a
 * reason or with frames, and reads nothing but the process. */
TEST(unreadable_and_lying_memory)
{
	uint64_t used;
	int next;

	for (uint64_t at = TLS - 16; at < OBJECTS + 4096; at += 8) {
		struct made *m = three_calls();

		used = m->object;
		if (at >= VM_STACK + 8 * VM_WORDS && at < OBJECTS)
			continue;
		if (at > used)
			break;
		m->hole = at;
		frames_of(m, &next);
		CHECK(next == FUSEE_NATIVE || (next == FUSEE_STOP && m->native.u.error));
		for (uint64_t lie = 0; lie < 4; lie++) {
			m = three_calls();
			put(m, at,
			    lie == 0   ? ~0ull
			    : lie == 1 ? at
			    : lie == 2 ? 1ull << 47
				       : OBJECTS);
			frames_of(m, &next);
			CHECK(next == FUSEE_NATIVE || (next == FUSEE_STOP && m->native.u.error));
		}
	}
}

/* ---- faults ---- */

static const char *const versions[] = {"2.7.4", "3.0.2", "3.1.2", "3.2.3", "3.3.8"};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))
/* <main> called C, that a block, that inner(): two C frames of the VM. */
static struct made *program(void)
{
	struct made *m = make();

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, NULL, CFUNC, 0);
	call(m, "block in <main>", BLOCK | FINISH, 5);
	call(m, "inner", METHOD, 6);
	return m;
}

/* Both C frames, as the core walks them. */
static struct stack walk(struct made *m)
{
	struct fusee_unwind *u = &m->native.u;
	struct stack w = {.next = FUSEE_NATIVE};

	for (int c = 0; c < 2 && w.next == FUSEE_NATIVE; c++) {
		int turns = 0;

		do {
			w.next = fusee_step_ruby(u);
			if (u->npushed) {
				CHECK(w.n < MOST);
				memcpy(w.pushed[w.n++ % MOST], u->pushed, sizeof(w.pushed[0]));
			}
			u->npushed = 0;
		} while (w.next == FUSEE_AGAIN && ++turns < 64);
		CHECK(w.next == FUSEE_NATIVE || w.next == FUSEE_STOP);
		u->sp += C_FRAME;
	}
	w.error = u->error;
	CHECK(w.next != FUSEE_STOP || w.error);
	return w;
}

/* Forgets all, or remembers what a walk of a process remembers whose names are known. */
static void warm(int is_warm)
{
	nmemory = 0;
	all_known = is_warm;
	if (is_warm)
		walk(program());
	CHECK((nmemory > 0) == is_warm);
}

/* Each read in turn fails: the stack is complete, or its beginning with a reason. What has no name
 * or path is not emitted, since it would never be emitted again. */
static void fail_each_read(int is_warm)
{
	struct stack complete, w;
	uint32_t reads, stopped = 0, kept;
	struct made *m;

	warm(is_warm);
	kept = nmemory;
	m = program();
	complete = walk(m);
	reads = m->reads;
	CHECK_INT(complete.n, 4);
	CHECK_INT(complete.next, FUSEE_NATIVE);
	for (uint32_t k = 1; k <= reads; k++) {
		nmemory = kept;
		m = program();
		m->fails = k;
		w = walk(m);
		if (!is_beginning(&w, &complete) || (w.next != FUSEE_STOP && w.n != complete.n))
			test_fail(__FILE__, __LINE__, "%s: read %u of %u: %u frames", version, k,
				  reads, w.n);
		stopped += w.next == FUSEE_STOP;
		CHECK_INT(m->nameless, 0);
	}
	CHECK(stopped >= (is_warm ? 2 : 12)); /* others are tried in another way */
}

static void lie_in_each_word(int is_warm)
{
	struct stack complete;
	uint64_t used;
	uint32_t kept;

	warm(is_warm);
	kept = nmemory;
	used = program()->object;
	complete = walk(program());
	for (uint64_t at = TLS - 16; at < MEMORY; at += 8) {
		uint64_t old;

		memcpy(&old, program()->memory + at, 8);
		if (at >= used && at < VM_POINTER)
			continue;
		for (int lie = 0; old && lie < LIES; lie++) {
			struct made *m = program();
			struct stack w;

			nmemory = kept;
			put(m, at, lie_of(lie, at, old, OBJECTS));
			w = walk(m);
			CHECK(m->reads < 5000);
			if (!is_bearable(&w, &complete))
				test_fail(__FILE__, __LINE__, "%s: lie %d at %#lx, %#lx before: %u",
					  version, lie, at, old, w.n);
		}
	}
}

TEST(each_read_fails_in_turn)
{
	for (uint32_t i = 0; i < VERSIONS; i++) {
		version = versions[i];
		fail_each_read(0);
		fail_each_read(1);
	}
}

TEST(each_word_lies_in_turn)
{
	for (uint32_t i = 0; i < VERSIONS; i++) {
		version = versions[i];
		lie_in_each_word(0);
		lie_in_each_word(1);
	}
}

/* ---- what is remembered ---- */

static struct made *deep(uint32_t frames)
{
	struct made *m = make();

	call(m, "<main>", METHOD | FINISH, 4);
	for (uint32_t i = 1; i < frames; i++)
		call(m, "method", METHOD, 4);
	return m;
}

static uint32_t reads_of(uint32_t frames)
{
	struct made *m = deep(frames);
	int next;

	CHECK_INT(frames_of(m, &next), frames);
	CHECK_INT(next, FUSEE_NATIVE);
	return m->reads;
}

/* What a sample of methods whose names are known costs. */
TEST(methods_are_remembered_until_the_next_collection)
{
	struct made *m;
	int next;

	version = "3.1.2";
	all_known = 1;
	nmemory = 0;
	CHECK(reads_of(20) > 20 * 3);
	CHECK(reads_of(20) <= 12);
	m = deep(20);
	put(m, SPACE + 440, 8);
	frames_of(m, &next);
	CHECK(m->reads > 20 * 3);
}

TEST(nothing_is_remembered_while_objects_are_marked)
{
	static const uint64_t flags[] = {1, 1 << 5, 2 | 1 << 5};

	all_known = 1;
	for (int i = 0; i < 3; i++) {
		struct made *m = deep(3);
		int next;

		nmemory = 0;
		put(m, SPACE + 16, flags[i]);
		CHECK_INT(frames_of(m, &next), 3);
		CHECK_INT(nmemory, 1); /* where objspace is */
	}
	/* it is swept: what runs was reached */
	for (int i = 0; i < 2; i++) {
		struct made *m = deep(3);
		int next;

		nmemory = 0;
		put(m, SPACE + 16, 2);
		m->words[RUBY_COLLECTIONS] = i ? 0 : 440;
		frames_of(m, &next);
		CHECK_INT(nmemory, i ? 0 : 4);
	}
}

/* Memory that a collection has freed is used for another method. */
TEST(another_method_at_the_same_address)
{
	struct stack before, after;
	struct made *m;

	version = "3.1.2";
	warm(1);
	before = walk(program());
	m = program();
	put(m, SPACE + 440, 8);
	put(m, m->object - 768 - 128 + 32 + 80, OBJECTS); /* the last iseq's label */
	after = walk(m);
	CHECK_INT(after.n, before.n);
	CHECK(after.pushed[0][0] != before.pushed[0][0]);
	CHECK(!memcmp(after.pushed[1], before.pushed[1], 3 * sizeof(after.pushed[0])));
}
