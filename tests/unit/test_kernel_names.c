/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/symbolizer
/* The kernel's names stay right while modules and BPF programs come and go, and are not read for
 * nothing. */
#include "symbolizer/internal/kernel_names.h"

#include "base/clock.h"
#include "test.h"

#define TEXT                              \
	"ffffffff81000000 T _stext\n"     \
	"ffffffff81000000 T startup_64\n" \
	"ffffffff81001000 T do_work\n"    \
	"ffffffff82000000 T _etext\n"
#define ONE "ffffffffc0000000 t one_fn\t[one]\nffffffffc0000100 d one_data\t[one]\n"
#define TWO "ffffffffc0000000 t two_fn\t[two]\nffffffffc0000080 t two_more\t[two]\n"
#define BPF "ffffffffc0800000 t bpf_prog_1234_f\t[bpf]\nffffffffc0800100 t bpf_prog_77_g\t[bpf]\n"

struct world {
	int kallsyms, modules;
	char paths[2][64];
	struct kernel_names *k;
};

static uint32_t newest;   /* program */
static int program_error; /* what asking for one comes to */

static int next(uint32_t id, uint32_t *ret)
{
	if (program_error)
		return program_error;
	if (id >= newest)
		return -ENOENT;
	*ret = id + 1;
	return 0;
}

static void write_all(int fd, const char *text)
{
	CHECK(!ftruncate(fd, 0));
	CHECK_INT(pwrite(fd, text, strlen(text), 0), strlen(text));
}

static void world_new(struct world *w, const char *kallsyms, const char *modules)
{
	struct kernel_names_from from = {.next_program = next};

	w->kallsyms = memfd_create("kallsyms", MFD_CLOEXEC);
	w->modules = memfd_create("modules", MFD_CLOEXEC);
	CHECK(w->kallsyms >= 0 && w->modules >= 0);
	write_all(w->kallsyms, kallsyms);
	write_all(w->modules, modules);
	snprintf(w->paths[0], sizeof(w->paths[0]), "/proc/self/fd/%d", w->kallsyms);
	snprintf(w->paths[1], sizeof(w->paths[1]), "/proc/self/fd/%d", w->modules);
	from.kallsyms = w->paths[0];
	from.modules = w->paths[1];
	CHECK_INT(kernel_names_new(&w->k, &from), 0);
}

static void world_free(struct world *w)
{
	kernel_names_free(w->k);
	close(w->kallsyms);
	close(w->modules);
}

static void is(struct world *w, uint64_t addr, const char *name, const char *module)
{
	const char *m, *got = kernel_names_at(w->k, addr, &m);

	CHECK_STR(got ? got : "(none)", name);
	CHECK_STR(m, module);
}

TEST_IN_WORLD(a_module_takes_anothers_place, TEXT ONE, "one 4096 0 - Live 0xffffffffc0000000\n")
{
	uint64_t began = clock_now();

	CHECK(kernel_names_begin(w->k, began));
	is(w, 0xffffffff81001010, "do_work", "");
	is(w, 0xffffffffc0000010, "one_fn", "one");
	is(w, 0xffffffffc0000110, "(none)", "");
	/* users of a module come and go; what would be read now is not read */
	write_all(w->kallsyms, TEXT);
	write_all(w->modules, "one 4096 3 x,y, Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w->k, clock_now()));
	is(w, 0xffffffffc0000010, "one_fn", "one");
	/* another module is there: what was sampled since before may be of either */
	write_all(w->kallsyms, TEXT TWO);
	write_all(w->modules, "two 8192 0 - Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w->k, began));
	is(w, 0xffffffff81001010, "do_work", "");
	is(w, 0xffffffffc0000010, "(none)", "");
	is(w, 0xffffffffc0000110, "two_more", "two");
	/* and what was sampled afterwards is its own */
	CHECK(kernel_names_begin(w->k, clock_now() + 1));
	is(w, 0xffffffffc0000010, "two_fn", "two");
	is(w, 0xffffffffc0000090, "two_more", "two");
	/* removed: what was sampled before still has its name, if there was no other change */
	write_all(w->kallsyms, TEXT);
	write_all(w->modules, "");
	CHECK(kernel_names_begin(w->k, clock_now()));
	is(w, 0xffffffffc0000010, "two_fn", "two");
	CHECK(kernel_names_begin(w->k, began));
	is(w, 0xffffffffc0000010, "(none)", "");
	CHECK(kernel_names_begin(w->k, clock_now() + 1));
	is(w, 0xffffffffc0000010, "(none)", "");
	is(w, 0xffffffff81000010, "startup_64", "");
}

TEST(programs_come)
{
	struct world w;

	newest = 5;
	world_new(&w, TEXT, "");
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0800010, "(none)", "");
	write_all(w.kallsyms, TEXT BPF);
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0800010, "(none)", ""); /* no number is newer: not read */
	newest = 7;
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0800010, "bpf_prog_1234_f", "bpf");
	is(&w, 0xffffffffc0800110, "bpf_prog_77_g", "bpf");
	world_free(&w);
}

/* BPF programs come all the time on some machines. A module's functions keep their names meanwhile,
 * and the symbols are not read for them. */
TEST(programs_come_beside_a_module)
{
	struct world w;
	uint64_t began;

	newest = 5;
	world_new(&w, TEXT TWO BPF, "two 8192 0 - Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0000010, "two_fn", "two");
	newest = 6;
	write_all(w.kallsyms, TEXT ONE);
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0000010, "two_fn", "two"); /* not read */
	write_all(w.kallsyms, TEXT TWO "ffffffffc0000100 d two_data\t[two]\n");
	is(&w, 0xffffffffc0800010, "bpf_prog_1234_f", "bpf"); /* read: it may have ended since */
	is(&w, 0xffffffffc0000010, "two_fn", "two");
	CHECK(kernel_names_begin(w.k, clock_now() + 1));
	is(&w, 0xffffffffc0800010, "(none)", "");
	/* the module itself goes */
	began = clock_now();
	newest = 7;
	write_all(w.kallsyms, TEXT ONE "ffffffffc0000200 t one_more\t[one]\n");
	write_all(w.modules, "one 4096 0 - Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w.k, began));
	is(&w, 0xffffffffc0000010, "(none)", "");
	CHECK(kernel_names_begin(w.k, clock_now() + 1));
	is(&w, 0xffffffffc0000010, "one_fn", "one");
	world_free(&w);
}

/* The kernel's own text alone: nothing is looked at, whatever came. */
TEST(text_is_read_once)
{
	struct world w;

	newest = 5;
	world_new(&w, TEXT ONE, "one 4096 0 - Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffff81001010, "do_work", "");
	write_all(w.kallsyms, "");
	write_all(w.modules, "");
	newest = 6;
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffff81001010, "do_work", "");
	world_free(&w);
}

/* Where it cannot be seen what came, it is read anew after a time, not each time. */
TEST(what_came_is_hidden)
{
	struct world w;

	program_error = -EPERM;
	world_new(&w, TEXT ONE, "one 4096 0 - Live 0xffffffffc0000000\n");
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0000010, "one_fn", "one");
	write_all(w.kallsyms, TEXT TWO);
	CHECK(kernel_names_begin(w.k, clock_now()));
	is(&w, 0xffffffffc0000010, "one_fn", "one");
	world_free(&w);
}

TEST_IN_WORLD(addresses_are_hidden, "0000000000000000 T _stext\n0000000000000000 T do_work\n", "")
{
	CHECK(!kernel_names_begin(w->k, clock_now()));
	is(w, 0xffffffff81001010, "(none)", "");
	/* not read each time */
	write_all(w->kallsyms, TEXT);
	CHECK(!kernel_names_begin(w->k, clock_now()));
}

/* Of this machine: its programs and modules can be walked over. */
TEST(the_kernels_own)
{
	struct kernel_names *k;
	const char *module;

	if (geteuid())
		SKIP("names of the kernel are root's");
	CHECK_INT(kernel_names_new(&k, NULL), 0);
	if (!kernel_names_begin(k, clock_now()))
		SKIP("names of the kernel are hidden");
	CHECK(!kernel_names_at(k, 0x1000, &module));
	kernel_names_free(k);
}
