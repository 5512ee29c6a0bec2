/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/perfmap
#include "test.h"

#include <sys/mount.h>

#include "map.h"
#include "mapfile.h"

/* ---- the map ---- */

static void feed(struct map *m, const char *text)
{
	map_feed(m, text, strlen(text));
}

/* The name at addr as text, "" none. */
static const char *at(const struct map *m, uint64_t addr, uint32_t generation)
{
	static char text[8][64];
	static int turn;
	struct fusee_str name;
	char *out = text[turn++ % 8];

	*out = '\0';
	if (map_lookup(m, addr, generation, &name))
		snprintf(out, sizeof(*text), "%.*s", (int)name.len, name.p);
	return out;
}

struct named {
	uint64_t addr;
	uint32_t generation;
	const char *name;
};

/* {address, generation, name} of each. */
#define NAMES_BY(call, from, ...)                                                                 \
	do {                                                                                      \
		const struct named all_[] = {__VA_ARGS__};                                        \
		for (size_t i_ = 0; i_ < sizeof(all_) / sizeof(*all_); i_++)                      \
			CHECK_STR(call(from, all_[i_].addr, all_[i_].generation), all_[i_].name); \
	} while (0)
#define NAMES(map, ...) NAMES_BY(at, map, __VA_ARGS__)

TEST(lines)
{
	struct map *m = map_new(1 << 20);
	const uint64_t *faults = map_faults(m);

	feed(m, "1000 10 one\n0x0000000000002000 0x20 two with  blanks\r\n");
	feed(m, "3000\t8\tthree\nDEAD00 F hexadecimal\n4000 10 not yet");
	map_commit(m, 1);
	NAMES(m, {0xfff, 1, ""}, {0x1000, 1, "one"}, {0x100f, 1, "one"}, {0x1010, 1, ""},
	      {0x201f, 1, "two with  blanks"}, {0x3007, 1, "three"}, {0xdead0e, 1, "hexadecimal"},
	      {0x4000, 1, ""});
	feed(m, "\n");
	map_commit(m, 1);
	CHECK_STR(at(m, 0x4000, 1), "not yet");
	for (int i = 0; i < MAP_FAULTS; i++)
		CHECK_INT(faults[i], 0);
	map_free(m);
}

TEST(what_makes_no_sense)
{
	static const struct {
		const char *line;
		enum map_fault fault;
	} cases[] = {
		{"x\n", MAP_NO_NUMBERS},
		{" 1000 10 a\n", MAP_NO_NUMBERS},
		{"1000\n", MAP_NO_NUMBERS},
		{"1000 10\n", MAP_NO_NUMBERS},
		{"1000 10 \n", MAP_NO_NUMBERS},
		{"1000 -10 a\n", MAP_NO_NUMBERS},
		{"+1000 10 a\n", MAP_NO_NUMBERS},
		{"0x 10 a\n", MAP_NO_NUMBERS},
		{"1000,10,a\n", MAP_NO_NUMBERS},
		{"10000000000000000 10 a\n", MAP_NO_NUMBERS},
		{"1000 0 a\n", MAP_BAD_RANGE},
		{"1000 40000001 a\n", MAP_BAD_RANGE},
		{"0 ffffffffffffffff a\n", MAP_BAD_RANGE},
		{"fffffffffffffff0 20 a\n", MAP_BAD_RANGE},
	};
	struct map *m = map_new(1 << 20);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t before = map_faults(m)[cases[i].fault];

		feed(m, cases[i].line);
		map_commit(m, 1);
		fprintf(stderr, "# case %zu\n", i);
		CHECK_INT(map_faults(m)[cases[i].fault], before + 1);
		CHECK_INT(map_entries(m), 0);
	}
	map_free(m);
}

/* A name of 1 MB is truncated, fed in pieces of all sizes; what comes behind it is right. */
TEST(long_lines)
{
	for (size_t piece = 1; piece < 100000; piece = piece * 7 + 1) {
		struct map *m = map_new(1 << 20);
		size_t len = (1 << 20) + 64, n = 0;
		char *text = malloc(len);
		struct fusee_str name;

		if (!text)
			abort();
		n = (size_t)sprintf(text, "1000 10 ");
		memset(text + n, 'x', 1 << 20);
		n += 1 << 20;
		n += (size_t)sprintf(text + n, "\n2000 10 two\n");
		for (size_t i = 0; i < n; i += piece)
			map_feed(m, text + i, n - i < piece ? n - i : piece);
		map_commit(m, 1);
		CHECK(map_lookup(m, 0x1000, 1, &name));
		CHECK(name.len <= MAP_LINE && name.len > MAP_LINE - 16);
		CHECK_STR(at(m, 0x2000, 1), "two");
		CHECK_INT(map_faults(m)[MAP_TRUNCATED], 1);
		map_free(m);
		free(text);
	}
}

TEST(later_entries_win)
{
	struct map *m = map_new(1 << 20);

	feed(m,
	     "1000 100 old\n1040 10 middle\n10f0 20 right\nff0 20 lower\n2000 10 a\n2000 10 b\n");
	CHECK(!map_replaces(m)); /* within what comes at one time */
	map_commit(m, 1);
	NAMES(m, {0xff0, 1, "lower"}, {0x100f, 1, "lower"}, {0x1010, 1, "old"},
	      {0x1040, 1, "middle"}, {0x1050, 1, "old"}, {0x10ef, 1, "old"}, {0x110f, 1, "right"},
	      {0x2000, 1, "b"});
	feed(m, "2000 10 b\n3000 10 c\n");
	CHECK(!map_replaces(m));
	map_commit(m, 1);
	feed(m, "1038 10 new\n");
	CHECK(map_replaces(m));
	map_commit(m, 2);
	NAMES(m, {0x1037, 2, "old"}, {0x1038, 2, "new"}, {0x1047, 2, "new"}, {0x1048, 2, "middle"});
	/* what frames of the first generation were */
	NAMES(m, {0x1038, 1, "old"}, {0x1047, 1, "middle"}, {0x3000, 1, "c"});
	/* a place that nobody had: known later, true before */
	feed(m, "9000 10 late\n");
	map_commit(m, 3);
	CHECK_STR(at(m, 0x9000, 1), "late");
	map_free(m);
}

/* Against a table of one name for each byte. */
TEST(random_overlaps)
{
	enum { SPACE = 512, GENERATIONS = 6 };
	static int truth[GENERATIONS][SPACE];
	uint32_t seed = 1;

	for (int round = 0; round < 300; round++) {
		struct map *m = map_new(1 << 20);
		int now[SPACE] = {0}, number = 0;

		for (uint32_t g = 0; g < GENERATIONS; g++) {
			for (int i = 0; i < 1 + round % 12; i++) {
				uint32_t lo, len;
				char line[64];

				seed = seed * 1103515245 + 12345;
				lo = seed >> 16 & 255;
				seed = seed * 1103515245 + 12345;
				len = 1 + (seed >> 16 & 127);
				number++;
				snprintf(line, sizeof(line), "%x %x %d\n", lo, len, number);
				feed(m, line);
				for (uint32_t k = lo; k < lo + len; k++)
					now[k] = number;
			}
			map_commit(m, g + 1);
			memcpy(truth[g], now, sizeof(now));
		}
		for (uint32_t g = 0; g < GENERATIONS; g++)
			for (int k = 0; k < SPACE; k++)
				if (truth[g][k])
					CHECK_INT(strtol(at(m, (uint64_t)k, g + 1), NULL, 10),
						  truth[g][k]);
		map_free(m);
	}
}

/* Whatever comes, it has its limit, and what was there stays. */
TEST(memory)
{
	static const char *const lines[] = {"%x 1 a\n", "0 %x a\n", "%x 100 name of some length\n"};

	for (size_t i = 0; i < 3; i++) {
		struct map *m = map_new(1 << 20);

		feed(m, "ffff0000 10 first\n");
		for (unsigned int k = 1; k < 300000; k++) {
			char line[64];

			snprintf(line, sizeof(line), lines[i], k * 2);
			feed(m, line);
			if (map_pending(m) >= 4096)
				map_commit(m, k);
			CHECK(map_bytes(m) <= 1 << 20);
		}
		map_commit(m, 300000);
		CHECK(map_bytes(m) <= 1 << 20);
		CHECK(map_faults(m)[MAP_FULL] > 0);
		CHECK_STR(at(m, 0xffff0000, 1), "first");
		map_free(m);
	}
}

TEST(kinds)
{
	static const struct {
		const char *text;
		enum fusee_code_kind kind;
	} cases[] = {
		{"1000 b py::f:x.py\n", FUSEE_CODE_PYTHON},
		{"1000 b Interpreter\n", FUSEE_CODE_PLAIN},
		{"1000 b $er:c/2\n", FUSEE_CODE_ERLANG},
		{"1000 b JIT$foo\n", FUSEE_CODE_PLAIN},
		{"1000 b JS:*a x.js:1:2\n", FUSEE_CODE_PLAIN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct map *m = map_new(1 << 20);
		enum fusee_code_kind kind;

		feed(m, cases[i].text);
		CHECK(!map_covers(m, 0, 0x10000, &kind));
		map_commit(m, 1);
		CHECK(map_covers(m, 0, 0x10000, &kind));
		CHECK_INT(kind, cases[i].kind);
		CHECK(map_covers(m, 0x1005, 0x1006, &kind));
		CHECK(!map_covers(m, 0, 0x1000, &kind));
		CHECK(!map_covers(m, 0x100b, 0x2000, &kind));
		map_free(m);
	}
}

/* ---- names ---- */

TEST(names)
{
	static const struct {
		const char *name, *function, *file;
		uint32_t line;
	} cases[] = {
		{"py::Class.method:/a/b c.py", "Class.method", "/a/b c.py", 0},
		{"py::f", "f", "", 0},
		{"py::", "", "", 0},
		{"py:::x", ":x", "", 0},
		{"JS:*a /tmp/n.js:2:38", "a", "/tmp/n.js", 2},
		{"JS:~ /tmp/n m.js:1:1", "(anonymous)", "/tmp/n m.js", 1},
		{"LazyCompile:~f native array.js:123", "f", "native array.js", 123},
		{"JS:^g node:internal/x:99999999999:1", "g", "node:internal/x:99999999999", 1},
		{"JS:", "", "", 0},
		{"JS:a", "a", "", 0},
		{"Builtin:ArrayMap", "Builtin:ArrayMap", "", 0},
		{"int Fib.a(int)", "int Fib.a(int)", "", 0},
		{"$lists:map/2", "lists:map/2", "", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fusee_source_frame f = {.size = sizeof(f)};
		char text[64];

		fusee_codemap_split((struct fusee_str){cases[i].name, strlen(cases[i].name)}, &f);
		snprintf(text, sizeof(text), "%.*s", (int)f.function.len, f.function.p);
		CHECK_STR(text, cases[i].function);
		snprintf(text, sizeof(text), "%.*s", (int)f.file.len, f.file.p ? f.file.p : "");
		CHECK_STR(text, cases[i].file);
		CHECK_INT(f.start_line, cases[i].line);
		CHECK(f.system_name.p == cases[i].name);
		CHECK_INT(f.system_name.len, strlen(cases[i].name));
	}
}

/* ---- the file ---- */

static char dir[64];
static uint32_t generation;

static uint32_t changed(void *arg)
{
	return ++generation;
}

static const char *path(const char *name)
{
	static char text[4][128];
	static int turn;
	char *out = text[turn++ % 4];

	snprintf(out, sizeof(*text), "%s/%s", dir, name);
	return out;
}

static void put(const char *name, const char *mode, const char *text)
{
	FILE *f = fopen(path(name), mode);

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static struct mapfile open_mapfile(void)
{
	struct mapfile_owner owner = {42, geteuid(), geteuid(), 0};
	struct mapfile s;

	snprintf(dir, sizeof(dir), "%.40s/XXXXXX", getenv("TMPDIR"));
	CHECK(mkdtemp(dir));
	generation = 1;
	CHECK_INT(mapfile_init(&s, &owner, open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), 4 << 20),
		  0);
	return s;
}

static int look(struct mapfile *s)
{
	s->next_ns = 0; /* at once */
	return mapfile_read(s, changed, NULL);
}

static const char *name_at(const struct mapfile *s, uint64_t addr, uint32_t g)
{
	static char text[64];
	struct fusee_str name;

	*text = '\0';
	if (mapfile_lookup(s, addr, g, &name))
		snprintf(text, sizeof(text), "%.*s", (int)name.len, name.p);
	return text;
}

#define NAMES_OF_FILE(file, ...) NAMES_BY(name_at, file, __VA_ARGS__)

TEST(grows)
{
	struct mapfile s = open_mapfile();

	CHECK_INT(look(&s), -ENOENT);
	put("perf-42.map", "w", "1000 10 one\n2000 1");
	CHECK_INT(look(&s), 0);
	NAMES_OF_FILE(&s, {0x1000, 1, "one"}, {0x2000, 1, ""});
	put("perf-42.map", "a", "0 two\n");
	CHECK_INT(look(&s), 0);
	CHECK_STR(name_at(&s, 0x2000, 1), "two");
	CHECK_INT(generation, 1);
	CHECK_INT(s.rewrites, 0);
	put("perf-42.map", "a", "1008 10 three\n");
	CHECK_INT(look(&s), 0);
	CHECK_INT(generation, 2);
	NAMES_OF_FILE(&s, {0x1008, 2, "three"}, {0x1008, 1, "one"});
	CHECK_INT(s.rewrites, 0);
	/* its name is removed, as it is when a container ends: what was open stays */
	CHECK(!unlink(path("perf-42.map")));
	CHECK_INT(look(&s), 0);
	CHECK_STR(name_at(&s, 0x1008, 2), "three");
	mapfile_fini(&s);
}

/* Others may leave less memory for a map, and more again later. */
TEST(limits_that_change)
{
	struct mapfile s = open_mapfile();
	FILE *f = fopen(path("perf-42.map"), "w");

	for (unsigned int i = 0; i < 20000; i++)
		fprintf(f, "%x 10 function %u\n", 0x100000 + 16 * i, i);
	CHECK(!fclose(f));
	mapfile_limit(&s, 400000);
	CHECK_INT(look(&s), 0);
	CHECK(mapfile_bytes(&s) <= 400000 && s.faults[MAP_FULL] > 1000);
	NAMES_OF_FILE(&s, {0x100000, 1, "function 0"}, {0x100000 + 16 * 19999, 1, ""});
	/* less than there is: nothing is added, nothing is lost */
	mapfile_limit(&s, 0);
	put("perf-42.map", "a", "1000 10 one\n");
	CHECK_INT(look(&s), 0);
	NAMES_OF_FILE(&s, {0x1000, 1, ""}, {0x100000, 1, "function 0"});
	mapfile_limit(&s, 16 << 20);
	mapfile_reread(&s);
	CHECK_INT(look(&s), 0);
	NAMES_OF_FILE(&s, {0x1000, 1, "one"}, {0x100000 + 16 * 19999, 1, "function 19999"});
	CHECK_INT(s.rewrites, 0);
	CHECK_INT(generation, 1);
	mapfile_fini(&s);
}

/* Truncated; longer than before, from its head or from its end; another file in its place. */
TEST(rewritten)
{
	static const char *const anew[] = {
		"3000 10 b\n",
		"3000 10 other\n2000 10 two\n4000 10 more\n",
		"1000 10 one\n2000 10 TWO\n4000 10 more\n",
	};
	const struct timespec before[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	for (size_t i = 0; i < 4; i++) {
		struct mapfile s = open_mapfile();

		put("perf-42.map", "w", "1000 10 one\n2000 10 two\n");
		CHECK(!utimensat(AT_FDCWD, path("perf-42.map"), before, 0));
		CHECK_INT(look(&s), 0);
		CHECK_STR(name_at(&s, 0x2000, 1), "two");
		if (i < 3) {
			put("perf-42.map", "w", anew[i]);
		} else {
			put("new", "w", "5000 10 five\n");
			CHECK(!rename(path("new"), path("perf-42.map")));
		}
		CHECK_INT(look(&s), 0);
		CHECK_INT(s.rewrites, 1);
		CHECK_INT(generation, 2);
		CHECK_STR(name_at(&s, 0x2000, 1), "two"); /* frames of before */
		CHECK_STR(name_at(&s, 0x2000, 2), i == 1 ? "two" : i == 2 ? "TWO" : "");
		CHECK_STR(name_at(&s,
				  i < 2    ? 0x3000
				  : i == 2 ? 0x4000
					   : 0x5000,
				  2),
			  i == 0   ? "b"
			  : i == 1 ? "other"
			  : i == 2 ? "more"
				   : "five");
		/* and grows on */
		put("perf-42.map", "a", "6000 10 six\n");
		CHECK_INT(look(&s), 0);
		CHECK_INT(s.rewrites, 1);
		CHECK_STR(name_at(&s, 0x6000, 2), "six");
		mapfile_fini(&s);
	}
}

/* As in a user namespace, where anybody can mount what is visible there. */
TEST(mounted)
{
	struct mapfile s = open_mapfile();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		SKIP("no user namespaces");
	put("secret", "w", "1000 10 secret\n");
	put("perf-42.map", "w", "");
	CHECK(!mount(path("secret"), path("perf-42.map"), NULL, MS_BIND, NULL));
	close(s.folder);
	s.folder = open(path("."), O_PATH | O_DIRECTORY | O_CLOEXEC); /* of this namespace */
	CHECK_INT(look(&s), -ENOENT); /* the kernel cannot say it without waiting */
	CHECK(s.uncached);
	s.found = true;
	CHECK_INT(look(&s), -EPERM);
	CHECK_INT(s.refusal, MAPFILE_MOUNTED);
	CHECK(!umount2(path("perf-42.map"), MNT_DETACH));
	mapfile_fini(&s);
}

/* It is removed then. */
static void check_refusal(struct mapfile *s, int refusal)
{
	CHECK_INT(look(s), -EPERM);
	CHECK_INT(s->refusal, refusal);
	CHECK(!remove(path("perf-42.map")));
}

/* Nothing of this is opened, and nothing waits. */
TEST(planted)
{
	struct mapfile s = open_mapfile();
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	put("secret", "w", "1000 10 secret\n");
	CHECK(!symlink("secret", path("perf-42.map")));
	check_refusal(&s, MAPFILE_NOT_A_FILE);
	CHECK(!link(path("secret"), path("perf-42.map")));
	check_refusal(&s, MAPFILE_LINKED);
	CHECK(!mkfifo(path("perf-42.map"), 0666));
	check_refusal(&s, MAPFILE_NOT_A_FILE);
	CHECK(!mkdir(path("perf-42.map"), 0755));
	check_refusal(&s, MAPFILE_NOT_A_FILE);
	/* root's own, which the process could not read */
	put("perf-42.map", "w", "1000 10 secret\n");
	CHECK(!chmod(path("perf-42.map"), 0600));
	s.owner.uid = s.owner.fs_uid = geteuid() + 1;
	CHECK_INT(look(&s), -EPERM);
	CHECK_INT(s.refusal, MAPFILE_FOREIGN);
	s.owner.uid = s.owner.fs_uid = geteuid();
	CHECK(!chmod(path("perf-42.map"), 0644));
	/* of a process that had the number before */
	put("perf-42.map", "w", "1000 10 old\n");
	s.owner.start_ns = 2000ull * 1000000000;
	CHECK(!utimensat(AT_FDCWD, path("perf-42.map"), times, 0));
	CHECK_INT(look(&s), -EPERM);
	CHECK_INT(s.refusal, MAPFILE_OLD);
	put("perf-42.map", "a", "2000 10 new\n");
	CHECK_INT(look(&s), 0);
	CHECK_INT(s.refusal, MAPFILE_ACCEPTED);
	CHECK_STR(name_at(&s, 0x2000, 1), "new");
	/* what was taken stays when something is planted over it */
	CHECK(!unlink(path("perf-42.map")));
	CHECK(!symlink("secret", path("perf-42.map")));
	CHECK_INT(look(&s), 0);
	CHECK_STR(name_at(&s, 0x2000, 1), "new");
	mapfile_fini(&s);
}

TEST(another_users)
{
	struct mapfile s;

	if (geteuid())
		SKIP("only root can give files away");
	s = open_mapfile();
	s.owner.uid = s.owner.fs_uid = 12345;
	put("perf-42.map", "w", "1000 10 name\n");
	CHECK(!chown(path("perf-42.map"), 54321, 54321));
	CHECK_INT(look(&s), -EPERM);
	CHECK_INT(s.refusal, MAPFILE_FOREIGN);
	CHECK(!chown(path("perf-42.map"), 12345, 0));
	CHECK_INT(look(&s), 0);
	mapfile_fini(&s);
	s = open_mapfile(); /* root's own */
	s.owner.uid = s.owner.fs_uid = 12345;
	put("perf-42.map", "w", "1000 10 name\n");
	CHECK_INT(look(&s), 0);
	CHECK_STR(name_at(&s, 0x1000, 1), "name");
	mapfile_fini(&s);
}

/* A file that would fill all memory again and again costs a share of the time. */
TEST(large)
{
	struct mapfile s = open_mapfile();
	FILE *f = fopen(path("perf-42.map"), "w");

	CHECK(f);
	for (int i = 0; i < 400000; i++)
		fprintf(f, "%x 10 function number %d\n", i * 16, i);
	fclose(f);
	CHECK_INT(look(&s), 0);
	CHECK(s.faults[MAP_FULL] > 0);
	CHECK(map_bytes(s.map) <= 2 << 20);
	CHECK_STR(name_at(&s, 0x10, 1), "function number 1");
	CHECK(s.next_ns > 0);
	s.next_ns += 3600000000000u; /* this test itself may be stopped for longer than the pause */
	put("perf-42.map", "w", "f0000000 10 anew\n");
	CHECK_INT(mapfile_read(&s, changed, NULL), 0); /* too early */
	CHECK_STR(name_at(&s, 0xf0000000, 1), "");
	CHECK_INT(look(&s), 0);
	CHECK_STR(name_at(&s, 0xf0000000, 2), "anew");
	mapfile_fini(&s);
}
