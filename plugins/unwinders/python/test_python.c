/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/python
#include "test.h"

#include <fusee/unwinder.bpf.h>

#include "codes.h"
#include "find.h"
#include "lines.h"
#include "tables.h"
#include "text.h"

/* ---- the counter of code objects ---- */

/* _PyCode_New() of 3.12.1 and 3.13.0 */
static const unsigned char counter_312[] =
	"\x48\x8d\x15\x17\x67\x40\x00\x66\x0f\x6e\xe0\x66\x41\x0f\x6e\xc8\x44\x89\x53\x58"
	"\x66\x0f\x62\xcb\x66\x0f\x62\xc4\x8b\x02\x66\x0f\x6c\xc1\x0f\x11\x43\x48\x89\x43"
	"\x5c\x85\xc0\x74\x05\x83\xc0\x01\x89\x02\x66\x0f\xef\xc0\x48\xc7";
static const unsigned char counter_313[] =
	"\x0f\x11\x43\x48\x41\x8b\x86\x68\x42\x00\x00\x89\x43\x5c\x85\xc0\x74\x0a\x83\xc0"
	"\x01\x41\x89\x86\x68\x42\x00\x00\x66\x0f\xef\xc0";

static uint64_t counter(const unsigned char *code, uint32_t n, int in_struct)
{
	unsigned char *exact = malloc(n);
	uint64_t found;

	memcpy(exact, code, n);
	found = python_find_counter((struct fusee_code){exact, n, 0x1760e2}, in_struct);
	free(exact);
	return found;
}

TEST(counter_of_code_objects)
{
	unsigned char twice[2 * sizeof(counter_313)];

	CHECK(counter(counter_312, sizeof(counter_312), 0) == 0x57c800);
	CHECK(counter(counter_313, sizeof(counter_313), 1) == 0x4268);
	CHECK(!counter(counter_312, sizeof(counter_312), 1));
	CHECK(!counter(counter_313, sizeof(counter_313), 0));
	for (uint32_t n = 0; n < 28; n++) /* up to the store */
		CHECK(!counter(counter_313, n, 1));
	memcpy(twice, counter_313, sizeof(counter_313));
	memcpy(twice + sizeof(counter_313), counter_313, sizeof(counter_313));
	CHECK(counter(twice, sizeof(twice), 1) == 0x4268);
	twice[sizeof(counter_313) + 7]++; /* of the load: nothing is counted there */
	CHECK(counter(twice, sizeof(twice), 1) == 0x4268);
	twice[sizeof(counter_313) + 24]++; /* of the store: two are */
	CHECK(!counter(twice, sizeof(twice), 1));
}

/* ---- texts ---- */

static int reads_as(const char *bytes, unsigned short n, unsigned char kind,
		    unsigned char shortened, const char *expected)
{
	struct python_text t = {n, kind, shortened};
	char *text = python_text((const unsigned char *)bytes, &t);
	int same = text && !strcmp(text, expected);

	free(text);
	return same;
}

TEST(texts_of_each_kind)
{
	CHECK(reads_as("main", 4, 1, 0, "main"));
	CHECK(reads_as("gr\xf6\xdf"
		       "e",
		       5, 1, 0, "größe"));
	CHECK(reads_as("\xfd\x51\x70\x65", 4, 2, 0, "函数"));
	CHECK(reads_as("\x00\xf6\x01\x00", 4, 4, 0, "\xf0\x9f\x98\x80"));
	CHECK(reads_as("abc", 3, 1, 1, "abc..."));
	CHECK(reads_as("", 0, 1, 0, ""));
}

TEST(damaged_texts)
{
	CHECK(reads_as("\x00\xd8", 2, 2, 0, "\xef\xbf\xbd"));         /* half of a pair */
	CHECK(reads_as("\xff\xff\xff\xff", 4, 4, 0, "\xef\xbf\xbd")); /* above 10ffff */
	CHECK(reads_as("\x41\x00\x00", 3, 2, 0, "A"));                /* half a character */
	CHECK(reads_as("ab", 2, 7, 0, "ab"));                         /* no such kind */
}

/* ---- code objects ---- */

struct emission {
	struct python_head head;
	char name[8], file[8];
	unsigned char table[PYTHON_PART_BYTES];
};

static struct emission emission(uint32_t table)
{
	struct emission e = {.head = {.first_line = 7,
				      .table = table,
				      .name = {4, 1, 0},
				      .file = {5, 1, 0},
				      .minor = 13},
			     .name = "main",
			     .file = "/a.py"};

	e.head.part.bytes = table < PYTHON_PART_BYTES ? table : PYTHON_PART_BYTES;
	memset(e.table, 0x80, sizeof(e.table)); /* each: one instruction, on the line before */
	return e;
}

static uint64_t length(const struct emission *e)
{
	return sizeof(*e) - sizeof(e->table) + e->head.part.bytes;
}

TEST(code_object_in_one_emission)
{
	void *processes = NULL;
	struct emission e = emission(10);
	const struct python_code *c;

	CHECK(python_codes_add(&processes, 1, 42, &e, length(&e)) >
	      (int)sizeof(struct python_code));
	CHECK_INT(python_codes_add(&processes, 1, 42, &e, length(&e)), 0); /* again */
	c = python_codes_find(&processes, 1, 42);
	CHECK(c && !strcmp(c->name, "main") && !strcmp(c->file, "/a.py"));
	CHECK(c && c->first_line == 7 && c->minor == 13 && c->nlines == 10 && c->arrived == 10);
	CHECK(!python_codes_find(&processes, 1, 43));
	CHECK(!python_codes_find(&processes, 2, 42));
	python_codes_remove(&processes, 1);
	CHECK(!python_codes_find(&processes, 1, 42));
	python_codes_remove(&processes, 1);
	python_codes_free(&processes);
}

TEST(code_object_in_parts)
{
	void *processes = NULL;
	struct emission e = emission(2 * PYTHON_PART_BYTES + 5);
	struct {
		struct python_part head;
		unsigned char table[PYTHON_PART_BYTES];
	} part = {.head = {.part = 2, .bytes = 5}};
	const struct python_code *c;

	CHECK(python_codes_add(&processes, 1, 42, &e, length(&e)) >= 0);
	c = python_codes_find(&processes, 1, 42);
	CHECK(c && c->arrived == PYTHON_PART_BYTES);
	CHECK(python_codes_add(&processes, 1, 42, &part, 8 + 5) >= 0);
	CHECK_INT(c->arrived, PYTHON_PART_BYTES); /* the part before it is missing */
	part.head = (struct python_part){1, PYTHON_PART_BYTES};
	CHECK(python_codes_add(&processes, 1, 42, &part, sizeof(part)) >= 0);
	CHECK(python_codes_add(&processes, 1, 42, &part, sizeof(part)) >= 0); /* again */
	part.head = (struct python_part){2, 5};
	CHECK(python_codes_add(&processes, 1, 42, &part, 8 + 5) >= 0);
	CHECK_INT(c->arrived, 2 * PYTHON_PART_BYTES + 5);
	part.head = (struct python_part){3, 5};
	CHECK(python_codes_add(&processes, 1, 42, &part, 8 + 5) >= 0);
	CHECK_INT(c->arrived, 2 * PYTHON_PART_BYTES + 5);             /* more than the table has */
	CHECK(python_codes_add(&processes, 1, 9, &part, 8 + 5) >= 0); /* of no code object */
	python_codes_free(&processes);
}

TEST(damaged_emissions)
{
	void *processes = NULL;
	struct emission e = emission(10);

	for (uint64_t n = 0; n < sizeof(e.head); n++)
		CHECK_INT(python_codes_add(&processes, 1, n, &e, n), -EBADMSG);
	e.head.name.bytes = 60000;
	CHECK_INT(python_codes_add(&processes, 1, 100, &e, length(&e)), -EBADMSG);
	e = emission(10);
	e.head.file.bytes = 60000;
	CHECK_INT(python_codes_add(&processes, 1, 100, &e, length(&e)), -EBADMSG);
	e = emission(10);
	e.head.table = PYTHON_PARTS * PYTHON_PART_BYTES + 1;
	CHECK_INT(python_codes_add(&processes, 1, 100, &e, length(&e)), -EBADMSG);
	e = emission(10);
	e.head.part.bytes = 60000;
	CHECK_INT(python_codes_add(&processes, 1, 100, &e, sizeof(e)), -EBADMSG);
	e.head.part = (struct python_part){PYTHON_PARTS, 0};
	CHECK_INT(python_codes_add(&processes, 1, 100, &e, length(&e)), -EBADMSG);
	CHECK(!python_codes_find(&processes, 1, 100));
	python_codes_free(&processes);
}

TEST(memory_of_one_process_is_limited)
{
	void *processes = NULL;
	struct emission e = emission(PYTHON_PARTS * PYTHON_PART_BYTES);
	int err = 0;
	uint64_t key = 0;

	while (err >= 0 && key < 1000)
		err = python_codes_add(&processes, 1, key++, &e, length(&e));
	CHECK_INT(err, -ENOSPC);
	CHECK(key > 400);
	CHECK(python_codes_add(&processes, 2, 1, &e, length(&e)) >= 0); /* others have theirs */
	python_codes_free(&processes);
}

/* ---- versions ---- */

TEST(versions_that_are_known)
{
	uint32_t words[PYTHON_WORDS];

	for (uint32_t minor = 8; minor <= 12; minor++)
		CHECK_INT(python_version_words(3u << 24 | minor << 16, words), 0);
	CHECK_INT(python_version_words(3u << 24 | 7u << 16, words), -ENOTSUP);
	CHECK_INT(python_version_words(3u << 24 | 13u << 16, words), -ENOTSUP);
	CHECK_INT(python_version_words(2u << 24 | 8u << 16, words), -ENOTSUP);
}

/* What 3.13.0's file has. */
static void debug_offsets(uint64_t o[PYTHON_DEBUG_OFFSETS / 8])
{
	memset(o, 0, PYTHON_DEBUG_OFFSETS);
	memcpy(o, "xdebugpy", 8);
	o[1] = 0x030d00f0;
	o[5] = 632;
	o[8] = 7264;
	o[9] = 7344;
	o[21] = 8;
	o[23] = 72;
	o[24] = 152;
	o[29] = 8;
	o[31] = 56;
	o[33] = 70;
	o[35] = 112;
	o[36] = 120;
	o[37] = 128;
	o[38] = 136;
	o[39] = 68;
	o[43] = 200;
	o[68] = 32;
	o[69] = 16;
	o[70] = 40;
}

TEST(offsets_of_3_13)
{
	uint64_t o[PYTHON_DEBUG_OFFSETS / 8];
	uint32_t words[PYTHON_WORDS];

	debug_offsets(o);
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), 0);
	CHECK_INT(words[PYTHON_FAMILY], PYTHON_CHAIN);
	CHECK_INT(words[PYTHON_CODE], 64);
	CHECK_INT(words[PYTHON_FIRST_LINE], 32);
	CHECK_INT(words[PYTHON_FRAME], 48 | 3 << 8);
	CHECK_INT(words[PYTHON_TEXT], 40 | 56 << 16);
	CHECK_INT(words[PYTHON_VERSION], 13 << 8);
}

/* Without the GIL objects have a longer header; as _PyRuntime of 3.13.5 has it. */
TEST(offsets_without_the_gil)
{
	static const uint64_t code[] = {128, 136, 144, 152, 84}, text[] = {48, 32, 56};
	uint64_t o[PYTHON_DEBUG_OFFSETS / 8];
	uint32_t words[PYTHON_WORDS];

	debug_offsets(o);
	o[2] = 1;
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
	memcpy(o + 35, code, sizeof(code));
	o[43] = 216;
	memcpy(o + 68, text, sizeof(text));
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), 0);
	CHECK_INT(words[PYTHON_HEADER], 16);
	CHECK_INT(words[PYTHON_CODE], 80);
	CHECK_INT(words[PYTHON_FIRST_LINE], 32);
	CHECK_INT(words[PYTHON_TEXT], 40 | 56 << 16);
	CHECK_INT(words[PYTHON_KEY], 2160);
	o[2] = 0;
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
}

/* As _PyRuntime of 3.14.4 without the GIL has it: each thread has bytecode of its own. */
TEST(offsets_of_3_14_without_the_gil)
{
	static const uint64_t thread[] = {8, 16, 72, 152}, frame[] = {8, 0, 56, 80, 78, 64, 72},
			      code[] = {128, 136, 144, 152, 84, 64, 112, 120, 232, 224},
			      text[] = {48, 32, 56};
	uint64_t o[PYTHON_DEBUG_OFFSETS / 8] = {0};
	uint32_t words[PYTHON_WORDS];

	memcpy(o, "xdebugpy", 8);
	o[1] = 0x030e04f0;
	o[2] = 1;
	o[20] = 7600;
	memcpy(o + 24, thread, sizeof(thread));
	memcpy(o + 32, frame, sizeof(frame));
	memcpy(o + 40, code, sizeof(code));
	memcpy(o + 78, text, sizeof(text));
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), 0);
	CHECK_INT(words[PYTHON_COPIES], 224);
	CHECK_INT(words[PYTHON_KIND], 8);
	CHECK_INT(words[PYTHON_BYTECODE], 232);
	CHECK_INT(words[PYTHON_COUNTER], 7600);
	CHECK_INT(words[PYTHON_FRAME], 112 | 3 << 8);
	o[38] = 68; /* the step reads the number of a copy at 72 */
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
	o[38] = 72;
	o[49] = 0;
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
}

TEST(offsets_that_contradict_are_refused)
{
	static const uint32_t fixed[] = {21, 29, 31, 33, 35, 36, 37, 38, 39, 68, 69};
	uint64_t o[PYTHON_DEBUG_OFFSETS / 8];
	uint32_t words[PYTHON_WORDS];

	debug_offsets(o);
	CHECK_INT(python_debug_words((void *)o, sizeof(o) - 1, words), -EBADMSG);
	o[1] = 0x030f00f0;
	CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -ENOTSUP);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		debug_offsets(o);
		o[fixed[i]] += 100;
		CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
		o[fixed[i]] = ~0ull;
		CHECK_INT(python_debug_words((void *)o, sizeof(o), words), -EBADMSG);
	}
}

/* ---- lines: tests/run/python-lines holds them against the interpreters ---- */

TEST(truncated_tables_have_no_more_lines)
{
	static const unsigned char table[] = {0x80, 0x00, 0xe8, 0x02, 0xf0, 0x40, 0x40, 0x40};

	for (uint32_t minor = 8; minor < 15; minor++)
		for (uint32_t n = 0; n <= sizeof(table); n++) {
			struct python_lines l = {minor, 5, table, n};

			for (uint32_t at = 0; at < 3000; at++)
				CHECK(python_line(&l, at) < 1000);
			CHECK(minor < 10 || !python_line(&l, PYTHON_NO_INSTRUCTION));
		}
}

TEST(lines_that_are_not_positive_are_none)
{
	/* svarint -3 from line 2 */
	struct python_lines l = {12, 2, (const unsigned char *)"\xe8\x07", 2};

	CHECK_INT(python_line(&l, 0), 0);
	l.first_line = 10;
	CHECK_INT(python_line(&l, 0), 7);
}

/* ---- the step over made-up memory ---- */

int fusee_step_python(struct fusee_unwind *u);

/* Where things are in it: two C frames, of which the first has all Python frames of the thread. */
enum {
	RUNTIME = 0x100,
	THREAD = 0x400,
	STATE = 0x800,
	CODE = 0xa00,
	FRAME = 0xc00,
	INNER = 0x1000
};
enum { END = INNER + 0x80, OUTER = 0x1800, MEMORY = 0x2000 };

struct made {
	struct fusee_native native;
	uint32_t words[PYTHON_WORDS];
	uint64_t memory[MEMORY / 8];
};

static int read_made(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct made *m = n->arg;

	if (addr >= MEMORY || len > MEMORY - addr)
		return -1;
	memcpy(dst, (char *)m->memory + addr, len);
	return 0;
}

static struct made *make(uint32_t place)
{
	static struct made m;

	memset(&m, 0, sizeof(m));
	m.words[PYTHON_FAMILY] = PYTHON_CHAIN;
	m.words[PYTHON_RUNTIME] = RUNTIME;
	m.words[PYTHON_KEY] = 0x40;
	m.words[PYTHON_THREAD_ID] = 0x10;
	m.words[PYTHON_CURRENT] = 0x18;
	m.words[PYTHON_PLACE] = place;
	m.words[PYTHON_FRAME] = 3 << 8;
	m.memory[(RUNTIME + 0x40) / 8] = 1 | 2ull << 32; /* made, number 2 */
	m.memory[(THREAD + 0x310 + 2 * 16 + 8) / 8] = STATE;
	m.memory[(STATE + 0x10) / 8] = THREAD;
	m.memory[(STATE + 0x18) / 8] = FRAME;
	m.memory[CODE / 8 + PYTHON_NEW_FILENAME] = 1; /* not the code that initializes instances */
	m.memory[FRAME / 8] = CODE;
	m.memory[FRAME / 8 + 1] = END;
	m.memory[END / 8 + 8] = 3;
	m.native = (struct fusee_native){.read = read_made, .arg = &m, .slab = m.words};
	m.native.u.slab_words = PYTHON_WORDS;
	m.native.u.tls = THREAD;
	m.native.u.sp = INNER;
	m.native.u.fp = INNER + 0x200;
	m.native.u.flags = FUSEE_FIRST;
	return &m;
}

/* Lets the step push all frames of a C frame. Their number; *next: its last answer. */
static int frames(struct made *m, int *next)
{
	int n = 0;

	do {
		*next = fusee_step_python(&m->native.u);
		n += (int)m->native.u.npushed;
		m->native.u.npushed = 0;
	} while (*next == FUSEE_AGAIN && n < 100);
	return n;
}

/* The list of the thread's frames has ended in an inner C frame: the outer one belongs to a
 * greenlet that this greenlet was started from. Also where the place of entry_frame is not known,
 * or fp.
 */
TEST(c_frames_without_python_frames)
{
	static const struct {
		uint32_t place, flags;
	} ways[] = {{END - INNER, 0},
		    {0, 0},
		    {PYTHON_BELOW_FP | 0x180, 0},
		    {PYTHON_BELOW_FP | 8, FUSEE_FP_LOST}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct made *m = make(ways[i].place);
		int next;

		m->native.u.flags |= ways[i].flags;
		CHECK_INT(frames(m, &next), 1);
		CHECK_INT(next, FUSEE_NATIVE);
		m->native.u.sp = OUTER;
		m->native.u.fp = OUTER + 0x200;
		m->native.u.flags &= ~(uint32_t)FUSEE_FIRST;
		CHECK_INT(frames(m, &next), 0);
		CHECK_INT(next, FUSEE_STOP);
		CHECK_INT(m->native.u.error, PYTHON_OUT_OF_STEP);
	}
}

/* What ends the frames of a C frame is not where that C frame has it. */
TEST(frames_of_another_c_frame)
{
	struct made *m = make(END - INNER - 8);
	int next;

	CHECK_INT(frames(m, &next), 1);
	CHECK_INT(next, FUSEE_STOP);
	CHECK_INT(m->native.u.error, PYTHON_OUT_OF_STEP);
}

/* A thread that runs no Python yet has none. */
TEST(a_thread_without_python_frames)
{
	for (uint32_t place = 0; place <= 8; place += 8) {
		struct made *m = make(place);
		int next;

		m->memory[(STATE + 0x18) / 8] = 0;
		m->native.u.flags = 0;
		CHECK_INT(frames(m, &next), 0);
		CHECK_INT(next, FUSEE_NATIVE);
	}
}
