/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/symbolizer
#include "test.h"

#include "symbolizer/internal/kallsyms.h"

#include "lib/random.h"

static uint32_t below(uint32_t n)
{
	return random32() % n;
}

static int load(struct kallsyms **k, const char *text)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	char path[64];

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return kallsyms_load(k, path);
}

static const char *at(struct kallsyms *k, uint64_t addr, uint64_t start, const char *module)
{
	uint64_t got = 0;
	const char *m = NULL, *name = kallsyms_lookup(k, addr, &got, &m);

	if (!name)
		return "(none)";
	CHECK_INT(got, start);
	CHECK_STR(m, module);
	return name;
}

TEST(names_and_modules)
{
	struct kallsyms *k;

	CHECK_INT(load(&k, "ffffffff81000000 T _text\n"
			   "ffffffff81000000 T startup_64\n"
			   "ffffffff81000100 t helper\n"
			   "ffffffff810001f0 t __pfx_other\n"
			   "ffffffff81000200 W other\n"
			   "ffffffff81000200 T __x64_other\n"
			   "ffffffff82000000 D some_data\n"
			   "ffffffffc0000000 t mod_fn\t[ext4]\n"
			   "ffffffffc0000000 t helper\t[xfs]\n"
			   "ffffffffc0001000 t tail\t[xfs]"),
		  0);
	CHECK_STR(at(k, 0xffffffff80ffffff, 0, ""), "(none)");
	/* of aliases the name without the underscore; both are global */
	CHECK_STR(at(k, 0xffffffff81000000, 0xffffffff81000000, ""), "startup_64");
	CHECK_STR(at(k, 0xffffffff810000ff, 0xffffffff81000000, ""), "startup_64");
	CHECK_STR(at(k, 0xffffffff810001f8, 0xffffffff81000100, ""), "helper");
	CHECK_STR(at(k, 0xffffffff81000200, 0xffffffff81000200, ""), "__x64_other");
	/* data ends the function before it */
	CHECK_STR(at(k, 0xffffffff82000000, 0, ""), "(none)");
	CHECK_STR(at(k, 0xffffffffc0000010, 0xffffffffc0000000, "xfs"), "helper");
	CHECK_STR(at(k, 0xffffffffc0001000, 0xffffffffc0001000, "xfs"), "tail");
	kallsyms_free(k);
}

/* Any names, of which some are long, at any addresses; the text is dropped in between. */
TEST(random_symbols)
{
	static const char *const words[] = {"a", "_", "__", "do", "work_", "_x", "get_user", "a_"};
	enum { N = 400 };
	uint64_t addresses[N], at_now = 0;
	char names[N][700], *text = malloc(N * 760), *to = text;
	struct kallsyms *k;

	for (int i = 0; i < N; i++) {
		uint32_t n = 1 + below(i % 40 ? 6 : 80);

		at_now += 16 + (below(20) ? below(1u << 20) : 7ull << 32);
		addresses[i] = at_now;
		snprintf(names[i], sizeof(names[i]), "n%d_", i);
		while (n--)
			strcat(names[i], words[below(8)]);
		to += sprintf(to, "%016llx %c %s%s\n", (unsigned long long)at_now,
			      i == 100 || i == 200 ? 'T' : 't',
			      i == 100   ? "_stext"
			      : i == 200 ? "_etext"
					 : names[i],
			      i > 300 ? i > 350 ? "\t[m2]" : "\t[m1]" : "");
	}
	CHECK_INT(load(&k, text), 0);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < N; i++)
			if (i != 100 && i != 200 && (!turn || i < 100 || i > 200))
				CHECK_STR(at(k, addresses[i] + below(16), addresses[i],
					     i > 350   ? "m2"
					     : i > 300 ? "m1"
						       : ""),
					  names[i]);
		CHECK_STR(at(k, addresses[0] - 1, 0, ""), "(none)");
		CHECK_STR(at(k, addresses[200] + 1, 0, ""), "(none)");
		CHECK(!kallsyms_is_inside_module(k, addresses[300] + 1));
		CHECK(kallsyms_is_inside_module(k, addresses[301] + 1));
		CHECK(!kallsyms_is_inside_module(k, addresses[350] + 1)); /* the last of m1 */
		CHECK(!kallsyms_is_inside_module(k, addresses[N - 1] + 1));
		CHECK_INT(kallsyms_drop_text(k), 0);
	}
	kallsyms_free(k);
	free(text);
}

TEST(hidden_addresses)
{
	struct kallsyms *k;

	CHECK_INT(load(&k, "0000000000000000 T _text\n0000000000000000 t helper\t[xfs]\n"), -EPERM);
	CHECK_INT(kallsyms_load(&k, "/nonexistent/kallsyms"), -ENOENT);
}

TEST(bad_lines)
{
	struct kallsyms *k;
	char longer[8192];

	CHECK_INT(load(&k,
		       "\n\nx\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n 1 T a\n"
		       "ffffffff81000004 T ok\nffffffff8100000g T bad\nffffffff81000010 T m\t[\n"),
		  0);
	CHECK_STR(at(k, 0xffffffff81000005, 0xffffffff81000004, ""), "ok");
	kallsyms_free(k);
	memset(longer, 'a', sizeof(longer));
	memcpy(longer, "ffffffff81000000 T ", 19);
	strcpy(longer + sizeof(longer) - 40, "\nffffffff81000010 T after\n");
	CHECK_INT(load(&k, longer), 0);
	CHECK_STR(at(k, 0xffffffff81000011, 0xffffffff81000010, ""), "after");
	kallsyms_free(k);
}

/* The running kernel's: each function is found at its own start, as itself or as an alias of it.
 * BPF programs come and go meanwhile, and modules may. */
TEST(this_kernel)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long addr, before = 0;
	bool named = true; /* by one of the names at `before` */
	char line[1024], type, name[512];
	struct kallsyms *k;
	int err = kallsyms_load(&k, NULL), n = 0;

	if (err == -EPERM || !f)
		SKIP("the kernel hides its addresses");
	CHECK_INT(err, 0);
	while (fgets(line, sizeof(line), f)) {
		const char *module, *got;
		uint64_t start;

		if (sscanf(line, "%llx %c %511s", &addr, &type, name) != 3 || !strchr("tT", type) ||
		    strchr(line, '[') || !strncmp(name, "__pfx_", 6) ||
		    !strncmp(name, "__cfi_", 6) || !strcmp(name, "_etext") ||
		    !strcmp(name, "_einittext"))
			continue;
		got = kallsyms_lookup(k, addr, &start, &module);
		CHECK(got);
		CHECK_INT(start, addr);
		if (addr != before)
			CHECK(named);
		named = (addr == before && named) || !strcmp(got, name);
		before = addr;
		n++;
	}
	CHECK(n > 100 && named);
	fclose(f);
	kallsyms_free(k);
}
