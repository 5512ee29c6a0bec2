/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/v8
/* A V8 that is made up: its constants, a heap with functions whose names are kept in all ways, and
 * a stack. Then with each read failing in turn, and with each word of the process a lie in turn. */
#include "test.h"

#include <fusee/helpers.h>
#include <fusee/unwinder.bpf.h>

#include "inspect.h"
#include "names.h"
#include "source.h"

int fusee_step_v8(struct fusee_unwind *u);

#define MEMORY 0x10000 /* bytes from 0 on that the process has */
#define FILE_AT 0x100  /* the file's variables */
#define CODE 0x4000
#define CODE_END 0x5000
#define JIT 0x4c00 /* what V8 has compiled, up to CODE_END */
#define OBJECTS 0x6000
#define STACK 0xc000
#define NATIVE 0xf000 /* where the outermost frame returns to */

/* As Node.js 22 has them. */
enum {
	MAP_MAP = OBJECTS, /* the map of maps; maps have 16 bytes here */
	T_FUNCTION = 2066,
	T_CLASS = 2082,
	T_SHARED = 274,
	T_SCOPE = 272,
	T_SCRIPT = 167,
	T_BYTECODE = 205,
	T_BYTES = 212,
	T_CODE = 206,
	T_STREAM = 210,
	T_ODDBALL = 131,
	T_MAP = 264,
	T_TABLE = 257,
	/* of compiled code's data */
	T_DATA = 213,
	T_LITERALS = 247,
	T_PLACES = 186,
	T_WRAPPER = 195,
	ONE_BYTE = 8,
	TWO_BYTE = 0,
	CONS = 41,
	SLICED = 43,
	THIN = 45,
	EXTERNAL = 42,
};

#define SCRIPT_ID 64 /* behind the table of lines */

static const struct {
	const char *name;
	int32_t value;
} constants[] = {
	{"HeapObjectTag", 1},
	{"HeapObjectTagMask", 3},
	{"SmiValueShift", 1},
	{"SmiShiftSize", 31},
	{"off_fp_function", -16},
	{"off_fp_bytecode_array", -32},
	{"off_fp_bytecode_offset", -40},
	{"FirstJSFunctionType", T_FUNCTION},
	{"LastJSFunctionType", T_CLASS},
	{"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", T_SHARED},
	{"type_ScopeInfo__SCOPE_INFO_TYPE", T_SCOPE},
	{"type_Script__SCRIPT_TYPE", T_SCRIPT},
	{"type_BytecodeArray__BYTECODE_ARRAY_TYPE", T_BYTECODE},
	{"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", T_BYTES},
	{"FirstNonstringType", 128},
	{"StringRepresentationMask", 7},
	{"OneByteStringTag", 8},
	{"ConsStringTag", 1},
	{"ExternalStringTag", 2},
	{"SlicedStringTag", 3},
	{"ThinStringTag", 5},
	{"class_Map__instance_type__uint16_t", 12},
	{"class_JSFunction__shared__SharedFunctionInfo", 32},
	{"class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_", 16},
	{"class_SharedFunctionInfo__script__Tagged_HeapObject_", 32},
	{"class_SharedFunctionInfo__length__uint16_t", 40},
	{"class_Script__source__Object", 8},
	{"class_Script__name__Object", 16},
	{"class_Script__line_ends__Object", SCRIPT_ID - 8},
	{"class_String__length__int32_t", 12},
	{"class_SeqOneByteString__chars__char", 16},
	{"class_ConsString__first__String", 16},
	{"class_ConsString__second__String", 24},
	{"class_SlicedString__parent__String", 16},
	{"class_SlicedString__offset__SMI", 24},
	{"class_ThinString__actual__String", 16},
	{"class_ExternalString__resource__Object", 16},
	{"scopeinfo_idx_ncontextlocals", 2},
	{"scopeinfo_idx_first_vars", 3},
	{"class_BytecodeArray__length__SMI", 8},
	{"class_BytecodeArray__data__uintptr_t", 64},
	{"class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_", 16},
	{"type_Code__CODE_TYPE", T_CODE},
	{"type_InstructionStream__INSTRUCTION_STREAM_TYPE", T_STREAM},
	{"class_Code__instruction_start__Address", 40},
	{"class_Code__instruction_size__int", 52},
	{"class_InstructionStream__instruction_start__uintptr_t", 32},
	{"DeoptimizationDataInlinedFunctionCountIndex", 1},
	{"DeoptimizationDataLiteralArrayIndex", 2},
	{"DeoptimizationDataInliningPositionsIndex", 7},
	{"DeoptimizationDataSharedFunctionInfoIndex", 6},
	/* these are in V8 13, in place of what is before them */
	{"DeoptimizationDataWrappedSharedFunctionInfoIndex", 7},
	{"class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_", 8},
};
#define CONSTANTS (sizeof(constants) / sizeof(*constants))

struct made {
	struct fusee_native native;
	unsigned char memory[MEMORY];
	uint32_t words[V8_WORDS];
	uint32_t reads, fails; /* fails: the number of the read that fails, from 1 on; 0: none */
	uint64_t object;       /* where the next is made */
	uint64_t script;       /* of all functions */
	void *names;
	const char *lacks; /* a constant that the file has not */
	bool is_13;
	char said[256], stack[1024];
	struct fusee_range claimed;
};

static struct made m;

static int read_made(struct fusee_native *n, void *to, __u32 len, __u64 at)
{
	if (++m.reads == m.fails || at >= MEMORY || len > MEMORY - at)
		return -1;
	memcpy(to, m.memory + at, len);
	return 0;
}

static int emit_made(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	return v8_names_add(&m.names, 1, kind, key, bytes, len) < 0 ? -1 : 0;
}

static int emitted_made(struct fusee_native *n, __u32 kind, __u64 key)
{
	const struct v8_named *f = v8_names_function(&m.names, 1, key);

	if (kind >= V8_POSITIONS)
		return f && f->tables[(kind - V8_POSITIONS) / V8_PARTS]
				    .part[(kind - V8_POSITIONS) % V8_PARTS];
	return kind == V8_FUNCTION ? f != NULL : v8_names_script(&m.names, 1, key) != NULL;
}

/* ---- the file ---- */

static int file_info(uint64_t file, struct fusee_file_info *info)
{
	info->machine = 62;
	return 0;
}

/* Has the file this constant? */
static bool has(uint32_t i)
{
	return (!m.lacks || strcmp(m.lacks, constants[i].name)) &&
	       (m.is_13 ? i != CONSTANTS - 3 : i < CONSTANTS - 2);
}

static int file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	if (!strcmp(name, "v8_Default_embedded_blob_code_"))
		*at = (struct fusee_range){CODE, CODE};
	else if (!strcmp(name, "v8_Default_embedded_blob_code_size_"))
		at->lo = FILE_AT + 4 * CONSTANTS;
	else if (m.lacks && !strcmp(name, "_ZN2v87Isolate10GetCurrentEv"))
		at->lo = CODE;
	else {
		for (uint32_t i = 0; i < CONSTANTS; i++)
			if (!strncmp(name, "v8dbg_", 6) && !strcmp(name + 6, constants[i].name) &&
			    has(i)) {
				at->lo = FILE_AT + 4 * i;
				return 0;
			}
		return -ENOENT;
	}
	return 0;
}

static int file_read(uint64_t file, uint64_t vaddr, void *to, uint32_t len)
{
	if (vaddr >= MEMORY || len > MEMORY - vaddr)
		return -ENOENT;
	memcpy(to, m.memory + vaddr, len);
	return 0;
}

static int file_slab(struct fusee_instance *in, uint64_t file, const uint32_t *words, uint64_t n)
{
	CHECK_INT(n, V8_WORDS);
	memcpy(m.words, words, sizeof(m.words));
	return 0;
}

static int file_claim(struct fusee_instance *in, uint64_t file, const struct fusee_claim *c)
{
	m.claimed = c->range;
	return 0;
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	snprintf(m.said, sizeof(m.said), "%s", text);
	return err;
}

static int inspect(void)
{
	static const struct fusee_unwinder_host unwinder = {
		.file_info = file_info,
		.file_symbol = file_symbol,
		.file_read = file_read,
		.file_slab = file_slab,
		.file_claim = file_claim,
	};
	const struct fusee_host host = {.fail = fail, .unwinder = &unwinder};
	const struct fusee_self self = {NULL, &host};

	return v8_inspect(&self, 1);
}

/* ---- the heap ---- */

static void put(uint64_t at, uint64_t v)
{
	memcpy(m.memory + at, &v, sizeof(v));
}

/* An object of so many words, tagged, with a map of its own. */
static uint64_t object(uint32_t type, uint32_t words)
{
	uint64_t map = m.object, at = map + 16;

	put(map, MAP_MAP + 1);
	m.memory[map + 12] = (unsigned char)type;
	m.memory[map + 13] = (unsigned char)(type >> 8);
	put(at, map + 1);
	m.object = at + 8ull * words;
	CHECK(m.object < STACK - 0x1000);
	return at + 1;
}

static void set(uint64_t tagged, uint32_t offset, uint64_t v)
{
	put(tagged - 1 + offset, v);
}

static uint64_t number(uint32_t n)
{
	return (uint64_t)n << 32;
}

static uint64_t text(const char *s)
{
	uint64_t t = object(ONE_BYTE, 4 + (uint32_t)strlen(s) / 8);

	set(t, 8, number((uint32_t)strlen(s)));
	memcpy(m.memory + t - 1 + 16, s, strlen(s));
	return t;
}

/* A text with two fields. */
static uint64_t pair(uint32_t type, uint32_t length, uint64_t a, uint64_t b)
{
	uint64_t t = object(type, 4);

	set(t, 8, number(length));
	set(t, 16, a);
	set(t, 24, b);
	return t;
}

/* A ScopeInfo: its locals' names, or a table of them, and what follows them. */
static uint64_t scope(uint32_t locals, uint64_t table, const uint64_t *rest, uint32_t n)
{
	uint64_t s = object(T_SCOPE, 4 + 2 * locals + 1 + n);
	uint32_t at = 32;

	set(s, 24, number(locals));
	for (uint32_t i = 0; i < locals && !table; i++, at += 8)
		set(s, at, text("local"));
	if (table) {
		set(s, at, table);
		at += 8;
	}
	for (uint32_t i = 0; i < locals; i++, at += 8)
		set(s, at, number(77));
	for (uint32_t i = 0; i < n; i++, at += 8)
		set(s, at, rest[i]);
	return s;
}

static uint64_t function(uint64_t name, uint64_t script)
{
	uint64_t shared = object(T_SHARED, 8), f = object(T_FUNCTION, 8);

	set(shared, 16, name);
	set(shared, 32, script);
	set(f, 32, shared);
	return f;
}

/* ---- the stack ---- */

#define FRAMES 8

/* The innermost frame first, 0x100 bytes each; frame i is at fp STACK + 0x100 * (i + 1). */
static void frame(uint32_t i, uint64_t function, uint64_t context, uint64_t bytecode,
		  uint64_t offset)
{
	uint64_t fp = STACK + 0x100 * (i + 1ull);

	put(fp, fp + 0x100);
	put(fp + 8, i == FRAMES - 1 ? NATIVE : CODE + 0x100);
	put(fp - 8, context);
	put(fp - 16, function);
	put(fp - 32, bytecode);
	put(fp - 40, offset);
}

/* Of a function whose bytecodes 0 to 2 are of position 0, 3 to 6 of 5, and the others of 9. */
static const unsigned char TABLE[] = {1, 4, 8, 20, 9, 16};

static void make(void)
{
	static const unsigned char wide[] = {'g', 0, 0xe9, 0, 0xac, 0x20};
	uint64_t context, script, bytecode, inferred[4], named[3], outer, undefined, t;
	struct fusee_native *n = &m.native;
	int32_t size = CODE_END - CODE;

	v8_names_free(&m.names);
	memset(&m, 0, sizeof(m));
	for (uint32_t i = 0; i < CONSTANTS; i++)
		memcpy(m.memory + FILE_AT + 4 * i, &constants[i].value, 4);
	memcpy(m.memory + FILE_AT + 4 * CONSTANTS, &size, 4);
	put(MAP_MAP, MAP_MAP + 1);
	m.memory[MAP_MAP + 12] = (unsigned char)T_MAP;
	m.memory[MAP_MAP + 13] = T_MAP >> 8;
	m.object = MAP_MAP + 16;
	context = object(190, 2);
	undefined = object(T_ODDBALL, 2);
	outer = scope(0, 0, &undefined, 1);
	m.script = script = object(T_SCRIPT, 12);
	set(script, 8, text("one\ntwo\nthree"));
	set(script, 16, pair(CONS, 8, text("/a/"), text("b.js")));
	set(script, SCRIPT_ID, number(9));
	bytecode = object(T_BYTECODE, 10);
	set(bytecode, 8, number(40));
	t = object(T_BYTES, 4);
	set(t, 8, number(sizeof(TABLE)));
	memcpy(m.memory + t - 1 + 16, TABLE, sizeof(TABLE));
	set(bytecode, 24, t);
	/* 0: interpreted, the name in a ScopeInfo with two locals, behind an inferred name's place
	 */
	named[0] = text("work");
	named[1] = number(7);
	named[2] = undefined;
	frame(0, function(scope(2, 0, named, 3), script), context, bytecode, number(63 + 5));
	/* 1: compiled; its own name is empty, and another was inferred; too many locals for a list
	 */
	inferred[0] = text("");
	inferred[1] = number(7);
	inferred[2] = pair(SLICED, 5, text("xxa.b.c"), number(2));
	inferred[3] = outer;
	frame(1, function(scope(3, object(T_TABLE, 2), inferred, 4), script), context,
	      object(190, 2), object(190, 2));
	/* 2: a frame that is no function's */
	frame(2, object(190, 2), 34, 0, 0);
	/* 3: a builtin */
	frame(3, function(text("map"), undefined), context, 0, 0);
	/* 4: without a name */
	frame(4, function(number(0), script), context, bytecode, number(63));
	/* 5: of characters of two bytes */
	t = object(TWO_BYTE, 4);
	set(t, 8, number(3));
	memcpy(m.memory + t - 1 + 16, wide, sizeof(wide));
	frame(5, function(pair(THIN, 3, t, 0), script), context, bytecode, number(64));
	/* 6: of a text that is not on the heap */
	memcpy(m.memory + 0x2010, "outside", 7);
	frame(6, function(pair(EXTERNAL, 7, 0x2000, 0x2010), script), context, bytecode,
	      number(65));
	/* 7: a scope without a name */
	frame(7, function(outer, script), context, bytecode, number(66));
	inspect();
	n->read = read_made;
	n->emit = emit_made;
	n->emitted = emitted_made;
	n->slab = m.words;
	n->u = (struct fusee_unwind){.pc = CODE + 0x200,
				     .sp = STACK + 0x80,
				     .fp = STACK + 0x100,
				     .tls = 1,
				     .process = 1,
				     .slab_words = V8_WORDS,
				     .flags = FUSEE_PC_EXACT | FUSEE_FIRST};
}

static uint64_t pushed; /* a hash of all words that were pushed */

static void note_frame(const struct fusee_unwind *u)
{
	const struct v8_named *f = v8_names_function(&m.names, 1, u->pushed[0]);
	const struct v8_file *s = f ? v8_names_script(&m.names, 1, f->script) : NULL;
	size_t n = strlen(m.stack);

	for (uint32_t i = 0; i < u->pushed_words; i++)
		pushed = fusee_mix(pushed, u->pushed[i]);
	snprintf(m.stack + n, sizeof(m.stack) - n, "%s%s%s:%d ", f ? f->name : "?", s ? "@" : "",
		 s ? s->name : "", (int)u->pushed[1]);
}

static int walk(void)
{
	struct fusee_unwind *u = &m.native.u;
	int r = FUSEE_NEXT;

	*m.stack = '\0';
	pushed = 0;
	for (int i = 0; i < 3 * FRAMES && (r == FUSEE_NEXT || r == FUSEE_AGAIN) && u->pc >= CODE &&
			u->pc < CODE_END;
	     i++) {
		uint64_t sp = u->sp;

		u->npushed = 0;
		u->file = u->pc < JIT; /* builtins are a file's */
		r = fusee_step_v8(u);
		if (u->npushed)
			note_frame(u);
		if (r == FUSEE_NATIVE_TOO && u->fp > sp &&
		    u->fp < MEMORY - 16) { /* by native unwinders */
			u->sp = u->fp + 16;
			memcpy(&u->pc, m.memory + u->fp + 8, 8);
			memcpy(&u->fp, m.memory + u->fp, 8);
			r = FUSEE_NEXT;
		}
		if (r == FUSEE_NEXT && u->sp <= sp)
			return -1;
		u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST);
	}
	return r;
}

#define CALLERS                                                                               \
	"b.c@/a/b.js:-1 map:-1 @/a/b.js:0 g\xc3\xa9\xe2\x82\xac@/a/b.js:1 outside@/a/b.js:2 " \
	"@/a/b.js:3 "
#define COMPLETE "work@/a/b.js:5 a." CALLERS

TEST(a_stack)
{
	make();
	CHECK_STR(m.said, "");
	CHECK_INT(m.claimed.lo, CODE);
	CHECK_INT(m.claimed.hi, CODE_END);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
	CHECK_INT(m.native.u.pc, NATIVE);
	CHECK_INT(m.native.u.sp, STACK + 0x100 * FRAMES + 16);
	CHECK_INT(m.native.u.fp, STACK + 0x100 * (FRAMES + 1));
}

/* All of it was collected, and the same came to its place, but for a name: the script's number
 * tells that it is another. */
TEST(another_script_in_its_place)
{
	struct fusee_unwind before;
	unsigned char *name;

	make();
	before = m.native.u;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
	name = memmem(m.memory, sizeof(m.memory), "work", 4);
	CHECK(name && memcpy(name, "idle", 4));
	m.native.u = before;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE); /* it is not read again */
	set(m.script, SCRIPT_ID, number(10));
	m.native.u = before;
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "idle@/a/b.js:5 a." CALLERS);
}

/* Over a copy of the stack the heap cannot be read. */
TEST(a_stack_copy)
{
	make();
	m.native.u.tls = 0;
	CHECK_INT(walk(), FUSEE_PASS);
	CHECK_STR(m.stack, "");
}

/* The first function was interrupted where it has no frame, or only a part of it: its callers are
 * shown, and what lies in the place of its slots is not. */
TEST(a_function_begins_or_ends)
{
	static const struct {
		const char *what;
		unsigned char code[8]; /* from the byte before pc on */
		int sp;                /* from fp */
		int shown;             /* an index of `stacks` */
	} cases[] = {
		{"push %rbp", {0x90, 0x55, 0x48, 0x89, 0xe5}, -0x80, 0},
		{"mov %rsp,%rbp", {0x55, 0x48, 0x89, 0xe5}, -0x80, 0},
		{"behind it", {0xe5, 0x56, 0x57}, 0, 1},
		{"the context is pushed", {0x56, 0x57}, -8, 1},
		{"the function is pushed", {0x57, 0x50}, -16, 2},
		{"pop %rbp", {0xec, 0x5d, 0xc3}, 0, 1},
		{"ret", {0x5d, 0xc3}, -0x80, 0},
		{"ret $16", {0x5d, 0xc2, 0x10}, -0x80, 0},
	};

	static const char *const stacks[] = {COMPLETE, "a." CALLERS, "work@/a/b.js:-1 a." CALLERS};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fusee_unwind *u = &m.native.u;

		make();
		memcpy(m.memory + u->pc - 1, cases[i].code, 8);
		u->sp = u->fp + (uint64_t)(int64_t)cases[i].sp;
		if (cases[i].sp == -0x80) { /* as if frame 0 had called it */
			put(u->sp, cases[i].code[0] == 0x55 ? u->fp : CODE + 0x300);
			put(u->sp + 8, CODE + 0x300);
		}
		fprintf(stderr, "# %s\n", cases[i].what);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, stacks[cases[i].shown]);
	}
}

/* A jump that was just called has no frame; any other is in the frame at fp. */
TEST(a_slot_of_a_jump_table)
{
	struct fusee_unwind *u = &m.native.u;

	for (int32_t other = 0; other < 2; other++) {
		const uint64_t returns = CODE + 0x300;
		int32_t distance;

		make();
		distance = (int32_t)(u->pc - returns) + other;
		m.memory[u->pc] = 0xe9;
		m.memory[returns - 5] = 0xe8;
		memcpy(m.memory + returns - 4, &distance, sizeof(distance));
		u->sp = u->fp - 0x80;
		put(u->sp, returns);
		u->file = 1;
		CHECK_INT(fusee_step_v8(u), FUSEE_NEXT);
		CHECK_INT(u->npushed != 0, other);
		CHECK(other || u->pc == returns);
	}
}

/* The garbage collector has moved objects: where they are is in place of their maps. */
TEST(moved_objects)
{
	uint64_t fp = STACK + 0x100, function, shared, to;

	make();
	memcpy(&function, m.memory + fp - 16, 8);
	memcpy(&shared, m.memory + function - 1 + 32, 8);
	to = object(0, 8) - 1;
	memcpy(m.memory + to, m.memory + shared - 1, 64);
	put(shared - 1, to);
	memset(m.memory + shared - 1 + 8, 0x55, 56);
	to = object(0, 8) - 1;
	memcpy(m.memory + to, m.memory + function - 1, 64);
	put(function - 1, to);
	memset(m.memory + function - 1 + 8, 0x55, 56);
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, COMPLETE);
}

static uint64_t join(uint64_t a, uint64_t b)
{
	return pair(CONS, 0, a, b);
}

/* Names that V8 has joined of many: the second of two is joined too, or the first is, or both. */
TEST(joined_names)
{
	static const char *const words[] = {"Module", "._extensions", ".", ".js"};

	for (int kind = 0; kind < 4; kind++) {
		uint64_t function, shared, t[4], name;

		make();
		for (int i = 0; i < 4; i++)
			t[i] = text(words[i]);
		name = kind == 0   ? join(t[0], join(t[1], join(t[2], t[3])))
		       : kind == 1 ? join(join(join(t[0], t[1]), t[2]), t[3])
		       : kind == 2 ? join(join(t[0], t[1]), join(t[2], t[3]))
				   : join(join(t[0], join(t[1], text(""))), join(t[2], t[3]));
		memcpy(&function, m.memory + STACK + 0x100 - 16, 8);
		memcpy(&shared, m.memory + function - 1 + 32, 8);
		set(shared, 16, name);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack, "Module._extensions..js@/a/b.js:5 a." CALLERS);
	}
}

/* Joined of itself, or of more than are followed: no name, or its beginning. */
TEST(joined_without_end)
{
	for (int kind = 0; kind < 2; kind++) {
		uint64_t function, shared, name;

		make();
		name = join(text("a"), text("b"));
		set(name, kind ? 24 : 16, name);
		memcpy(&function, m.memory + STACK + 0x100 - 16, 8);
		memcpy(&shared, m.memory + function - 1 + 32, 8);
		set(shared, 16, name);
		CHECK_INT(walk(), FUSEE_NEXT);
		CHECK_STR(m.stack,
			  kind ? "aaaaaaaaaaaaaaaa@/a/b.js:5 a." CALLERS : "?:5 a." CALLERS);
	}
}

/* A slot with another object is no function's frame. */
TEST(no_function)
{
	uint64_t fp = STACK + 0x100, function;

	make();
	memcpy(&function, m.memory + fp - 16, 8);
	put(function - 1 + 32, function); /* its SharedFunctionInfo is a function */
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "a." CALLERS);
	make();
	put(fp - 16, object(T_CLASS + 1, 8));
	CHECK_INT(walk(), FUSEE_NEXT);
	CHECK_STR(m.stack, "a." CALLERS);
	make();
	m.native.u.fp = STACK + 0x70; /* below sp */
	CHECK_INT(walk(), FUSEE_STOP);
	CHECK_INT(m.native.u.error, V8_NO_FRAME);
}

/* Is each name of the stack a name of COMPLETE, in its order, or not known? */
static bool is_part(void)
{
	const char *all = COMPLETE;
	char copy[sizeof(m.stack)], *save = NULL;

	memcpy(copy, m.stack, sizeof(copy));
	for (char *f = strtok_r(copy, " ", &save); f; f = strtok_r(NULL, " ", &save)) {
		char *offset = strrchr(f, ':');

		if (*f == '?')
			continue;
		*offset = '\0';
		all = strstr(all, f);
		if (!all)
			return false;
	}
	return true;
}

TEST(each_read_fails_in_turn)
{
	uint32_t n, nameless = 0, ended = 0, shorter = 0;

	make();
	walk();
	n = m.reads;
	CHECK(n > 60);
	for (uint32_t k = 1; k <= n; k++) {
		int r;

		make();
		m.fails = k;
		r = walk();
		nameless += strchr(m.stack, '?') != NULL;
		ended += r == FUSEE_STOP;
		shorter += r == FUSEE_NEXT && strcmp(m.stack, COMPLETE) && !strchr(m.stack, '?');
		CHECK(r != FUSEE_STOP || m.native.u.error == V8_UNREADABLE);
		if (!is_part())
			fprintf(stderr, "# read %u: %s\n", k, m.stack);
		CHECK(is_part());
	}
	CHECK(nameless && ended && shorter);
}

/* Each word of the process is a lie in turn: nothing but its own stacks is wrong. */
TEST(each_word_is_a_lie_in_turn)
{
	static const uint64_t lies[] = {0, 1, 7, 0x7fffffffffff, ~0ull, CODE, OBJECTS + 1, STACK};

	for (uint64_t at = OBJECTS; at < STACK + 0x100 * FRAMES + 16; at += 8)
		for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			uint64_t is;

			memcpy(&is, m.memory + at, 8);
			if (!is && at > OBJECTS)
				continue;
			make();
			put(at, lies[i]);
			walk();
		}
	for (uint32_t w = 0; w < V8_WORDS; w++)
		for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			make();
			m.words[w] = (uint32_t)lies[i];
			walk();
		}
}

/* ---- lines ---- */

TEST(positions)
{
	static const uint32_t places[] = {0, 0, 0, 5, 5, 5, 5, 9, 9, 9};
	struct v8_place at;

	for (uint32_t i = 0; i < 10; i++) {
		at = v8_position(&(struct v8_table){TABLE, sizeof(TABLE), true}, i);
		CHECK(at.known);
		CHECK_INT(at.position, places[i]);
		/* without its last entry: what is behind the others is not known */
		at = v8_position(&(struct v8_table){TABLE, 4, false}, i);
		CHECK_INT(at.known, i < 3);
	}
	for (uint32_t n = 0; n < sizeof(TABLE); n++)
		v8_position(&(struct v8_table){TABLE, n, true}, 7);
	CHECK(!v8_position(&(struct v8_table){NULL, 0, true}, 7).known);
}

static int process_read(uint64_t process, uint64_t at, void *to, uint32_t len)
{
	return read_made(NULL, to, len, at) ? -EFAULT : 0;
}

static const struct fusee_unwinder_host reader = {.process_read = process_read};

static void free_source(struct v8_source *s)
{
	free(s->lines);
	free(s->loops);
}

#define LOOP 1000 /* added to the line of a position where a loop may begin */

/* The line of a position in a text that the script has now. -1: its text cannot be read. */
static int line_of(const char *source, uint32_t position)
{
	struct v8_source s = {0};
	uint64_t script, t;
	int line;

	make();
	script = object(T_SCRIPT, 12);
	t = text(source);
	set(script, 8, t);
	s.script = script;
	s.expected = (uint32_t)strlen(source);
	while (!v8_source_read(&reader, 1, m.words, &s))
		s.next_ns = 0;
	line = s.state == V8_SOURCE_READ ? (int)v8_source_line(&s, position) : -1;
	line += v8_source_is_loop(&s, position) ? LOOP : 0;
	free_source(&s);
	return line;
}

TEST(lines_of_a_source)
{
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 0), 1);
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 3), 1);
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 4), 2);
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 8), 2);
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 9), 3);
	CHECK_INT(line_of("one\ntwo\r\nthree\rfour", 15), 4);
	CHECK_INT(line_of("one\n", 99), 0);
	CHECK_INT(line_of("", 0), 1);
}

TEST(loops_of_a_source)
{
	static const struct {
		const char *source;
		uint32_t position;
		int line;
	} cases[] = {
		{"for(;;)", 0, LOOP + 1},
		{"a;\nfor (;;)", 3, LOOP + 2},
		{"}while(f())", 1, LOOP + 1},
		{"do{}while(1)", 0, LOOP + 1},
		{"do{}while(1)", 4, LOOP + 1},
		{"for\n(;;)", 0, LOOP + 1},
		{"for(;;)", 1, 1},
		{"format()", 0, 1},
		{"xfor()", 1, 1},
		{"Symbol.for('')", 7, 1},
		{"_do()", 1, 1},
		{"\303for()", 1, 1},
		{"this.#do()", 6, 1},
		{"do1()", 0, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_INT(line_of(cases[i].source, cases[i].position), cases[i].line);
}

/* The function of frame 0 is in a script whose text is read as the step has found it, and found
 * anew if it has moved meanwhile. */
TEST(a_line)
{
	for (int moved = 0; moved < 2; moved++) {
		struct v8_place at;
		const struct v8_named *f;
		struct v8_file *file;
		uint64_t key, t;

		make();
		m.native.u.file = 1;
		CHECK_INT(fusee_step_v8(&m.native.u), FUSEE_NEXT);
		key = m.native.u.pushed[0];
		f = v8_names_function(&m.names, 1, key);
		CHECK(f != NULL);
		file = v8_names_script(&m.names, 1, f->script);
		CHECK(file != NULL);
		CHECK(file->source.at != 0);
		if (moved) {
			t = text("ONE\nTWO\nTHREE");
			set(file->source.script, 8, t);
			memset(m.memory + file->source.at, '\n', 13);
		}
		/* at once, as its worker may have ended before the next call */
		CHECK(v8_source_read(&reader, 1, m.words, &file->source));
		CHECK_INT(file->source.state, V8_SOURCE_READ);
		at = v8_names_place(f, 5, false);
		CHECK(at.known);
		CHECK_INT(v8_source_line(&file->source, at.position), 2);
		at = v8_names_place(f, 8, false);
		CHECK_INT(v8_source_line(&file->source, at.position), 3);
	}
}

/* Each read of a source fails in turn, for good or for a time: its lines are right, or not known.
 */
TEST(a_source_cannot_be_read)
{
	for (uint32_t k = 1; k < 12; k++) {
		struct v8_source s = {0};
		uint64_t script;

		make();
		script = object(T_SCRIPT, 12);
		set(script, 8, pair(SLICED, 3, text("xa\nb"), number(1)));
		s.script = script;
		s.expected = 3;
		m.fails = m.reads + k;
		for (int i = 0; i < 20 && !v8_source_read(&reader, 1, m.words, &s); i++)
			s.next_ns = 0;
		CHECK_INT(s.state, V8_SOURCE_READ);
		CHECK_INT(v8_source_line(&s, 2), 2);
		free_source(&s);
	}
}

static uint32_t busy; /* so many reads fail, as the machine is busy */

static int process_read_late(uint64_t process, uint64_t at, void *to, uint32_t len)
{
	return busy && busy-- ? -ETIMEDOUT : process_read(process, at, to, len);
}

/* A read that fails for a time, however often, costs no try: the lines come afterwards. */
TEST(a_source_is_read_late)
{
	static const struct fusee_unwinder_host late = {.process_read = process_read_late};
	struct v8_source s = {0};

	make();
	s.script = m.script;
	s.expected = 13;
	busy = 100;
	for (int i = 0; i < 100; i++, s.next_ns = 0)
		CHECK(!v8_source_read(&late, 1, m.words, &s));
	CHECK_INT(v8_source_line(&s, 5), 0);
	CHECK(v8_source_read(&late, 1, m.words, &s));
	CHECK_INT(v8_source_line(&s, 5), 2);
	free_source(&s);
}

/* The step could not read how long the text is: the text that the script had then is read, and no
 * other. */
TEST(a_source_of_unknown_length)
{
	for (int other = 0; other < 2; other++) {
		struct v8_source s = {0};

		make();
		s.script = m.script;
		memcpy(&s.text, m.memory + m.script - 1 + 8, sizeof(s.text));
		if (other)
			set(m.script, 8, text("1\n2\n3"));
		for (int i = 0; i < 20 && !v8_source_read(&reader, 1, m.words, &s); i++)
			s.next_ns = 0;
		CHECK_INT(s.state, other ? V8_SOURCE_FAILED : V8_SOURCE_READ);
		CHECK_INT(v8_source_line(&s, 5), other ? 0 : 2);
		free_source(&s);
	}
}

/* ---- compiled code ---- */

extern const struct fusee_plugin fusee_plugin;

static int show_frame(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	size_t n = strlen(m.stack);

	snprintf(m.stack + n, sizeof(m.stack) - n, "%.*s:%u ", (int)f->function.len, f->function.p,
		 f->line);
	return 0;
}

static void *ctx; /* of the plugin */

static int emit_to_plugin(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes,
			  __u32 len)
{
	const struct fusee_unwinder_ops *ops = fusee_plugin.ops;
	struct fusee_emission e = FUSEE_SIZED(struct fusee_emission, .kind = kind, .key = key,
					      .bytes = {bytes, len});

	return ops->record(ctx, 1, &e) < 0 ? -1 : 0;
}

static int emitted_never(struct fusee_native *n, __u32 kind, __u64 key)
{
	return 0;
}

/* Code whose instructions begin at JIT, 640 bytes, of "outer": "middle" was inlined at position 5,
 * and into that "inner" at position 9; a call at 100 is of inner at position 1, at 200 of middle at
 * 5, and at 300 of outer at 9. */
#define RAW(position, inlined) ((uint64_t)((inlined) + 1) << 31 | (uint64_t)((position) + 1) << 1)

static void put_number(uint64_t *at, int64_t v)
{
	uint64_t zigzag = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);

	do {
		m.memory[(*at)++] = (unsigned char)((zigzag & 127) | (zigzag > 127 ? 128 : 0));
		zigzag >>= 7;
	} while (zigzag);
}

static uint64_t shared_of(const char *name, uint64_t script)
{
	uint64_t f = function(text(name), script), shared;

	memcpy(&shared, m.memory + f - 1 + 32, 8);
	return shared;
}

static uint32_t exits = 500;    /* where the code's exits to the deoptimizer begin */
static const uint32_t *returns; /* of three calls that may be deoptimized; NULL: not known */

/* The data's entries of exits: one of an interrupted instruction, then those of calls. */
static void put_returns(uint64_t data, uint32_t in_places)
{
	uint32_t first = in_places + 32;

	if (!returns)
		return;
	set(data, 8, number((first - 16) / 8 + 12));
	set(data, in_places + 16, number(1));
	set(data, in_places + 24, number(3));
	set(data, first + 16, number(0xffffffff));
	for (uint32_t i = 0; i < 3; i++)
		set(data, first + 24 * (i + 1) + 16, number(returns[i]));
}

static void make_code(void)
{
	static const struct {
		int64_t code, raw;
	} calls[] = {{100, RAW(1, 1)}, {110, RAW(2, 1)}, {200, RAW(5, 0)}, {300, RAW(9, -1)}};
	/* indices in the data: V8 13 has one more before them */
	const uint32_t in_literals = 32 + 8 * m.is_13, in_places = 72 + 8 * m.is_13;
	uint64_t stream = JIT - 32, code = object(T_CODE, 9);
	uint64_t data = object(m.is_13 ? T_DATA - 1 : T_DATA, 26);
	uint64_t literals = object(m.is_13 ? T_LITERALS + 1 : T_LITERALS, 6);
	uint64_t places = object(m.is_13 ? T_BYTES : T_PLACES, 7), outer, shared;
	uint64_t table = object(T_BYTES, 12), map = object(T_STREAM, 2) - 1 - 16, at, context,
		 script;
	int64_t last = -1, raw = 0;
	uint32_t size = 640;

	memcpy(&context, m.memory + STACK + 0x100 - 8, 8);
	script = object(T_SCRIPT, 12);
	set(script, 8, text("a\nb\nc\nd\ne\nf\n"));
	set(script, 16, text("c.js"));
	put(stream, map + 1);
	put(stream + 8, code);
	set(code, 8, data);
	set(code, 16, table);
	set(code, 40, JIT);
	memcpy(m.memory + code - 1 + 52, &size, 4);
	set(data, 24, number(2));
	set(data, in_literals, literals);
	set(data, in_places, places);
	set(data, in_places + 8, number(exits));
	put_returns(data, in_places);
	set(literals, 16, shared_of("middle", script));
	set(literals, 24, shared_of("inner", script) | 2); /* a weak reference */
	set(places, 8, number(32));
	set(places, 16, RAW(5, -1));
	set(places, 24, 0);
	set(places, 32, RAW(9, 0));
	set(places, 40, 1);
	at = table - 1 + 16;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		put_number(&at, calls[i].code - last);
		put_number(&at, calls[i].raw - raw);
		last = calls[i].code;
		raw = calls[i].raw;
	}
	set(table, 8, number((uint32_t)(at - (table - 1 + 16))));
	outer = function(text("outer"), script);
	memcpy(&shared, m.memory + outer - 1 + 32, 8);
	if (m.is_13) {
		at = object(T_WRAPPER, 2);
		set(at, 8, shared);
		shared = at;
	}
	set(data, in_places - 8, shared);
	frame(0, outer, context, 0, 0);
}

/* The same code as V8 13 has it: its data is of other types, and the function in it is wrapped. */
static void make_code_of_v8_13(void)
{
	for (uint32_t i = 0; i < CONSTANTS; i++) {
		int32_t value = constants[i].value + 1;

		if (!strcmp(constants[i].name, "DeoptimizationDataLiteralArrayIndex") ||
		    !strcmp(constants[i].name, "DeoptimizationDataInliningPositionsIndex"))
			memcpy(m.memory + FILE_AT + 4 * i, &value, 4);
	}
	m.is_13 = true;
	CHECK_INT(inspect(), 1);
	CHECK_INT(m.words[V8_WRAPPED_SHARED], 8);
	make_code();
}

/* The frames of one step at this address. */
static const char *step_in(uint64_t pc, bool exact)
{
	static const struct fusee_unwinder_host unwinder = {.process_read = process_read,
							    .frame = show_frame};
	static const struct fusee_host host = {.unwinder = &unwinder};
	const struct fusee_unwinder_ops *ops = fusee_plugin.ops;
	struct fusee_mapping_view view = FUSEE_SIZED(struct fusee_mapping_view,
						     .flags = FUSEE_VIEW_LIBRARY);
	struct fusee_raw_frame raw = FUSEE_SIZED(struct fusee_raw_frame, .process = 1);
	struct fusee_unwind *u = &m.native.u;

	ctx = calloc(1, fusee_plugin.ctx_size);
	fusee_plugin.init(ctx, NULL, &host);
	view.table = (struct fusee_table){m.words, V8_WORDS, 4};
	ops->mapped(ctx, 1, &view);
	m.native.emit = emit_to_plugin;
	m.native.emitted = emitted_never;
	u->pc = pc;
	u->flags = exact ? FUSEE_PC_EXACT : 0;
	u->file = pc < JIT;
	*m.stack = '\0';
	fusee_step_v8(u);
	raw.v[0] = u->pushed[0];
	raw.v[1] = u->pushed[1];
	raw.v[2] = u->pushed_words > 2 ? u->pushed[2] : 0;
	if (!u->npushed || ops->symbolize(ctx, &raw, NULL) <= 0)
		strcat(m.stack, "?");
	fusee_plugin.fini(ctx);
	free(ctx);
	return m.stack;
}

/* The same at this offset of the code. */
static const char *step_at(uint32_t offset, bool exact)
{
	return step_in(JIT + offset, exact);
}

/* The same code as V8 10 has it: the instructions are in the Code itself, behind 128 bytes. */
static void make_code_of_v8_10(void)
{
	uint64_t code = JIT - 128 + 1, other;
	uint32_t size = 640;

	make_code();
	memcpy(&other, m.memory + JIT - 32 + 8, 8);
	for (int i = 1; i < 3; i++)
		memcpy(m.memory + code - 1 + 8 + 8 * i, m.memory + other - 1 + 8 * i, 8);
	put(code - 1, object(T_CODE, 2) - 16);
	memcpy(m.memory + code - 1 + 40, &size, 4);
	memset(m.memory + other - 1, 0, 72);
	m.words[V8_TYPE_STREAM] = T_CODE;
	m.words[V8_STREAM_HEAD] = 128;
	m.words[V8_STREAM_CODE] = m.words[V8_CODE_START] = 0;
	m.words[V8_CODE_SIZE] = 40;
	m.words[V8_CODE_DATA] = 16;
	m.words[V8_CODE_POSITIONS] = 24;
}

static void (*const of_releases[])(void) = {make_code, make_code_of_v8_13, make_code_of_v8_10};
#define RELEASES (sizeof(of_releases) / sizeof(*of_releases))

TEST(inlined_functions)
{
	static const struct {
		uint32_t offset;
		bool exact;
		const char *frames;
	} cases[] = {
		{105, false, "inner:1 middle:5 outer:3 "},
		{111, false, "inner:2 middle:5 outer:3 "},
		{205, false, "middle:3 outer:3 "},
		{305, false, "outer:5 "},
		{99, false, "outer:0 "}, /* before all calls */
		{105, true, "inner:0 middle:5 outer:3 "},
		{115, true, "outer:0 "}, /* the next call is another function's */
		{305, true, "outer:0 "}, /* no call follows */
		{499, false, "outer:5 "},
		{501, false, "outer:0 "}, /* an exit */
		{641, false, "outer:0 "}, /* of no code */
	};

	for (size_t i = 0; i < RELEASES * sizeof(cases) / sizeof(*cases); i++) {
		uint32_t k = (uint32_t)(i / RELEASES);

		make();
		of_releases[i % RELEASES]();
		fprintf(stderr, "# at %u%s\n", cases[k].offset, cases[k].exact ? ", exact" : "");
		CHECK_STR(step_at(cases[k].offset, cases[k].exact), cases[k].frames);
	}
}

/* The text of the script of make_code() becomes this. */
static void set_text(const char *source)
{
	unsigned char *old = memmem(m.memory, sizeof(m.memory), "a\nb\nc\nd", 7);

	CHECK(old && strlen(source) == 12 && memcpy(old, source, 12));
}

/* Calls that cannot be deoptimized, as of what records writes, have no entry in the table: the call
 * before them is another's. */
TEST(a_call_without_a_place)
{
	static const uint32_t known[] = {105, 106, 305}, of_maglev[] = {504, 508, 512};
	static const struct {
		uint32_t offset;
		const char *frames, *otherwise;
	} cases[] = {
		{105, "inner:1 middle:5 outer:3 ", "inner:1 middle:5 outer:3 "},
		{108, "outer:0 ", "inner:1 middle:5 outer:3 "},
		{205, "outer:0 ", "middle:3 outer:3 "},
		{305, "outer:5 ", "outer:5 "},
	};

	for (size_t i = 0; i < RELEASES * sizeof(cases) / sizeof(*cases); i++) {
		uint32_t k = (uint32_t)(i / RELEASES);

		returns = known;
		make();
		of_releases[i % RELEASES]();
		CHECK_STR(step_at(cases[k].offset, false), cases[k].frames);
		returns = of_maglev; /* it notes where the exits are */
		make();
		of_releases[i % RELEASES]();
		CHECK_STR(step_at(cases[k].offset, false), cases[k].otherwise);
	}
	/* a builtin without a frame was called there */
	for (uint32_t i = 0; i < 2 * RELEASES; i++) {
		returns = known;
		make();
		of_releases[i % RELEASES]();
		put(m.native.u.sp + 16, JIT + 106 + i / RELEASES);
		CHECK_STR(step_in(CODE + 0x200, true),
			  i < RELEASES ? "inner:1 middle:5 outer:3 " : "outer:0 ");
	}
	returns = NULL;
}

/* Position 5, of a call and of where it was inlined, is a loop's: Maglev gives it to all that is
 * behind the first iteration, so that no line is known. */
TEST(a_call_at_a_loop)
{
	static const struct {
		const char *source;
		uint32_t offset;
		const char *frames;
	} cases[] = {
		{"a\nb\n;for(g)\n", 205, "middle:0 outer:0 "},
		{"a\nb\n;for(g)\n", 105, "inner:1 middle:3 outer:0 "},
		{"a\nb\n;for(g)\n", 305, "outer:3 "},
		{"a\nb\n.for(g)\n", 205, "middle:3 outer:3 "},
		{"a\nb\n.for(g)\n", 105, "inner:1 middle:3 outer:3 "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make();
		make_code();
		set_text(cases[i].source);
		CHECK_STR(step_at(cases[i].offset, false), cases[i].frames);
	}
}

/* Code that Sparkplug has made of a function with four bytecodes: 1 byte, 3 bytes, a wide one of 4
 * bytes, 2 bytes. What makes the frame has 20 bytes, and they have 10, 20, 200 and 5. */
static uint64_t make_baseline(void)
{
	static const unsigned char bytes[] = {9, 10, 1, 2, 0, 10, 1, 0, 11, 1},
				   offsets[] = {20, 10, 20, 0xc8, 1, 5};
	uint64_t bytecode = object(T_BYTECODE, 11), table = object(T_BYTES, 4), code, positions;
	uint64_t f = function(text("base"), m.script), context;

	make_code();
	memcpy(&context, m.memory + STACK + 0x100 - 8, 8);
	memcpy(&code, m.memory + JIT - 32 + 8, 8);
	positions = object(T_BYTES, 4);
	set(positions, 8, number(sizeof(TABLE)));
	memcpy(m.memory + positions - 1 + 16, TABLE, sizeof(TABLE));
	set(bytecode, 8, number(sizeof(bytes)));
	set(bytecode, 24, positions);
	memcpy(m.memory + bytecode - 1 + 64, bytes, sizeof(bytes));
	set(table, 8, number(sizeof(offsets)));
	memcpy(m.memory + table - 1 + 16, offsets, sizeof(offsets));
	set(code, 8, bytecode);
	set(code, 16, table);
	frame(0, f, context, bytecode, f);
	m.words[V8_BYTECODES] = 12;
	m.words[V8_BYTECODE_SIZES] = 0x01010101;
	m.words[V8_BYTECODE_SIZES + 2] = 2u << 24 | 3 << 16 | 1 << 8;
	m.words[V8_BYTECODE_SIZES + 64 + 2] = 3 << 16;
	return table;
}

/* TABLE has position 0 up to bytecode 2, 5 up to 6, and then 9: lines 1, 2, 3. */
TEST(code_of_sparkplug)
{
	static const struct {
		uint32_t offset;
		const char *frame;
	} cases[] = {{3, "base:1 "},   {20, "base:1 "},  {29, "base:1 "},
		     {30, "base:1 "},  {50, "base:2 "},  {249, "base:2 "},
		     {250, "base:3 "}, {254, "base:3 "}, {255, "base:0 "}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make();
		make_baseline();
		fprintf(stderr, "# at %u\n", cases[i].offset);
		CHECK_STR(step_at(cases[i].offset, true), cases[i].frame);
		make();
		make_baseline();
		CHECK_STR(step_at(cases[i].offset + 1, false), cases[i].frame);
	}
}

/* A function was interrupted before it has made its frame, so the frame is its caller's: the place
 * counts for none in the caller, and the caller gets nothing of the other's bytecode. */
TEST(code_before_its_frame)
{
	for (int baseline = 0; baseline < 2; baseline++) {
		uint64_t fp = STACK + 0x100, bytecode;

		make();
		memcpy(&bytecode, m.memory + fp - 32, 8);
		if (baseline)
			make_baseline();
		else
			make_code();
		put(fp - 16, function(text("caller"), m.script));
		put(fp - 32, bytecode);
		CHECK_STR(step_at(205, true), "caller:0 ");
		CHECK_INT(m.native.u.pushed[1], V8_NO_OFFSET);
	}
}

/* The table of offsets has not as many entries as there are bytecodes, or a size is not known. */
TEST(code_of_sparkplug_does_not_fit)
{
	for (uint32_t n = 0; n < 6; n++) {
		make();
		set(make_baseline(), 8, number(n));
		CHECK_STR(step_at(50, true), "base:0 ");
	}
	make();
	make_baseline();
	m.words[V8_BYTECODE_SIZES + 2] = 2u << 24 | 4 << 16 | 1 << 8;
	CHECK_STR(step_at(50, true), "base:0 ");
	make();
	make_baseline();
	m.words[V8_BYTECODES] = 11;
	CHECK_STR(step_at(50, true), "base:0 ");
	make();
	make_baseline();
	m.words[V8_BYTECODES] = 0;
	CHECK_STR(step_at(50, true), "base:0 ");
}

/* Interrupted in a builtin without a frame, which has pushed two words: the call is right above
 * them. An address in the code of another function is none. */
TEST(a_builtin_without_a_frame)
{
	struct fusee_unwind *u = &m.native.u;

	for (int other = 0; other < 2; other++) {
		make();
		make_baseline();
		put(u->sp, 7);
		put(u->sp + 8, number(3));
		put(u->sp + 16, JIT + 51);
		if (other)
			put(u->fp - 32, object(T_BYTECODE, 9));
		CHECK_STR(step_in(CODE + 0x200, true), other ? "base:0 " : "base:2 ");
	}
	/* of optimized code, which has its function in its data */
	for (uint32_t i = 0; i < RELEASES; i++) {
		make();
		of_releases[i]();
		put(u->sp + 16, JIT + 106);
		CHECK_STR(step_in(CODE + 0x200, true), "inner:0 middle:5 outer:3 ");
	}
}

/* ---- several frames at a call of the step, with notes, as in the kernel ---- */

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
	u->npushed = 0;
	u->file = u->pc < JIT;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST);
	return 1;
}

/* A walk of the stack at hand, at this time; 0: without notes. Returns what was pushed. */
static uint64_t pushed_at(uint64_t time)
{
	struct fusee_unwind u = m.native.u;

	m.native.note = time ? note_made : NULL;
	m.native.go_on = time ? go_on_made : NULL;
	m.native.u.time_ns = time;
	m.reads = 0;
	CHECK_INT(walk(), FUSEE_NEXT);
	m.native.u = u;
	return pushed;
}

/* So many calls of the function of frame 0, each of which returns to `pc`. */
static void make_recursion(uint32_t depth, uint64_t pc)
{
	uint64_t fp = STACK + 0x100, w[5];

	memcpy(w, m.memory + fp - 40, sizeof(w));
	for (uint32_t i = 0; i < depth; i++) {
		frame(i, w[3], w[4], w[1], w[0] == 0 ? 0 : number(63 + i));
		put(STACK + 0x100 * (i + 1ull) + 8, i == depth - 1 ? NATIVE : pc);
	}
	m.native.u.pc = pc;
	m.native.u.flags = 0;
}

static int emitted_always(struct fusee_native *n, __u32 kind, __u64 key)
{
	return 1;
}

static void make_interpreted(uint32_t depth)
{
	make();
	make_recursion(depth, CODE + 0x100);
}

static void make_calls(void (*code)(void), uint32_t depth)
{
	make();
	code();
	make_recursion(depth, JIT + 105);
	m.native.emitted = emitted_always;
}

static void make_sparkplug(void)
{
	make_baseline();
}

/* Of a function that was met in this walk, only words on the stack are read; if it was met in an
 * earlier walk, less than without a note. */
TEST(known_functions)
{
	uint64_t expected;
	uint32_t reads;

	memset(notes, 0, sizeof(notes));
	make_interpreted(FRAMES);
	pushed_at(0); /* all is emitted */
	expected = pushed_at(0);
	CHECK_STR(m.stack, "work@/a/b.js:0 work@/a/b.js:1 work@/a/b.js:2 work@/a/b.js:3 "
			   "work@/a/b.js:4 work@/a/b.js:5 work@/a/b.js:6 work@/a/b.js:7 ");
	CHECK(pushed_at(1) == expected);
	CHECK(pushed_at(1) == expected);
	reads = m.reads;
	make_interpreted(FRAMES / 2);
	pushed_at(1);
	CHECK_INT(reads - m.reads, 2 * FRAMES / 2);
	make_interpreted(1);
	pushed_at(0);
	pushed_at(0);
	reads = m.reads;
	pushed_at(2);
	/* the stack four times, the function, what it has, its script; the bytecode's type */
	CHECK_INT(m.reads, 4 + 3 + 2);
	CHECK(m.reads <= reads - 4);
}

static void (*const codes[])(void) = {make_code, make_code_of_v8_13, make_code_of_v8_10,
				      make_sparkplug};
#define CODES (sizeof(codes) / sizeof(*codes))

TEST(known_calls)
{
	for (size_t i = 0; i < CODES; i++) {
		uint64_t expected;
		uint32_t reads, few;

		memset(notes, 0, sizeof(notes));
		make_calls(codes[i], FRAMES);
		expected = pushed_at(0);
		CHECK(pushed_at(1) == expected);
		CHECK(pushed_at(1) == expected);
		reads = m.reads;
		make_calls(codes[i], FRAMES / 2);
		pushed_at(1);
		CHECK_INT(reads - m.reads, FRAMES / 2);
		make_calls(codes[i], 1);
		pushed_at(0);
		few = m.reads;
		pushed_at(2);
		fprintf(stderr, "# %u reads, %u with a note\n", few, m.reads);
		/* the stack, the function, what it has, its script; the head, the code */
		CHECK_INT(m.reads, codes[i] == make_code_of_v8_10 ? 5 : 6);
		CHECK(m.reads <= few - 8);
	}
}

/* What is noted does not count where another object is now. */
TEST(other_functions_than_were_known)
{
	for (int what = 0; what < 7; what++) {
		uint64_t before, expected, fp = STACK + 0x100, function, shared, bytecode, to, map;

		memset(notes, 0, sizeof(notes));
		make_interpreted(FRAMES);
		pushed_at(0);
		before = pushed_at(1);
		memcpy(&function, m.memory + fp - 16, 8);
		memcpy(&bytecode, m.memory + fp - 32, 8);
		memcpy(&shared, m.memory + function - 1 + 32, 8);
		memcpy(&map, m.memory + function - 1, 8);
		if (what == 0)
			set(shared, 16, text("other"));
		else if (what == 1)
			set(function, 32, shared_of("other", m.script));
		else if (what == 2)
			set(m.script, SCRIPT_ID, number(10));
		else if (what == 3) /* its slot has another object */
			set(function, 0, object(T_CLASS + 1, 2) - 16);
		else if (what == 4) /* no SharedFunctionInfo */
			set(shared, 0, map);
		else if (what == 5) /* no bytecode: it is not interpreted */
			set(bytecode, 0, map);
		else /* another bytecode, of the same function */
			set(bytecode, 8, number(39));
		if (what == 6) {
			to = object(T_BYTECODE, 10);
			for (uint32_t i = 0; i < FRAMES; i += 2)
				put(STACK + 0x100 * (i + 1ull) - 32, to);
		}
		expected = pushed_at(0);
		CHECK((expected == before) == (what == 6));
		CHECK(pushed_at(2) == expected);
		CHECK(pushed_at(3) == expected);
	}
}

/* The garbage collector moves the function and what it has between two samples. */
TEST(known_functions_that_are_moved)
{
	for (int what = 0; what < 2; what++) {
		uint64_t expected, fp = STACK + 0x100, function, shared, from, to;

		memset(notes, 0, sizeof(notes));
		make_interpreted(FRAMES);
		pushed_at(0);
		pushed_at(1);
		memcpy(&function, m.memory + fp - 16, 8);
		memcpy(&shared, m.memory + function - 1 + 32, 8);
		from = (what ? shared : function) - 1;
		to = object(0, 8) - 1;
		memcpy(m.memory + to, m.memory + from, 64);
		put(from, to);
		memset(m.memory + from + 8, 0x55, 56);
		expected = pushed_at(0);
		CHECK(strstr(m.stack, "work@/a/b.js:7 ") != NULL);
		CHECK(pushed_at(2) == expected);
		CHECK(pushed_at(3) == expected);
	}
}

TEST(other_code_than_was_known)
{
	for (int i = 0; i < (int)CODES * 5; i++) {
		uint64_t before, expected, code = JIT - 128 + 1, other, function, shared;
		void (*make_it)(void) = codes[i / 5];
		bool old = make_it == make_code_of_v8_10;
		int what = i % 5;
		uint32_t size = 64;

		memset(notes, 0, sizeof(notes));
		make_calls(make_it, FRAMES);
		pushed_at(1);
		before = pushed_at(2);
		if (!old)
			memcpy(&code, m.memory + JIT - 32 + 8, 8);
		memcpy(&function, m.memory + STACK + 0x100 - 16, 8);
		memcpy(&shared, m.memory + function - 1 + 32, 8);
		other = object(T_CODE, 9);
		memcpy(m.memory + other - 1, m.memory + code - 1, 72);
		if (what == 0 && !old) /* another object of the same code */
			put(JIT - 32 + 8, other);
		else if (what == 1) /* other positions */
			set(code, old ? 24 : 16, object(T_BYTES, 3));
		else if (what == 2) /* the code ends before */
			memcpy(m.memory + code - 1 + (old ? 40 : 52), &size, 4);
		else if (what == 3 && !old) /* it begins in another place */
			set(code, 40, JIT + 64);
		else /* another function */
			set(shared, 16, text("other"));
		expected = pushed_at(0);
		CHECK(expected != before);
		CHECK(pushed_at(3) == expected);
		CHECK(pushed_at(4) == expected);
	}
}

/* Each read fails in turn in a walk with notes: what is pushed is known then, or nothing. */
TEST(reads_fail_with_notes)
{
	for (uint32_t k = 1;; k++) {
		uint64_t expected;

		memset(notes, 0, sizeof(notes));
		make_calls(make_code, FRAMES);
		expected = pushed_at(1);
		m.native.u.time_ns = 2;
		m.reads = 0;
		m.fails = k;
		{
			struct fusee_unwind u = m.native.u;

			walk();
			m.native.u = u;
		}
		if (m.reads < k)
			break;
		m.fails = 0;
		CHECK(pushed_at(3) == expected);
	}
}

/* Each read fails in turn: the frames are right, or only the function that was compiled. */
TEST(compiled_code_cannot_be_read)
{
	uint32_t n, right = 0, outer = 0;

	make();
	make_code();
	n = m.reads;
	step_at(105, false);
	n = m.reads - n;
	for (uint32_t k = 1; k <= n; k++) {
		const char *frames;

		make();
		make_code();
		m.fails = m.reads + k;
		frames = step_at(105, false);
		right += !strcmp(frames, "inner:1 middle:5 outer:3 ");
		outer += !strcmp(frames, "outer:0 ");
		CHECK(!strcmp(frames, "inner:1 middle:5 outer:3 ") || strstr("outer:0 ?", frames) ||
		      !strcmp(frames, "inner:0 middle:0 outer:0 "));
	}
	CHECK(right && outer);
}

/* ---- the file ---- */

static struct fusee_claim claimed;

static int keep_claim(struct fusee_instance *in, uint64_t process, const struct fusee_claim *c)
{
	claimed = *c;
	return 0;
}

/* Memory of WebAssembly becomes executable page by page. */
TEST(memory_of_webassembly_is_claimed_ahead)
{
	static const unsigned char begins[] = {0x55, 0x48, 0x89, 0xe5, 0x6a};
	static const struct fusee_unwinder_host unwinder = {.process_read = process_read,
							    .process_claim = keep_claim};
	static const struct fusee_host host = {.unwinder = &unwinder};
	const struct fusee_unwinder_ops *ops = fusee_plugin.ops;
	struct fusee_mapping_view view = FUSEE_SIZED(struct fusee_mapping_view,
						     .flags = FUSEE_VIEW_LIBRARY);
	const uint64_t lo = (JIT + 0xfff) & ~0xfffull;

	make();
	m.words[V8_WASM_MARKER] = 8;
	ctx = calloc(1, fusee_plugin.ctx_size);
	fusee_plugin.init(ctx, NULL, &host);
	view.table = (struct fusee_table){m.words, V8_WORDS, 4};
	ops->mapped(ctx, 1, &view);
	view = (struct fusee_mapping_view)FUSEE_SIZED(struct fusee_mapping_view, .lo = lo,
						      .hi = lo + 0x1000);
	claimed = (struct fusee_claim){0};
	ops->mapped(ctx, 1, &view);
	CHECK(!claimed.flags);
	memcpy(m.memory + lo + 64, begins, sizeof(begins));
	m.memory[lo + 64 + sizeof(begins)] = 8;
	ops->mapped(ctx, 1, &view);
	CHECK(claimed.flags & FUSEE_CLAIM_NAME);
	CHECK(claimed.range.lo == lo && claimed.range.hi >= lo + (1u << 20));
	m.words[V8_WASM_MARKER] = 0;
	fusee_plugin.fini(ctx);
	free(ctx);
}

TEST(constants_that_are_missing)
{
	make();
	m.lacks = "class_Script__name__Object";
	CHECK_INT(inspect(), -ENOTSUP);
	CHECK_STR(m.said, "JavaScript's functions are not named: this V8 does not export "
			  "v8dbg_class_Script__name__Object");
	m.lacks = "HeapObjectTag";
	CHECK_INT(inspect(), -ENOTSUP);
	CHECK_STR(m.said, "JavaScript's functions are not named: this V8 exports no constants for "
			  "debuggers");
	m.lacks = "LastJSFunctionType";
	CHECK_INT(inspect(), -ENOTSUP); /* the other name of it is missing too */
}

TEST(constants_that_are_others)
{
	make();
	m.memory[FILE_AT + 4 * 3] = 0; /* compressed pointers */
	CHECK_INT(inspect(), -ENOTSUP);
	CHECK_STR(m.said, "JavaScript's functions are not named: this V8 has v8dbg_SmiShiftSize 0, "
			  "and not 31");
	for (uint32_t i = 0; i < CONSTANTS; i++) {
		make();
		memset(m.memory + FILE_AT + 4 * i, 0xff, 4);
		inspect();
	}
}

TEST(damaged_emissions)
{
	struct {
		struct v8_function head;
		char text[8];
	} f = {{.script = 7, .name = {4, 0}}, "name"};
	void *names = NULL;
	const uint64_t n = sizeof(f.head) + 4;

	CHECK_INT(v8_names_add(&names, 1, V8_FUNCTION, 1, &f, 3), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_FUNCTION, 1, &f, n + 1), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_FUNCTION, 1, &f, n - 1), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, 77, 1, &f, n), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS, 1, "\1\0\0\0a", 5), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_SCRIPT, 1, &f, 4), -EBADMSG);
	CHECK(v8_names_add(&names, 1, V8_FUNCTION, 1, &f, n) > 0);
	CHECK_INT(v8_names_add(&names, 1, V8_FUNCTION, 1, &f, n), 0);
	CHECK(v8_names_function(&names, 1, 1) != NULL);
	CHECK(!v8_names_function(&names, 2, 1));
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS, 1, "\1\0\0\0a", 3), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS, 1, "\1\0\0\0ab", 6), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS + 1, 1, "\1\0\0\0a", 5), -EBADMSG);
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS, 1, "\1\0\0\0a", 5), 1);
	CHECK_INT(v8_names_add(&names, 1, V8_POSITIONS, 1, "\1\0\0\0a", 5), 0);
	v8_names_remove(&names, 1);
	CHECK(!v8_names_function(&names, 1, 1));
	v8_names_free(&names);
}
