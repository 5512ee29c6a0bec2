/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/v8
/* Modules of WebAssembly in a process that is made up: which function is at an address, and its
 * name. Then with each byte of a module another, and with each read failing in turn. */
#include "test.h"

#include "modules.h"

#define MEMORY 0x40000
#define BASE 0x100000
#define MARKER 8

/* Where things are in the process. */
enum {
	MANAGED = BASE + 0x100,
	SHARED = BASE + 0x200,
	NATIVE = BASE + 0x300,
	POINTER = BASE + 0x800,
	WIRE = BASE + 0x1000,
	TABLE = BASE + 0x20000,
	CODE = BASE + 0x21000,
};

/* One imported function, three that are declared: the second has a name, the third is exported. */
static const unsigned char wire[] = {
	0, 'a', 's', 'm',  1,   0,   0,   0,                              /* */
	1, 4,   1,   0x60, 0,   0,                                        /* types */
	2, 14,  2,   1,    'e', 1,   'm', 2,   0, 1,                      /* imports: a memory, */
	1, 'e', 1,   'f',  0,   0,                                        /* a function */
	3, 4,   3,   0,    0,   0,                                        /* functions */
	7, 13,  2,   3,    'o', 'u', 't', 0,   3, 3, 'm', 'e', 'm', 2, 0, /* exports */
	0, 22,  4,   'n',  'a', 'm', 'e', 0,   2, 1, 'm',           /* names: of the module, */
	1, 11,  2,   0,    3,   'i', 'm', 'p', 2, 3, 't', 'w', 'o', /* of functions */
};
enum { IMPORTED = 1, DECLARED = 3 };

static struct {
	unsigned char memory[MEMORY];
	uint32_t reads, fails; /* fails: the number of the read that fails, from 1 on */
	int err;
} m;

static int process_read(uint64_t process, uint64_t at, void *to, uint32_t n)
{
	if (++m.reads == m.fails)
		return m.err;
	if (at < BASE || at - BASE >= MEMORY || n > MEMORY - (at - BASE))
		return -EFAULT;
	memcpy(to, m.memory + (at - BASE), n);
	return 0;
}

static const struct fusee_unwinder_host host = {.process_read = process_read};

static void put(uint64_t at, const void *what, size_t n)
{
	memcpy(m.memory + (at - BASE), what, n);
}

static void put_word(uint64_t at, uint64_t v)
{
	put(at, &v, sizeof(v));
}

static void put_jump(uint64_t at, unsigned char code, uint64_t to)
{
	int32_t distance = (int32_t)(to - at - 5);

	put(at, &code, 1);
	put(at + 1, &distance, sizeof(distance));
}

static void put_function(uint64_t at)
{
	static const unsigned char begins[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, MARKER, 0x56};

	put(at, begins, sizeof(begins));
}

static uint64_t code(uint32_t function)
{
	return CODE + 0x400ull * function;
}

static struct v8_module emitted;

/* slot: bytes of a slot in the jump table */
static void make(uint32_t slot)
{
	memset(&m, 0, sizeof(m));
	m.err = -EFAULT;
	put(WIRE, wire, sizeof(wire));
	put_word(MANAGED + 24, SHARED);
	put_word(SHARED, NATIVE);
	put_word(NATIVE + 200, POINTER);
	put_word(POINTER, WIRE);
	put_word(POINTER + 8, sizeof(wire));
	for (uint32_t i = 0; i < DECLARED; i++) {
		put_jump(TABLE + i * slot, 0xe9, code(i));
		put_function(code(i));
	}
	emitted = (struct v8_module){.managed = MANAGED, .instance = {[5] = MANAGED, [9] = TABLE}};
}

static struct v8_modules all;
static uint64_t keys;

/* The name of the function at the address, or what add_place() has returned. */
static const char *name_at(uint64_t at, uint64_t caller)
{
	struct v8_wasm w = {.module = 7, .at = at, .caller = caller};
	struct v8_memory memory = {&host, 1, MARKER, false};
	static char name[V8_FUNCTION_NAME];
	uint64_t script;

	v8_modules_add_place(&all, &memory, ++keys, &w, sizeof(w));
	if (!v8_modules_name(&all, keys, name, &script))
		return "unknown";
	CHECK(script == 7);
	return name;
}

/* As name_at(), of code without a frame. */
static const char *name_of_bare(uint64_t at)
{
	static char name[V8_FUNCTION_NAME];
	uint64_t script;

	if (!v8_modules_name_at(&all, at, name, &script))
		return "unknown";
	CHECK(script == 7);
	return name;
}

static void add(void)
{
	struct v8_memory memory = {&host, 1, MARKER, false};

	CHECK(v8_modules_add(&all, &memory, 7, &emitted, sizeof(emitted)) > 0);
}

static void end(void)
{
	v8_modules_free(&all);
	memset(&all, 0, sizeof(all));
}

TEST(names_of_functions)
{
	for (uint32_t slot = 5; slot <= 8; slot += 3) {
		make(slot);
		add();
		CHECK(v8_modules_has(&all, 7) && !v8_modules_has(&all, 8));
		CHECK_STR(name_at(code(0), 0), "wasm-function[1]");
		CHECK_STR(name_at(code(0) + 0x3ff, 0), "wasm-function[1]");
		CHECK_STR(name_at(code(1) + 5, 0), "two");
		CHECK_STR(name_at(code(2) + 0x1000, 0), "out");
		CHECK_STR(name_at(TABLE + 1, 0), "unknown");
		end();
	}
}

TEST(code_without_a_frame)
{
	for (uint32_t slot = 5; slot <= 8; slot += 3) {
		make(slot);
		add();
		CHECK_STR(name_of_bare(TABLE + slot), "two");
		CHECK_STR(name_of_bare(TABLE + DECLARED * slot), "unknown");
		CHECK_STR(name_of_bare(TABLE - 1), "unknown");
		CHECK_STR(name_of_bare(code(1) + 1), "two");
		CHECK_STR(name_of_bare(code(2) + 0x80), "unknown");
		name_at(code(2) + 0x90, 0); /* so it reaches that far */
		CHECK_STR(name_of_bare(code(2) + 0x80), "out");
		CHECK_STR(name_of_bare(code(2) + 0x91), "unknown");

		/* another function is there now: its size is not known */
		put_jump(TABLE + slot, 0xe9, code(2));
		put_jump(TABLE + 2 * slot, 0xe9, code(9));
		put_function(code(9));
		name_at(code(9) + 9, 0);
		CHECK_STR(name_of_bare(code(2) + 1), "two");
		CHECK_STR(name_of_bare(code(2) + 0x80), "unknown");
		/* each look keeps what is known of the same function */
		name_at(code(9) + 0x70, 0);
		put_jump(TABLE, 0xe9, code(10));
		put_function(code(10));
		name_at(code(10) + 9, 0);
		CHECK_STR(name_of_bare(code(9) + 0x70), "out");
		end();
	}
	CHECK_STR(name_of_bare(code(1)), "unknown");
}

TEST(code_that_was_replaced)
{
	const uint64_t better = code(8), after = code(4) + 0x20;
	unsigned char of_v8_13[11] = {0x41, 0xbc, 2, 0, 0, 0, 0xe8};

	make(8);
	add();
	put_jump(TABLE + 8, 0xe9, better);
	put_function(better);
	CHECK_STR(name_at(better + 9, 0), "two");
	CHECK_STR(name_at(code(1) + 9, 0), "two"); /* as the table was */

	put_function(code(4)); /* never in the table */
	CHECK_STR(name_at(code(4) + 9, 0), "unknown");
	put_jump(after, 0xe8, TABLE + 8); /* but this has called it */
	CHECK_STR(name_at(code(4) + 9, after + 5), "two");
	put_jump(after, 0xe8, TABLE + 9);
	CHECK_STR(name_at(code(4) + 9, after + 5), "unknown");

	put(code(5), of_v8_13, sizeof(of_v8_13));
	CHECK_STR(name_at(code(5) + 9, 0), "out");

	/* another function is there now */
	put_jump(TABLE + 16, 0xe9, code(1));
	CHECK_STR(name_at(code(1) + 9, 0), "out");
	end();
}

TEST(a_busy_machine)
{
	struct v8_memory memory = {&host, 1, MARKER, false};
	struct v8_wasm w = {.module = 7, .at = code(1) + 9};
	char name[V8_FUNCTION_NAME];
	uint64_t script;

	make(5);
	for (uint32_t i = 0; i < 20; i++) { /* however often: it is no reason to give up */
		m.fails = m.reads + 1;
		m.err = -EAGAIN;
		if (!i)
			add();
		else
			CHECK_STR(name_at(code(1) + 9, 0), "unknown");
	}
	m.fails = 0;
	CHECK(v8_modules_add_place(&all, &memory, 999, &w, sizeof(w)) > 0);
	v8_modules_refresh(&all, &memory);
	for (uint64_t k = 1; k <= keys; k++)
		if (v8_modules_name(&all, k, name, &script))
			CHECK_STR(name, "two");
	CHECK(v8_modules_name(&all, keys, name, &script));
	CHECK(v8_modules_name(&all, 999, name, &script));
	end();
}

TEST(each_read_fails_in_turn)
{
	uint32_t reads, unknown = 0;

	make(5);
	add();
	name_at(code(1) + 9, 0);
	reads = m.reads;
	end();
	CHECK(reads > 10);
	for (uint32_t i = 1; i <= reads; i++) {
		const char *name;

		make(5);
		m.fails = i;
		add();
		name = name_at(code(1) + 9, 0);
		CHECK(!strcmp(name, "two") || !strcmp(name, "unknown"));
		unknown += !strcmp(name, "unknown");
		end();
	}
	CHECK(unknown);
}

/* Nothing in a module harms more than its own names. */
TEST(each_byte_is_another_in_turn)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < sizeof(wire); i++)
		for (uint32_t k = 0; k < 6; k++) {
			static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, 0x64};

			make(5);
			m.memory[WIRE - BASE + i] = values[k];
			add();
			others += strcmp(name_at(code(1) + 9, 0), "two") != 0;
			end();
		}
	CHECK(others > 100);
	for (uint32_t n = 0; n < sizeof(wire); n++) {
		make(5);
		put_word(POINTER + 8, n);
		add();
		CHECK(strcmp(name_at(code(1) + 9, 0), "two") != 0);
		end();
	}
}

TEST(memory_with_code)
{
	unsigned char page[4096] = {0};

	make(8);
	CHECK(v8_modules_is_code(m.memory + (TABLE - BASE), 4096, MARKER));
	CHECK(v8_modules_is_code(m.memory + (CODE - BASE), 4096, MARKER));
	make(5);
	CHECK(v8_modules_is_code(m.memory + (TABLE - BASE), 4096, MARKER));
	CHECK(!v8_modules_is_code(page, sizeof(page), MARKER));
	memcpy(page + 128, m.memory + (CODE - BASE), 16); /* what was freed is before it */
	CHECK(v8_modules_is_code(page, sizeof(page), MARKER));
	CHECK(v8_modules_is_code(page, sizeof(page), MARKER - 2)); /* a wrapper */
	CHECK(!v8_modules_is_code(page, sizeof(page), MARKER + 2));
	memmove(page + 100, page + 128, 16); /* functions begin at multiples of 64 bytes */
	memset(page + 128, 0, 16);
	CHECK(!v8_modules_is_code(page, sizeof(page), MARKER));
}

TEST(emissions_of_another_size)
{
	struct v8_memory memory = {&host, 1, MARKER, false};

	make(5);
	CHECK(v8_modules_add(&all, &memory, 7, &emitted, sizeof(emitted) - 1) == -EBADMSG);
	CHECK(v8_modules_add_place(&all, &memory, 7, &emitted, 1) == -EBADMSG);
	end();
}
