/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/jitdump
#include "test.h"

#include <fusee/testing.h>

#include "dumpfile.h"
#include "texts.h"

extern const struct fusee_plugin fusee_plugin;

/* ---- a file ---- */

#define V8 0xdeadbeefu
#define PID 42u

struct text {
	uint8_t at[1 << 16];
	uint32_t n;
};

static void put(struct text *t, uint64_t v, uint32_t size)
{
	CHECK(t->n + size <= sizeof(t->at));
	memcpy(t->at + t->n, &v, size);
	t->n += size;
}

static void put_bytes(struct text *t, const void *p, size_t n)
{
	CHECK(t->n + n <= sizeof(t->at));
	memcpy(t->at + t->n, p, n);
	t->n += (uint32_t)n;
}

static void header(struct text *t, uint32_t machine, uint32_t reserved, uint32_t pid)
{
	put(t, 0x4a695444, 4);
	put(t, 1, 4);
	put(t, 40, 4);
	put(t, machine, 4);
	put(t, reserved, 4);
	put(t, pid, 4);
	put(t, 7, 8);
	put(t, 0, 8);
}

/* A record begins; its size is set by end(). */
static uint32_t begin(struct text *t, uint32_t id)
{
	put(t, id, 4);
	put(t, 0, 4);
	put(t, 1000, 8);
	return t->n - 16;
}

static void end(struct text *t, uint32_t at)
{
	uint32_t size = t->n - at;

	memcpy(t->at + at + 4, &size, 4);
}

static void load(struct text *t, uint64_t addr, uint64_t size, uint64_t index, const char *name)
{
	uint32_t at = begin(t, 0);

	put(t, PID, 4);
	put(t, PID, 4);
	put(t, addr, 8);
	put(t, addr, 8);
	put(t, size, 8);
	put(t, index, 8);
	put_bytes(t, name, strlen(name) + 1);
	for (uint64_t i = 0; i < size && i < 64; i++)
		put(t, 0xc3, 1);
	end(t, at);
}

static void move(struct text *t, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	uint32_t at = begin(t, 1);

	put(t, PID, 4);
	put(t, PID, 4);
	put(t, to, 8);
	put(t, from, 8);
	put(t, to, 8);
	put(t, size, 8);
	put(t, index, 8);
	end(t, at);
}

struct at_line {
	uint64_t addr;
	uint32_t line;
	const char *file;
	uint32_t nfile; /* bytes; 0: strlen() */
};

static void lines(struct text *t, uint64_t addr, const struct at_line *l, uint32_t n)
{
	uint32_t at = begin(t, 2);

	put(t, addr, 8);
	put(t, n, 8);
	for (uint32_t i = 0; i < n; i++) {
		put(t, l[i].addr, 8);
		put(t, l[i].line, 4);
		put(t, 0, 4);
		put_bytes(t, l[i].file, l[i].nfile ? l[i].nfile : strlen(l[i].file));
		put(t, 0, 1);
	}
	end(t, at);
}

#define LINES(t, addr, ...)                                         \
	do {                                                        \
		const struct at_line all_[] = {__VA_ARGS__};        \
		lines(t, addr, all_, sizeof(all_) / sizeof(*all_)); \
	} while (0)

static uint32_t generation;

static uint32_t changed(void *arg)
{
	return ++generation;
}

/* The file has these bytes now, and is read. */
static int look(struct dumpfile *s, const struct text *t, uint32_t n)
{
	CHECK_INT(ftruncate(s->fd, 0), 0);
	CHECK_INT(pwrite(s->fd, t->at, n, 0), n);
	s->next_ns = 0; /* at once */
	return dumpfile_read(s, changed, NULL);
}

static struct dumpfile make(uint64_t max)
{
	struct dumpfile s;

	generation = 1;
	CHECK_INT(dumpfile_init(&s, PID, max), 0);
	s.fd = memfd_create("dump", MFD_CLOEXEC);
	return s;
}

static struct dumpfile of(const struct text *t)
{
	struct dumpfile s = make(8 << 20);

	CHECK_INT(look(&s, t, t->n), 0);
	return s;
}

/* "name file:line" of the address; "": none. */
static const char *at(const struct dumpfile *s, uint64_t addr, uint32_t g)
{
	static char text[4][128];
	static int turn;
	struct dump_found f;
	char *out = text[turn++ % 4];

	*out = '\0';
	if (dumpfile_lookup(s, addr, g, &f) && f.line)
		snprintf(out, sizeof(*text), "%.*s %.*s:%u", (int)f.name.len, f.name.p,
			 (int)f.file.len, f.file.p, f.line);
	else if (dumpfile_lookup(s, addr, g, &f))
		snprintf(out, sizeof(*text), "%.*s", (int)f.name.len, f.name.p);
	return out;
}

static uint64_t refused(const struct dumpfile *s)
{
	uint64_t n = 0;

	for (int i = 0; i < DUMP_FAULTS; i++)
		n += s->faults[i];
	return n;
}

/* ---- what it says ---- */

TEST(code)
{
	static struct text t;
	struct dumpfile s;

	header(&t, 62, 0, PID);
	load(&t, 0x1000, 0x10, 0, "one");
	end(&t, begin(&t, 3));
	end(&t, begin(&t, 77)); /* of a later version */
	load(&t, 0x2000, 0x20, 1, "two (of) them");
	s = of(&t);
	CHECK_STR(at(&s, 0xfff, 1), "");
	CHECK_STR(at(&s, 0x1000, 1), "one");
	CHECK_STR(at(&s, 0x100f, 1), "one");
	CHECK_STR(at(&s, 0x1010, 1), "");
	CHECK_STR(at(&s, 0x201f, 1), "two (of) them");
	CHECK_INT(refused(&s), 0);
	CHECK_INT(generation, 1);
	/* other code in its place: frames of before have the old name */
	load(&t, 0x1008, 0x10, 2, "three");
	CHECK_INT(look(&s, &t, t.n), 0);
	CHECK_INT(generation, 2);
	CHECK_STR(at(&s, 0x1008, 1), "one");
	CHECK_STR(at(&s, 0x1008, 2), "three");
	CHECK_STR(at(&s, 0x1007, 2), "one");
	dumpfile_fini(&s);
}

TEST(lines_of_code)
{
	static struct text t;
	struct dumpfile s;

	header(&t, 62, 0, PID);
	LINES(&t, 0x1000, {0x1004, 10, "a.c", 0}, {0x1008, 12, "\xff", 0}, {0x1006, 11, "b.c", 0},
	      {0x100c, 13, "a.c", 0});
	load(&t, 0x1000, 0x10, 0, "f");
	load(&t, 0x2000, 0x10, 1, "g");
	LINES(&t, 0x3000, {0x3000, 1, "c.c", 0}); /* of code that does not come */
	load(&t, 0x4000, 0x10, 2, "h");
	s = of(&t);
	CHECK_STR(at(&s, 0x1003, 1), "f");
	CHECK_STR(at(&s, 0x1005, 1), "f a.c:10");
	CHECK_STR(at(&s, 0x1006, 1), "f b.c:11");
	CHECK_STR(at(&s, 0x100b, 1), "f a.c:12");
	CHECK_STR(at(&s, 0x100f, 1), "f a.c:13");
	CHECK_STR(at(&s, 0x2000, 1), "g");
	CHECK_STR(at(&s, 0x4000, 1), "h");
	CHECK_INT(s.faults[DUMP_NO_CODE], 1);
	CHECK_INT(refused(&s), 1);
	dumpfile_fini(&s);
}

/* V8 20: addresses have 64 bytes too much, and the first 16 bytes of a file's name are what an
 * allocator has written there, with zeros. */
TEST(lines_of_v8)
{
	static struct text t;
	struct dumpfile s;

	header(&t, 62, V8, PID);
	LINES(&t, 0x1000, {0x1040, 3, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0script.js", 25},
	      {0x1044, 4, "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0script.js", 25},
	      {0x1048, 900, "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0another.js", 26},
	      {0x104c, 5, "\7\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0script.js", 25});
	load(&t, 0x1000, 0x10, 0, "JS:*f /home/of/someby/script.js:2:9");
	s = of(&t);
	CHECK_INT(refused(&s), 0);
	CHECK_STR(at(&s, 0x1003, 1),
		  "JS:*f /home/of/someby/script.js:2:9 /home/of/someby/script.js:3");
	CHECK_STR(at(&s, 0x1004, 1),
		  "JS:*f /home/of/someby/script.js:2:9 /home/of/someby/script.js:4");
	CHECK_STR(at(&s, 0x1008, 1), "JS:*f /home/of/someby/script.js:2:9"); /* inlined */
	CHECK_STR(at(&s, 0x100d, 1),
		  "JS:*f /home/of/someby/script.js:2:9 /home/of/someby/script.js:5");
	dumpfile_fini(&s);
}

TEST(moved)
{
	static struct text t;
	struct dumpfile s;

	header(&t, 62, 0, PID);
	LINES(&t, 0x1000, {0x1004, 10, "a.c", 0});
	load(&t, 0x1000, 0x10, 5, "f");
	load(&t, 0x2000, 0x10, 6, "g");
	s = of(&t);
	move(&t, 0x1000, 0x2000, 0x10, 5);
	move(&t, 0x2000, 0x7000, 0x10, 5); /* and on */
	move(&t, 0x1000, 0x8000, 0x10, 5); /* it is not there any more */
	move(&t, 0x1000, 0x8000, 0x10, 9);
	CHECK_INT(look(&s, &t, t.n), 0);
	CHECK_INT(generation, 2);
	CHECK_STR(at(&s, 0x2004, 1), "g");
	CHECK_STR(at(&s, 0x2004, 2), "f a.c:10");
	CHECK_STR(at(&s, 0x7004, 2), "f a.c:10");
	CHECK_STR(at(&s, 0x8000, 2), "");
	CHECK_INT(s.faults[DUMP_NOT_MOVED], 2);
	dumpfile_fini(&s);
}

/* ---- foreign bytes ---- */

TEST(headers)
{
	static const struct {
		uint32_t machine, pid;
		enum dump_refusal refusal;
	} cases[] = {
		{62, PID, DUMP_ACCEPTED},
		{0, PID, DUMP_ACCEPTED},
		{183, PID, DUMP_OTHER_MACHINE},
		{62, PID + 1, DUMP_OTHER_PROCESS},
	};
	static struct text t;
	struct dumpfile s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		t.n = 0;
		header(&t, cases[i].machine, 0, cases[i].pid);
		load(&t, 0x1000, 0x10, 0, "one");
		s = make(8 << 20);
		CHECK_INT(look(&s, &t, t.n), cases[i].refusal ? -EPERM : 0);
		CHECK_INT(s.refusal, cases[i].refusal);
		CHECK_STR(at(&s, 0x1000, 1), cases[i].refusal ? "" : "one");
		dumpfile_fini(&s);
	}
	s = make(8 << 20);
	memset(t.at, 'x', 100);
	CHECK_INT(look(&s, &t, 39), 0); /* not there yet */
	CHECK_INT(look(&s, &t, 100), -EPERM);
	CHECK_INT(s.refusal, DUMP_NO_DUMP);
	dumpfile_fini(&s);
}

/* However much of it is there: what is complete has its name, and the rest has when it comes. */
TEST(grows)
{
	static struct text t;
	struct dumpfile s = make(8 << 20);
	uint32_t one, two;

	header(&t, 62, 0, PID);
	LINES(&t, 0x1000, {0x1000, 10, "a.c", 0});
	load(&t, 0x1000, 0x10, 0, "one");
	one = t.n;
	load(&t, 0x2000, 0x10, 1, "two");
	two = t.n;
	put(&t, 0, 8); /* as in a file that is longer than what was written */
	put(&t, 0, 8);
	put(&t, 0, 8);
	for (uint32_t n = 0; n <= t.n; n++) {
		CHECK_INT(look(&s, &t, n), 0);
		CHECK_STR(at(&s, 0x1000, 1), n < one ? "" : "one a.c:10");
		CHECK_STR(at(&s, 0x2000, 1), n < two ? "" : "two");
	}
	CHECK(!s.damaged && !s.rewrites && generation == 1);
	t.n = two;
	load(&t, 0x3000, 0x10, 2, "three");
	CHECK_INT(look(&s, &t, t.n), 0);
	CHECK_STR(at(&s, 0x3000, 1), "three");
	dumpfile_fini(&s);
}

TEST(rewritten)
{
	static struct text t;
	struct dumpfile s;

	header(&t, 62, 0, PID);
	load(&t, 0x1000, 0x10, 0, "a longer name");
	s = of(&t);
	for (int i = 0; i < 2; i++) {
		t.n = 0;
		header(&t, 62, 0, PID);
		t.at[24] = (uint8_t)(8 + i); /* its time */
		load(&t, 0x3000, 0x10, 0, i ? "a longer name still" : "short");
		CHECK_INT(look(&s, &t, t.n), 0);
		CHECK_INT(s.rewrites, i + 1);
		CHECK_INT(generation, i + 2);
		CHECK_STR(at(&s, 0x1000, 1), i ? "" : "a longer name");
		CHECK_STR(at(&s, 0x1000, i + 2), "");
		CHECK_STR(at(&s, 0x3000, i + 2), i ? "a longer name still" : "short");
	}
	dumpfile_fini(&s);
}

TEST(sizes_that_lie)
{
	static const uint32_t sizes[] = {1, 15, DUMP_LONGEST + 1, UINT32_MAX};
	static struct text t;
	uint32_t first;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct dumpfile s;
		uint32_t at_bad;

		t.n = 0;
		header(&t, 62, 0, PID);
		load(&t, 0x1000, 0x10, 0, "one");
		at_bad = t.n;
		load(&t, 0x2000, 0x10, 1, "two");
		memcpy(t.at + at_bad + 4, &sizes[i], 4);
		s = of(&t);
		CHECK(s.damaged);
		CHECK_STR(at(&s, 0x1000, 1), "one");
		CHECK_STR(at(&s, 0x2000, 1), "");
		dumpfile_fini(&s);
	}
	/* each kind of record with each size up to its own */
	for (uint32_t id = 0; id < 6; id++)
		for (uint32_t size = 16; size < 80; size++) {
			struct dumpfile s;

			t.n = 0;
			header(&t, 62, 0, PID);
			first = begin(&t, id);
			for (uint32_t k = 16; k < size; k++)
				put(&t, 0xff, 1);
			end(&t, first);
			load(&t, 0x1000, 0x10, 0, "one");
			s = of(&t);
			CHECK_STR(at(&s, 0x1000, 1), "one");
			dumpfile_fini(&s);
		}
}

TEST(bad_ranges)
{
	static struct text t;
	struct dumpfile s;
	char name[3000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	header(&t, 62, 0, PID);
	load(&t, 0x1000, 0, 0, "empty");
	load(&t, 0x1000, 1ull << 31, 1, "large");
	load(&t, 0x1000, 1ull << 32 | 16, 2, "larger");
	load(&t, UINT64_MAX - 4, 0x10, 3, "wraps");
	load(&t, 0x2000, 0x10, 4, name);
	load(&t, 0x1000, 0x10, 5, "one");
	s = of(&t);
	CHECK_INT(s.faults[DUMP_BAD_RANGE], 4);
	CHECK_INT(s.faults[DUMP_TRUNCATED], 1);
	CHECK_STR(at(&s, 0x1000, 1), "one");
	CHECK(strlen(at(&s, 0x2000, 1)) == 127);
	dumpfile_fini(&s);
}

/* Whatever comes, it has its limit, and what was there stays. */
TEST(memory)
{
	for (uint32_t kind = 0; kind < 3; kind++) {
		struct dump *d = dump_new(1 << 20);
		struct dump_found f;
		static struct text t;

		t.n = 0;
		load(&t, 0xffff0000, 0x10, 0, "first");
		dump_record(d, 0, t.at + 16, t.n - 16);
		for (uint32_t k = 1; k < 60000; k++) {
			char name[64];

			t.n = 0;
			snprintf(name, sizeof(name), "a name of some length, %u", k);
			if (kind == 1) {
				LINES(&t, k * 16ull, {k * 16ull, k, "a", 0},
				      {k * 16ull + 1, k, "b", 0});
				dump_record(d, 2, t.at + 16, t.n - 16);
				t.n = 0;
			}
			load(&t, kind == 2 ? 0x1000 : k * 16ull, 16, kind == 2 ? 7 : k,
			     kind ? "same" : name);
			dump_record(d, 0, t.at + 16, t.n - 16);
			if (dump_pending(d) >= DUMP_PENDING)
				dump_commit(d, k);
			CHECK(dump_bytes(d) <= 1 << 20);
		}
		dump_commit(d, 60000);
		CHECK(dump_bytes(d) <= 1 << 20);
		CHECK(dump_faults(d)[DUMP_FULL] > 0);
		CHECK(dump_lookup(d, 0xffff0000, 60000, &f) && f.name.len == 5);
		dump_free(d);
	}
}

/* The next name, from *n on, whose hash (FNV-1a, folded) has 10 bits of zero: such names all begin
 * at the first slot. */
static struct fusee_str colliding(char name[16], uint32_t *n)
{
	uint64_t h;

	do {
		snprintf(name, 16, "f%u", (*n)++);
		h = 0xcbf29ce484222325u;
		for (const char *c = name; *c; c++)
			h = (h ^ (uint8_t)*c) * 0x100000001b3u;
		h ^= h >> 32;
	} while (h & 0x3ff);
	return fusee_text(name);
}

/* Names chosen such that their hashes are alike cost no long searches: those beyond 64 are kept
 * again at each use, and all are right. */
TEST(names_that_collide)
{
	static uint32_t before[200];
	struct texts t = {0};
	uint32_t shared = 0, same, other;
	char name[16];

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0, n = 0; i < 200; i++) {
			struct fusee_str want = colliding(name, &n);
			uint32_t text;

			CHECK(texts_add(&t, want, &text));
			CHECK(fusee_text_same(texts_get(&t, text), want));
			shared += pass && text == before[i];
			before[i] = text;
		}
	}
	CHECK_INT(shared, 64);
	CHECK(texts_add(&t, fusee_text("another"), &same));
	CHECK(texts_add(&t, fusee_text("another"), &other));
	CHECK_INT(same, other);
	texts_fini(&t);
}

/* ---- the plugin ---- */

TEST(plugin)
{
	struct fusee_testing p = {
		.plugin = &fusee_plugin, .process = {.pid = 7, .ns_pid = PID}, .root = test_dir()};
	static struct text t;
	char path[128];
	FILE *f;

	header(&t, 62, 0, PID);
	LINES(&t, 0x1000, {0x1004, 10, "a.c", 0});
	load(&t, 0x1000, 0x10, 0, "f");
	load(&t, 0x10000, 0xb, 1, "py::g:b.py");
	CHECK_INT(fusee_testing_init(&p), 0);
	CHECK_INT(fusee_testing_mapped(&p, 7, 0x1000, 0x2000), 0);
	CHECK_INT(p.nprocess_claims, 0); /* no file yet */
	snprintf(path, sizeof(path), "%s/jit-42.dump", p.root);
	f = fopen(path, "w");
	CHECK(f && fwrite(t.at, t.n, 1, f) == 1 && !fclose(f));
	CHECK_INT(fusee_testing_mapped(&p, 8, 0x1000, 0x2000), 0);
	CHECK_INT(p.nprocess_claims, 1);
	CHECK_INT(p.process_claims[0].flags, FUSEE_CLAIM_NAME);
	CHECK_INT(fusee_testing_mapped(&p, 8, 0x4000, 0x5000), 0);
	CHECK_INT(p.nprocess_claims, 1);
	CHECK_INT(fusee_testing_mapped(&p, 8, 0x10000, 0x11000), 0);
	CHECK_INT(p.process_claims[1].flags, FUSEE_CLAIM_NAME | FUSEE_CLAIM_STEP);
	CHECK_INT(fusee_testing_symbolize(&p, 8, 0x1004), 1);
	CHECK_INT(fusee_testing_symbolize(&p, 8, 0x1000), 1);
	CHECK_INT(fusee_testing_symbolize(&p, 8, 0x10000), 1);
	CHECK_INT(fusee_testing_symbolize(&p, 8, 0x5000), 0);
	CHECK_STR(p.frames, "f:10;f:0;g:0;");
	fusee_testing_fini(&p);
}

/* A file that is mapped and cannot be opened is counted once; what is not mapped is not counted. */
TEST(cannot_be_opened)
{
	struct fusee_testing p = {
		.plugin = &fusee_plugin, .process = {.pid = 7, .ns_pid = PID}, .root = test_dir()};
	char path[128];

	CHECK_INT(fusee_testing_init(&p), 0);
	CHECK_INT(fusee_testing_mapped(&p, 7, 0x1000, 0x2000), 0);
	CHECK_INT(p.counted, 0);
	snprintf(path, sizeof(path), "%s/jit-42.dump", p.root);
	CHECK(!mkdir(path, 0700));
	CHECK_INT(fusee_testing_mapped(&p, 8, 0x1000, 0x2000), 0);
	CHECK_INT(fusee_testing_mapped(&p, 8, 0x3000, 0x4000), 0);
	CHECK_INT(p.counted, 1);
	CHECK_INT(p.nprocess_claims, 0);
	fusee_testing_fini(&p);
}
