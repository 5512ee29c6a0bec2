/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stddef.h>

#include <fusee/unwinder.bpf.h>

#include "functions.h"
#include "versions.h"

int fusee_step_ruby(struct fusee_unwind *u);

/* ---- what was emitted ---- */

static struct ruby_function function(const char *label, const char *path)
{
	struct ruby_function f = {.first_line = 7};

	f.label_bytes = (unsigned short)strlen(label);
	f.path_bytes = (unsigned short)strlen(path);
	memcpy(f.label, label, f.label_bytes);
	memcpy(f.path, path, f.path_bytes);
	return f;
}

static uint64_t length(const struct ruby_function *f)
{
	return offsetof(struct ruby_function, path) + f->path_bytes;
}

TEST(functions_and_lines)
{
	void *processes = NULL;
	struct ruby_function f = function("block in top", "/a.rb");
	struct ruby_place p = {.function = 42, .line = 11};
	const struct ruby_named *named;
	uint32_t line;

	CHECK(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)) > 0);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)),
		  0); /* again */
	CHECK(ruby_functions_add(&processes, 1, RUBY_PLACE, fusee_mix(42, 3), &p, sizeof(p)) > 0);
	named = ruby_functions_find(&processes, 1, 42, 3, &line);
	CHECK(named && !strcmp(named->label, "block in top") && !strcmp(named->path, "/a.rb"));
	CHECK(named && named->first_line == 7);
	CHECK_INT(line, 11);
	CHECK(ruby_functions_find(&processes, 1, 42, 4, &line));
	CHECK_INT(line, 0);
	CHECK(!ruby_functions_find(&processes, 1, 43, 3, &line));
	CHECK(!ruby_functions_find(&processes, 2, 42, 3, &line));
	ruby_functions_remove(&processes, 1);
	CHECK(!ruby_functions_find(&processes, 1, 42, 3, &line));
	ruby_functions_remove(&processes, 1);
	ruby_functions_free(&processes);
}

/* The label of a function whose emission has these texts. */
static const char *label_with(const char *label, const char *class, const char *base, int singleton)
{
	static char text[512];
	void *processes = NULL;
	struct ruby_function f = function(label, "/a.rb");
	uint32_t line;

	f.class_bytes = (unsigned short)strlen(class);
	memcpy(f.class_name, class, f.class_bytes);
	f.base_bytes = (unsigned short)strlen(base);
	f.is_singleton = (unsigned short)singleton;
	CHECK(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)) > 0);
	snprintf(text, sizeof(text), "%s", ruby_functions_find(&processes, 1, 42, 3, &line)->label);
	ruby_functions_free(&processes);
	return text;
}

TEST(labels_have_their_class)
{
	CHECK_STR(label_with("each", "Array", "each", 0), "Array#each");
	CHECK_STR(label_with("block in run", "A::B", "run", 0), "block in A::B#run");
	CHECK_STR(label_with("rescue in top", "Tool", "top", 1), "rescue in Tool.top");
	CHECK_STR(label_with("<main>", "Object", "", 0), "<main>");
	CHECK_STR(label_with("nameless", "", "nameless", 0), "nameless");
	CHECK_STR(label_with("f", "Object", "longer than the label", 0), "f");
}

TEST(damaged_emissions)
{
	void *processes = NULL;
	struct ruby_function f = function("f", "/a.rb");

	CHECK_INT(ruby_functions_add(&processes, 1, 3, 42, &f, length(&f)), -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, 8), -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f) - 1),
		  -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_PLACE, 42, &f, 15), -EBADMSG);
	f.label_bytes = RUBY_LABEL_BYTES + 1;
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)), -EBADMSG);
	ruby_functions_free(&processes);
}

TEST(one_process_has_a_bound)
{
	void *processes = NULL;
	struct ruby_place p = {.line = 1};
	uint64_t n = 0;

	while (n < 64u << 20 && ruby_functions_add(&processes, 1, RUBY_PLACE, n, &p, sizeof(p)) > 0)
		n++;
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_PLACE, n, &p, sizeof(p)), -ENOSPC);
	CHECK(ruby_functions_add(&processes, 2, RUBY_PLACE, n, &p, sizeof(p)) > 0);
	ruby_functions_free(&processes);
}

/* ---- the step over a made-up process ---- */

#define TLS 0x10000
#define EC 0x11000
#define VM_STACK 0x12000
#define VM_WORDS 512
#define OBJECTS 0x20000
#define MEMORY 0x40000 /* bytes from 0 on that the process has */

struct made {
	struct fusee_native native;
	uint32_t words[RUBY_WORDS];
	unsigned char memory[MEMORY];
	uint64_t hole; /* a read that touches this address fails; 0: none does */
	uint32_t reads,
		fails; /* fails: the number of the read that fails, from 1 on; 0: none does */
	uint64_t frame, object;
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

	(void)key;
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
	put(m, at, 5 | (uint64_t)strlen(text) << 14);
	memcpy(m->memory + at + 16, text, strlen(text));
	return at;
}

/* Makes a control frame inside of the others: of an iseq, or with label NULL of a C function. */
static void call(struct made *m, const char *label, uint64_t flags, uint64_t number)
{
	uint64_t iseq = m->object, body = iseq + 32, ep = m->object + 512, entry = m->object + 600;

	m->object += 768;
	m->frame -= m->words[RUBY_FRAME_SIZE];
	put(m, EC + 16, m->frame);
	put(m, m->frame + 32, ep);
	put(m, ep, flags | 2); /* of a method */
	put(m, ep - 16, entry);
	put(m, entry, 0x1a | 6 << 12);
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
	put(m, body + 88, 5 << 1 | 1);
	/* one row: line 9 */
	put(m, body + m->words[RUBY_INSNS], iseq + 24);
	put(m, iseq + 24, 9);
	put(m, body + m->words[RUBY_INSNS] + 16, 1);
}

#define METHOD 0x11110001
#define CFUNC 0x55550001
#define FINISH 0x20

static struct made *make(void)
{
	static struct made m;

	memset(&m, 0, sizeof(m));
	CHECK_INT(ruby_version_words("3.1.2", m.words), 0);
	m.words[RUBY_BY] = RUBY_BY_OFFSET;
	m.words[RUBY_CONTEXT_OFFSET] = (uint32_t)-16;
	m.native.read = read_made;
	m.native.emit = emit_made;
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
	return &m;
}

/* The step again and again at one C frame: the frames that it has pushed; its last answer is in
 * *next. */
static int frames(struct made *m, int *next)
{
	struct fusee_unwind *u = &m->native.u;
	int n = 0;

	for (int i = 0; i < 64; i++) {
		*next = fusee_step_ruby(u);
		n += (int)u->npushed;
		u->npushed = 0;
		if (*next != FUSEE_AGAIN)
			return n;
	}
	CHECK(!"the step ends");
	return n;
}

TEST(frames_of_a_c_frame_end_at_finish)
{
	struct made *m = make();
	int next;

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, NULL, CFUNC, 0);
	call(m, "block in main", METHOD | FINISH, 4);
	call(m, "inner", METHOD, 2);
	CHECK_INT(frames(m, &next), 2);
	CHECK_INT(next, FUSEE_NATIVE);
	m->native.u.sp += 256;
	CHECK_INT(frames(m, &next), 2);
	CHECK_INT(next, FUSEE_NATIVE);
	CHECK_INT(m->native.u.pushed[1], 4);
	m->native.u.sp += 256;
	frames(m, &next); /* there are no more */
	CHECK_INT(next, FUSEE_STOP);
	CHECK_INT(m->native.u.error, RUBY_OUT_OF_STEP);
}

TEST(names_and_lines_are_emitted)
{
	struct made *m = make();
	int next;

	call(m, "<main>", METHOD | FINISH, 4);
	CHECK_INT(frames(m, &next), 1);
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
	CHECK_INT(frames(m, &next), 1);
	m->native.u.sp += 256;
	m->native.u.claim_arg = RUBY_COROUTINE;
	CHECK_INT(frames(m, &next), 0);
	CHECK_INT(next, FUSEE_STOP);
	CHECK_INT(m->native.u.error, 0);

	m = make();
	call(m, "outer", METHOD | FINISH, 4);
	call(m, "f", METHOD | FINISH, 4);
	CHECK_INT(frames(m, &next), 1);
	m->native.u.claim_arg = RUBY_COROUTINE;
	frames(m, &next);
	CHECK_INT(m->native.u.error, RUBY_OUT_OF_STEP);
}

/* Code of YJIT: two saved words, and a return address behind call *%rax in the library. */
TEST(a_frame_of_yjit_takes_the_control_frames_up_to_finish)
{
	static uint32_t words[RUBY_PROCESS_WORDS] = {0, 0, 0x600, 0, 0x700, 0};
	struct made *m = make();
	struct fusee_unwind *u = &m->native.u;
	int next;

	call(m, "outer", METHOD | FINISH, 4);
	call(m, "<main>", METHOD | FINISH, 4);
	call(m, "inner", METHOD, 4);
	m->native.words = words;
	u->words = RUBY_PROCESS_WORDS;
	u->claim_arg = RUBY_JIT;
	m->memory[0x64e] = 0xff;
	m->memory[0x64f] = 0xd0;
	put(m, u->sp + 16, 0x650);
	CHECK_INT(frames(m, &next), 2);
	CHECK_INT(next, FUSEE_NEXT);
	CHECK_INT(u->pc, 0x650);
	CHECK_INT(u->sp, 0x8000 + 24);
	/* the core that has called it has none of its own */
	u->claim_arg = RUBY_CORE;
	CHECK_INT(frames(m, &next), 0);
	CHECK_INT(next, FUSEE_NATIVE);

	m = make();
	call(m, "f", METHOD | FINISH, 4);
	m->native.words = words;
	m->native.u.words = RUBY_PROCESS_WORDS;
	m->native.u.claim_arg = RUBY_JIT;
	CHECK_INT(frames(m, &next), 0); /* no return address */
	CHECK_INT(next, FUSEE_PASS);
}

TEST(no_context)
{
	struct made *m = make();
	int next;

	m->native.u.tls = 0;
	CHECK_INT(frames(m, &next), 0);
	CHECK_INT(next, FUSEE_STOP);
	CHECK_INT(m->native.u.error, RUBY_NO_CONTEXT);
}

/* Every word of the process unreadable in turn, and then every word a lie: the step ends, with a
 * reason or with frames, and reads nothing but the process. */
TEST(unreadable_and_lying_memory)
{
	uint64_t used;
	int next;

	for (uint64_t at = TLS - 16; at < OBJECTS + 4096; at += 8) {
		struct made *m = make();

		call(m, "<main>", METHOD | FINISH, 4);
		call(m, NULL, CFUNC, 0);
		call(m, "f", METHOD | FINISH, 4);
		used = m->object;
		if (at >= VM_STACK + 8 * VM_WORDS && at < OBJECTS)
			continue;
		if (at > used)
			break;
		m->hole = at;
		frames(m, &next);
		CHECK(next == FUSEE_NATIVE || (next == FUSEE_STOP && m->native.u.error));
		for (uint64_t lie = 0; lie < 4; lie++) {
			m = make();
			call(m, "<main>", METHOD | FINISH, 4);
			call(m, NULL, CFUNC, 0);
			call(m, "f", METHOD | FINISH, 4);
			put(m, at,
			    lie == 0   ? ~0ull
			    : lie == 1 ? at
			    : lie == 2 ? 1ull << 47
				       : OBJECTS);
			frames(m, &next);
			CHECK(next == FUSEE_NATIVE || (next == FUSEE_STOP && m->native.u.error));
		}
	}
}

static struct made *three_methods(void)
{
	struct made *m = make();

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, NULL, CFUNC, 0);
	call(m, "outer", METHOD | FINISH, 4);
	call(m, "inner", METHOD, 4);
	return m;
}

/* Each read in turn fails: the frames of both C frames, or some of them and a reason. What has no
 * name or path is not emitted, since it would never be emitted again. */
TEST(each_read_fails_in_turn)
{
	uint32_t reads, failed = 0;
	struct made *m = three_methods();
	int next, n;

	CHECK_INT(frames(m, &next), 2);
	m->native.u.sp += 256;
	CHECK_INT(frames(m, &next), 2);
	reads = m->reads;
	for (uint32_t k = 1; k <= reads; k++) {
		m = three_methods();
		m->fails = k;
		n = frames(m, &next);
		CHECK(next == FUSEE_NATIVE ? n == 2
					   : next == FUSEE_STOP && m->native.u.error && n < 3);
		failed += next == FUSEE_STOP;
		m->native.u.sp += 256;
		n = next == FUSEE_NATIVE ? frames(m, &next) : -1;
		CHECK(n < 0 ||
		      (next == FUSEE_NATIVE ? n == 2 : next == FUSEE_STOP && m->native.u.error));
		failed += n >= 0 && next == FUSEE_STOP;
		CHECK_INT(m->nameless, 0);
	}
	CHECK(failed > reads / 4);
}

static int is_known(struct fusee_native *n, __u32 kind, __u64 key)
{
	(void)n, (void)kind, (void)key;
	return 1;
}

/* What a sample of methods whose names are known costs. */
TEST(a_known_method_takes_five_reads)
{
	struct made *m = make();
	uint32_t reads;
	int next;

	call(m, "<main>", METHOD | FINISH, 4);
	call(m, "outer", METHOD, 4);
	m->native.emitted = is_known;
	frames(m, &next);
	reads = m->reads;
	m = make();
	call(m, "<main>", METHOD | FINISH, 4);
	call(m, "outer", METHOD, 4);
	call(m, "inner", METHOD, 4);
	m->native.emitted = is_known;
	frames(m, &next);
	CHECK_INT(m->reads - reads, 5);
}

TEST(versions)
{
	uint32_t words[RUBY_WORDS];

	CHECK_INT(ruby_version_words("2.7.4", words), 0);
	CHECK_INT(words[RUBY_BY], RUBY_BY_KEY);
	CHECK_INT(ruby_version_words("3.3.8", words), 0);
	CHECK_INT(words[RUBY_STRING_EMBED], 24);
	CHECK_INT(ruby_version_words("3.4.0", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("3.10.0", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("2.6.10", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("", words), -ENOTSUP);
	CHECK(ruby_version_was_run("2.7.4") && ruby_version_was_run("3.3.8"));
	CHECK(!ruby_version_was_run("3.3") && !ruby_version_was_run("3.3.9"));
}
