// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/plugin
/* Plugins built here, good and bad in many ways, opened as fusee opens them. */
#include "base/metrics.h"
#include "plugin/internal/check.h"
#include "plugin/option_list.h"
#include "plugin/plugin.h"

#include <elf.h>
#include <limits.h>

#include "base/buf.h"
#include "plugin/options.h"
#include "test.h"

/* ---- the test's folder, and plugins in it ---- */

static char dir[64];

static void begin(void)
{
	char real[PATH_MAX];

	CHECK(realpath(test_dir(), real) && strlen(real) < sizeof(dir));
	strcpy(dir, real);
	umask(022);
}

/* "NAME" of the folder. Four at a time. */
static const char *in_dir(const char *name)
{
	static char paths[4][128];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *path, const void *p, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, p, len), len);
	close(fd);
}

static struct buf read_file(const char *path)
{
	struct buf b = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(buf_read_fd(&b, fd, 1 << 24), 0);
	close(fd);
	return b;
}

/* Compiles `source`, with the header in front of it, to NAME.so. */
static const char *build(const char *name, const char *source)
{
	static const char head[] = "#include <errno.h>\n#include <stdlib.h>\n"
				   "#include <fusee/plugin.h>\n"
				   "static const struct fusee_unwinder_ops ops = {\n"
				   "	.size = sizeof(ops), .order = 10};\n";
	struct buf text = {0};
	char command[512], so[64];

	CHECK_INT(buf_printf(&text, "%s%s\n", head, source), 0);
	write_file(in_dir("plugin.c"), text.p, text.len);
	buf_fini(&text);
	snprintf(so, sizeof(so), "%s.so", name);
	snprintf(command, sizeof(command),
		 "${CC:-cc} -std=gnu17 -O1 -w -fPIC -shared -Iinclude -o %s %s", in_dir(so),
		 in_dir("plugin.c"));
	if (system(command))
		SKIP("the test's plugins can't be built here (run from the source's root, with a C "
		     "compiler)");
	return in_dir(so);
}

#define SINK                                                                          \
	"static int consume(void *c, const struct fusee_delivery *d) { return 0; }\n" \
	"static const struct fusee_sink_ops mine = {.size = sizeof(mine),\n"          \
	"	.consume = consume};\n"                                                     \
	"FUSEE_PLUGIN(early, FUSEE_SINK, .ops = &mine);"
#define GOOD "FUSEE_PLUGIN(good, FUSEE_UNWINDER, .ops = &ops);"

__attribute__((format(printf, 1, 2))) static const char *text_of(const char *format, ...)
{
	static char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

/* It is refused, and the sentence is "plugin 'PATH' WHY". */
static void refused(const char *path, int err, const char *why)
{
	struct plugin *p = NULL;
	char *text = NULL;

	CHECK_INT(plugin_load(path, &p, &text), err);
	CHECK(text && !p);
	CHECK_STR(text, text_of("plugin '%s'%s", path, why));
	free(text);
}

static struct plugin *opened(const char *path)
{
	struct plugin *p;
	char *text = NULL;
	int r = plugin_load(path, &p, &text);

	if (r)
		fprintf(stderr, "# %s\n", text ? text : "no text");
	CHECK_INT(r, 0);
	CHECK(!text);
	return p;
}

static const struct instance_options plain = {.name = "unwind.x", .where = "here.lua:3"};

static struct fusee_instance *begun(const struct plugin *p)
{
	struct fusee_instance *in;
	char *text = NULL;

	CHECK_INT(instance_new(&in, p->descriptor, &plugin_host_base, &plain, &text), 0);
	CHECK(!text);
	return in;
}

/* It loads, but there is no instance of it, for this reason. */
static void not_begun(const char *path, const struct instance_options *o, int err, const char *why)
{
	struct plugin *p = opened(path);
	struct fusee_instance *in = NULL;
	char *text = NULL;

	CHECK_INT(instance_new(&in, p->descriptor, &plugin_host_base, o, &text), err);
	CHECK(text && !in);
	CHECK_STR(text, why);
	free(text);
	plugin_free(p);
}

/* ---- one file ---- */

#define TEST_OF_FOLDER(id) TEST_BETWEEN(id, begin(), (void)0)

TEST_OF_FOLDER(a_good_one)
{
	struct fusee_instance *in;
	struct plugin *p;

	p = opened(build("good",
			 "struct ctx { int calls; };\n"
			 "static int init(void *c, struct fusee_instance *i,\n"
			 "	const struct fusee_host *h)\n"
			 "{ ((struct ctx *)c)->calls++; return h->size >= sizeof(*h) ? 0 : -1; }\n"
			 "static void fini(void *c) { setenv(\"FINI\", \"1\", 1); }\n"
			 "FUSEE_PLUGIN(good, FUSEE_UNWINDER, .version = \"7\", .init = init,\n"
			 "	.fini = fini, .ctx_size = sizeof(struct ctx), .ops = &ops);"));
	CHECK_STR(p->descriptor->name, "good");
	CHECK_STR(p->descriptor->version, "7");
	CHECK_STR(p->path, in_dir("good.so"));
	in = begun(p);
	plugin_free(p); /* the code stays */
	CHECK_INT(*(int *)in->ctx, 1);
	CHECK(!in->error);
	CHECK(!getenv("FINI"));
	instance_free(in);
	CHECK(getenv("FINI"));
}

TEST_OF_FOLDER(wrong_descriptors)
{
	static const struct {
		const char *name, *source, *why;
	} cases[] = {
		{"none", "int something;", " exports no fusee_plugin: is it a fusee plugin?"},
		{"hidden",
		 "__attribute__((visibility(\"hidden\"))) struct fusee_plugin fusee_plugin =\n"
		 "	{.magic = FUSEE_MAGIC};",
		 " exports no fusee_plugin: is it a fusee plugin?"},
		{"magic", "const struct fusee_plugin fusee_plugin = {.magic = 1, .ops = &ops};",
		 " has a wrong magic number: is it a fusee plugin?"},
		{"tiny", "const char fusee_plugin[4] = {0x66, 0x75, 0x73, 0x65};",
		 " has a wrong magic number: is it a fusee plugin?"},
		{"short",
		 "const struct { unsigned magic; unsigned short major, minor; unsigned size; }\n"
		 "fusee_plugin = {FUSEE_MAGIC, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR, 4096};",
		 " has a descriptor of another size or without name and ops: rebuild it"},
		{"older",
		 "const struct { unsigned magic; unsigned short major, minor;\n"
		 "	unsigned size, kind; const char *name; }\n"
		 "fusee_plugin = {FUSEE_MAGIC, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR,\n"
		 "	sizeof(struct fusee_plugin), FUSEE_UNWINDER, \"older\"};",
		 " has a descriptor of another size or without name and ops: rebuild it"},
		{"size",
		 "const struct fusee_plugin fusee_plugin = {.magic = FUSEE_MAGIC,\n"
		 "	.abi_major = FUSEE_ABI_MAJOR, .abi_minor = FUSEE_ABI_MINOR,\n"
		 "	.size = sizeof(struct fusee_plugin) - 8, .name = \"x\", .ops = &ops};",
		 " has a descriptor of another size or without name and ops: rebuild it"},
		{"noname", "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .name = NULL, .ops = &ops);",
		 " has a descriptor of another size or without name and ops: rebuild it"},
		{"noops", "FUSEE_PLUGIN(x, FUSEE_UNWINDER);",
		 " has a descriptor of another size or without name and ops: rebuild it"},
		{"opssize",
		 "static const struct fusee_unwinder_ops other = {.size = 8};\n"
		 "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .ops = &other);",
		 " has unwinder ops of another size: rebuild it"},
		{"noconsume",
		 "static const struct fusee_sink_ops other = {.size = sizeof(other)};\n"
		 "FUSEE_PLUGIN(x, FUSEE_SINK, .ops = &other);",
		 " has no consume()"},
		{"halfread",
		 "static int each(void *c, const struct fusee_listing *l) { return 0; }\n"
		 "static const struct fusee_sink_ops other = {.size = sizeof(other), .list = "
		 "each};\n"
		 "FUSEE_PLUGIN(x, FUSEE_SINK, .ops = &other);",
		 " has one of list() and read(): both, or none"},
		{"sinksize",
		 "static const struct fusee_sink_ops other = {.size = 8};\n"
		 "FUSEE_PLUGIN(x, FUSEE_SINK, .ops = &other);",
		 " has sink ops of another size: rebuild it"},
		{"noprocess",
		 "static const struct fusee_discovery_ops other =\n"
		 "	{.size = sizeof(other), .flags = FUSEE_DISCOVERY_PROCESSES};\n"
		 "FUSEE_PLUGIN(x, FUSEE_DISCOVERY, .ops = &other);",
		 " sets FUSEE_DISCOVERY_PROCESSES but has no process()"},
		{"kind", "FUSEE_PLUGIN(x, 77, .ops = &ops);",
		 " is of a kind that this fusee does not know"},
		{"noreasons",
		 "static int step(struct fusee_unwind *u) { return 0; }\n"
		 "static const struct fusee_unwinder_ops other =\n"
		 "	{.size = sizeof(other), .native_step = step};\n"
		 "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .ops = &other);",
		 " has a step but no reasons"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(build(cases[i].name, cases[i].source), -EPROTO, cases[i].why);
}

TEST_OF_FOLDER(another_abi)
{
	char why[128];

	snprintf(why, sizeof(why),
		 " was built for plugin ABI 9.1, this fusee has %d.%d: rebuild it", FUSEE_ABI_MAJOR,
		 FUSEE_ABI_MINOR);
	refused(build("major", "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .abi_major = 9, .abi_minor = 1,\n"
			       "	.ops = &ops);"),
		-EPROTO, why);
	snprintf(why, sizeof(why),
		 " was built for plugin ABI %d.%d, this fusee has %d.%d: rebuild it",
		 FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR + 1, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR);
	refused(build("minor", "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .abi_minor = FUSEE_ABI_MINOR + 1,\n"
			       "	.ops = &ops);"),
		-EPROTO, why);
	snprintf(why, sizeof(why),
		 " was built for plugin ABI %d.%d, this fusee has %d.%d: rebuild it", 0,
		 FUSEE_ABI_BEFORE_FIRST - 1, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR);
	refused(build("older", "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .abi_major = 0,\n"
			       "	.abi_minor = FUSEE_ABI_BEFORE_FIRST - 1,\n"
			       "	.ops = &ops);"),
		-EPROTO, why);
}

/* Its ops end with detach(). */
TEST_OF_FOLDER(an_older_abi)
{
	struct check_identity id;
	const char *path = build(
		"six",
		"static const struct fusee_unwinder_ops old = {.size =\n"
		"	offsetof(struct fusee_unwinder_ops, detach) + sizeof(old.detach)};\n"
		"FUSEE_PLUGIN(x, FUSEE_UNWINDER, .abi_major = 0,\n"
		"	.abi_minor = FUSEE_ABI_BEFORE_FIRST, .ops = &old);");

	plugin_free(opened(path));
	check_identity(path, &id);
	CHECK_STR(id.name, "x");
}

TEST_OF_FOLDER(a_symbol_that_is_nowhere)
{
	const char *path;
	char why[256];

	path = build("undefined", "int nowhere(void);\nstatic int init(void *c,\n"
				  "	struct fusee_instance *i, const struct fusee_host *h)\n"
				  "{ return nowhere(); }\n"
				  "FUSEE_PLUGIN(x, FUSEE_UNWINDER, .init = init, .ops = &ops);");
	snprintf(why, sizeof(why), " cannot be loaded: %s: undefined symbol: nowhere", path);
	refused(path, -EPROTO, why);
}

/* Truncated anywhere, it is refused: each of these would be a SIGBUS or worse in ld.so. */
TEST_FOR(truncated, 300)
{
	const char *truncated, *path;
	struct buf b;

	begin();
	path = build("good", GOOD);
	b = read_file(path);
	CHECK(b.len > 4096);
	truncated = in_dir("truncated.so");
	for (size_t len = 0; len < b.len; len += len < 1024 ? 1 : 61) {
		write_file(truncated, b.p, len);
		refused(truncated, -EPERM,
			len < EI_NIDENT ? " is not a shared object for this machine"
					: " is truncated: install it again");
	}
	write_file(truncated, b.p, b.len - 1);
	refused(truncated, -EPERM, " is truncated: install it again");
	write_file(truncated, b.p, b.len);
	plugin_free(opened(truncated));
	buf_fini(&b);
}

/* Without section headers it is the segments that must be there. */
TEST_FOR(truncated_without_sections, 300)
{
	size_t end = 0;
	Elf64_Ehdr e;
	Elf64_Phdr p;
	struct buf b;

	begin();
	b = read_file(build("good", GOOD));
	memcpy(&e, b.p, sizeof(e));
	for (int i = 0; i < e.e_phnum; i++) {
		memcpy(&p, b.p + e.e_phoff + (size_t)i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD && p.p_offset + p.p_filesz > end)
			end = p.p_offset + p.p_filesz;
	}
	CHECK(end > 4096 && end < b.len);
	e.e_shoff = e.e_shnum = e.e_shstrndx = 0;
	memcpy(b.p, &e, sizeof(e));
	for (size_t len = sizeof(e); len < end; len += 61) {
		write_file(in_dir("truncated.so"), b.p, len);
		refused(in_dir("truncated.so"), -EPERM, " is truncated: install it again");
	}
	write_file(in_dir("truncated.so"), b.p, end - 1);
	refused(in_dir("truncated.so"), -EPERM, " is truncated: install it again");
	write_file(in_dir("truncated.so"), b.p, end);
	plugin_free(opened(in_dir("truncated.so")));
	buf_fini(&b);
}

/* Offsets that wrap around. */
TEST_OF_FOLDER(headers_that_lie)
{
	Elf64_Ehdr e, was;
	Elf64_Phdr p;
	struct buf b = read_file(build("good", GOOD));

	memcpy(&was, b.p, sizeof(was));
	for (int i = 0; i < 4; i++) {
		e = was;
		memcpy(&p, b.p + was.e_phoff, sizeof(p));
		if (i == 0)
			e.e_shoff = UINT64_MAX - 8;
		else if (i == 1)
			e.e_phoff = UINT64_MAX - 8;
		else if (i == 2)
			e.e_phentsize = 8;
		else
			p.p_type = PT_LOAD, p.p_offset = 4096, p.p_filesz = UINT64_MAX - 100;
		memcpy(b.p, &e, sizeof(e));
		memcpy(b.p + was.e_phoff, &p, sizeof(p));
		write_file(in_dir("lie.so"), b.p, b.len);
		refused(in_dir("lie.so"), -EPERM, " is truncated: install it again");
	}
	buf_fini(&b);
}

TEST_OF_FOLDER(no_plugin_at_all)
{
	char text[4096] = "#!/bin/sh\necho this is no plugin\n";
	char *sentence;
	struct plugin *p;

	write_file(in_dir("script.so"), text, sizeof(text));
	refused(in_dir("script.so"), -EPERM, " is not a shared object for this machine");
	memcpy(text, ELFMAG, SELFMAG);
	text[EI_CLASS] = ELFCLASS32;
	write_file(in_dir("elf32.so"), text, sizeof(text));
	refused(in_dir("elf32.so"), -EPERM, " is not a shared object for this machine");
	CHECK(!mkfifo(in_dir("fifo.so"), 0644));
	refused(in_dir("fifo.so"), -EPERM, " is not a regular file"); /* and at once */
	CHECK(!mkdir(in_dir("folder.so"), 0755));
	refused(in_dir("folder.so"), -EPERM, " is not a regular file");
	CHECK(!symlink("nowhere", in_dir("link.so")));
	CHECK_INT(plugin_load(in_dir("link.so"), &p, &sentence), -ENOENT);
	CHECK_STR(sentence,
		  text_of("cannot open plugin '%s': No such file or directory", in_dir("link.so")));
	free(sentence);
}

/* ---- who can write it ---- */

#define FILE_WHY " can be written by others: make it root's or your own, mode 644"
#define FOLDER_WHY " is in a folder that others can write: make it root's or your own, mode 755"

TEST_OF_FOLDER(writable_by_others)
{
	char inner[128];

	if (geteuid())
		SKIP("needs root: only who has rights that others lack is careful here");
	build("good", GOOD);
	for (int mode = 0664; mode <= 0666; mode += 2) {
		CHECK(!chmod(in_dir("good.so"), (mode_t)mode));
		refused(in_dir("good.so"), -EPERM, FILE_WHY);
	}
	CHECK(!chmod(in_dir("good.so"), 0646));
	refused(in_dir("good.so"), -EPERM, FILE_WHY);
	CHECK(!chmod(in_dir("good.so"), 0644) && !chown(in_dir("good.so"), 1000, 0));
	refused(in_dir("good.so"), -EPERM, FILE_WHY);
	CHECK(!chown(in_dir("good.so"), 0, 0));
	for (int mode = 0775; mode <= 0777; mode += 2) {
		CHECK(!chmod(dir, (mode_t)mode));
		refused(in_dir("good.so"), -EPERM, FOLDER_WHY);
	}
	/* in a sticky folder nobody else can replace it, but the folder's owner can */
	CHECK(!chmod(dir, 01777));
	plugin_free(opened(in_dir("good.so")));
	CHECK(!chown(dir, 1000, 0));
	refused(in_dir("good.so"), -EPERM, FOLDER_WHY);
	CHECK(!chmod(dir, 0755));
	refused(in_dir("good.so"), -EPERM, FOLDER_WHY);
	CHECK(!chown(dir, 0, 0));
	plugin_free(opened(in_dir("good.so")));

	/* it is the file's folder that counts, not that of a link to it */
	snprintf(inner, sizeof(inner), "%s/inner", dir);
	CHECK(!mkdir(inner, 0755) && !chmod(inner, 0777));
	snprintf(inner, sizeof(inner), "%s/inner/moved.so", dir);
	CHECK(!rename(in_dir("good.so"), inner));
	CHECK(!symlink("inner/moved.so", in_dir("link.so")));
	{
		struct plugin *p;
		char *text;

		CHECK_INT(plugin_load(in_dir("link.so"), &p, &text), -EPERM);
		CHECK_STR(text, text_of("plugin '%s'%s", inner, FOLDER_WHY));
		free(text);
	}
}

/* Without rights to lose it may be anyone's. */
TEST_OF_FOLDER(writable_by_others_without_rights)
{
	int status;
	pid_t pid;

	build("good", GOOD);
	CHECK(!chmod(in_dir("good.so"), 0666) && !chmod(dir, 0777));
	pid = fork();
	if (!pid) {
		if (!geteuid() &&
		    (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(77);
		plugin_free(opened(in_dir("good.so")));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("cannot become nobody");
	CHECK_INT(WEXITSTATUS(status), 0);
}

/* ---- init, options ---- */

TEST_OF_FOLDER(init_that_fails)
{
	static const char source[] =
		"static int init(void *c, struct fusee_instance *i, const struct fusee_host *h)\n"
		"{ if (SENTENCE) h->fail(i, -EIO, \"first\");\n"
		"  if (SENTENCE) return h->fail(i, -ENOENT, \"no such thing as 'x': make one\");\n"
		"  return -ENOENT; }\n"
		"static void fini(void *c) { setenv(\"FINI\", \"1\", 1); }\n"
		"FUSEE_PLUGIN(x, FUSEE_UNWINDER, .init = init, .fini = fini, .ops = &ops);";
	char text[1024];

	for (int sentence = 0; sentence < 2; sentence++) {
		unsetenv("FINI");
		snprintf(text, sizeof(text), "enum { SENTENCE = %d };\n%s", sentence, source);
		not_begun(build(sentence ? "says" : "silent", text), &plain, -ENOENT,
			  sentence ? "here.lua:3: unwind.x: no such thing as 'x': make one"
				   : "here.lua:3: unwind.x: No such file or directory");
		CHECK(getenv("FINI"));
	}
}

/* The core's texts are kept by instance. */
TEST_OF_FOLDER(two_instances)
{
	struct fusee_instance *a, *b;
	char *text;
	struct plugin *p = opened(build("good", GOOD));

	a = begun(p);
	b = begun(p);
	CHECK(a->descriptor == b->descriptor && a->ctx != b->ctx);
	CHECK_INT(plugin_host_base.fail(a, -EIO, "one"), -EIO);
	CHECK_INT(plugin_host_base.fail(a, -EPERM, "two"), -EPERM);
	CHECK_STR(a->error, "two");
	CHECK(!b->error);
	text = instance_sentence(a, -EPERM);
	CHECK_STR(text, "here.lua:3: unwind.x: two");
	free(text);
	text = instance_sentence(a, -EPERM);
	CHECK_STR(text, "here.lua:3: unwind.x: Operation not permitted");
	free(text);
	instance_free(a);
	instance_free(b);
	instance_free(NULL);
	plugin_free(p);
	plugin_free(NULL);
}

TEST_OF_FOLDER(counts_and_secrets)
{
	const struct fusee_label why = {.key = {"reason", 6}, .str = {"fullest", 4}};
	struct fusee_instance *in;
	char buf[16];
	struct plugin *p = opened(build("good", GOOD));

	in = begun(p);
	plugin_host_base.count(in, "lost", &why, 1, 3);
	plugin_host_base.count(in, "lost", &why, 1, 4);
	CHECK(metric_get("plugin_lost_total",
			 METRIC_LABELS("instance", "unwind.x", "reason", "full")) == 7);
	write_file(in_dir("token"), "s3cret\r\n", 8);
	CHECK_INT(plugin_host_base.read_secret(in, in_dir("token"), buf, sizeof(buf)), 6);
	CHECK_STR(buf, "s3cret");
	CHECK_INT(plugin_host_base.read_secret(in, in_dir("token"), buf, 6), -EFBIG);
	CHECK_INT(plugin_host_base.read_secret(in, in_dir("none"), buf, 6), -ENOENT);
	instance_free(in);
	plugin_free(p);
}

struct ctx {
	uint8_t flag;
	int64_t number;
	uint64_t size, duration;
	const char *text;
	int64_t free_number;
};

#define AT(field) offsetof(struct ctx, field)
static const struct fusee_option option_list[] = {
	{"flag", "true", "doc", FUSEE_BOOL, AT(flag), 0, 0, NULL},
	{"number", "5", "doc", FUSEE_INT, AT(number), -10, 10, NULL},
	{"size", "64KiB", "doc", FUSEE_SIZE, AT(size), 4096, 1 << 20, NULL},
	{"duration", "1.5s", "doc", FUSEE_DURATION, AT(duration), 1000000000, 3600000000000, NULL},
	{"text", "a word", "doc", FUSEE_STRING, AT(text), 0, 0, NULL},
	{"free_number", "-9223372036854775808", "doc", FUSEE_INT, AT(free_number), 0, 0, NULL},
};
static const struct fusee_table option_table = {option_list, 6, sizeof(option_list[0])};

TEST(option_values)
{
	struct ctx c = {0};
	char *text;

	CHECK_INT(options_check(&option_table, sizeof(c), &text), 0);
	CHECK_INT(options_defaults(&c, &option_table, &text), 0);
	CHECK(!text);
	CHECK_INT(c.flag, 1);
	CHECK_INT(c.number, 5);
	CHECK_INT(c.size, 65536);
	CHECK_INT(c.duration, 1500000000);
	CHECK_STR(c.text, "a word");
	CHECK(c.free_number == INT64_MIN);
	CHECK_INT(options_set_text(&c, &option_list[0], "false", &text), 0);
	CHECK_INT(c.flag, 0);
	CHECK_INT(options_set_text(&c, &option_list[1], "-10", &text), 0);
	CHECK_INT(c.number, -10);
	CHECK_INT(options_set_text(&c, &option_list[2], "1MiB", &text), 0);
	CHECK_INT(c.size, 1 << 20);
	CHECK_INT(options_set_text(&c, &option_list[3], "1h", &text), 0);
	CHECK_INT(c.duration, 3600000000000);
	CHECK_INT(options_set_text(&c, &option_list[4], "", &text), 0);
	CHECK_STR(c.text, "");
	options_clear(&c, &option_table);
	CHECK(!c.text);
	options_clear(&c, &option_table);
}

TEST(wrong_option_values)
{
	static const struct {
		int option;
		const char *value, *text;
	} cases[] = {
		{0, "yes", "option 'flag': 'yes' is not true or false"},
		{0, "", "option 'flag': '' is not true or false"},
		{1, "five", "option 'number': 'five' is not an integer"},
		{1, "", "option 'number': '' is not an integer"},
		{1, " 5", "option 'number': ' 5' is not an integer"},
		{1, "5 ", "option 'number': '5 ' is not an integer"},
		{1, "1.5", "option 'number': '1.5' is not an integer"},
		{1, "0x5", "option 'number': '0x5' is not an integer"},
		{1, "11", "option 'number': 11 is outside -10 to 10"},
		{1, "-11", "option 'number': -11 is outside -10 to 10"},
		{1, "99999999999999999999",
		 "option 'number': 99999999999999999999 is outside -10 to 10"},
		{2, "big", "option 'size': 'big' is not a size: 64KiB, 2GiB"},
		{2, "-1", "option 'size': '-1' is not a size: 64KiB, 2GiB"},
		{2, "4KiB4", "option 'size': '4KiB4' is not a size: 64KiB, 2GiB"},
		{2, "1e30", "option 'size': '1e30' is not a size: 64KiB, 2GiB"},
		{2, "4095", "option 'size': 4095 is outside 4KiB to 1MiB"},
		{2, "2GiB", "option 'size': 2GiB is outside 4KiB to 1MiB"},
		{3, "soon", "option 'duration': 'soon' is not a duration: 10s, 2m"},
		{3, "nan", "option 'duration': 'nan' is not a duration: 10s, 2m"},
		{3, "999ms", "option 'duration': 999ms is outside 1s to 1h"},
		{3, "2h", "option 'duration': 2h is outside 1s to 1h"},
		{5, "9223372036854775808",
		 "option 'free_number': 9223372036854775808 is outside 64 bits"},
	};
	struct ctx c = {.number = 3, .size = 5000, .duration = 2000000000};
	char *text;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(
			options_set_text(&c, &option_list[cases[i].option], cases[i].value, &text),
			-EINVAL);
		CHECK(text);
		CHECK_STR(text, cases[i].text);
		free(text);
	}
	/* what was there stays */
	CHECK(c.number == 3 && c.size == 5000 && c.duration == 2000000000 && !c.free_number);
}

struct more {
	int64_t mode, share;
	struct fusee_table list, map;
	const char *secret;
};

static const char *const modes[] = {"slow", "fast", NULL};
#define MORE(field) offsetof(struct more, field)
static const struct fusee_option more_list[] = {
	{"mode", "fast", "doc", FUSEE_ENUM, MORE(mode), 0, 0, modes},
	{"share", "1.5%", "doc", FUSEE_PERCENT, MORE(share), 0, 1000000, NULL},
	{"list", "", "doc", FUSEE_LIST, MORE(list), 0, 0, NULL},
	{"map", "a=1,b=x=y", "doc", FUSEE_MAP, MORE(map), 0, 0, NULL},
	{"secret", NULL, "doc", FUSEE_SECRET, MORE(secret), 0, 0, NULL},
};
static const struct fusee_plugin more_plugin = {
	.name = "more",
	.kind = FUSEE_SINK,
	.options = {more_list, 5, sizeof(more_list[0])},
	.ctx_size = sizeof(struct more),
};

TEST(lists_maps_and_choices)
{
	struct option_pair words[] = {{NULL, "one"}, {NULL, "two,three"}};
	struct instance_option given[] = {
		{"list", {.kind = OPTION_LIST, .pairs = words, .n = 2}},
		{"secret", {.kind = OPTION_TEXT, .text = "x"}},
	};
	struct instance_options o = {"sink.more", "f.lua:3", given, 2, NULL};
	struct fusee_instance *in;
	const struct fusee_label *l;
	const struct fusee_str *w;
	struct more *m;
	char *text;

	CHECK_INT(options_check(&more_plugin.options, sizeof(*m), &text), 0);
	CHECK_INT(instance_new(&in, &more_plugin, &plugin_host_base, &o, &text), 0);
	m = in->ctx;
	CHECK_INT(m->mode, 1);
	CHECK_INT(m->share, 15000);
	CHECK_INT(m->list.n, 2);
	w = FUSEE_AT(struct fusee_str, m->list, 1);
	CHECK(w->len == 9 && !strcmp(w->p, "two,three"));
	CHECK_INT(m->map.n, 2);
	l = FUSEE_AT(struct fusee_label, m->map, 1);
	CHECK(!strcmp(l->key.p, "b") && !strcmp(l->str.p, "x=y") && l->str.len == 3);
	CHECK_STR(m->secret, "x");
	instance_free(in);
}

TEST(all_that_is_wrong_is_said)
{
	struct option_pair pair = {"k", "v"};
	struct instance_option given[] = {
		{"mode", {.kind = OPTION_TEXT, .text = "fats"}},
		{"lst", {.kind = OPTION_TEXT, .text = "a"}},
		{"share", {.kind = OPTION_TEXT, .text = "101%"}},
		{"list", {.kind = OPTION_MAP, .pairs = &pair, .n = 1}},
		{"map", {.kind = OPTION_TEXT, .text = "a"}},
		{"mode", {.kind = OPTION_MAP, .pairs = &pair, .n = 1}},
	};
	struct instance_options o = {"sink.more", "f.lua:3", given, 6, NULL};
	char *text;

	CHECK_INT(instance_check(&more_plugin, &o, &text), -EINVAL);
	CHECK_STR(text,
		  "f.lua:3: sink.more: option 'mode': 'fats' is none of slow, fast (did you mean "
		  "'fast'?)\n"
		  "f.lua:3: sink.more: unknown option 'lst' (did you mean 'list'?)\n"
		  "f.lua:3: sink.more: option 'share': 101% is outside 0% to 100%\n"
		  "f.lua:3: sink.more: option 'list': '{..}' is not a list: { \"one\", \"two\" }\n"
		  "f.lua:3: sink.more: option 'map': 'a' is not name=value\n"
		  "f.lua:3: sink.more: option 'mode': '{..}' is not a single value\n"
		  "f.lua:3: sink.more: option 'secret' must be given");
	free(text);
}

/* The plugin's own table of options. */
TEST_OF_FOLDER(options_of_plugins)
{
	static const struct {
		const char *name, *options;
		int err;
		const char *why;
	} cases[] = {
		{"required", "{\"key\", NULL, \"doc\", FUSEE_STRING, 0, 0, 0}", -EINVAL,
		 "option 'key' must be given"},
		{"default", "{\"key\", \"9\", \"doc\", FUSEE_INT, 0, 1, 8}", -EINVAL,
		 "option 'key': 9 is outside 1 to 8"},
		{"second",
		 "{\"a\", \"text\", \"doc\", FUSEE_STRING, 0, 0, 0},\n"
		 "{\"b\", \"no\", \"doc\", FUSEE_BOOL, 8, 0, 0}",
		 -EINVAL, "option 'b': 'no' is not true or false"},
		{"type", "{\"key\", \"9\", \"doc\", 11, 0, 0, 0}", -EPROTO,
		 " has option 'key' of an unknown type"},
		{"type0", "{\"key\", \"9\", \"doc\", 0, 0, 0, 0}", -EPROTO,
		 " has option 'key' of an unknown type"},
		{"far", "{\"key\", \"9\", \"doc\", FUSEE_INT, 9, 0, 0}", -EPROTO,
		 " has option 'key' outside of its ctx"},
		{"wide", "{\"key\", \"9\", \"doc\", FUSEE_LIST, 8, 0, 0}", -EPROTO,
		 " has option 'key' outside of its ctx"},
		{"farther", "{\"key\", \"9\", \"doc\", FUSEE_BOOL, 0xffffffff, 0, 0}", -EPROTO,
		 " has option 'key' outside of its ctx"},
		{"nameless", "{NULL, \"9\", \"doc\", FUSEE_INT, 0, 0, 0}", -EPROTO,
		 " has an option without a name"},
		{"choices", "{\"key\", \"9\", \"doc\", FUSEE_ENUM, 0, 0, 0}", -EPROTO,
		 " has option 'key' without choices"},
	};
	char source[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(
			source, sizeof(source),
			"static const struct fusee_option options[] = {%s};\n"
			"static void fini(void *c) { setenv(\"FINI\", \"1\", 1); }\n"
			"FUSEE_PLUGIN(x, FUSEE_UNWINDER, .ops = &ops, .ctx_size = 16, .fini = fini,"
			".options = {options, sizeof(options) / sizeof(*options), sizeof(*options)"
			"});",
			cases[i].options);
		if (cases[i].err == -EPROTO)
			refused(build(cases[i].name, source), cases[i].err, cases[i].why);
		else
			not_begun(build(cases[i].name, source), &plain, cases[i].err,
				  text_of("here.lua:3: unwind.x: %s", cases[i].why));
		CHECK(!getenv("FINI")); /* there was no init */
	}
	refused(build("stride", "static const struct fusee_option o[] = {{\"a\"}};\n"
				"FUSEE_PLUGIN(x, FUSEE_UNWINDER, .ops = &ops, .ctx_size = 16,\n"
				".options = {o, 1, sizeof(*o) - 8});"),
		-EPROTO, " has an option table of another size: rebuild it");
}

/* ---- a folder ---- */

TEST_OF_FOLDER(a_folder)
{
	static const char *const without[] = {"late", NULL};
	static const struct unwinder_choice choice = {.without = without};
	struct plugin_folder f;
	struct plugin_set set;
	static const char unwinder[] =
		"static const struct fusee_unwinder_ops mine = {.size = sizeof(mine), .order = %d};"
		"FUSEE_PLUGIN(%s, FUSEE_UNWINDER, .ops = &mine);";
	char source[512];

	build("a", text_of(unwinder, 90, "late"));
	snprintf(source, sizeof(source), unwinder, 10, "early");
	build("b", source);
	snprintf(source, sizeof(source), unwinder, 10, "also_early");
	build("c", source);
	build("sink", SINK);
	build("bad", "FUSEE_PLUGIN(bad, FUSEE_UNWINDER, .ops = &ops, .abi_major = 9);");
	build("twin", "FUSEE_PLUGIN(late, FUSEE_UNWINDER, .ops = &ops);");
	CHECK(!link(in_dir("a.so"), in_dir("a2.so")));    /* two names of one file */
	CHECK(!symlink("b.so", in_dir("b2.so")));         /* and a link */
	CHECK(!link(in_dir("c.so"), in_dir("c.so.old"))); /* these are not looked at */
	CHECK(!link(in_dir("c.so"), in_dir(".so")));
	CHECK_INT(plugin_set_open(dir, &plugin_host_base, NULL, &set), 0);
	CHECK_INT(set.n, 3);
	CHECK_STR(set.instances[0]->descriptor->name, "also_early");
	CHECK_STR(set.instances[1]->descriptor->name, "early");
	CHECK_STR(set.instances[2]->name, "unwind.late");
	plugin_set_close(&set);
	CHECK_INT(set.n, 0);
	CHECK_INT(plugin_set_open(dir, &plugin_host_base, &choice, &set), 0);
	CHECK_INT(set.n, 2);
	plugin_set_close(&set);
	CHECK_INT(plugin_set_open(in_dir("nowhere"), &plugin_host_base, NULL, &set), -ENOENT);
	plugin_set_close(&set);
	CHECK_INT(plugin_folder_open(text_of("%s:%s", dir, dir), 0, &f), 0);
	CHECK_INT(f.n, 4);
	CHECK(plugin_folder_find(&f, FUSEE_SINK, "early"));
	CHECK(plugin_folder_find(&f, FUSEE_SINK, "early") !=
	      plugin_folder_find(&f, FUSEE_UNWINDER, "early"));
	CHECK(!plugin_folder_find(&f, FUSEE_DISCOVERY, "early"));
	CHECK_INT(f.nrefused, 4); /* bad.so and twin.so, twice */
	CHECK(strstr(f.refused[1], "has the same name"));
	CHECK_INT(plugin_folder_load(&f), 0);
	CHECK_INT(f.n, 4);
	CHECK_INT(f.nrefused, 4);
	plugin_folder_close(&f);
	CHECK_INT(plugin_folder_open(in_dir("nowhere"), 0, &f), -ENOENT);
}

/* The text of a list of options is read back as the same list; a damaged text is refused. */
TEST(options_as_text)
{
	struct option_pair list[] = {{NULL, "a"}, {NULL, ""}}, map[] = {{"k", "1:2"}, {"", "v"}};
	const struct instance_option all[] = {
		{"name", {.kind = OPTION_TEXT, .text = "12:x"}},
		{"tags", {.kind = OPTION_LIST, .pairs = list, .n = 2}},
		{"none", {.kind = OPTION_LIST}},
		{"map", {.kind = OPTION_MAP, .pairs = map, .n = 2}},
		{"", {.kind = OPTION_TEXT, .text = ""}},
	};
	char *text = option_text(all, 5), *again, *none = option_text(NULL, 0);
	struct instance_option *read;
	size_t accepted = 0, len = strlen(text);
	uint32_t n;

	CHECK_STR(none, "");
	CHECK_INT(option_text_read(text, &read, &n), 0);
	CHECK_INT(n, 5);
	CHECK(!read[1].value.pairs[0].key && read[3].value.pairs[1].key);
	again = option_text(read, n);
	CHECK_STR(again, text);
	instance_option_list_free(read, n);
	for (size_t i = 0; i < len; i++) {
		char was = text[i];

		text[i] = '\0'; /* ends between two options at most */
		if (!option_text_read(text, &read, &n)) {
			accepted++;
			instance_option_list_free(read, n);
		}
		text[i] = '9';
		if (!option_text_read(text, &read, &n))
			instance_option_list_free(read, n);
		text[i] = was;
	}
	CHECK_INT(accepted, 5);
	CHECK_INT(option_text_read("1:a4", &read, &n), -EINVAL);
	CHECK_INT(option_text_read("1:a25000:", &read, &n), -EINVAL);
	CHECK_INT(option_text_read("-1:a1", &read, &n), -EINVAL);
	free(text);
	free(again);
	free(none);
}

/* What is of another kind, or not used, is not even loaded: its libraries cost memory. */
TEST_OF_FOLDER(only_what_is_used_is_loaded)
{
	struct check_identity id;
	struct plugin_folder f;
	struct plugin_set set;

	build("good", GOOD);
	build("sink", "__attribute__((constructor)) static void loaded(void)\n"
		      "{ setenv(\"LOADED\", \"1\", 1); }\n" SINK);
	check_identity(in_dir("sink.so"), &id);
	CHECK_INT(id.kind, FUSEE_SINK);
	CHECK_STR(id.name, "early");
	check_identity(in_dir("good.so"), &id);
	CHECK_INT(id.kind, FUSEE_UNWINDER);
	check_identity(in_dir("nothing.so"), &id);
	CHECK_INT(id.kind, 0);
	write_file(in_dir("short.so"), "\177ELF", 4);
	check_identity(in_dir("short.so"), &id);
	CHECK_INT(id.kind, 0);
	unlink(in_dir("short.so"));
	CHECK_INT(plugin_set_open(dir, &plugin_host_base, NULL, &set), 0);
	CHECK_INT(set.n, 1);
	CHECK(!getenv("LOADED"));
	plugin_set_close(&set);
	CHECK_INT(plugin_folder_open(dir, 0, &f), 0);
	CHECK_INT(f.n, 2);
	CHECK(!getenv("LOADED"));
	CHECK(plugin_folder_find(&f, FUSEE_SINK, "early")->descriptor);
	CHECK(getenv("LOADED"));
	plugin_folder_close(&f);
}

/* What is wrong is said when the plugin is used, or is the folder's when all are loaded. */
TEST_OF_FOLDER(a_plugin_that_cannot_be_loaded_later)
{
	struct check_identity id;
	struct plugin_folder f;

	build("good", GOOD);
	build("lacks", "extern void nowhere_to_be_found(void);\n"
		       "static int consume(void *c, const struct fusee_delivery *d)\n"
		       "{ nowhere_to_be_found(); return 0; }\n"
		       "static const struct fusee_sink_ops mine = {.size = sizeof(mine),\n"
		       "	.consume = consume};\n"
		       "FUSEE_PLUGIN(lacks, FUSEE_SINK, .ops = &mine);");
	build("other", "FUSEE_PLUGIN(other, FUSEE_UNWINDER, .ops = &ops, .abi_major = 0,\n"
		       "	.abi_minor = 1);");
	check_identity(in_dir("other.so"), &id);
	CHECK_INT(id.kind, FUSEE_UNWINDER);
	CHECK_STR(id.name, "");
	CHECK_INT(plugin_folder_open(dir, 0, &f), 0);
	CHECK_INT(f.n, 2);
	CHECK_INT(f.nrefused, 1);
	CHECK(strstr(f.refused[0], "plugin ABI 0.1"));
	CHECK(!plugin_folder_find(&f, FUSEE_SINK, "lacks"));
	CHECK(strstr(plugin_folder_refusal(&f, FUSEE_SINK, "lacks"), "nowhere_to_be_found"));
	CHECK(!plugin_folder_find(&f, FUSEE_SINK, "lacks"));
	CHECK(!plugin_folder_find(&f, FUSEE_SINK, "missing"));
	CHECK(!plugin_folder_refusal(&f, FUSEE_SINK, "missing"));
	/* it is another plugin by then */
	CHECK(!rename(in_dir("lacks.so"), in_dir("good.so")));
	CHECK(!plugin_folder_find(&f, f.plugins[0]->kind, f.plugins[0]->name) ||
	      !plugin_folder_find(&f, f.plugins[1]->kind, f.plugins[1]->name));
	CHECK_INT(plugin_folder_load(&f), 0);
	CHECK_INT(f.n, 0);
	CHECK_INT(f.nrefused, 3);
	plugin_folder_close(&f);
}

TEST(where_plugins_are)
{
	char *at;

	setenv("FUSEE_PLUGIN_PATH", "/some/where", 1);
	at = plugin_default_dir();
	CHECK_STR(at, "/some/where");
	free(at);
	setenv("FUSEE_PLUGIN_PATH", "", 1); /* as if it were not there */
	at = plugin_default_dir();
	CHECK(at && strlen(at) > 8 && !strcmp(at + strlen(at) - 8, "/plugins"));
	free(at);
}
