/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers include/fusee
/* <fusee/helpers.h>, with what plugins do not use themselves. */
#include "test.h"

#include <elf.h>

#include <fusee/helpers.h>

struct kept {
	char text[2 * FUSEE_SENTENCE], label[64];
	int err, level;
	uint64_t counted;
	uint32_t nlabels;
};

static int keep_fail(struct fusee_instance *in, int err, const char *text)
{
	struct kept *k = (struct kept *)(void *)in;

	snprintf(k->text, sizeof(k->text), "%s", text);
	k->err = err;
	return err;
}

static void keep_log(struct fusee_instance *in, int level, const char *text)
{
	struct kept *k = (struct kept *)(void *)in;

	snprintf(k->text, sizeof(k->text), "%s", text);
	k->level = level;
}

static void keep_count(struct fusee_instance *in, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	struct kept *k = (struct kept *)(void *)in;

	snprintf(k->text, sizeof(k->text), "%s", metric);
	if (n)
		snprintf(k->label, sizeof(k->label), "%.*s=%.*s", (int)labels->key.len,
			 labels->key.p, (int)labels->str.len, labels->str.p);
	k->nlabels = n;
	k->counted += add;
}

static const struct fusee_host host = {
	.size = sizeof(host), .fail = keep_fail, .log = keep_log, .count = keep_count};

TEST(sentences)
{
	struct kept k = {0};
	struct fusee_self self;
	static char longest[2 * FUSEE_SENTENCE];

	CHECK_INT(fusee_self_init(&self, (struct fusee_instance *)(void *)&k, &host), 0);
	CHECK_INT(fusee_fail(&self, -ENOENT, "cannot open '%s': %d", "/x", 2), -ENOENT);
	CHECK_STR(k.text, "cannot open '/x': 2");
	CHECK_INT(k.err, -ENOENT);
	memset(longest, 'a', sizeof(longest) - 1);
	fusee_fail(&self, -EINVAL, "%s", longest);
	CHECK_INT(strlen(k.text), FUSEE_SENTENCE - 1);
	fusee_log(&self, FUSEE_WARNING, "%u of %u", 1u, 2u);
	CHECK_STR(k.text, "1 of 2");
	CHECK_INT(k.level, FUSEE_WARNING);
}

TEST(counters)
{
	struct kept k = {0};
	struct fusee_self self = {(struct fusee_instance *)(void *)&k, &host};

	fusee_count(&self, "none", 0);
	fusee_count_by(&self, "none", "reason", "x", 0);
	CHECK_STR(k.text, "");
	fusee_count(&self, "lines", 3);
	CHECK_STR(k.text, "lines");
	CHECK_INT(k.nlabels, 0);
	fusee_count_by(&self, "lost", "reason", "no room", 4);
	CHECK_STR(k.label, "reason=no room");
	CHECK_INT(k.counted, 7);
}

/* Elements that are larger than the plugin knows are stepped over by their stride. */
TEST(tables)
{
	struct {
		struct fusee_label l;
		char grown[8];
	} larger[] = {{fusee_text_label("a", ""), ""}, {fusee_text_label("b", "2"), ""}};
	struct fusee_table labels = FUSEE_TABLE(larger), none = {0};
	uint32_t n = 0;

	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		CHECK_INT(l->str.len, n++);
	}
	CHECK_INT(n, 2);
	FUSEE_FOR_EACH (struct fusee_label, l, none) {
		CHECK(!l);
	}
	CHECK(fusee_find_label(labels, "b") == &larger[1].l);
	CHECK(!fusee_find_label(labels, "a") && !fusee_find_label(labels, "c") &&
	      !fusee_find_label(none, "a"));
	CHECK(fusee_text_is(larger[1].l.str, "2") && !fusee_text_is(larger[1].l.str, "22") &&
	      fusee_text_is((struct fusee_str){NULL, 0}, ""));
}

static int some_section(uint64_t file, const char *name, struct fusee_section *s)
{
	CHECK_INT(s->size, sizeof(*s));
	if (file != 7)
		return -EBADMSG;
	if (!strcmp(name, ".text"))
		s->bytes = (struct fusee_str)FUSEE_TEXT("abc");
	return 0;
}

TEST(paths)
{
	CHECK_INT(fusee_path_length("/bin/a", 6), 6);
	CHECK_INT(fusee_path_length("/bin/a (deleted)", 16), 6);
	CHECK_INT(fusee_path_length("/bin/a (deleted).so", 19), 19);
	CHECK_INT(fusee_path_length(" (deleted)", 10), 10);
	CHECK_INT(fusee_path_length("", 0), 0);
}

TEST(sections)
{
	const struct fusee_unwinder_host unwinder = {.file_section = some_section};
	struct fusee_section s;

	CHECK_INT(fusee_file_section(&unwinder, 7, ".text", &s), 0);
	CHECK(fusee_text_is(s.bytes, "abc"));
	CHECK_INT(fusee_file_section(&unwinder, 7, ".bss", &s), -ENOENT);
	CHECK_INT(fusee_file_section(&unwinder, 8, ".text", &s), -EBADMSG);
}

struct ctx {
	uint8_t on;
	int64_t n, share, which;
	uint64_t size, time;
	const char *text, *token;
	struct fusee_table list, map;
};

/* Functions f, rb_a .. rb_i; and, not exported, x: of ten functions nine are Ruby's. */
static int symbols_section(uint64_t file, const char *name, struct fusee_section *s)
{
	static const char names[] = "\0f\0rb_a\0rb_b\0rb_c\0rb_d\0rb_e\0rb_f\0rb_g\0rb_h\0rb_i\0x";
	static Elf64_Sym symbols[12];
	uint32_t at = 1;

	for (int i = 1; i < 12; i++) {
		symbols[i] = (Elf64_Sym){.st_name = at,
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = i < 11 ? 1 : SHN_UNDEF};
		at += (uint32_t)strlen(names + at) + 1;
	}
	symbols[5].st_name = file == 1 ? symbols[5].st_name : file == 2 ? 1 : 1u << 30;
	if (file == 4)
		return -ENOENT;
	if (!strcmp(name, ".dynstr"))
		s->bytes = (struct fusee_str){names, sizeof(names)};
	else
		s->bytes = (struct fusee_str){(const char *)symbols,
					      sizeof(symbols) - 1 + (file == 1)};
	return 0;
}

TEST(what_a_file_exports)
{
	static const struct fusee_unwinder_host unwinder = {.size = sizeof(unwinder),
							    .file_section = symbols_section};
	static const char *const own[] = {"ruby_", "rb_", NULL}, *const other[] = {"Py", NULL};

	CHECK(fusee_exports_mostly(&unwinder, 1, own));
	CHECK(!fusee_exports_mostly(&unwinder, 1, other));
	CHECK(!fusee_exports_mostly(&unwinder, 2, own)); /* eight of ten */
	CHECK(!fusee_exports_mostly(&unwinder, 3, own)); /* a name outside of the names */
	CHECK(!fusee_exports_mostly(&unwinder, 4, own)); /* no such section */
}

TEST(options)
{
	static const char *const names[] = {"one", "two", NULL};
	static const struct fusee_option options[] = {
		FUSEE_OPTION_BOOL(struct ctx, on, "true", "A."),
		FUSEE_OPTION_INT(struct ctx, n, "3", -5, 5, "B."),
		FUSEE_OPTION_PERCENT(struct ctx, share, "1%", 0, 1000000, "C."),
		FUSEE_OPTION_ENUM(struct ctx, which, "two", names, "D."),
		FUSEE_OPTION_SIZE(struct ctx, size, "1KiB", 0, 0, "E."),
		FUSEE_OPTION_DURATION(struct ctx, time, "5s", FUSEE_SECOND, FUSEE_HOUR, "F."),
		FUSEE_OPTION_STRING(struct ctx, text, NULL, "G."),
		FUSEE_OPTION_SECRET(struct ctx, token, "", "H."),
		FUSEE_OPTION_LIST(struct ctx, list, "", "I."),
		FUSEE_OPTION_MAP(struct ctx, map, "", "J."),
	};
	static const struct {
		uint32_t type;
		size_t offset;
	} expected[] = {
		{FUSEE_BOOL, offsetof(struct ctx, on)},
		{FUSEE_INT, offsetof(struct ctx, n)},
		{FUSEE_PERCENT, offsetof(struct ctx, share)},
		{FUSEE_ENUM, offsetof(struct ctx, which)},
		{FUSEE_SIZE, offsetof(struct ctx, size)},
		{FUSEE_DURATION, offsetof(struct ctx, time)},
		{FUSEE_STRING, offsetof(struct ctx, text)},
		{FUSEE_SECRET, offsetof(struct ctx, token)},
		{FUSEE_LIST, offsetof(struct ctx, list)},
		{FUSEE_MAP, offsetof(struct ctx, map)},
	};
	struct fusee_table table = FUSEE_TABLE(options);
	uint32_t i = 0;

	FUSEE_FOR_EACH (struct fusee_option, o, table) {
		CHECK_INT(o->type, expected[i].type);
		CHECK_INT(o->offset, expected[i].offset);
		CHECK_INT(o->doc[0], 'A' + (int)i++);
	}
	CHECK_INT(i, 10);
	CHECK_STR(options[0].name, "on");
	CHECK(!options[6].def && options[3].choices == names);
	CHECK_INT(options[1].min, -5);
	CHECK_INT(options[5].max, 3600000000000);
}
