/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/python
/* The step over processes that are made up: frames of each family, through C, and tasks of asyncio.
 * Then with each read failing in turn, and with each word of the process a lie in turn. */
#include "lib/made_step.h"

#include "tables.h"

int fusee_step_python(struct fusee_unwind *u);

#define MEMORY 0x40000 /* the process has [RUNTIME, MEMORY) */
#define RUNTIME 0x1000
#define TLS 0x4000
#define STATE 0x5000
#define INTERPRETER 0x6000
#define STACK 0x8000 /* sp of the innermost C frame; the next is C_FRAME above it */
#define C_FRAME 256
#define OBJECTS 0x20000 /* made one after the other */
#define PLACE 64        /* of what a C frame has of its Python frames */

#define TURNS 200 /* calls of the step at one C frame */

struct frames {
	struct stack s;
	uint32_t flags[MOST];
	char name[MOST][16];
	uint32_t ended[2]; /* the frames up to the end of each C frame */
	uint32_t omitted;  /* C frames whose callee is not shown */
};

struct made {
	struct fusee_native native;
	uint32_t words[PYTHON_WORDS];
	unsigned char memory[MEMORY];
	uint64_t object;       /* where the next object is made */
	uint32_t reads, fails; /* fails: the number of the read that fails, from 1 on; 0: none */
	char name[16];         /* of the last emission that had a name */
};

static int read_made(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct made *m = n->arg;

	if (++m->reads == m->fails || addr < RUNTIME || addr >= MEMORY || len > MEMORY - addr)
		return -1;
	memcpy(dst, m->memory + addr, len);
	return 0;
}

static int emit_made(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	struct made *m = n->arg;
	struct python_head h;

	CHECK(len >= sizeof(h.part) && len <= FUSEE_EMIT_BYTES);
	if (len < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	if (!h.part.part && h.name.bytes < sizeof(m->name) && h.name.bytes + sizeof(h) <= len)
		memcpy(m->name, (const char *)bytes + sizeof(h), h.name.bytes);
	return 0;
}

static void put(struct made *m, uint64_t at, uint64_t v)
{
	memcpy(m->memory + at, &v, sizeof(v));
}

static uint64_t object(struct made *m, uint32_t bytes)
{
	uint64_t at = m->object;

	m->object += (bytes + 15) & ~15u;
	CHECK(m->object < MEMORY);
	return at;
}

/* A str. */
static uint64_t text(struct made *m, const char *chars)
{
	uint64_t header = m->words[PYTHON_TEXT] & 0xffff, at = object(m, 128);

	uint64_t inside = at + m->words[PYTHON_HEADER];

	put(m, inside + 16, strlen(chars));
	put(m, inside + 32, (uint64_t)(1 | 1 << 3 | 1 << 4) << m->words[PYTHON_KIND]);
	strcpy((char *)m->memory + inside + header, chars);
	return at;
}

static int minor(const struct made *m)
{
	return (int)(m->words[PYTHON_VERSION] >> 8);
}

static uint64_t code(struct made *m, const char *file, const char *name)
{
	uint64_t at = object(m, 400), table = object(m, 64), words = at + m->words[PYTHON_CODE];

	put(m, table + m->words[PYTHON_HEADER] + 16, 8);
	memset(m->memory + table + m->words[PYTHON_HEADER] + 32, 0x80, 8);
	words += 8 * (m->words[PYTHON_FAMILY] == PYTHON_OBJECTS ? PYTHON_OLD_FILENAME
								: PYTHON_NEW_FILENAME);
	put(m, words, text(m, file));
	put(m, words + 8, text(m, name));
	if (m->words[PYTHON_FAMILY] != PYTHON_OBJECTS) {
		put(m, words + 16, text(m, name));
		words += 8;
	}
	put(m, words + 16, table);
	return at;
}

/* `owner` of a frame. */
static uint32_t owner_at(const struct made *m)
{
	return minor(m) == 11 ? 69 : 64 + (m->words[PYTHON_FRAME] & 127) / 8;
}

/* The frame runs the third copy of its code's bytecode. */
static void copy_bytecode(struct made *m, uint64_t at, uint64_t code)
{
	uint64_t copies = object(m, 64), third = object(m, 64);
	uint32_t number = 2;

	put(m, code + m->words[PYTHON_COPIES], copies);
	put(m, copies, 4);
	put(m, copies + 8 + 8 * number, third);
	put(m, at + 56, third + 8);
	memcpy(m->memory + at + 72, &number, sizeof(number));
}

/* Fills the frame at this address. owner: 0 of a thread, 1 of a generator, 3 of the C stack. */
static void fill_frame(struct made *m, uint64_t at, uint64_t code, uint64_t previous, int owner)
{
	if (m->words[PYTHON_FAMILY] == PYTHON_OBJECTS) {
		put(m, at + 24, previous);
		put(m, at + 32, code);
		put(m, at + m->words[PYTHON_FRAME], 4);
		return;
	}
	put(m, at + (minor(m) == 11 ? 32 : 0), code);
	put(m, at + (minor(m) == 11 ? 48 : 8), previous);
	put(m, at + 56, code ? code + m->words[PYTHON_BYTECODE] + 8 : 0);
	m->memory[at + owner_at(m)] = (unsigned char)owner;
}

static uint64_t frame(struct made *m, const char *name, uint64_t previous, int owner)
{
	uint64_t at = object(m, 160), runs = code(m, "/a.py", name);

	fill_frame(m, at, runs, previous, owner);
	if (m->words[PYTHON_COPIES] && strcmp(name, "outer")) /* that runs the first */
		copy_bytecode(m, at, runs);
	return at;
}

/* ---- processes ---- */

#define FREE 256 /* without the GIL */

static const uint32_t minors[] = {8, 10, 11, 12, 13, 14, 14 | FREE};
#define MINORS (sizeof(minors) / sizeof(minors[0]))

static void free_words(uint32_t *w)
{
	w[PYTHON_FRAME] = 112 | 3 << 8;
	w[PYTHON_CODE] = 80;
	w[PYTHON_BYTECODE] = 232;
	w[PYTHON_COPIES] = 224;
	w[PYTHON_HEADER] = 16;
	w[PYTHON_KIND] = 8;
}

/* The table of 3.13 and 3.14, as far as the step reads it. */
static void chain_words(uint32_t version, uint32_t *w)
{
	uint32_t minor = version & 255;

	memset(w, 0, PYTHON_WORDS * sizeof(*w));
	w[PYTHON_FAMILY] = PYTHON_CHAIN;
	w[PYTHON_KEY] = 2160;
	w[PYTHON_INTERPRETERS] = 632;
	w[PYTHON_NEXT] = 64;
	w[PYTHON_THREADS] = 72;
	w[PYTHON_THREAD_ID] = 152;
	w[PYTHON_CURRENT] = 72;
	w[PYTHON_FRAME] = (minor == 14 ? 80 : 48) | 3 << 8;
	w[PYTHON_CODE] = 64;
	w[PYTHON_FIRST_LINE] = 32;
	w[PYTHON_BYTECODE] = 200;
	w[PYTHON_TEXT] = 40 | 56 << 16;
	w[PYTHON_KIND] = 2;
	w[PYTHON_VERSION] = minor << 8 | 1;
	if (version & FREE)
		free_words(w);
}

/* A process without frames, whose thread has a state by its key and in the list. */
static struct made *make(uint32_t minor)
{
	static struct made m;
	uint32_t *w = m.words;

	memset(&m, 0, sizeof(m));
	if (minor >= 13)
		chain_words(minor, w);
	else
		CHECK_INT(python_version_words(3u << 24 | minor << 16, w), 0);
	w[PYTHON_RUNTIME] = RUNTIME;
	w[PYTHON_PLACE] = w[PYTHON_FAMILY] == PYTHON_OBJECTS ? 0 : PLACE;
	m.native.read = read_made;
	m.native.emit = emit_made;
	m.native.arg = &m;
	m.native.slab = w;
	m.native.u.slab_words = PYTHON_WORDS;
	m.native.u.tls = TLS;
	m.native.u.claim_arg = PYTHON_EVAL;
	m.object = OBJECTS;
	put(&m, RUNTIME + w[PYTHON_KEY], 1 | 3ull << 32);
	put(&m, TLS + 0x310 + 16 * 3 + 8, STATE);
	put(&m, STATE + w[PYTHON_THREAD_ID], TLS);
	put(&m, RUNTIME + w[PYTHON_INTERPRETERS], INTERPRETER);
	put(&m, INTERPRETER + w[PYTHON_THREADS], STATE);
	if (w[PYTHON_HOLDER])
		put(&m, RUNTIME + w[PYTHON_HOLDER], STATE);
	return &m;
}

/* The C frame at sp runs Python frames from `inner` on; *end is what ends them, if there is such a
 * frame. */
static void c_frame(struct made *m, uint64_t sp, uint64_t inner, uint64_t previous)
{
	switch (m->words[PYTHON_FAMILY]) {
	case PYTHON_ENTRIES:
	case PYTHON_SHIMS:
		put(m, sp + PLACE, inner); /* cframe.current_frame */
		break;
	default:
		if (sp == STACK)
			put(m, STATE + m->words[PYTHON_CURRENT], inner);
	}
	if (m->words[PYTHON_FAMILY] >= PYTHON_SHIMS)
		fill_frame(m, sp + (m->words[PYTHON_FAMILY] == PYTHON_CHAIN ? PLACE : 96), 0,
			   previous, 3);
}

/* What the outermost frame of the C frame at sp has as the frame before it. */
static uint64_t before(const struct made *m, uint64_t sp, uint64_t previous)
{
	return m->words[PYTHON_FAMILY] == PYTHON_SHIMS   ? sp + 96
	       : m->words[PYTHON_FAMILY] == PYTHON_CHAIN ? sp + PLACE
							 : previous;
}

/* 3.11: marks the outermost frame of a C frame. */
static void entry(struct made *m, uint64_t frame)
{
	if (m->words[PYTHON_FAMILY] == PYTHON_ENTRIES)
		m->memory[frame + 68] = 1;
}

/* main() called C, that outer(), that inner(); to 3.10 main() called C, that inner(). */
static struct made *calls(uint32_t minor)
{
	struct made *m = make(minor);
	uint64_t main = frame(m, "main", before(m, STACK + C_FRAME, 0), 0), outer, inner;

	entry(m, main);
	if (minor < 11) {
		inner = frame(m, "inner", main, 0);
	} else {
		outer = frame(m, "outer", before(m, STACK, main), 0);
		entry(m, outer);
		inner = frame(m, "inner", outer, 0);
	}
	c_frame(m, STACK, inner, main);
	c_frame(m, STACK + C_FRAME, main, 0);
	return m;
}

/* ---- tasks ---- */

static uint64_t of_type(struct made *m, const char *name)
{
	uint64_t at = object(m, 160), type = object(m, 64), chars = object(m, 32);

	put(m, at + 8, type);
	put(m, type + 24, chars);
	strcpy((char *)m->memory + chars, name);
	return at;
}

/* A coroutine with this function's frame, which `previous` follows. 3.11: is called by C. */
static uint64_t coroutine(struct made *m, const char *name, uint64_t previous)
{
	uint64_t at = object(m, 320);
	uint64_t type = of_type(m, "coroutine"), inside = at + (m->words[PYTHON_TASKS] >> 16);

	memcpy(m->memory + at + 8, m->memory + type + 8, 8);
	fill_frame(m, inside, code(m, "/a.py", name), previous, 1);
	entry(m, inside);
	return at;
}

/* The coroutine waits for `awaited`, which is on top of its stack. */
static void wait_for(struct made *m, uint64_t coroutine, uint64_t awaited)
{
	uint64_t inside = coroutine + (m->words[PYTHON_TASKS] >> 16), stack = inside + 80;
	uint64_t instruction;

	memcpy(&instruction, m->memory + inside + 56, 8);
	m->memory[inside - 5] = 255;
	m->memory[instruction + 3] = 3; /* RESUME behind an await */
	put(m, inside + (minor(m) >= 14 ? 88 : 80), awaited);
	put(m, inside + 64,
	    minor(m) >= 14 ? stack + 16 : 2 | (uint64_t)m->memory[inside + 68] << 32);
	if (minor(m) >= 14)
		m->memory[inside + 74] = 1;
	else
		fill_frame(m, inside,
			   *(uint64_t *)(void *)(m->memory + inside + (minor(m) == 11 ? 32 : 0)), 0,
			   1);
	entry(m, inside);
}

/* leaf() is the coroutine of a task that Handle._run() called through C; waiting() awaits it. */
static struct made *tasks(uint32_t minor)
{
	struct made *m = make(minor);
	uint32_t waiter;
	uint64_t handle, step, task, awaiting, wakeup, run, leaf, other;

	m->words[PYTHON_TASKS] = python_task_word(m->words);
	waiter = m->words[PYTHON_TASKS] & 0xffff;
	handle = of_type(m, "Handle");
	step = of_type(m, "TaskStepMethWrapper");
	task = of_type(m, "_asyncio.Task");
	awaiting = of_type(m, "_asyncio.Task");
	wakeup = of_type(m, "builtin_function_or_method");
	run = frame(m, "run", before(m, STACK + C_FRAME, 0), 0);
	entry(m, run);
	leaf = coroutine(m, "leaf", before(m, STACK, run));
	other = coroutine(m, "waiting", 0);
	put(m, run + (minor >= 14 ? 80 : 72), handle);
	put(m, handle + 24, step);
	put(m, step + 16, task);
	put(m, task + waiter + 8, leaf);
	put(m, task + 24, wakeup);
	put(m, wakeup + 24, awaiting);
	put(m, awaiting + waiter, task);
	put(m, awaiting + waiter + 8, other);
	wait_for(m, other, task);
	c_frame(m, STACK, leaf + (m->words[PYTHON_TASKS] >> 16), run);
	c_frame(m, STACK + C_FRAME, run, 0);
	return m;
}

/* ---- walks ---- */

static void take(struct made *m, struct frames *f)
{
	struct fusee_unwind *u = &m->native.u;

	CHECK(f->s.n < MOST);
	if (f->s.n < MOST) {
		f->s.pushed[f->s.n][0] = u->pushed[0];
		f->s.pushed[f->s.n][1] = u->pushed[1];
		f->flags[f->s.n] = u->pushed_words > 2 ? u->push_flags : 0;
		strcpy(f->name[f->s.n++], m->name);
	}
	u->npushed = 0;
}

/* Both C frames, as the core walks them. With `many` frames that are pushed are counted only. */
static struct frames walk_from(struct made *m, uint64_t first_sp)
{
	struct fusee_unwind *u = &m->native.u;
	struct frames f = {.s.next = FUSEE_NATIVE};

	u->sp = STACK;
	u->first_sp = first_sp;
	u->pc = 0x500;
	u->claim_lo = 0x400;
	u->flags = u->claim_arg ? 0 : FUSEE_PC_EXACT | FUSEE_FIRST;
	for (int c = 0; c < 2 && f.s.next == FUSEE_NATIVE; c++) {
		int turns = 0;

		do {
			memset(m->name, 0, sizeof(m->name));
			f.s.next = fusee_step_python(u);
			if (u->npushed)
				take(m, &f);
		} while (f.s.next == FUSEE_AGAIN && ++turns < TURNS);
		CHECK(f.s.next == FUSEE_NATIVE || f.s.next == FUSEE_STOP);
		f.ended[c] = f.s.n;
		f.omitted += (u->flags & FUSEE_OMIT_CALLEE) != 0;
		u->sp += C_FRAME;
		u->flags = 0;
	}
	f.s.error = u->error;
	CHECK(f.s.next != FUSEE_STOP || f.s.error);
	return f;
}

static struct frames walk(struct made *m)
{
	return walk_from(m, STACK);
}

static const char *names(const struct frames *f)
{
	static char text[MOST * 20];

	*text = '\0';
	for (uint32_t i = 0; i < f->s.n; i++)
		sprintf(text + strlen(text), "%s%s ", f->name[i],
			f->flags[i] & FUSEE_PUSH_ASYNC ? "*" : "");
	return text;
}

TEST(frames_of_each_version)
{
	for (uint32_t i = 0; i < MINORS; i++) {
		struct frames f = walk(calls(minors[i]));

		CHECK_STR(names(&f), minors[i] < 11 ? "inner main " : "inner outer main ");
		CHECK_INT(f.s.next, FUSEE_NATIVE);
		CHECK_INT(f.ended[0], minors[i] < 11 ? 1 : 2);
		CHECK_INT((uint32_t)f.s.pushed[0][1], 4);
	}
}

/* ---- instructions that are functions ---- */

/* As calls(), where the C frames are at calls of the first instruction's function. */
static struct made *function_calls(uint32_t minor)
{
	struct made *m = calls(minor);

	m->native.u.claim_arg = PYTHON_CALL | (uint64_t)PLACE << 32;
	return m;
}

static uint64_t current(struct made *m)
{
	uint64_t at;

	memcpy(&at, m->memory + STATE + m->words[PYTHON_CURRENT], sizeof(at));
	return at;
}

TEST(functions_of_instructions)
{
	struct frames f = walk(function_calls(14));

	CHECK_STR(names(&f), "inner outer main ");
	CHECK_INT(f.ended[0], 2);
	CHECK_INT(f.omitted, 2);
}

/* The C frame below these has linked its frames, and has called nothing yet; or the instruction's
 * function, which has returned, has unlinked the function but not what ends its frames. */
TEST(functions_of_instructions_that_have_not_begun)
{
	for (int linked = 0; linked < 2; linked++) {
		struct made *m = function_calls(14);
		uint64_t end = STACK - C_FRAME / 2, inner = current(m);
		uint64_t begun = linked ? frame(m, "begun", end, 0) : end;
		struct frames f;

		fill_frame(m, end, 0, inner, 3);
		put(m, STATE + m->words[PYTHON_CURRENT], begun);
		f = walk_from(m, STACK - C_FRAME);
		CHECK_STR(names(&f), "inner outer main ");
		CHECK_INT(f.s.next, FUSEE_NATIVE);
	}
}

/* The innermost C frame has unlinked its frames. */
TEST(functions_of_instructions_that_have_ended)
{
	struct made *m = function_calls(14);
	uint64_t main;
	struct frames f;

	memcpy(&main, m->memory + STACK + PLACE + 8, sizeof(main));
	put(m, STATE + m->words[PYTHON_CURRENT], main);
	f = walk(m);
	CHECK_STR(names(&f), "main ");
	CHECK_INT(f.ended[0], 0);
	CHECK_INT(f.omitted, 2);
}

/* Python is at the call itself: it has not called yet. */
TEST(functions_of_instructions_at_their_call)
{
	struct made *m = function_calls(14);
	struct fusee_unwind *u = &m->native.u;

	u->sp = u->first_sp = STACK;
	u->flags = FUSEE_PC_EXACT;
	CHECK_INT(fusee_step_python(u), FUSEE_NATIVE);
	CHECK(!u->npushed && !(u->flags & FUSEE_OMIT_CALLEE));
}

/* ---- where a function ends that runs one frame ---- */

/* A register has another frame of the same caller, as after a call; the stack has this frame. */
TEST(a_frame_that_is_kept_on_the_stack)
{
	for (int ended = 0; ended < 2; ended++) {
		struct made *m = calls(10);
		uint64_t inner = current(m), main, other = frame(m, "other", inner, 0);
		struct frames f;

		memcpy(&main, m->memory + inner + 24, sizeof(main));
		m->words[PYTHON_PLACE] = PYTHON_IN_STACK | PLACE;
		m->native.u.regs[FUSEE_X86_R12] = other;
		put(m, STACK + PLACE, inner);
		if (ended)
			put(m, STATE + m->words[PYTHON_CURRENT], main);
		f = walk(m);
		CHECK_STR(names(&f), ended ? "main " : "inner main ");
		CHECK_INT(f.ended[0], !ended);
	}
}

/* ---- faults ---- */

typedef struct made *maker(uint32_t minor);

/* Is it the stack without the task that awaits, as before the step has recognized a Handle? */
static int is_without_task(struct frames *f, maker *program, uint32_t minor)
{
	struct made *m = program(minor);
	struct frames other;

	m->words[PYTHON_TASKS] = 0;
	other = walk(m);
	return f->s.next == FUSEE_NATIVE && f->s.n == other.s.n && is_beginning(&f->s, &other.s) &&
	       !f->flags[0];
}

#define HANDLE_READS 12 /* of all until a Handle is recognized, each character of its name too */

/* Each read fails in turn: the stack is complete, or is the beginning of it and a reason; and in no
 * C frame a function is missing without one. */
static void fail_each_read(maker *program, uint32_t minor)
{
	struct made *m = program(minor);
	struct frames complete = walk(m), f;
	uint32_t reads = m->reads, stopped = 0, taskless = 0;

	CHECK_INT(complete.s.next, FUSEE_NATIVE);
	for (uint32_t k = 1; k <= reads; k++) {
		m = program(minor);
		m->fails = k;
		f = walk(m);
		if (program == tasks && is_without_task(&f, program, minor) &&
		    taskless++ < HANDLE_READS)
			continue;
		if (!is_beginning(&f.s, &complete.s) ||
		    (f.s.next != FUSEE_STOP && f.s.n != complete.s.n))
			test_fail(__FILE__, __LINE__, "3.%u, read %u of %u: %s", minor, k, reads,
				  names(&f));
		stopped += f.s.next == FUSEE_STOP;
	}
	CHECK(stopped > reads / 8);
}

static void lie_in_each_word(maker *program, uint32_t minor)
{
	struct made *m = program(minor);
	uint64_t used = m->object;
	struct frames complete = walk(m);

	for (uint64_t at = RUNTIME; at < used; at += 8) {
		uint64_t old;

		memcpy(&old, program(minor)->memory + at, 8);
		for (int lie = 0; old && lie < LIES; lie++) {
			struct frames f;

			m = program(minor);
			put(m, at, lie_of(lie, at, old, OBJECTS));
			f = walk(m);
			CHECK(m->reads < 5000);
			if (!is_bearable(&f.s, &complete.s))
				test_fail(__FILE__, __LINE__,
					  "3.%u, lie %d at %#lx, %#lx before: %s", minor, lie, at,
					  old, names(&f));
		}
	}
}

TEST(each_read_fails_in_turn)
{
	for (uint32_t i = 0; i < MINORS; i++)
		fail_each_read(calls, minors[i]);
}

TEST(faults_of_functions_of_instructions)
{
	fail_each_read(function_calls, 14);
	lie_in_each_word(function_calls, 14);
}

TEST(each_word_lies_in_turn)
{
	for (uint32_t i = 0; i < MINORS; i++)
		lie_in_each_word(calls, minors[i]);
}

TEST(tasks_that_await)
{
	for (uint32_t minor = 11; minor <= 14; minor++) {
		struct made *m = tasks(minor);
		struct frames f = walk(m);

		CHECK_STR(names(&f), "leaf* waiting* run ");
		CHECK_INT(f.s.next, FUSEE_NATIVE);
		CHECK_INT(f.ended[0], 2);
		m = tasks(minor);
		m->words[PYTHON_TASKS] = 0;
		f = walk(m);
		CHECK_STR(names(&f), "leaf run ");
	}
}

TEST(faults_of_tasks)
{
	for (uint32_t minor = 11; minor <= 14; minor++) {
		fail_each_read(tasks, minor);
		lie_in_each_word(tasks, minor);
	}
}

/* A list of frames that leads back into itself, in circles of each length. */
TEST(frames_in_a_circle)
{
	for (uint32_t minor = 11; minor <= 14; minor++)
		for (uint32_t length = 1; length <= 4; length++) {
			struct made *m = make(minor);
			uint64_t at[4];
			struct frames f;

			for (uint32_t i = 0; i < length; i++)
				at[i] = frame(m, "f", i ? at[i - 1] : 0, 0);
			put(m, at[0] + (minor == 11 ? 48 : 8), at[length - 1]);
			c_frame(m, STACK, at[length - 1], 0);
			f = walk(m);
			CHECK_INT(f.s.next, FUSEE_STOP);
			CHECK_INT(f.s.error, PYTHON_OUT_OF_STEP);
			CHECK(f.s.n <= 4 * length);
		}
}

/* ---- what is remembered of code objects ---- */

#define COUNTER 0x200 /* in the interpreter's state; 3.12: behind _PyRuntime's beginning */

/* The process with a memory; count: of its code objects; first: the key of its innermost frame. */
static uint32_t reads_with_memory(uint32_t minor, uint64_t count, uint64_t *first)
{
	struct made *m = calls(minor);
	uint64_t at = m->words[PYTHON_FAMILY] == PYTHON_SHIMS ? RUNTIME : INTERPRETER;
	struct frames f;

	m->words[PYTHON_COUNTER] = COUNTER + (at == RUNTIME ? RUNTIME : 0);
	put(m, RUNTIME + m->words[PYTHON_INTERPRETERS] + 8, INTERPRETER);
	put(m, at + COUNTER, count);
	m->native.recall = recall_made;
	m->native.remember = remember_made;
	m->native.emitted = is_known;
	all_known = 1;
	f = walk(m);
	CHECK_INT(f.s.n, 3);
	*first = f.s.pushed[0][0];
	return m->reads;
}

/* While the counter is the same, code objects are not read again. */
TEST(code_objects_are_remembered)
{
	for (uint32_t i = 3; i < MINORS; i++) {
		uint32_t first, again, other, counted = minors[i] != 11;
		uint64_t key, remembered;

		nmemory = 0;
		first = reads_with_memory(minors[i], 7, &key);
		CHECK_INT(nmemory > 1, counted);
		again = reads_with_memory(minors[i], 7, &remembered);
		CHECK_INT(first - again >= 3, counted);
		CHECK(key == remembered);
		other = reads_with_memory(minors[i], 8, &remembered);
		CHECK_INT(other - again >= 3, counted);
	}
}
